"""One traced call, from its start to its end; every line of it guarded.

A call that is made when the application has nearly used up its stack runs as if untraced: what stands in an ``except
RecursionError`` here calls nothing, since it could not.
"""

from time import monotonic_ns, time_ns
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace as trace_api
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, Status, StatusCode, Tracer

from spangrade import _guard
from spangrade import semconv as s
from spangrade._suppress import active
from spangrade._switches import disabled, held
from spangrade._values import bounded, type_name
from spangrade._version import __version__
from spangrade.tracing import capture, place
from spangrade.tracing.arguments import Arguments
from spangrade.tracing.lazy.span import Entry, LazySpan, write_one
from spangrade.tracing.lazy.tracer import SPAN_KEY, LazyTracer, lazily

_CURRENT: Final = otel_context.create_key("spangrade-call")
_DISABLED: Final = disabled.key
_NO_SPAN: Final = trace_api.INVALID_SPAN
_SILENT: Final = (trace_api.NoOpTracerProvider, trace_api.ProxyTracerProvider)  # nobody has set up tracing


class _State:
    """Where calls are traced."""

    provider: trace_api.TracerProvider | None = None
    tracer_of: Any = None  # the provider that the rest comes from
    silent = True
    tracer: Tracer = trace_api.NoOpTracer()
    lazy: LazyTracer | None = None  # the same, where its spans can be filled lazily


def use_provider(provider: trace_api.TracerProvider | None) -> None:
    """Trace through this provider instead of whichever is global at call time."""
    _State.provider = provider


def provider_in_use() -> trace_api.TracerProvider:
    """Where calls are traced now."""
    return _State.provider or trace_api.get_tracer_provider()


def _where() -> Context | None:
    """The context that a call starts in; None where nothing is traced: a kill switch, an evaluator's own work, no provider,
    a trace that is not sampled. The provider is looked up at call time, since an application may set its own long after
    its modules were decorated."""
    if (_DISABLED in held and disabled()) or active():
        return None
    provider = _State.provider or trace_api.get_tracer_provider()
    if provider is not _State.tracer_of:
        tracer = provider.get_tracer(s.SCOPE, __version__)
        _State.silent = isinstance(provider, _SILENT) or type(tracer) is trace_api.NoOpTracer
        _State.lazy = lazily(tracer, capture.Written())
        _State.tracer, _State.tracer_of = tracer, provider
    here = place.current()
    if _State.silent or (type(here.get(SPAN_KEY)) is NonRecordingSpan and place.unsampled(here)):
        return None
    return here


def off() -> bool:
    """True where nothing is traced."""
    return _where() is None


