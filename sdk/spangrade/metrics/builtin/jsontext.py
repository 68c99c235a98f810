"""Strict JSON out of an answer: RFC 8259, with a whole answer in a Markdown fence allowed."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_MAX_DIGITS: Final = 4_000  # Python refuses to read longer whole numbers


@dataclass(slots=True)
class Read:
    """A value, whether it stood in a fence, and the first object key that was given twice."""

    value: Any
    fenced: bool = False
    repeated: str | None = None


def read_json(output: Any) -> Read:
    """The JSON value that an answer is: text is parsed, a structured value is taken as it is.

    Raises:
        ValueError: it is not JSON; the message says where.
    """
    if not isinstance(output, str):
        bad = _not_json(output)
        if bad:
            raise ValueError(bad)
        return Read(output)
    inner = _in_fence(output)
    read = Read(None, fenced=inner is not None)

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items) and read.repeated is None:
            seen: set[str] = set()
            read.repeated = next(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return found

    try:
        read.value = json.loads(
            output if inner is None else inner, parse_constant=refuse, parse_int=_whole, object_pairs_hook=pairs
        )
    except RecursionError:
        raise ValueError("nested too deep to parse") from None
    return read


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _in_fence(text: str) -> str | None:
    """What a text in nothing but one Markdown fence holds, else None."""
    stripped = text.strip()
    if not stripped.startswith("```") or not stripped.endswith("```") or len(stripped) < 7:
        return None
    opening, line_break, rest = stripped[3:-3].partition("\n")
    return rest if line_break and opening.strip().lower() in ("", "json") and "```" not in rest else None


def _not_json(value: Any) -> str:
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return f"{item} is not JSON"
        if isinstance(item, Mapping):
            todo += item.values()
        elif isinstance(item, (list, tuple)):
            todo += item
        elif item is not None and not isinstance(item, (str, bool, int, float)):
            return f"{type(item).__name__} is not JSON"
    return ""
