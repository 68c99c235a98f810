"""The bytes that wait inside the pipeline: offers not read yet, and samples that are still being graded."""

import threading
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from spangrade.model.span import SpanData

FLAT: Final = 2_048  # what a span or a sample costs beside its text
_NO_TEXT: Final = frozenset((int, float, bool, type(None)))


def text_size(value: Any) -> int:
    """About how many bytes a value holds: its text, and a flat rate for every item of a container."""
    if isinstance(value, (str, bytes)):
        return len(value)
    items: Iterable[Any]
    if isinstance(value, (dict, MappingProxyType)):  # the common ones first: to ask an ABC costs as much as the rest
        items = value.values()
    elif isinstance(value, (list, tuple)):
        items = value
    elif isinstance(value, Mapping):
        items = value.values()
    else:
        return 0
    size = 0
    for item in items:
        kind = type(item)
        size += 64 + (len(item) if kind is str else 0 if kind in _NO_TEXT else text_size(item))
    return size


def span_size(span: SpanData) -> int:
    """About how many bytes a span's content costs: the text of its attributes and events, and a flat rate."""
    size = FLAT + text_size(span.attributes)
    for event in span.events:
        size += text_size(event.attributes)
    return size


class Room:
    """A bound in bytes. What comes from outside asks first; what became of it is only counted."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._lock = threading.RLock()
        self._used = 0

    @property
    def used(self) -> int:
        """Bytes taken now, as estimated."""
        return self._used

    def take(self, size: int) -> bool:
        """Take ``size``; False, and nothing taken, when it does not fit."""
        with self._lock:
            if self._used + size > self._max:
                return False
            self._used += size
            return True

    def add(self, size: int) -> None:
        """Take ``size``, whatever the bound says."""
        with self._lock:
            self._used += size

    def release(self, size: int) -> None:
        """Give it back."""
        with self._lock:
            self._used -= size
