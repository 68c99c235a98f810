"""Metrics. The built-in ones are here by name: ``from spangrade.metrics import json_schema, keywords, pii``.

Those with options are functions that make the metric (``keywords(none_of=["guaranteed"])``); the others (``overlap``, ``json_valid``, ...)
are the metric itself. All of them may be given by name as well: ``sg.configure(metrics=["overlap", keywords(...)])``. A name is imported
when it is asked for, so ``import spangrade`` takes no longer for them.
"""

import importlib
from typing import Any

from spangrade.metrics.builtin.table import BUILTIN


def __getattr__(name: str) -> Any:
    if name not in BUILTIN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = BUILTIN[name].path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *BUILTIN})
