"""What a traced function was given, as others write it, → the input: the rule of our own spans (`@sg.trace`).

One argument is its value, several are a mapping by name, and a function that took nothing says nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

_WRAPPED: Final = frozenset({"args", "kwargs"})


def read_arguments(value: Any) -> Any:
    """The input that a parsed record of arguments is.

    ``{"args": [...], "kwargs": {...}}``, as Langfuse and OpenLLMetry write it, is unwrapped (positional ones have lost
    their names, so several are a list; beside named ones they are under ``args``). Any other mapping is one by name. What is
    no mapping stays as it is.
    """
    if not isinstance(value, Mapping):
        return value
    named: Mapping[str, Any] = value
    if value and _WRAPPED.issuperset(value) and isinstance(value.get("args", ()), (list, tuple)):
        given, named = value.get("args") or (), value.get("kwargs") or {}
        if not isinstance(named, Mapping):
            return value
        if not named:
            return (given[0] if len(given) == 1 else list(given)) if given else None
        if given:
            return {"args": list(given), **named}
    if len(named) == 1:
        return next(iter(named.values()))
    return dict(named) if named else None
