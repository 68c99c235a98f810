"""What recent calls were taken for: bounded in count, bytes and age, the oldest out first."""

import threading
from collections import OrderedDict
from typing import Final

from spangrade.samples.explain import SpanNote

_MAX_PER_TRACE: Final = 1_000
_NOTE_BYTES: Final = 800
_FINDING_BYTES: Final = 200


class SpanNotes:
    """Notes by trace, at most ``max_notes`` and about ``max_bytes`` of memory together (whole traces go, the one longest without
    news first) and 1,000 of one trace. Thread-safe."""

    def __init__(self, max_notes: int, max_bytes: int) -> None:
        self._max = max_notes
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._traces: OrderedDict[str, dict[str, tuple[float, SpanNote]]] = OrderedDict()
        self._count = 0
        self._bytes = 0

    def put(self, note: SpanNote, arrived: float) -> None:
        """Keep a note; that of a span that came again replaces the first."""
        with self._lock:
            spans = self._traces.setdefault(note.trace_id, {})
            self._traces.move_to_end(note.trace_id)
            before = spans.get(note.span_id)
            if before is None and len(spans) >= _MAX_PER_TRACE:
                return
            self._count += before is None
            self._bytes += _size(note) - (0 if before is None else _size(before[1]))
            spans[note.span_id] = (arrived, note)
            while (self._count > self._max or self._bytes > self._max_bytes) and len(self._traces) > 1:
                self._drop(next(iter(self._traces)))

    def of(self, trace_id: str, oldest: float) -> list[SpanNote]:
        """Those of a trace that arrived after ``oldest``."""
        with self._lock:
            self._let_go(oldest)
            return [note for arrived, note in self._traces.get(trace_id, {}).values() if arrived > oldest]

    def _let_go(self, oldest: float) -> None:
        """Traces without news since ``oldest``, from the front."""
        while self._traces:
            trace_id, spans = next(iter(self._traces.items()))
            if max(arrived for arrived, _ in spans.values()) > oldest:
                return
            self._drop(trace_id)

    def _drop(self, trace_id: str) -> None:
        gone = self._traces.pop(trace_id)
        self._count -= len(gone)
        self._bytes -= sum(_size(note) for _, note in gone.values())


def _size(note: SpanNote) -> int:
    """Bytes of memory, about: the record and its texts; what a finding says is mostly shared."""
    return _NOTE_BYTES + len(note.name) + len(note.scope) + _FINDING_BYTES * len(note.findings)
