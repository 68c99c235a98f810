"""What a traced function was given, as others write it, → the input: the rule of our own spans (`@sg.trace`).

One argument is its value, several are a mapping by name, and a function that took nothing says nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

_WRAPPED: Final = frozenset({"args", "kwargs"})


def unwrapped(value: Any, *, named: bool = False) -> Any:
    """The input that ``{"args": [...], "kwargs": {...}}`` is, as the decorators of Langfuse and OpenLLMetry write it.

    Positional arguments have lost their names, so several are a list, and beside named ones they stand under ``args``. Any
    other value stays as it is: somebody set it by hand. ``named``: a single named one keeps its name (a tool's).
    """
    if not isinstance(value, Mapping) or not value or not _WRAPPED.issuperset(value):
        return value
    given, by_names = value.get("args") or (), value.get("kwargs") or {}
    if not isinstance(given, (list, tuple)) or not isinstance(by_names, Mapping):
        return value
    if not by_names:
        return (given[0] if len(given) == 1 else list(given)) if given else None
    if given:
        return {"args": list(given), **by_names}
    return dict(by_names) if named else by_name(by_names)


def by_name(value: Any) -> Any:
    """The input that a mapping of arguments by their names is. What is no mapping stays as it is."""
    if not isinstance(value, Mapping):
        return value
    if len(value) == 1:
        return next(iter(value.values()))
    return dict(value) if value else None


def executed(tool: str | None, arguments: Any, call_id: str | None = None) -> tuple[dict[str, Any], ...]:
    """The one call that a tool's span is, as `Reading.tool_calls` has it; none where nobody says the tool's name."""
    if tool is None:
        return ()
    call = {"id": call_id, "name": tool, "arguments": arguments}
    return ({key: value for key, value in call.items() if value is not None},)
