"""JSON in attributes: strict where it is whole, forgiving where a length limit has cut it.

``OTEL_*_VALUE_LENGTH_LIMIT`` and many exporters cut attributes in the middle, which leaves text that is no JSON any
more. What stood before the cut is still there to be read: whole list elements are kept, the broken one is handed over
apart, and the reader is told.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_core import from_json

from spangrade._values import bounded, settled, snapshot

_DECODER: Final = json.JSONDecoder(strict=False)
_SPACE: Final = " \t\r\n"
_CUT_MARK: Final = re.compile(r"\btruncated\b|…|\.\.\.\s*$", re.IGNORECASE)
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_MAX_ITEMS: Final = 20_000


def loads(text: str) -> Any:
    """The value of a whole JSON text. Lone surrogates, which Python's writer lets through, are allowed.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return from_json(text)
    except TypeError:
        pass  # half a character itself, as SDKs let it through
    except ValueError:
        if "\\u" not in text:
            raise
    try:
        return _DECODER.decode(text)
    except RecursionError as fault:
        raise ValueError("nested too deeply") from fault


def _strict(text: str, allow_partial: Any = False) -> Any:
    try:
        return from_json(text, allow_partial=allow_partial)
    except TypeError as fault:  # half a character in it
        raise ValueError("it is no valid text") from fault


def looks_json(text: str) -> bool:
    """Whether the text starts like a JSON object or list."""
    return text[:64].lstrip(_SPACE)[:1] in ("{", "[")


def looks_cut(text: str) -> bool:
    """Whether text that is not JSON is the beginning of some, by its first character and by how reading it fails."""
    return looks_json(text) and (_ends_early(text) or _CUT_MARK.search(text[-64:]) is not None)


def _ends_early(text: str) -> bool:
    try:
        _strict(text)
    except ValueError as fault:
        why = str(fault)
        if "escape" in why:  # a lone surrogate, at which the strict reader stops: nobody has looked behind it
            return _ends_early(_SURROGATE.sub(r"\\ufffd", text)) if _SURROGATE.search(text) else False
        return why.startswith("EOF")
    return False


def read_value(value: Any) -> tuple[Any, bool]:
    """``(value, truncated)`` of an attribute that should hold JSON: text, or a structured value as it is.

    Text that is not JSON stays text; ``truncated`` says whether it looks like JSON that was cut.
    """
    if not isinstance(value, str):
        kind = type(value)  # of plain containers itself: nobody changes what stands on an ended span
        return settled(value) if kind is dict or kind is list else snapshot(value), False
    try:
        return settled(loads(value)), False
    except ValueError:
        return bounded(value), looks_cut(value)


def read_loose(value: Any) -> tuple[Any, bool]:
    """`read_value` for attributes that hold text or JSON: only an object or a list is parsed, so "123" stays text."""
    if isinstance(value, str) and not looks_json(value):
        return bounded(value), False
    return read_value(value)


def read_object(value: Any) -> dict[str, Any]:
    """A mapping, or JSON text of one, as a plain dict; anything else is an empty dict."""
    if isinstance(value, str):
        if not looks_json(value):
            return {}
        try:
            found = settled(loads(value))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
    if not isinstance(value, Mapping):
        return {}
    plain = snapshot(value if isinstance(value, dict) else dict(value))
    return plain if isinstance(plain, dict) else {}


@dataclass(slots=True)
class Items:
    """The elements of a list attribute.

    ``items`` are whole. When the text was cut, ``truncated`` is True and ``tail`` is the broken last element: its whole
    members, or None. ``half`` is the same element with its last string as far as it goes: good for knowing what it was,
    not for grading.
    """

    items: list[Any] = field(default_factory=list)
    truncated: bool = False
    tail: Any = None
    half: Any = None


def read_items(value: Any) -> Items:
    """The elements of a list held as JSON text, a sequence, or one mapping. Text that is no JSON is one element."""
    if value is None:
        return Items()
    if isinstance(value, str):
        for _level in (1, 2):  # JSON in JSON: two levels are met in practice
            if not isinstance(value, str):
                break
            if not (looks_json(value) or value[:2] in ('"[', '"{')):
                return Items([bounded(value)] if value.strip() else [])
            try:
                value = loads(value)
            except ValueError:
                return _salvage(value)
    if isinstance(value, (list, tuple)):
        return Items(list(value[:_MAX_ITEMS]), truncated=len(value) > _MAX_ITEMS)
    return Items([value])


def _salvage(text: str) -> Items:
    """What can be read of a JSON text that was cut. Other text that begins with a bracket is one element."""
    if not looks_cut(text):
        return Items([bounded(text)])
    found = Items(truncated=True)
    position = len(text) - len(text.lstrip(_SPACE))
    if text[position] == "[":
        position += 1
        while len(found.items) < _MAX_ITEMS:
            while position < len(text) and text[position] in _SPACE + ",":
                position += 1
            try:
                item, position = _DECODER.raw_decode(text, position)
            except (ValueError, RecursionError):
                break
            found.items.append(item)
    rest = text[position:]
    if looks_json(rest):
        found.tail = _partial(rest, strings=False)
        found.half = _partial(rest, strings=True)
    return found if found.items or found.tail is not None or _ends_early(text) else Items([bounded(text)])


def _partial(text: str, *, strings: bool) -> Any:
    try:
        return _strict(text, "trailing-strings" if strings else True)
    except ValueError:
        return None
