"""`SpangradeProcessor`: the pipeline's place in an OpenTelemetry provider."""

from functools import partial
from os import getpid
from time import monotonic
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import TraceFlags, Tracer, TracerProvider

from spangrade import _guard
from spangrade._log import once
from spangrade._suppress import active
from spangrade._switches import raw, scoring_off
from spangrade._values import bounded
from spangrade.delivery.hold import Held
from spangrade.otel.adapter import FLAT, Reader, content_size, plain_attributes, span_data
from spangrade.otel.batch import batch
from spangrade.otel.cleaning import CleaningQueue
from spangrade.otel.engine import Engine, current_engine, engines, last_engine
from spangrade.otel.lineage import OpenSpans
from spangrade.samples.extract import quick_kind
from spangrade.samples.reading import RETRIEVAL_KINDS
from spangrade.scoring.seam import Offer
from spangrade.scoring.wants import Wanted
from spangrade.semconv import SCOPE
from spangrade.tracing.lazy.span import LazySpan

_SAMPLED: Final = int(TraceFlags.SAMPLED)
_SCORING: Final = scoring_off.key
_NOWHERE: Final = (
    "a retrieval ran outside of any call, so its documents reach no sample; if a thread pool ran it, give it the "
    "context: pool.submit(contextvars.copy_context().run, function, ...)"
)
#: Processors that do nothing when a span starts: asking them would cost every span a call.
_DEAF: Final = (SpanProcessor.on_start, BatchSpanProcessor.on_start)


