"""Scores as log events: the form that the GenAI conventions define, parented to the scored span by its ids.

The pipeline for them is our own: an application that exports traces seldom exports logs, and the global no-op would lose
them in silence. A destination that takes no logs (404, 405, UNIMPLEMENTED) is noticed, said once, and left alone.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from opentelemetry import trace as trace_api
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk._logs import ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState

from spangrade import _guard
from spangrade._log import once
from spangrade._text import valid
from spangrade.delivery.batching import Batcher, Limits
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.encodable import encodable_attributes, encodable_resource
from spangrade.delivery.payload import attributes_of, summary
from spangrade.delivery.sink import REFUSED
from spangrade.model.outcome import ScoreRecord, SpanRef
from spangrade.semconv import EVALUATION_EVENT, SCOPE, SCORE_ID

NO_LOGS_HERE: Final = frozenset({404, 405, 501})
EXPORT_FAILED: Final = "export_failed"
CLOSE_S: Final = 30.0  # as the SDK's own; whoever is in a hurry waits for less
_MAX_WAITING: Final = 4_096
_FLAT: Final = 2_048  # bytes beside its text
_SCOPE: Final = InstrumentationScope(SCOPE)


def _size(record: ReadableLogRecord) -> int:
    """About how many bytes a log event takes."""
    texts = [value for value in (record.log_record.attributes or {}).values() if type(value) is str]
    return _FLAT + sum(map(len, texts))


def context_of(ref: SpanRef) -> Context:
    """A context in which the scored (and ended) span is current, by its ids only."""
    state = TraceState.from_header([ref.trace_state]) if ref.trace_state else None
    flags = TraceFlags(ref.trace_flags)
    span_context = SpanContext(ref.trace_id, ref.span_id, is_remote=False, trace_flags=flags, trace_state=state)
    return trace_api.set_span_in_context(NonRecordingSpan(span_context), Context())


class GatedExporter(LogRecordExporter):
    """Passes log records to ``inner`` until the destination turns out to take none.

    ``takes_logs`` is asked after a failed export only; False closes the gate for good. A closed gate answers FAILURE.
    ``exported(batch, failure)`` hears how each batch went; ``failure`` is None, `REFUSED` or `EXPORT_FAILED`.
    """

    def __init__(self, inner: LogRecordExporter, takes_logs: Callable[[], bool]) -> None:
        self._inner = inner
        self._takes_logs = takes_logs
        self.open = True
        self.exported: Callable[[Sequence[ReadableLogRecord], str | None], None] = lambda _batch, _failure: None

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Export, or say at once that it is no use."""
        try:
            result = self._inner.export(batch) if self.open else LogRecordExportResult.FAILURE
        except Exception as fault:  # noqa: BLE001 - what waits for this batch must hear of it
            _guard.swallowed("logs.export", fault)
            result = LogRecordExportResult.FAILURE
        failure: str | None = None
        if result is not LogRecordExportResult.SUCCESS:
            if self.open and not self._takes_logs():
                self.open = False
                once(
                    "logs:gate",
                    "the destination takes no OTLP logs; scores leave as span events, late ones as evaluation spans",
                    level="info",
                )
            failure = EXPORT_FAILED if self.open else REFUSED
        self.exported(batch, failure)
        return result

    def shutdown(self) -> None:
        """End the exporter behind."""
        self._inner.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """As the exporter behind says."""
        return bool(self._inner.force_flush(timeout_millis))


class LogEvents:
    """Emits score log events through a pipeline of our own (bounded queue, batches, a daemon thread)."""

    def __init__(self, exporter: GatedExporter, resource: Resource, policy: ContentPolicy) -> None:
        self._exporter = exporter
        self._policy = policy
        # Not through a LoggerProvider: that detects the process anew in every forked child, by threads, used or not.
        self._resource = encodable_resource(resource)
        limits = Limits.said("OTEL_BLRP", more_room=2 * _MAX_WAITING)  # for all that may wait to hear how it went
        self._batches: Batcher[ReadableLogRecord] = Batcher("logs", exporter.export, self._lost, limits, _size)
        self._lock = threading.RLock()
        self._waiting: dict[str, Callable[[str | None], None]] = {}  # score id → who wants to know how it went
        exporter.exported = self._exported

    @property
    def open(self) -> bool:
        """Whether the destination, as far as known, takes logs."""
        return self._exporter.open

    def emit(self, record: ScoreRecord) -> bool:
        """Queue one score; False when the destination is known to take no logs."""
        if not self._exporter.open:
            return False
        attributes: dict[str, Any] = encodable_attributes(self._policy.attributes(attributes_of(record)))
        # Some stores keep neither EventName nor an empty body, so both are also where everything looks.
        attributes["event.name"] = EVALUATION_EVENT
        failed = record.error_type is not None
        log_record = LogRecord(
            timestamp=record.time_ns,
            context=context_of(record.span),
            severity_number=SeverityNumber.WARN if failed else SeverityNumber.INFO,
            severity_text="WARN" if failed else "INFO",
            body=valid(self._policy.text(summary(record))),
            attributes=attributes,
            event_name=EVALUATION_EVENT,
        )
        log_record.context = Context()  # its ids have been taken out of it
        bound = ReadWriteLogRecord(log_record, self._resource, _SCOPE)  # which keeps to the SDK's limits
        self._batches.put(ReadableLogRecord(bound.log_record, self._resource, _SCOPE))
        return True

    def emit_all(self, pair: Sequence[ScoreRecord], settled: Callable[[str | None], None]) -> bool:
        """Queue a pair's scores; ``settled(failure)`` is called once, when the export of the last one is known.

        False, with ``settled`` never called, when the destination is known to take no logs.
        """
        with self._lock:
            if not self._exporter.open or len(self._waiting) >= _MAX_WAITING:
                return False
            self._waiting[pair[-1].score_id] = settled
        for record in pair:
            self.emit(record)
        return True

    def _lost(self, record: ReadableLogRecord, reason: str) -> None:
        self._exported([record], reason)

    def _exported(self, batch: Sequence[ReadableLogRecord], failure: str | None) -> None:
        for record in batch:
            score_id = (record.log_record.attributes or {}).get(SCORE_ID)
            with self._lock:
                settled = self._waiting.pop(str(score_id), None)
            if settled is not None:
                with _guard.guard("logs.settled"):
                    settled(failure)

    def after_fork(self) -> None:
        """In a forked child: who waits is the parent's."""
        self._lock = threading.RLock()
        self._waiting = {}

    def force_flush(self, timeout_millis: int) -> bool:
        """Export what is queued."""
        return self._batches.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Export what is queued and end; whoever still waits hears that nothing came of it."""
        self._batches.close(CLOSE_S)
        self._exporter.shutdown()
        with self._lock:
            waiting, self._waiting = list(self._waiting.values()), {}
        for settled in waiting:
            with _guard.guard("logs.settled"):
                settled("not_exported")
