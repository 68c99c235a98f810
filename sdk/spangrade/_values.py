"""Any Python value into bounded, valid text, without running the application's code.

No property, ``repr``, ``__iter__`` or ``model_dump`` of an unknown type is called, nor what a class may have redefined
(``__class__``, ``__getattribute__``): those can be slow, raise, or change something. What is not known is named by its
type. The result is a fresh copy, so that a caller may change its own list a moment later. Work is bounded before it is
done, and not its result only: a value of a gigabyte takes no longer than one at the bounds.

`snapshot` is for what is read. `captured` and `to_text` are for what a call was given: they count bytes as they will be on
the wire, name media (see `_media`), and leave out what stands under a secret's name (see `_secrets`).
"""

from collections.abc import Callable
from typing import Any, Final

from pydantic_core import to_json

from spangrade import _media
from spangrade._classes import type_name
from spangrade._secrets import MAX_NAME, is_secret, said
from spangrade._text import MAX_CHARS, bounded, cut, fit, valid
from spangrade._walk import CUT_ITEMS, INT64, MAX_CAPTURED_NODES, MAX_DEPTH, MAX_NODES, Walk

__all__ = [
    "CUT_ITEMS", "MAX_BYTES", "MAX_CHARS", "MAX_DEPTH", "MAX_NODES", "Walk", "bounded", "captured", "cut", "dumps", "fit", "json_within",
    "settled", "snapshot", "to_text", "type_name", "valid",
]  # fmt: skip

_ONLY_TEXT: Final = frozenset((str,))
MAX_BYTES: Final = 500_000  # in UTF-8, of a value that a call was given: input and output stay below 1 MiB together


def snapshot(value: Any) -> Any:
    """A bounded copy of ``value`` made of None, bool, int (64 bit), float (finite), str, list and dict with str keys."""
    return Walk(MAX_CHARS, captured=False).visit(value)


def settled(fresh: Any) -> Any:
    """`snapshot` of a value that nobody else holds, such as JSON just read: itself where it is within the bounds as it is,
    as nearly all are."""
    return fresh if _within(fresh) else snapshot(fresh)


def _within(value: Any) -> bool:
    left, nodes, level = MAX_CHARS, MAX_NODES, [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str:
                left -= len(item)
                fine = valid(item) is item
            elif kind is dict:
                nodes -= len(item)
                below += item  # its keys
                below += item.values()
                fine = _ONLY_TEXT.issuperset(map(type, item))
            elif kind is list:
                nodes -= len(item)
                below += item
                fine = True
            else:
                fine = -INT64 <= item < INT64 if kind is int or kind is float else item is None or kind is bool
            if not fine or left <= 0 or nodes <= 0:  # no number that is none either
                return False
        if not below:
            return True
        level = below
    return False


def captured(value: Any, limit: int = MAX_BYTES) -> Any:
    """The same of what a call was given: about ``limit`` bytes as JSON, media named."""
    return Walk(limit, captured=True).visit(value)


def dumps(plain: Any) -> str:
    """Strict JSON of what `snapshot` returned."""
    return to_json(plain, inf_nan_mode="null").decode()


def json_within(make: Callable[[int], Any], limit: int) -> str:
    """JSON of ``make(room)`` in about ``limit`` bytes. Escapes make it longer than what a walk counts, up to seven times;
    if they do, it is made again with less room."""
    room = limit
    for _ in range(2):
        encoded = to_json(make(room), inf_nan_mode="null")
        if len(encoded) <= limit + limit // 16:
            return encoded.decode()
        room = room * limit // len(encoded)
    return dumps(make(limit // 8))


def _surely_small(value: Any, limit: int) -> bool:
    """Whether ``value`` is made of exact builtin types only, within the bounds, and holds no media and no secrets: then
    a JSON encoder may have it as it is. This is most of what calls are given."""
    nodes, room, todo = MAX_CAPTURED_NODES, limit, [value]
    for item in todo:
        kind = type(item)
        if kind is dict:
            nodes -= len(item)
            if nodes < 0:
                return False
            for key, held in item.items():
                if type(key) is not str or (len(key) <= MAX_NAME and said(key) and is_secret(key, held)):
                    return False
                room -= len(key)
                todo.append(held)
        elif kind is str:
            room -= len(item)
            if room < 0 or (len(item) >= _media.MIN_URL and _media.suspected(item)):
                return False
        elif kind is list or kind is tuple:
            nodes -= len(item)
            if nodes < 0:
                return False
            todo += item
        elif kind is int or kind is float:
            if not -INT64 <= item < INT64:  # nor NaN, nor infinity
                return False
        elif item is not None and kind is not bool:
            return False
    return room >= 0


def to_text(value: Any, limit: int = MAX_BYTES) -> tuple[str, bool]:
    """``(text, is_json)`` of what a call was given: a str as it is, everything else as JSON of its `captured` copy."""
    if type(value) is str:
        size = len(value)
        if size <= limit and value.isascii() and (size < _media.MIN_URL or not _media.suspected(value)):
            return value, False
        return Walk(limit, captured=True).text(value), False
    try:
        if _surely_small(value, limit):
            encoded = to_json(value)
            if len(encoded) <= limit:
                return encoded.decode(), True
    except (ValueError, RuntimeError):  # a lone surrogate; or another thread changed it while we looked
        pass
    plain = captured(value, limit)
    if type(plain) is str:
        return plain, False
    return json_within(lambda room: plain if room == limit else captured(value, room), limit), True
