"""`trace`: a function, or a block, as a span with its input and output."""

import functools
import inspect
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from sys import getrefcount
from types import TracebackType
from typing import Any, Final, TypeVar, overload

from spangrade._values import bounded, to_text
from spangrade.errors import ConfigError
from spangrade.tracing import returned, streams
from spangrade.tracing.arguments import Arguments, arguments_by
from spangrade.tracing.call import Block, TracedCall, begin
from spangrade.tracing.capture import CallKind, check_kind
from spangrade.tracing.place import enter, reset

# The function's own type, and not `Callable` of its parameters: overloads, type variables, methods and what a cache adds to
# a function stay known to type checkers.
F = TypeVar("F", bound=Callable[..., Any])

_MAX_NAME: Final = 1_024  # characters
_TRACED: Final = "__spangrade_traced__"
# What builtin wrappers of functions offer beside the call, and not in a `__dict__` that `functools.wraps` would copy.
_ADDED: Final[dict[type, tuple[str, ...]]] = {
    functools._lru_cache_wrapper: ("cache_info", "cache_clear", "cache_parameters"),
    functools.partial: ("func", "args", "keywords"),
}


@overload
def trace(fn: F, /) -> F: ...


@overload
def trace(
    *,
    name: str | None = None,
    kind: CallKind = "chain",
    capture_input: bool | Iterable[str] = True,
    ignore_inputs: Iterable[str] = (),
    capture_output: bool = True,
) -> "Tracing": ...


@overload
def trace(
    name: str,
    /,
    *,
    kind: CallKind = "chain",
    capture_input: bool | Iterable[str] = True,
    ignore_inputs: Iterable[str] = (),
    capture_output: bool = True,
) -> "Tracing": ...


def trace(
    fn: F | str | None = None,
    /,
    *,
    name: str | None = None,
    kind: CallKind = "chain",
    capture_input: bool | Iterable[str] = True,
    ignore_inputs: Iterable[str] = (),
    capture_output: bool = True,
) -> "F | Tracing":
    """Trace a function, or a block of code, as one call.

    ``@trace``, ``@trace(name=..., kind=...)``, or ``with trace(name="lookup", kind="tool") as call:``. Works on plain
    and async functions, generators, async generators and methods; what the function returns, raises and yields is
    unchanged. A function that returns a new generator, async generator or coroutine is traced to the end of that; one
    that it keeps for itself is returned untouched. A stream object (an iterator as client libraries have it), a built-in
    iterator and a streaming HTTP response are followed likewise, until they are exhausted, closed, left by ``with`` or
    dropped, or the process ends; the object stays the one that it is, but for that time ``type()`` of it gives a
    subclass of its own class. What a stream gave is recorded as its joined text where it is text or the chunks of a chat
    client (tool calls beside it), else as a list. Whether a function is a generator function or a coroutine function
    stays as it is (`inspect.isgeneratorfunction`), and Python then gives nobody the word before the first step: of
    these, a call with the wrong arguments raises its TypeError at the first ``next`` or ``await``.

    Args:
        name: the span's name; default the function's qualified name.
        kind: llm, retriever, tool, agent, chain (default), embedding, reranker or guardrail. It decides what the call
            may be scored as, and how content is written (GenAI messages for llm, ``input.value`` otherwise).
        capture_input: False: no argument is recorded; a list of names: only these are.
        ignore_inputs: names of arguments that are not recorded, such as ``["client"]``.
        capture_output: False: what the function returns, or yields, is not recorded.

    The input recorded is the only argument's value, or a dict of those that were given, by name; ``self`` and ``cls`` are
    left out. Use `set_input`, `set_output` and `set_retrieval_documents` inside to say it better: what they are given is
    recorded in any case. Values under names that speak of secrets (``password``, ``api_key``, ``Authorization``,
    ``access_token`` and the like) are never recorded, at any depth.

    Raises:
        ConfigError: an unknown kind; something that is no function; a name that is no parameter of the function (unless
            it takes ``**kwargs``); or both ``capture_input`` and ``ignore_inputs``.
    """
    if isinstance(fn, str):
        fn, name = None, fn
    tracing = Tracing(
        None if name is None else _span_name(name),
        check_kind(kind),
        arguments_by(capture_input, ignore_inputs),
        bool(capture_output),
    )
    return tracing if fn is None else tracing(fn)


# Blocks that are open in this thread or task: one Tracing may be entered by several at once.
_blocks: ContextVar[tuple[tuple["Tracing", Block], ...]] = ContextVar("spangrade_blocks", default=())


