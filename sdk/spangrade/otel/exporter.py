"""Exporters: ours at the end of the chain, and `ScoringExporter` for whoever can only give an exporter."""

import weakref
from collections.abc import Sequence
from functools import partial

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer

from spangrade import _guard
from spangrade._switches import scoring_stopped
from spangrade.delivery import evaluation_span
from spangrade.delivery.encodable import encodable
from spangrade.delivery.hold import Held
from spangrade.delivery.span_copy import ScoredSpan
from spangrade.otel.adapter import content_size, plain_attributes, span_data
from spangrade.otel.batch import batch
from spangrade.otel.cleaning import Cleaned
from spangrade.otel.destinations import span_exporter
from spangrade.otel.engine import current_engine, last_engine
from spangrade.samples.extract import quick_kind
from spangrade.scoring.seam import Offer


class SettlingExporter(SpanExporter):
    """The last step where the exporter is ours to call: applies the content policy off the application's thread, sees to it
    that the batch can be encoded, and counts what became of the scores that ride on the spans."""

    def __init__(self, inner: SpanExporter, *, settle: bool = True, cleaned: Cleaned | None = None) -> None:
        self.inner = inner
        self._cleaned = cleaned or Cleaned()  # one for all destinations of a span
        self.failures = 0  # batches that did not arrive
        self._ended = False
        self.settle = settle  # False for further destinations: the first one's answer counts

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export; a raising exporter is a failed export."""
        engine = last_engine()
        leaving = [self._cleaned(span, engine.policy) for span in spans] if engine is not None else spans
        batch = encodable(leaving)  # last: what a redact hook gives is the application's as well
        try:
            result = SpanExportResult.FAILURE if self._ended else self.inner.export(batch)
        except Exception as fault:  # noqa: BLE001 - the exporter may be the application's
            _guard.swallowed("exporter.export", fault)
            result = SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self.failures += 1
        if engine is not None and self.settle:
            failure = None if result is SpanExportResult.SUCCESS else "export_failed"
            for span in spans:
                if isinstance(span, ScoredSpan):
                    engine.sink.exported(span.pairs, failure)
                else:
                    evaluation_span.exported(span, failure)
        return result

    def shutdown(self) -> None:
        """End the exporter behind; it is not asked again, since many say so in a log line of their own."""
        ended, self._ended = self._ended, True
        if not ended:
            self.inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """As the exporter behind says."""
        return self.inner.force_flush(timeout_millis)


class ScoringExporter(SpanExporter):
    """Scores spans on their way to ``inner``, for set-ups that take an exporter and not a processor.

    Without a processor's view of running spans, a call's place in its trace is known only when the trace's local root
    arrives, so candidates wait for that (bounded). Spans go to ``inner`` through a `BatchSpanProcessor` of its own; the
    answer to `export` says that they were taken, not that they have arrived.

    Also the standard entry point: ``OTEL_TRACES_EXPORTER=spangrade`` (over OTLP, by the ``OTEL_EXPORTER_OTLP_*``
    variables). Evaluators are those of `spangrade.configure` or of ``SPANGRADE_CONFIG``.
    """

    exports = True
    settles = settles_evaluations = True

    def __init__(self, inner: SpanExporter) -> None:
        if not isinstance(inner, SpanExporter):
            raise TypeError(f"ScoringExporter(inner) takes a SpanExporter, not {type(inner).__name__}")
        # Spans have waited in a batch already before they come here, so this one is short.
        self._batch = batch(SettlingExporter(inner), schedule_delay_millis=200)
        self._shutdown = False
        _live.add(self)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Take a batch: calls wait for their scores, everything else goes on."""
        if self._shutdown:
            return SpanExportResult.FAILURE
        for span in spans:
            taken = False
            with _guard.guard("scoring_exporter.export"):
                taken = self._offer(span)
            if not taken:
                self.forward(span)
        return SpanExportResult.SUCCESS

    def _offer(self, span: ReadableSpan) -> bool:
        engine = current_engine()
        if engine is None or scoring_stopped():
            return False
        pipeline = engine.pipeline
        attributes = plain_attributes(span)
        kind = quick_kind(attributes)
        wanted = pipeline.wanted
        scope = span.instrumentation_scope
        now = pipeline.clock.monotonic()
        size, read = content_size(span, attributes), partial(span_data, attributes=attributes)
        if (
            kind is None
            or kind == "evaluator"
            or not (
                kind in wanted.root_kinds
                or wanted.by_itself(kind, span.name, scope.name if scope is not None else "", attributes)
            )
        ):
            pipeline.offer(Offer(span, None, None, now, size, read))  # for its place in the trace, or its documents
            return False
        pipeline.check_fork()
        held = Held(span, self, size, now + pipeline.settings.judge_hold)
        offer = Offer(span, held, None, now, size, read)
        engine.sink.hold.put(held)
        taken = False
        with _guard.guard("scoring_exporter.offer"):
            taken = pipeline.offer(offer)
        if not taken:
            engine.sink.hold.settle(held)
        return True

    def forward(self, span: ReadableSpan) -> None:
        """On to the batch."""
        self._batch.on_end(span)

    def tracer(self) -> Tracer:
        """Evaluation spans go through the global provider."""
        from opentelemetry import trace

        return trace.get_tracer("spangrade")

    @property
    def ended(self) -> bool:
        """Whether it was shut down."""
        return self._shutdown

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait for metrics, let held spans go, flush the batch."""
        engine = current_engine()
        done = True
        if engine is not None:
            with _guard.guard("scoring_exporter.force_flush"):
                done = engine.pipeline.drain(timeout_millis / 1000, judges=False)
                engine.sink.hold.release_all()
        return bool(self._batch.force_flush(timeout_millis)) and done

    def shutdown(self) -> None:
        """End scoring, let held spans go, end ``inner``."""
        if self._shutdown:
            return
        self._shutdown = True
        engine = current_engine()
        if engine is not None:
            with _guard.guard("scoring_exporter.shutdown"):
                engine.finish()
        self._batch.shutdown()


_live: weakref.WeakSet[ScoringExporter] = weakref.WeakSet()


def live_exporters() -> list[ScoringExporter]:
    """Those that have not been shut down: nobody but us asks them to flush."""
    return [one for one in list(_live) if not one.ended]


def entry_point() -> SpanExporter:
    """For ``OTEL_TRACES_EXPORTER=spangrade``: OTLP by the environment, evaluators from ``SPANGRADE_CONFIG`` if set."""
    from spangrade.otel.bootstrap import ensure_engine

    ensure_engine()
    return ScoringExporter(span_exporter(None))
