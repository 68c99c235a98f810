"""What stands at an import path ``module:attribute``."""

import importlib
from typing import Any

from spangrade.errors import ConfigError


def at_path(path: str, install: str = "") -> Any:
    """The object; ``attribute`` may be dotted. ``install``: what to say beside a failed import.

    Raises:
        ConfigError: the module does not import, for whatever reason, or has no such attribute.
    """
    module_name, _, attribute = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as fault:
        hint = f" ({install})" if install else ""
        raise ConfigError(f"metrics: {path!r} does not import: {type(fault).__name__}: {fault}{hint}") from fault
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigError(f"metrics: module {module_name!r} has no {attribute!r}") from None
    return found
