"""A stream that somebody else steps: what it gives is kept for the calls that returned it, until it is over."""

import codecs
from collections.abc import Callable
from types import CoroutineType
from typing import Any, Final

from opentelemetry import context as otel_context

from spangrade.tracing.call import TracedCall, current_call
from spangrade.tracing.chunks import Chunks
from spangrade.tracing.place import current, enter, reset

_STEPPING: Final = otel_context.create_key("spangrade-stepping")


class Following:
    """The steps of one stream, whichever of its methods, iterators, threads and tasks take them.

    The call's span is current while the stream's own code runs, and only then. A step that the stream takes in the middle
    of one (``__iter__`` by ``__next__``, ``__next__`` by ``send``, ``close`` at the end) is part of that one. What ends the
    call: the stream says that it is exhausted; it raises; it is closed or its ``with`` is left; or nobody has it any more.
    """

    __slots__ = ("_awaits_first", "_begun", "_context", "_decoder", "_each", "_under")

    def __init__(self, call: TracedCall, *, decode: bool = False) -> None:
        """``decode``: bytes are text in UTF-8 as long as they can be (the body of an HTTP response)."""
        self._each: tuple[Chunks, ...] = (Chunks(call, begun=False),)
        self._decoder = codecs.getincrementaldecoder("utf-8")() if decode else None
        self._context = otel_context.set_value(_STEPPING, self, call.context)
        self._under = current_call()  # the call that ours ran in: our caller, if it is traced
        self._awaits_first, self._begun = True, False

    @property
    def over(self) -> bool:
        """Whether the calls have ended."""
        return not self._each or self._each[0].call.ended

    def also(self, call: TracedCall) -> bool:
        """The call in which the first one ran returns the same stream; True if it is now followed for both."""
        if self._under is not call or not self._each or self._begun:
            return False
        self._each = (*self._each, Chunks(call, begun=False))
        self._under = current_call()
        return True

    def inside(self) -> bool:
        """Whether a step is being taken here."""
        return current().get(_STEPPING) is self

    # --- steps -----------------------------------------------------------------------------------------------------------

    def step(self, run: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Take one."""
        if current().get(_STEPPING) is self:
            return run(*args, **kwargs)
        if not self._begun:
            self._begin()
        token = enter(self._context)
        try:
            item = run(*args, **kwargs)
        except BaseException as fault:
            self._ended_by(fault)
            raise
        finally:
            reset(token)  # always here: a step begins and ends in one place
        try:
            self._came(item)
        except RecursionError:  # the application's stack is nearly used up: it gets its item all the same
            pass
        return item

    def start(self, run: Callable[[], Any]) -> Any:
        """Make an iterator: code of the stream's that gives no item yet."""
        return run() if self.inside() else self._within(run, (), {})

    def astep(self, run: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Take one that is awaited: the stream's method is called now, what it returns is awaited by the caller."""
        return run(*args, **kwargs) if self.inside() else self._awaited(self._within(run, args, kwargs))

    async def _awaited(self, step: Any) -> Any:
        self._begin()
        token = enter(self._context)
        try:
            item = await step
        except BaseException as fault:
            self._ended_by(fault)
            raise
        finally:
            self._reset(token)
        try:
            self._came(item)
        except RecursionError:
            pass
        return item

    def _within(self, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        token = enter(self._context)
        try:
            return run(*args, **kwargs)
        except BaseException as fault:
            self._ended_by(fault)
            raise
        finally:
            reset(token)

    def _begin(self) -> None:
        self._begun, self._under = True, None
        for chunks in self._each:
            chunks.begun = True

    def _came(self, item: Any) -> None:
        if self._decoder is not None and type(item) is bytes:
            try:
                item = self._decoder.decode(item)
            except UnicodeDecodeError:  # not text after all
                self._decoder = None
        if self._awaits_first:
            self._awaits_first = False
            for chunks in self._each:
                chunks.call.first_chunk()
        for chunks in self._each:
            chunks.take(item)

    # --- the end ---------------------------------------------------------------------------------------------------------

    def closing(self, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], how: str) -> Any:
        """Close the stream, by a method that may have to be awaited."""
        if self.inside():
            return run(*args, **kwargs)
        over = True
        token = enter(self._context)
        try:
            result = run(*args, **kwargs)
            over = type(result) is not CoroutineType  # a task goes on by itself, and is its reader's to keep
        finally:
            reset(token)
            if over:
                self.finish(how)
        return result if over else self._closed(result, how)

    async def aclosing(self, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], how: str) -> Any:
        """The same by a coroutine function."""
        return await (run(*args, **kwargs) if self.inside() else self._closed(run(*args, **kwargs), how))

    async def _closed(self, closing: Any, how: str) -> Any:
        token = enter(self._context)
        try:
            return await closing
        finally:
            self._reset(token)
            self.finish(how)

    @staticmethod
    def _reset(token: Any) -> None:
        try:
            reset(token)
        except (ValueError, RuntimeError):  # collected while it waited: the context it began in is gone
            pass

    def _ended_by(self, fault: BaseException) -> None:
        kind = type(fault)
        if issubclass(kind, (StopIteration, StopAsyncIteration)):
            self.finish("complete", getattr(fault, "value", None))
        elif issubclass(kind, GeneratorExit):  # collected while it waited
            self.finish("closed")
        else:
            for chunks in self._each:
                chunks.call.fail(fault)
            self.finish("error" if issubclass(kind, Exception) else "cancelled")

    def finish(self, how: str, result: Any = None) -> None:
        """End the calls, innermost first; what comes now is nobody's. ``how`` as in `Chunks.finish`."""
        each, self._each = self._each, ()
        for chunks in each:
            if how == "closed":
                chunks.leave()
            else:
                chunks.finish(how, result)
