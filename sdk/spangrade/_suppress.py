"""No echo: what an evaluator does itself is never traced as the application's work, and never scored (promise 8).

Instrumentations look at a private OpenTelemetry context key; the public helper that sets it lives in a package that we
do not require, so the key is read from the API where it is and the plain key is set too. The SDK's tracer looks at
neither, hence our own flag: `trace` and the processor ask `active()`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, Final

from opentelemetry import context as otel_context

_PLAIN_KEY = "suppress_instrumentation"
_KEYS = tuple(
    key
    for key in (
        getattr(otel_context, "_SUPPRESS_INSTRUMENTATION_KEY", None),
        getattr(otel_context, "_SUPPRESS_HTTP_INSTRUMENTATION_KEY", None),
        _PLAIN_KEY,
        "suppress_language_model_instrumentation",  # Traceloop's
    )
    if key
)

_evaluating: ContextVar[bool] = ContextVar("spangrade_evaluating", default=False)


#: True inside an evaluator: calls traced here are not the application's.
active: Final[Callable[[], bool]] = _evaluating.get


def detach(token: Any) -> None:
    """Take back what `opentelemetry.context.attach` set, or a context variable, where there is something to take back.

    A coroutine or generator that is collected while it waits ends in another context than it began in. The public
    ``detach`` logs an ERROR with a traceback then, although nothing is wrong: the context it began in is gone.
    """
    if type(token) is not Token:  # another runtime context than OpenTelemetry's own (OTEL_PYTHON_CONTEXT)
        otel_context.detach(token)
        return
    try:
        token.var.reset(token)
    except (ValueError, RuntimeError):
        pass


@contextmanager
def evaluator_scope() -> Iterator[None]:
    """Everything inside belongs to an evaluator. No span of the application is current in it (the context is empty)."""
    ctx = otel_context.Context()
    for key in _KEYS:
        ctx = otel_context.set_value(key, True, ctx)
    token = otel_context.attach(ctx)
    flag = _evaluating.set(True)
    try:
        yield
    finally:
        detach(flag)
        detach(token)
