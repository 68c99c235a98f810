"""`SpangradeProcessor`: the pipeline's place in an OpenTelemetry provider."""

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.trace import Tracer, TracerProvider

from spangrade import _guard, _suppress
from spangrade.delivery.hold import Held
from spangrade.otel.adapter import content_size, plain_attributes, span_data
from spangrade.otel.batch import batch
from spangrade.otel.engine import current_engine, last_engine
from spangrade.otel.lineage import OpenSpans
from spangrade.samples.extract import quick_kind
from spangrade.samples.reading import ROOT_KINDS
from spangrade.scoring.seam import Offer
from spangrade.semconv import SCOPE


class SpangradeProcessor(SpanProcessor):
    """Holds ended calls until their scores are there, then hands each span to ``next``, exactly once.

    Args:
        next: the processor (or exporter, which then gets a `BatchSpanProcessor`) that spans go on to. None: late mode;
            spans are exported by somebody else's processor, and scores leave as log events or evaluation spans.

    What is no call goes on at once, on the caller's thread. Nothing raises into the application. Which evaluators run is
    what `spangrade.configure` said last; before that, spans just go through.
    """

    def __init__(self, next: SpanProcessor | SpanExporter | None = None) -> None:  # noqa: A002
        if isinstance(next, SpanExporter):
            next = batch(next)  # noqa: A001
        if next is not None and not isinstance(next, SpanProcessor):
            raise TypeError(
                f"SpangradeProcessor(next) takes a SpanProcessor or a SpanExporter, not {type(next).__name__}; "
                "for example SpangradeProcessor(BatchSpanProcessor(OTLPSpanExporter()))"
            )
        self.next = next
        self.settles = False  # True: an exporter of ours at the end of `next` counts and redacts
        self.provider: TracerProvider | None = None  # whose spans these are; None: the global one
        self._open = OpenSpans()
        self._shutdown = False

    @property
    def ended(self) -> bool:
        """Whether it was shut down."""
        return self._shutdown

    def revive(self) -> None:
        """After a shutdown, for another `configure` in the same process (with a new ``next``)."""
        self._shutdown = False

    @property
    def exports(self) -> bool:
        """False in late mode."""
        return self.next is not None

    def tracer(self) -> Tracer:
        """Where evaluation spans start: the provider that the scored spans come from."""
        return (self.provider or trace.get_tracer_provider()).get_tracer(SCOPE)

    def forward(self, span: ReadableSpan) -> None:
        """Hand a span on, as the content policy lets it leave. Raises what ``next`` raises."""
        assert self.next is not None
        engine = last_engine()
        if engine is not None and not self.settles:
            span = engine.policy.span(span)
        self.next.on_end(span)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Remember an open span; a few hundred nanoseconds."""
        try:  # not the guard's context manager: this runs for every span of the process, and a try costs nothing
            self._open.started(span)
        except Exception as fault:  # noqa: BLE001 - a fault of ours
            _guard.swallowed("processor.on_start", fault)
        if self.next is not None:
            self.next.on_start(span, parent_context=parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Offer the span to the pipeline, or pass it on."""
        try:
            if self._offer(span) or self.next is None:
                return
        except Exception as fault:  # noqa: BLE001 - a fault of ours
            _guard.swallowed("processor.on_end", fault)
        with _guard.guard("processor.next"):
            self.forward(span)

    def _offer(self, span: ReadableSpan) -> bool:
        """True when the span is held (it will be forwarded later)."""
        context = span.get_span_context()
        if context is None:
            return False
        attributes = plain_attributes(span)
        kind = quick_kind(attributes)
        call = kind is not None and kind != "evaluator" and bool(context.trace_flags.sampled)
        lineage, rooted_calls = self._open.ended(span, is_call=call)
        engine = current_engine()
        if engine is None or self._shutdown:
            return False
        if not call:
            if rooted_calls:
                engine.pipeline.root_ended(context.trace_id, context.span_id)
            return False
        if lineage.under_evaluator or _suppress.active():  # an evaluator's own work, somebody's or ours
            return False
        pipeline = engine.pipeline
        is_root = not lineage.under_call and kind in ROOT_KINDS and "root" in pipeline.targets
        if not is_root and kind not in pipeline.targets:
            if "root" in pipeline.targets:  # its documents, tool results or usage may belong to the root sample
                pipeline.offer(Offer(span_data(span, attributes), None, lineage, pipeline.clock.monotonic()))
            return False
        pipeline.check_fork()
        now = pipeline.clock.monotonic()
        data = span_data(span, attributes)
        size = content_size(attributes, data.events)
        held = Held(span, self, size, now + pipeline.settings.judge_hold, gone=not self.exports)
        offer = Offer(data, held, lineage, now, size=size)
        if self.next is None:
            pipeline.offer(offer)
            return False
        engine.sink.hold.put(held)
        # From here on the span is the hold's, whatever happens: it must not be forwarded here as well.
        taken = False
        with _guard.guard("processor.offer"):
            taken = pipeline.offer(offer)
        if not taken:
            engine.sink.hold.settle(held)
        return True

    def shutdown(self) -> None:
        """End scoring within its budget, let held spans go, then shut ``next`` down. Safe to call twice."""
        if self._shutdown:
            return
        self._shutdown = True
        engine = current_engine()
        if engine is not None:
            with _guard.guard("processor.shutdown"):
                engine.finish()
        if self.next is not None:
            with _guard.guard("processor.next.shutdown"):
                self.next.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait for metrics (not for judges), let held spans go, and flush ``next``."""
        done = True
        engine = current_engine()
        if engine is not None and not self._shutdown:
            with _guard.guard("processor.force_flush"):
                done = engine.pipeline.drain(timeout_millis / 1000, judges=False)
                behind = self.next
                engine.sink.hold.release_all(between=behind.force_flush if behind is not None else None)
        if self.next is not None:
            with _guard.guard("processor.next.force_flush"):
                done = bool(self.next.force_flush(timeout_millis)) and done
        return done
