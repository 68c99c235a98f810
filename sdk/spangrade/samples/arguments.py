"""What a traced function was given, as others write it, → the input: the rule of our own spans (`@sg.trace`).

One argument is its value, several are a mapping by name, and a function that took nothing says nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

_WRAPPED: Final = frozenset({"args", "kwargs"})


def unwrapped(value: Any) -> Any:
    """The input that ``{"args": [...], "kwargs": {...}}`` is, as the decorators of Langfuse and OpenLLMetry write it.

    Positional arguments have lost their names, so several are a list, and beside named ones they stand under ``args``. Any
    other value stays as it is: somebody set it by hand.
    """
    if not isinstance(value, Mapping) or not value or not _WRAPPED.issuperset(value):
        return value
    given, named = value.get("args") or (), value.get("kwargs") or {}
    if not isinstance(given, (list, tuple)) or not isinstance(named, Mapping):
        return value
    if not named:
        return (given[0] if len(given) == 1 else list(given)) if given else None
    return {"args": list(given), **named} if given else by_name(named)


def by_name(value: Any) -> Any:
    """The input that a mapping of arguments by their names is. What is no mapping stays as it is."""
    if not isinstance(value, Mapping):
        return value
    if len(value) == 1:
        return next(iter(value.values()))
    return dict(value) if value else None
