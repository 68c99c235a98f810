"""Metrics by name: built-ins (``"overlap"``), or ``"module:attribute"`` for the application's own."""

import difflib
import importlib
from typing import Any

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.table import BUILTIN
from spangrade.metrics.local import metric
from spangrade.model.evaluator import Evaluator

__all__ = ["BUILTIN", "resolve"]


def resolve(given: Any) -> Evaluator:
    """The evaluator meant by a built-in's name, an import path ``module:name``, a metric, or a plain function.

    Raises:
        ConfigError: the name is unknown (near misses are named), the module does not import, or the thing is no metric.
    """
    if isinstance(given, str):
        return resolve(_by_path(given)) if ":" in given else _by_name(given)
    if isinstance(given, Evaluator):
        return given
    if callable(given) and not isinstance(given, type):
        return metric(given)
    raise ConfigError(
        f"metrics: {given!r} is no metric; give a function, a @metric, a built-in's name "
        f"({', '.join(BUILTIN)}), or 'module:name'"
    )


def _by_name(name: str) -> Evaluator:
    if name not in BUILTIN:
        near = difflib.get_close_matches(name, BUILTIN, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"built-ins are {', '.join(BUILTIN)}"
        raise ConfigError(f"metrics: no built-in metric {name!r}; {hint} (or 'module:name' for your own)")
    found = _by_path(BUILTIN[name].path)
    return resolve(found() if BUILTIN[name].factory else found)


def _by_path(path: str) -> Any:
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as fault:
        raise ConfigError(f"metrics: {path!r} does not import: {type(fault).__name__}: {fault}") from fault
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise ConfigError(f"metrics: module {module_name!r} has no {attribute!r}") from None
