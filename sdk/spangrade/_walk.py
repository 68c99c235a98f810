"""The copy of a value: bounded while it is made, and without running the application's code."""

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

from pydantic_core import to_json

from spangrade import _media
from spangrade._classes import type_name
from spangrade._contents import LOOK, Reader, reader
from spangrade._secrets import HIDDEN, MAX_NAME, is_secret, said
from spangrade._text import bounded, cut, fit

MAX_NODES: Final = 20_000
MAX_CAPTURED_NODES: Final = 10_000  # of what a call was given: its thread waits for us
MAX_DEPTH: Final = 16
INT64: Final = 2**63

CUT_ITEMS: Final = "<more items cut>"
_ITEM_BYTES: Final = 20  # what an item takes beside its text: punctuation, or a number's digits
_OBJECT_NODES: Final = 3  # an object takes as long to read as so many plain items more
_LOOKS: Final = 2 * LOOK  # and of all texts of a value in which some were suspected
_NAMING: Final = 2_048  # what naming one piece of media takes, in characters looked at
_MAX_BITS: Final = 2_000  # of an integer that is written in full: Python may refuse more digits


class Walk:
    """A value's copy in the making: what is left of the bounds, and the containers on the current path.

    Values that come one after the other may share one, and with it the bounds.
    """

    __slots__ = ("_captured", "_left", "_looks", "_nodes", "_path", "_readers")

    def __init__(self, limit: int, *, captured: bool) -> None:
        self._left = limit
        self._captured = captured
        self._nodes = MAX_CAPTURED_NODES if captured else MAX_NODES
        self._looks = _LOOKS
        self._path: set[int] = set()
        # By id, since a metaclass may have redefined the hash; the class is kept so that its id stays its own.
        self._readers: dict[int, tuple[type, Reader]] = {}

    @property
    def spent(self) -> bool:
        """Whether nothing more is taken."""
        return self._left <= 0 or self._nodes <= 0

    def visit(self, value: Any, depth: int = 0) -> Any:
        """The copy: of None, bool, int (64 bit), float (finite), str, list and dict with str keys."""
        kind = type(value)
        if kind is str:
            return self.text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -INT64 <= value < INT64 else self._big(value)
        if kind is float:
            return value if math.isfinite(value) else str(value)
        if depth >= MAX_DEPTH:
            return self.text(f"<{type_name(value)}: deeper than {MAX_DEPTH} levels>")
        here = id(value)
        if here in self._path:
            return "<cycle>"
        self._path.add(here)
        try:
            known = self._readers.get(id(kind))
            if known is None:
                known = self._readers[id(kind)] = (kind, reader(kind))
            return known[1](self, value, depth + 1)
        except Exception:  # noqa: BLE001 - another thread changed it while we looked, or its class fights back
            return self.unknown(value)
        finally:
            self._path.discard(here)

    def text(self, value: str) -> str:
        """The copy of a text."""
        size = len(value)
        if size < _media.MIN_URL and size <= self._left and value.isascii():  # most of them
            self._left -= size
            return value
        if self._captured:
            if size >= _media.MIN_URL:
                value = self._without_media(value)
            value = fit(value, max(self._left, 64))
            self._left -= len(value) if value.isascii() else len(value.encode())
        else:
            value = bounded(value, max(self._left, 64))
            self._left -= len(value)
        return value

    def _without_media(self, text: str) -> str:
        if len(text) > LOOK:
            named = _media.whole(text) if self._looks > 0 else f"<text length={len(text)}>"
            if named is not None:
                self._looks -= _media.HASHED + _NAMING
                return named
            text = cut(text, LOOK)
        if not _media.suspected(text):
            return text
        if self._looks <= 0:
            self._left -= len(text) // 16  # for having been looked through
            return f"<text length={len(text)}>"
        self._looks -= len(text) + _NAMING
        return _media.replace(text)

    def items(self, taken: tuple[Any, ...], size: int, depth: int) -> list[Any]:
        """Copies of the first ``taken`` of ``size`` items."""
        out: list[Any] = []
        flat = _ITEM_BYTES if self._captured else 0
        for item in taken:
            if self._left <= 0 or self._nodes <= 0:
                break
            self._nodes -= 1
            self._left -= flat
            out.append(self.visit(item, depth))
        if len(out) < size:
            out.append(CUT_ITEMS)
        return out

    def pairs(self, taken: Iterable[tuple[Any, Any]], size: int, depth: int) -> dict[str, Any]:
        """The same of keys and values."""
        out: dict[str, Any] = {}
        captured = self._captured
        flat = _ITEM_BYTES if self._captured else 0
        for key, item in taken:
            if self._left <= 0 or self._nodes <= 0:
                break
            size -= 1
            self._nodes -= 1
            self._left -= flat
            name = self.text(key) if type(key) is str else self._key(key)
            if captured and len(name) <= MAX_NAME and said(name) and is_secret(name, item):
                item = HIDDEN  # noqa: PLW2901
            out[name] = self.visit(item, depth)
        if size > 0:
            out["…"] = CUT_ITEMS
        return out

    def hides(self, name: str, value: Any) -> bool:
        """Whether a value is a secret, by its name. What is only read was written by others, and is theirs to hide."""
        return self._captured and is_secret(name, value)

    def _key(self, key: Any) -> str:
        plain = self.visit(key, MAX_DEPTH - 1)
        if type(plain) is int:
            return str(plain)
        return plain if isinstance(plain, str) else to_json(plain, inf_nan_mode="null").decode()

    def _big(self, value: int) -> str:
        # More digits than this nobody reads, and to write them takes time that grows with their square.
        return self.text(str(value)) if value.bit_length() < _MAX_BITS else f"<int of {value.bit_length()} bits>"

    def most(self) -> int:
        """How many items of a container may still be looked at."""
        return max(self._nodes, 0)

    def charge(self) -> None:
        """An object was met."""
        self._nodes -= _OBJECT_NODES

    def unknown(self, value: Any) -> str:
        """What is left to say of a value."""
        return self.text(f"<{type_name(value)}>")

    def named(self, length: int, first: Callable[[slice], bytes]) -> str:
        """The name of bytes."""
        self.charge()
        start = first(slice(_media.HASHED if self._looks > 0 else 0))
        self._looks -= len(start) + _NAMING
        return _media.of_bytes(start, length)
