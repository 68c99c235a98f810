"""Where a call stands: OpenTelemetry's context, read and set without its detours where it is the usual one.

The usual one is a context variable that holds a dict. A call needs four operations on it; by the public functions they
cost as much as all the rest. With another runtime context (``OTEL_PYTHON_CONTEXT``), or where the SDK is one that this was
not tried with, those functions are used.
"""

from collections.abc import Callable
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace as trace_api
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span

from spangrade import _suppress
from spangrade.tracing import lazy
from spangrade.tracing.lazy.tracer import SPAN_KEY, context_variable

_put: Final = dict.__setitem__  # the class itself refuses what is set, so that a context never changes once it is used
_variable: Final = context_variable() if lazy.usable() else None

#: The context here.
current: Callable[[], Context] = otel_context.get_current if _variable is None else _variable.get
#: Makes a context the current one; the token goes to `leave`, in the same task or thread.
enter: Callable[[Any], Any] = otel_context.attach if _variable is None else _variable.set
#: Takes back what `enter` set, where there is something to take back.
leave: Callable[[Any], None] = _suppress.detach
#: The same, where it is sure that there is; raises ValueError if not.
reset: Callable[[Any], None] = otel_context.detach if _variable is None else _variable.reset


def within(here: Context, span: Span, key: str, value: object) -> Context:
    """``here`` with ``span`` current in it, and ``value`` under ``key``."""
    if _variable is None:
        return otel_context.set_value(key, value, trace_api.set_span_in_context(span, here))
    made = Context(here)
    _put(made, SPAN_KEY, span)
    _put(made, key, value)
    return made


def unsampled(here: Context) -> bool:
    """Whether the trace in ``here`` was decided not to be sampled, by whoever started it: nothing below is recorded then."""
    span = here.get(SPAN_KEY)
    if type(span) is not NonRecordingSpan:
        return False
    context = span.get_span_context()
    return context.is_valid and not context.trace_flags.sampled