class Tracing:
    """What `trace` with arguments returns: a decorator, and a context manager (also ``async with``), which may be used
    again and nested."""

    def __init__(
        self, name: str | None, kind: str, arguments: Callable[..., Arguments] = Arguments, capture_output: bool = True
    ) -> None:
        self._arguments = arguments
        self._capture_output = capture_output
        self._name = name
        self._kind = kind
        self._open: list[Block] = []

    def __call__(self, fn: F) -> F:
        """Decorate ``fn``."""
        if isinstance(fn, (staticmethod, classmethod)):
            return type(fn)(self(fn.__func__))
        if not callable(fn):
            raise ConfigError(f"trace: {fn!r} is not a function")
        if inspect.isclass(fn):
            raise ConfigError(f"trace: {fn.__name__} is a class; decorate its methods")
        name = self._name or _span_name(getattr(fn, "__qualname__", None) or type(fn).__name__)
        start: streams.Start = functools.partial(begin, name, self._kind, self._arguments(fn))
        return _decorate(fn, start if self._capture_output else _without_output(start))

    def __enter__(self) -> TracedCall:
        block = Block(self._name or self._kind, self._kind)
        _blocks.set((*_blocks.get(), (self, block)))
        self._open.append(block)
        return block.call

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, tb: TracebackType | None) -> None:
        open_blocks = _blocks.get()
        for at in range(len(open_blocks) - 1, -1, -1):
            if open_blocks[at][0] is self:
                _blocks.set(open_blocks[:at] + open_blocks[at + 1 :])
                block = open_blocks[at][1]
                self._open.remove(block)
                block.exit(fault)
                return
        if self._open:  # left in another context than it was entered in (a generator that was closed elsewhere)
            self._open.pop().exit(fault, here=False)

    async def __aenter__(self) -> TracedCall:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.__exit__(kind, fault, tb)


def _span_name(given: Any) -> str:
    """Once, when a function is decorated or a block written, so that no call pays for it: a name that cannot be encoded
    costs its span's whole batch."""
    return bounded(given if type(given) is str else to_text(given, _MAX_NAME)[0], _MAX_NAME)


def _without_output(start: streams.Start) -> streams.Start:
    def begun(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedCall | None:
        call = start(args, kwargs)
        if call is not None:
            call.output_set = True  # as if it had been said already: what is returned is not
        return call

    return begun


def _decorate(fn: F, start: streams.Start) -> F:
    """The wrapper of the function's own kind, so that frameworks which look at the kind are not misled."""
    wrapper: Callable[..., Any]
    if _is(inspect.isasyncgenfunction, fn):
        wrapper = streams.async_generator(fn, start)
    elif _is(inspect.isgeneratorfunction, fn):
        wrapper = streams.generator(fn, start, awaited=streams.is_awaited(getattr(fn, "__code__", None)))
    elif _is(inspect.iscoroutinefunction, fn):
        wrapper = returned.coroutine(fn, start)
    else:
        wrapper = _function(fn, start)
    wrapper = functools.wraps(fn)(wrapper)
    for name in _ADDED.get(type(fn), ()):
        setattr(wrapper, name, getattr(fn, name))
    setattr(wrapper, _TRACED, wrapper)  # itself: a decorator above copies the name, and is not traced
    return wrapper  # type: ignore[return-value]


def is_traced(fn: Any) -> bool:
    """Whether calling ``fn`` is calling what `trace` made."""
    fn = getattr(fn, "__func__", fn)  # of a method
    return getattr(fn, "__dict__", {}).get(_TRACED) is fn


def _is(what: Callable[[Any], bool], fn: Callable[..., Any]) -> bool:
    # Of the function itself: what a decorator below us has wrapped says nothing of what its wrapper returns.
    if what(fn) or inspect.isroutine(fn) or isinstance(fn, functools.partial):
        return what(fn)
    return what(type(fn).__call__)


def _function(fn: Callable[..., Any], start: streams.Start) -> Callable[..., Any]:
    def traced(*args: Any, **kwargs: Any) -> Any:
        call = start(args, kwargs)
        if call is None:
            return fn(*args, **kwargs)
        token = enter(call.context)
        try:
            result = fn(*args, **kwargs)
        except BaseException as fault:
            call.fail(fault)
            call.end()
            raise
        finally:
            try:
                reset(token)  # always here: a plain function ends where it began
            except (ValueError, RuntimeError):
                pass
        kind = type(result)
        if kind is str or kind is dict or kind is list or result is None:  # most, at no further cost
            call.done(result)
            return result
        return returned.settle(getrefcount(result), result, call)

    return traced