def begin(
    name: str, kind: str, arguments: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> "TracedCall | None":
    """Start the call of a function; None where nothing is traced."""
    try:  # not the guard's context manager: on this path a try costs nothing, and the manager 300 ns
        here = _where()
        if here is None:
            return None
        return TracedCall(name, kind, here, arguments.of(args, kwargs))
    except RecursionError:
        return None
    except Exception as fault:  # noqa: BLE001 - a fault of ours, or of somebody's provider; here and below
        _guard.swallowed("trace.begin", fault)
        return None


class TracedCall:
    """The span of one call, with what the setters need to know of it. It starts when it is made.

    ``input_set`` and ``output_set``: said by a setter, so what was captured does not overwrite it. ``context``: the one
    that the call's code runs in.
    """

    __slots__ = (
        "_began", "_first_chunk", "_lazy", "_wall", "context", "ended", "input_set", "kind", "name", "output_set", "span",
    )  # fmt: skip
    _lazy: LazySpan | None
    _first_chunk: float | None  # seconds from the start

    def __init__(self, name: str, kind: str, here: Context | None, given: Any = None) -> None:
        self.name, self.kind = name, kind
        self.input_set = self.output_set = self.ended = False
        self.span: Span = _NO_SPAN
        self._lazy = self._first_chunk = None
        if here is None:  # without a span: the call runs as if untraced
            self.context = otel_context.get_current()
            return
        # The duration by a clock that nobody sets: the wall clock may step while a call runs.
        self._wall, self._began = time_ns(), monotonic_ns()
        try:
            if _State.lazy is not None:
                self.span = span = _State.lazy.start(name, kind, here, self._wall)
                if type(span).__base__ is LazySpan:
                    self._lazy = span  # type: ignore[assignment]
                elif type(span) is NonRecordingSpan:  # the sampler drops it: nothing is worth looking at
                    given = None
            else:
                first = capture.first_attributes(kind, name)
                self.span = _State.tracer.start_span(name, here, attributes=first, start_time=self._wall)
        except RecursionError:
            raise
        except Exception as fault:  # noqa: BLE001
            _guard.swallowed("trace.start", fault)
        self.context = place.within(here, self.span, _CURRENT, self)
        if given is None:
            return
        if self._lazy is None:
            self.input(given)
            return
        try:
            frozen, size = capture.frozen_input(kind, given)
            self._lazy.give(frozen, size)
        except RecursionError:  # the span has started, and ends without it
            pass
        except Exception as fault:  # noqa: BLE001
            _guard.swallowed("trace.input", fault)

    @property
    def silent(self) -> bool:
        """Whether the call runs as if untraced."""
        return self.span is _NO_SPAN

    def input(self, value: Any) -> None:
        """Record the input, unless `set_input` has."""
        try:
            if not self.input_set:
                capture.keep_input(self.span, self.kind, value)
        except RecursionError:
            pass
        except Exception as fault:  # noqa: BLE001
            _guard.swallowed("trace.input", fault)

    def output(self, value: Any) -> None:
        """Record the output, unless `set_output` has."""
        try:
            if not self.output_set:
                capture.keep_output(self.span, self.kind, value)
        except RecursionError:
            pass
        except Exception as fault:  # noqa: BLE001
            _guard.swallowed("trace.output", fault)

    def note(self, key: str, value: str | float) -> None:
        """Record one attribute."""
        try:
            capture.keep_one(self.span, key, value)
        except RecursionError:
            pass
        except Exception as fault:  # noqa: BLE001
            _guard.swallowed("trace.note", fault)

    def first_chunk(self) -> None:
        """A stream's first item is there."""
        if self.span is not _NO_SPAN:
            self._first_chunk = (monotonic_ns() - self._began) / 1e9

    def fail(self, fault: BaseException) -> None:
        """The application's exception: ERROR status and an exception event. Cancellation is no error."""
        try:
            if not self.span.is_recording():
                return
            kind = type(fault).__name__
            if issubclass(type(fault), Exception):
                text = bounded(_message(fault), 4_096)
                # Our own event, not record_exception: that one formats the traceback of whatever the exception holds.
                self.span.add_event("exception", {"exception.type": type_name(fault), "exception.message": text})
                self.span.set_status(Status(StatusCode.ERROR, f"{kind}: {text}"[:1024]))
                self.note(s.ERROR_TYPE, kind)
            else:
                self.note(s.ENDED, "cancelled")
        except RecursionError:  # which the fault itself may well be
            pass
        except Exception as ours:  # noqa: BLE001
            _guard.swallowed("trace.fail", ours)

    def done(self, result: Any, how: str | None = None) -> None:
        """Record the output, and how a stream came to its end, and end the call."""
        span = self._lazy
        entries: tuple[Entry, ...] = ()
        if how is not None:
            entries = ((write_one, s.ENDED, how),)
            if self._first_chunk is not None:
                entries += ((write_one, s.TIME_TO_FIRST_CHUNK, self._first_chunk),)
        if span is None:
            if type(self.span) is NonRecordingSpan:
                self.ended = True
                return
            self.output(result)
            for _, key, value in entries:
                self.note(key, value)
            self.end()
            return
        self.ended, frozen, size = True, None, 0
        try:
            if result is not None and not self.output_set:
                frozen, size = capture.frozen_output(self.kind, result)
        except RecursionError:
            pass
        except Exception as fault:  # noqa: BLE001
            _guard.swallowed("trace.output", fault)
        try:
            span.finish(frozen, size, self._wall + monotonic_ns() - self._began, entries)
        except RecursionError:
            pass
        except Exception as fault:  # noqa: BLE001
            _guard.swallowed("trace.end", fault)

    def end(self) -> None:
        """End the span, once."""
        if self.ended:
            return
        self.ended = True
        if self.span is _NO_SPAN:
            return
        try:
            if self.span.is_recording():  # else the application has ended it itself
                self.span.end(self._wall + monotonic_ns() - self._began)
        except RecursionError:
            pass
        except Exception as fault:  # noqa: BLE001
            _guard.swallowed("trace.end", fault)


def _message(fault: BaseException) -> str:
    try:
        return str(fault)
    except Exception:  # noqa: BLE001 - str() of an exception is the application's code
        return "(message could not be read)"


def current_call() -> TracedCall | None:
    """The innermost traced call that is running here."""
    found = otel_context.get_value(_CURRENT)
    return found if isinstance(found, TracedCall) else None


class Block:
    """A call that is a block of code: its span is current from `enter` on."""

    __slots__ = ("_token", "call")

    def __init__(self, name: str, kind: str) -> None:
        try:
            self.call = TracedCall(name, kind, _where())
        except RecursionError:
            self.call = TracedCall(name, kind, None)
        self._token = None if self.call.silent else place.enter(self.call.context)

    def exit(self, fault: BaseException | None, *, here: bool = True) -> None:
        """End it. ``here`` False: in another context than it began in, which is then left as it is."""
        if here and self._token is not None:
            place.leave(self._token)
        if fault is not None:
            self.call.fail(fault)
        self.call.end()