class SpangradeProcessor(SpanProcessor):
    """Holds ended calls until their scores are there, then hands each span to ``next``, exactly once.

    Args:
        next: the processor (or exporter, which then gets a batch of ours) that spans go on to. None: late mode;
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
        self.ours_behind = False  # True: an exporter of ours at the end of `next` counts and redacts
        self.provider: TracerProvider | None = None  # whose spans these are; None: the global one
        self._open = OpenSpans()
        self._cleaning = CleaningQueue(self._hand_on)
        self._shutdown = False

    @property
    def next(self) -> SpanProcessor | None:
        """Where spans go on to."""
        return self._next

    @next.setter
    def next(self, behind: SpanProcessor | None) -> None:
        self._next = behind
        listens = behind is not None and type(behind).on_start not in _DEAF
        self._tell_start = behind.on_start if behind is not None and listens else None

    @property
    def ended(self) -> bool:
        """Whether it was shut down."""
        return self._shutdown

    def revive(self) -> None:
        """After a shutdown, for another `configure` in the same process (with a new ``next``)."""
        self._shutdown = False
        self._cleaning = CleaningQueue(self._hand_on)

    @property
    def exports(self) -> bool:
        """False in late mode."""
        return self.next is not None

    def tracer(self) -> Tracer:
        """Where evaluation spans start: the provider that the scored spans come from."""
        return (self.provider or trace.get_tracer_provider()).get_tracer(SCOPE)

    @property
    def settles(self) -> bool:
        """Whether it is said later what became of a held span, and not by `forward`."""
        engine = last_engine()
        return self.ours_behind or (engine is not None and engine.policy.redact is not None)

    @property
    def settles_evaluations(self) -> bool:
        """The same of evaluation spans."""
        return self.ours_behind

    def forward(self, span: ReadableSpan) -> None:
        """Hand a span on, as the content policy lets it leave: at once, and raising what ``next`` raises; where a redact
        hook is to see it first, a moment later."""
        if not self.ours_behind and (engine := last_engine()) is not None:
            if engine.policy.redact is not None:
                self._cleaning.put(span)
                return
            span = engine.policy.span(span)
        self._hand_on(span)

    def _hand_on(self, span: ReadableSpan) -> None:
        next_hop = self._next
        assert next_hop is not None
        next_hop.on_end(span)

    def flush_behind(self, timeout_millis: int) -> bool:
        """Flush what spans go through behind this one."""
        end, done = monotonic() + timeout_millis / 1000, True
        if self._next is not None:
            done = self._cleaning.flush(timeout_millis / 1000)
            left = max(0, int((end - monotonic()) * 1000))
            done = bool(self._next.force_flush(left)) and done
        return done

    def on_start(self, span: Any, parent_context: Context | None = None) -> None:
        """Remember an open span; a few hundred nanoseconds."""
        try:  # not the guard's context manager: this runs for every span of the process, and a try costs nothing
            if type(span).__base__ is LazySpan:
                self._open.opened(span.ids, span.parent_ids, span.kind_of_call, None)
            else:
                self._open.started(span)
        except Exception as fault:  # noqa: BLE001 - a fault of ours
            _guard.swallowed("processor.on_start", fault)
        if self._tell_start is not None:
            self._tell_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Offer the span to the pipeline, or pass it on."""
        try:
            if self._offer(span) or self._next is None:
                return
        except Exception as fault:  # noqa: BLE001 - a fault of ours
            _guard.swallowed("processor.on_end", fault)
        try:
            self.forward(span)
        except Exception as fault:  # noqa: BLE001 - the next hop's
            _guard.swallowed("processor.next", fault)

    def _offer(self, span: Any) -> bool:
        """True when the span is held (it will be forwarded later)."""
        read: Reader
        attributes: dict[str, Any] | None = None
        if type(span).__base__ is LazySpan and span.filled is None:  # nobody has read it, and we need not either
            ids, kind, sampled, read = span.ids, span.kind_of_call, span.flags & _SAMPLED, span_data
            size = FLAT + span.size if span.made_events is None else 0
        else:
            context = span.get_span_context()
            if context is None:
                return False
            attributes = plain_attributes(span)
            ids, kind = (context.trace_id, context.span_id), quick_kind(attributes)
            sampled, read, size = context.trace_flags & _SAMPLED, partial(span_data, attributes=attributes), 0
        call = sampled and kind is not None and kind != "evaluator"
        lineage, rooted_calls = self._open.ended(ids, is_call=bool(call))
        engine = engines.current
        if engine is None or self._shutdown or (raw(_SCORING) is not None and scoring_off()):
            return False
        pipeline = engine.pipeline
        if not call:
            if rooted_calls:
                pipeline.root_ended(*ids)
            return False
        if lineage.under_evaluator or active():  # an evaluator's own work, somebody's or ours
            return False
        now, size = pipeline.clock.monotonic(), size or content_size(span, attributes)
        if (
            kind not in pipeline.targets
            and (lineage.under_call or kind not in pipeline.root_kinds)
            and not (pipeline.rules and self._picked(pipeline.wanted, kind, span))
        ):
            if (
                pipeline.targets or pipeline.rules
            ):  # its documents, tool results or usage may belong to another's sample
                pipeline.offer(Offer(span, None, lineage, now, size, read))
                if kind in RETRIEVAL_KINDS and lineage.root_id == ids[1] and span.parent is None:
                    once("documents:nowhere", _NOWHERE, span=bounded(span.name, 80))
            return False
        if pipeline.pid != getpid():
            pipeline.check_fork()
        held = Held(span, self, size, now + pipeline.settings.judge_hold, gone=self._next is None)
        return self._hold(engine, held, Offer(span, held, lineage, now, size, read))

    @staticmethod
    def _picked(wanted: Wanted, kind: str, span: ReadableSpan) -> bool:
        """Whether a rule picks the call; a span that nobody has read is not read for its name alone."""
        scope = span.instrumentation_scope
        attributes = plain_attributes(span) if wanted.asks_attributes else {}
        return bool(wanted.by_itself(kind, span.name, scope.name if scope is not None else "", attributes))

    def _hold(self, engine: Engine, held: Held, offer: Offer) -> bool:
        if self._next is None:
            engine.pipeline.take(offer)
            return False
        hold = engine.sink.hold
        hold.put(held)
        # From here on the span is the hold's, whatever happens: it must not be forwarded here as well.
        taken = False
        try:
            taken = engine.pipeline.take(offer)
        except Exception as fault:  # noqa: BLE001 - a fault of ours
            _guard.swallowed("processor.offer", fault)
        if not taken:
            hold.settle(held)
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
            with _guard.guard("processor.cleaning.shutdown"):
                self._cleaning.close()
            with _guard.guard("processor.next.shutdown"):
                self.next.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait for metrics (not for judges), let held spans go, and flush ``next``, which has a third of the time at least."""
        done, end = True, monotonic() + timeout_millis / 1000

        def left() -> int:
            return max(0, int((end - monotonic()) * 1000))

        engine = current_engine()
        if engine is not None and not self._shutdown:
            with _guard.guard("processor.force_flush"):
                done = engine.pipeline.drain(timeout_millis / 1000 * 2 / 3, judges=False)
                engine.sink.hold.release_all(between=lambda: self.flush_behind(left()))
        if self.next is not None:
            with _guard.guard("processor.next.force_flush"):
                done = self.flush_behind(left()) and done
        return done
