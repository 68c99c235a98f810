"""`trace`: a function, or a block, as a span with its input and output."""

import functools
import inspect
import types
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, overload

from opentelemetry import context as otel_context

from spangrade import _guard
from spangrade.errors import ConfigError
from spangrade.tracing import streams
from spangrade.tracing.call import Running, TracedCall, off
from spangrade.tracing.capture import Arguments, CallKind, check_kind

P = ParamSpec("P")
R = TypeVar("R")


@overload
def trace(fn: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def trace(*, name: str | None = None, kind: CallKind = "chain") -> "Tracing": ...


@overload
def trace(name: str, /, *, kind: CallKind = "chain") -> "Tracing": ...


def trace(
    fn: Callable[P, R] | str | None = None, /, *, name: str | None = None, kind: CallKind = "chain"
) -> "Callable[P, R] | Tracing":
    """Trace a function, or a block of code, as one call.

    ``@trace``, ``@trace(name=..., kind=...)``, or ``with trace(name="lookup", kind="tool") as call:``. Works on plain
    and async functions, generators, async generators and methods; what the function returns, raises and yields is
    unchanged. A plain function that returns a generator or an awaitable is traced to the end of that.

    Args:
        name: the span's name; default the function's qualified name.
        kind: llm, retriever, tool, agent, chain (default), embedding, reranker or guardrail. It decides what the call
            may be scored as, and how content is written (GenAI messages for llm, ``input.value`` otherwise).

    The input recorded is the only argument's value, or a dict by name. Use `set_input`, `set_output` and
    `set_retrieval_documents` inside to say it better.

    Raises:
        ConfigError: an unknown kind, or something that is no function.
    """
    if isinstance(fn, str):
        fn, name = None, fn
    tracing = Tracing(name, check_kind(kind))
    return tracing if fn is None else tracing(fn)


# Blocks that are open in this thread or task: one Tracing may be entered by several at once.
_blocks: ContextVar[tuple[tuple["Tracing", Running | None], ...]] = ContextVar("spangrade_blocks", default=())


class Tracing:
    """What `trace` with arguments returns: a decorator, and a context manager (also ``async with``), which may be used
    again and nested."""

    def __init__(self, name: str | None, kind: str) -> None:
        self._name = name
        self._kind = kind
        self._open: list[Running] = []

    def __call__(self, fn: Callable[P, R]) -> Callable[P, R]:
        """Decorate ``fn``."""
        if isinstance(fn, (staticmethod, classmethod)):
            return type(fn)(self(fn.__func__))
        if not callable(fn):
            raise ConfigError(f"trace: {fn!r} is not a function")
        if inspect.isclass(fn):
            raise ConfigError(f"trace: {fn.__name__} is a class; decorate its methods")
        return _decorate(fn, self._name or str(getattr(fn, "__qualname__", type(fn).__name__)), self._kind)

    def __enter__(self) -> TracedCall:
        call = TracedCall(self._name or self._kind, self._kind)
        running = None if off() else Running(call)
        _blocks.set((*_blocks.get(), (self, running)))
        if running is None:
            return call
        self._open.append(running)
        return running.__enter__()

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, tb: TracebackType | None) -> None:
        open_blocks = _blocks.get()
        for at in range(len(open_blocks) - 1, -1, -1):
            if open_blocks[at][0] is self:
                _blocks.set(open_blocks[:at] + open_blocks[at + 1 :])
                running = open_blocks[at][1]
                if running is not None:
                    self._open.remove(running)
                    running.__exit__(kind, fault, tb)
                return
        if self._open:  # left in another context than it was entered in (a generator that was closed elsewhere)
            self._open.pop().leave(fault)

    async def __aenter__(self) -> TracedCall:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.__exit__(kind, fault, tb)


_STREAMS = (types.GeneratorType, types.AsyncGeneratorType, types.CoroutineType)


def _decorate(fn: Callable[P, R], name: str, kind: str) -> Callable[P, R]:
    """The wrapper of the function's own kind, so that frameworks which look at the kind are not misled."""
    arguments = Arguments(fn)

    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedCall:
        call = TracedCall(name, kind)
        if off():
            return call.stay_silent()
        call.start()
        try:
            call.input(arguments.of(args, kwargs))
        except Exception as fault:  # noqa: BLE001 - a fault of ours
            _guard.swallowed("trace.arguments", fault)
        return call

    plain = inspect.unwrap(fn)
    wrapper: Callable[..., Any]
    if inspect.isasyncgenfunction(plain):
        wrapper = streams.async_generator(fn, begin)
    elif inspect.isgeneratorfunction(plain):
        wrapper = streams.generator(fn, begin)
    elif inspect.iscoroutinefunction(plain):
        wrapper = _coroutine(fn, begin)
    else:
        wrapper = _function(fn, begin)
    return functools.wraps(fn)(wrapper)


def _function(fn: Callable[..., Any], begin: streams.Begin) -> Callable[..., Any]:
    def traced(*args: Any, **kwargs: Any) -> Any:
        if off():
            return fn(*args, **kwargs)
        call = begin(args, kwargs)
        token = call.attach()
        try:
            result = fn(*args, **kwargs)
        except BaseException as fault:
            call.fail(fault)
            call.end()
            raise
        finally:
            otel_context.detach(token)
        if isinstance(result, _STREAMS):
            return _follow(result, call)
        call.output(result)
        call.end()
        return result

    return traced


def _coroutine(fn: Callable[..., Any], begin: streams.Begin) -> Callable[..., Any]:
    async def traced(*args: Any, **kwargs: Any) -> Any:
        if off():
            return await fn(*args, **kwargs)
        return await _awaited(fn(*args, **kwargs), begin(args, kwargs))

    return traced


async def _awaited(coroutine: Any, call: TracedCall) -> Any:
    token = call.attach()
    try:
        result = await coroutine
    except BaseException as fault:
        call.fail(fault)
        call.end()
        raise
    finally:
        otel_context.detach(token)
    if isinstance(result, _STREAMS):
        return _follow(result, call)
    call.output(result)
    call.end()
    return result


def _follow(result: Any, call: TracedCall) -> Any:
    """A function returned a generator or a coroutine: its call lasts as long as that does."""
    if isinstance(result, types.AsyncGeneratorType):
        return streams.async_generator(lambda: result, lambda _a, _k: call)()
    if isinstance(result, types.GeneratorType):
        return streams.generator(lambda: result, lambda _a, _k: call)()
    return _awaited(result, call)
