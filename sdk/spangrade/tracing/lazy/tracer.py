"""`LazyTracer`: starts lazily filled spans as the SDK's own tracer would start its spans."""

from collections.abc import Callable
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace as trace_api
from opentelemetry.context import Context
from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext
from opentelemetry.sdk.trace import SpanProcessor, SynchronousMultiSpanProcessor, Tracer, sampling
from opentelemetry.trace import NonRecordingSpan, Span, SpanKind, TraceFlags
from opentelemetry.trace.propagation import _SPAN_KEY

from spangrade.tracing.lazy import usable
from spangrade.tracing.lazy.span import UNSET, LazySpan, Recipe, write_all

SPAN_KEY: Final = _SPAN_KEY
_SAMPLED: Final = int(TraceFlags.SAMPLED)
_RANDOM: Final = int(getattr(TraceFlags, "RANDOM_TRACE_ID", 0))  # SDKs before 1.41 do not know this flag
_FLAGS: Final = tuple(TraceFlags(bits) for bits in range(4))
_bare: Final[Callable[[type], Any]] = object.__new__


def context_variable() -> Any:
    """The variable that OpenTelemetry's context stands in; None with another runtime context than its usual one."""
    runtime = otel_context._RUNTIME_CONTEXT
    return runtime._current_context if type(runtime) is ContextVarsRuntimeContext else None


class _Processors:
    """What a provider's processors are told, without the ones that have nothing to say to it."""

    def __init__(self, behind: Any) -> None:
        self.seen = behind._span_processors if type(behind) is SynchronousMultiSpanProcessor else None
        each = (behind,) if self.seen is None else self.seen
        self.start = _listeners(each, "on_start")
        self.ending = _listeners(each, "_on_ending")
        self.end = _listeners(each, "on_end")


def _listeners(processors: tuple[Any, ...], method: str) -> tuple[Callable[..., None], ...]:
    # One that only looks like a processor may lack a method: for the SDK's own spans that is a fault in the application.
    deaf = (None, getattr(SpanProcessor, method))
    return tuple(getattr(one, method) for one in processors if getattr(type(one), method, None) not in deaf)


class LazyTracer:
    """Spans of one tracer of the SDK."""

    def __init__(self, tracer: Tracer, recipe: Recipe) -> None:
        self._tracer = tracer
        self._recipe = recipe
        self._behind: Any = tracer.span_processor
        self._several = type(self._behind) is SynchronousMultiSpanProcessor
        self._has_config = hasattr(tracer, "_tracer_config")  # an SDK before 1.41 has not
        self._look()

    def _look(self) -> None:
        """Take over what the tracer says."""
        tracer = self._tracer
        sampler: Any = tracer.sampler
        self._sampler = sampler
        # A sampler that always says yes, and adds nothing, need not be asked.
        by_parent = type(sampler) is sampling.ParentBased
        self._root_sampler = sampler._root if by_parent else sampler
        self._root_on = self._root_sampler is sampling.ALWAYS_ON
        self._child_on = (sampler._local_parent_sampled if by_parent else sampler) is sampling.ALWAYS_ON
        metrics = getattr(tracer, "_tracer_metrics", None)
        self._metrics = None if type(metrics).__name__ in ("NoOpTracerMetrics", "NoneType") else metrics
        ids = tracer.id_generator
        self._random: Any = _RANDOM if getattr(ids, "is_trace_id_random", lambda: False)() else 0
        self._both_ids = getattr(ids, "generate_both", None) or (
            lambda: (ids.generate_trace_id(), ids.generate_span_id())
        )
        self._resource = tracer.resource
        self._processors = _Processors(self._behind)
        self._span_class = type(
            "LazySpan",
            (LazySpan,),
            {
                "__slots__": (),
                "__module__": LazySpan.__module__,
                "_recipe": self._recipe,
                "_sampler": sampler,
                "_resource": tracer.resource,
                "_limits": tracer._span_limits,
                "_span_processor": self._behind,
                "_processors": self._processors,
                "_instrumentation_info": tracer.instrumentation_info,
                "_instrumentation_scope": tracer._instrumentation_scope,
            },
        )

    def start(self, name: str, kind_of_call: str, here: Context, start_time: int) -> Span:
        """Start a span under the one in ``here``; time in nanoseconds since the epoch."""
        tracer = self._tracer
        if (
            tracer.resource is not self._resource  # a fork changes it
            or tracer.sampler is not self._sampler
            or (self._several and self._behind._span_processors is not self._processors.seen)
        ):
            self._look()
        if not (tracer._tracer_config.is_enabled if self._has_config else tracer._is_enabled()):
            return tracer.start_span(name, here)
        span: LazySpan = _bare(self._span_class)
        span._name, span.kind_of_call, span._start_time = name, kind_of_call, start_time
        span._entries, span._status, span.size = (), UNSET, 0
        span.filled = span.made_events = span._links_made = span._context_made = span._made_lock = None
        span._given = span._gave = span._end_time = None
        self._place(span, here.get(SPAN_KEY))
        root, flags = span._under is None, span.flags
        sure = self._root_on if root else self._child_on and flags & _SAMPLED and span.parent_ids is not None
        if sure and self._metrics is None:
            span.flags = _FLAGS[flags | _SAMPLED]
        elif not self._ask(span, here):
            return NonRecordingSpan(span._context)
        for tell in self._processors.start:
            tell(span, here)
        return span

    def _place(self, span: LazySpan, parent: Any) -> None:
        """Its ids, and what it has from its parent: state and flags, those of the parent until the sampler is heard."""
        generator = self._tracer.id_generator
        span.trace_state = None
        if type(parent).__base__ is LazySpan:
            above, span.flags, span.trace_state = parent.ids, parent.flags, parent.trace_state
            span._under = (above, span.flags, span.trace_state)
        else:
            under = parent.get_span_context() if parent is not None and isinstance(parent, Span) else None
            if under is None or not under.is_valid:
                span._under = span.parent_ids = None
                span.ids, span.flags = self._both_ids(), self._random
                return
            span._under, span.flags, span.trace_state = under, under.trace_flags, under.trace_state
            above = (under.trace_id, under.span_id)
            if under.is_remote:
                span.ids, span.parent_ids = (above[0], generator.generate_span_id()), None
                return
        span.ids, span.parent_ids = (above[0], generator.generate_span_id()), above

    def _ask(self, span: LazySpan, here: Context) -> bool:
        """Do as the sampler says, and count for the SDK's own instruments; False if nothing is to be recorded."""
        first = self._recipe.first(span.kind_of_call, span._name)
        sampler = self._root_sampler if span._under is None else self._sampler
        result = sampler.should_sample(here, span.ids[0], span._name, SpanKind.INTERNAL, first, ())
        decision: Any = result.decision
        sampled, recording = decision.is_sampled(), decision.is_recording()
        span.flags = _FLAGS[(_SAMPLED if sampled else 0) | (span.flags & _RANDOM)]
        span.trace_state = result.trace_state
        if self._metrics is not None:
            at_end = self._metrics.start_span(span._parent, decision)
            if recording:
                span._record_end_metrics = at_end
        if recording and result.attributes:
            span._entries = ((write_all, "", dict(result.attributes)),)
        return bool(recording)


def lazily(tracer: trace_api.Tracer, recipe: Recipe) -> LazyTracer | None:
    """Lazily filled spans of ``tracer``, or None where they cannot be had: it is no tracer of an SDK that this was tried
    with."""
    return LazyTracer(tracer, recipe) if type(tracer) is Tracer and usable() else None
