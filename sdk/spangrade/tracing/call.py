"""One traced call, from its start to its end; every line of it guarded."""

import os
import time
from types import TracebackType
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace as trace_api
from opentelemetry.context import Context
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from spangrade import _guard, _suppress
from spangrade import semconv as s
from spangrade._values import bounded, type_name
from spangrade._version import __version__
from spangrade.tracing import capture

_DISABLED_VALUES: Final = ("true", "1", "yes", "on")
_CURRENT: Final = otel_context.create_key("spangrade-call")


class _State:
    """What every traced call looks at. Environment variables are read at import and by `configure`: asking the
    environment costs more than the rest of an untraced call."""

    disabled = False
    provider: trace_api.TracerProvider | None = None
    tracer_of: Any = None  # the provider that `tracer` comes from
    tracer: Tracer = trace_api.NoOpTracer()


def reread_environment() -> bool:
    """``SPANGRADE_DISABLED`` or ``OTEL_SDK_DISABLED``: traced functions run as if undecorated. Returns whether so."""
    environ = os.environ
    _State.disabled = (
        environ.get("SPANGRADE_DISABLED", "").strip().lower() in _DISABLED_VALUES
        or environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    )
    capture.Form.reread()
    return _State.disabled


def use_provider(provider: trace_api.TracerProvider | None) -> None:
    """Trace through this provider instead of whichever is global at call time."""
    _State.provider = provider


def _tracer() -> Tracer:
    # Looked up at call time: an application may set its provider long after its modules were decorated.
    provider = _State.provider or trace_api.get_tracer_provider()
    if provider is not _State.tracer_of:
        _State.tracer, _State.tracer_of = provider.get_tracer(s.SCOPE, __version__), provider
    return _State.tracer


def off() -> bool:
    """True where nothing is traced: a kill switch, or an evaluator's own work."""
    return _State.disabled or _suppress.active()


class TracedCall:
    """The span of one call, with what the setters need to know of it.

    ``input_set`` and ``output_set``: said by a setter, so what was captured does not overwrite it.
    """

    __slots__ = (
        "_ended", "_first_chunk", "_started", "input_set", "kind", "name", "output_set", "span", "span_context",
    )  # fmt: skip

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self.input_set = False
        self.output_set = False
        self.span_context: Context | None = None
        self.span: Span = trace_api.INVALID_SPAN
        self._ended = False
        self._started = 0.0
        self._first_chunk: float | None = None

    def start(self) -> "TracedCall":
        """Start the span under the current context; a fault leaves a no-op span behind. Idempotent."""
        if self.span_context is not None:
            return self
        here = otel_context.get_current()
        try:  # not the guard's context manager: on this path a try costs nothing, and the manager 300 ns
            self.span = _tracer().start_span(self.name, here, attributes=capture.kind_attributes(self.kind, self.name))
            self._started = time.monotonic()
        except Exception as fault:  # noqa: BLE001 - a fault of ours, here and below
            _guard.swallowed("trace.start", fault)
        self.span_context = otel_context.set_value(_CURRENT, self, trace_api.set_span_in_context(self.span, here))
        return self

    def stay_silent(self) -> "TracedCall":
        """No span: the call runs as if untraced."""
        self.span_context = otel_context.get_current()
        return self

    @property
    def silent(self) -> bool:
        """Whether the call runs as if untraced."""
        return self.span is trace_api.INVALID_SPAN

    def attach(self) -> Any:
        """Make the span current here; the token goes to `_suppress.detach` in the same task or thread, before any yield."""
        assert self.span_context is not None
        return otel_context.attach(self.span_context)

    def input(self, value: Any) -> None:
        """Record the input, unless `set_input` has."""
        try:
            if not self.input_set and self.span.is_recording():
                capture.write_input(self.span, self.kind, value)
        except Exception as fault:  # noqa: BLE001
            _guard.swallowed("trace.input", fault)

    def output(self, value: Any) -> None:
        """Record the output, unless `set_output` has."""
        try:
            if not self.output_set and self.span.is_recording():
                capture.write_output(self.span, self.kind, value)
        except Exception as fault:  # noqa: BLE001
            _guard.swallowed("trace.output", fault)

    def first_chunk(self) -> None:
        """A stream's first item is there."""
        if self._first_chunk is None:
            self._first_chunk = time.monotonic() - self._started
            with _guard.guard("trace.first_chunk"):
                self.span.set_attribute(s.TIME_TO_FIRST_CHUNK, self._first_chunk)

    def fail(self, fault: BaseException) -> None:
        """The application's exception: ERROR status and an exception event. Cancellation is no error."""
        with _guard.guard("trace.fail"):
            if not self.span.is_recording():
                return
            kind = type(fault).__name__
            if issubclass(type(fault), Exception):
                text = bounded(_message(fault), 4_096)
                # Our own event, not record_exception: that one formats the traceback of whatever the exception holds.
                self.span.add_event("exception", {"exception.type": type_name(fault), "exception.message": text})
                self.span.set_status(Status(StatusCode.ERROR, f"{kind}: {text}"[:1024]))
                self.span.set_attribute(s.ERROR_TYPE, kind)
            else:
                self.span.set_attribute(s.ENDED, "cancelled")

    def end(self) -> None:
        """End the span, once."""
        if not self._ended:
            self._ended = True
            try:
                self.span.end()
            except Exception as fault:  # noqa: BLE001
                _guard.swallowed("trace.end", fault)

    @property
    def ended(self) -> bool:
        """Whether the call is over."""
        return self._ended


def _message(fault: BaseException) -> str:
    try:
        return str(fault)
    except Exception:  # noqa: BLE001 - str() of an exception is the application's code
        return "(message could not be read)"


def current_call() -> TracedCall | None:
    """The innermost traced call that is running here."""
    found = otel_context.get_value(_CURRENT)
    return found if isinstance(found, TracedCall) else None


class Running:
    """Context manager around the body of a call that is no stream."""

    __slots__ = ("_call", "_token")

    def __init__(self, call: TracedCall) -> None:
        self._call = call

    def __enter__(self) -> TracedCall:
        self._call.start()
        self._token = self._call.attach()
        return self._call

    def __exit__(
        self, _kind: type[BaseException] | None, fault: BaseException | None, _tb: TracebackType | None
    ) -> None:
        _suppress.detach(self._token)
        self.leave(fault)

    def leave(self, fault: BaseException | None) -> None:
        """End the call without touching the context."""
        if fault is not None:
            self._call.fail(fault)
        self._call.end()


reread_environment()
