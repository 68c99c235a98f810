"""Streamed and awaited results: the span lasts to the last step, and is current only while the stream's own code runs.

A context that stays attached over a ``yield`` leaks into the consumer, and detaching it after an early ``break`` fails in
another task; so it is attached around each step and never between two.
"""

import inspect
import types
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from spangrade import _suppress
from spangrade.tracing.call import TracedCall
from spangrade.tracing.chunks import Chunks


def is_awaited(code: Any) -> bool:
    """Whether generators of this code are awaited (`types.coroutine`)."""
    return bool(getattr(code, "co_flags", 0) & inspect.CO_ITERABLE_COROUTINE)


Begin = Callable[[tuple[Any, ...], dict[str, Any]], TracedCall]


def generator(
    make: Callable[..., Any], begin: Begin, *, awaited: bool = False
) -> Callable[..., Generator[Any, Any, Any]]:
    """A generator function that steps through ``make(...)``; send, throw, close and the return value pass through.
    ``awaited``: it is used as a coroutine (`types.coroutine`), so that what it yields is for the event loop.

    ``begin`` gives the call its span, at the first step. Steps may be taken by different threads (a thread pool behind
    a StreamingResponse).
    """

    def traced(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = make(*args, **kwargs)
        call = begin(args, kwargs)
        chunks, how, result = Chunks(call), "closed", None
        step, argument = inner.send, None
        try:
            while True:
                token = call.attach()
                try:
                    item = step(argument)
                except StopIteration as stop:
                    how, result = "complete", stop.value
                    return result
                except BaseException as fault:
                    how = "error" if issubclass(type(fault), Exception) else "cancelled"
                    call.fail(fault)
                    raise
                finally:
                    _suppress.detach(token)
                if not awaited:
                    call.first_chunk()
                    chunks.add(item)
                try:
                    argument = yield item
                    step = inner.send
                except GeneratorExit:
                    inner.close()
                    raise
                except BaseException as thrown:  # noqa: BLE001 - throw() belongs to the inner generator
                    argument, step = thrown, inner.throw
        finally:
            chunks.finish(how, result)

    if awaited:
        types.coroutine(traced)  # marks the function itself
    return traced


def async_generator(make: Callable[..., Any], begin: Begin) -> Callable[..., AsyncGenerator[Any, Any]]:
    """The same for async generators; early ``break``, ``aclose`` and cancellation end the span with what there was."""

    async def traced(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = make(*args, **kwargs)
        call = begin(args, kwargs)
        chunks, how = Chunks(call), "closed"
        step, argument = inner.asend, None
        try:
            while True:
                token = call.attach()
                try:
                    item = await step(argument)
                except StopAsyncIteration:
                    how = "complete"
                    return
                except BaseException as fault:
                    how = "error" if issubclass(type(fault), Exception) else "cancelled"
                    call.fail(fault)
                    raise
                finally:
                    _suppress.detach(token)
                call.first_chunk()
                chunks.add(item)
                try:
                    argument = yield item
                    step = inner.asend
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as thrown:  # noqa: BLE001 - athrow() belongs to the inner generator
                    argument, step = thrown, inner.athrow
        finally:
            chunks.finish(how)

    return traced
