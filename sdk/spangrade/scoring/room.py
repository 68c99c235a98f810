"""The bytes that wait inside the pipeline: offers not read yet, and samples that are still being graded."""

import threading
from typing import Final

from spangrade._sizes import text_size
from spangrade.model.span import SpanData

__all__ = ["FLAT", "Room", "span_size", "text_size"]

FLAT: Final = 2_048  # what a span or a sample costs beside its text


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
