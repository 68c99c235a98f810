"""What recent calls were taken for: bounded in count and age, the oldest out first."""

import threading
from collections import OrderedDict
from typing import Final

from spangrade.samples.explain import SpanNote

_MAX_PER_TRACE: Final = 1_000


class SpanNotes:
    """Notes by trace, at most ``max_notes`` together (whole traces go, the one longest without news first) and 1,000 of one
    trace. Thread-safe."""

    def __init__(self, max_notes: int) -> None:
        self._max = max_notes
        self._lock = threading.Lock()
        self._traces: OrderedDict[str, dict[str, tuple[float, SpanNote]]] = OrderedDict()
        self._count = 0

    def put(self, note: SpanNote, arrived: float) -> None:
        """Keep a note; that of a span that came again replaces the first."""
        with self._lock:
            spans = self._traces.setdefault(note.trace_id, {})
            self._traces.move_to_end(note.trace_id)
            if note.span_id not in spans:
                if len(spans) >= _MAX_PER_TRACE:
                    return
                self._count += 1
            spans[note.span_id] = (arrived, note)
            while self._count > self._max and len(self._traces) > 1:
                _, gone = self._traces.popitem(last=False)
                self._count -= len(gone)

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
            del self._traces[trace_id]
            self._count -= len(spans)
