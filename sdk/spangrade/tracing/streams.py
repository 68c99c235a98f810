"""Streamed and awaited results: the span lasts to the last step, and is current only while the stream's own code runs.

A context that stays attached over a ``yield`` leaks into the consumer, and detaching it after an early ``break`` fails in
another task; so it is attached around each step and never between two.
"""

import inspect
import types
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from spangrade.tracing.call import TracedCall
from spangrade.tracing.chunks import Chunks
from spangrade.tracing.place import enter, reset


def is_awaited(code: Any) -> bool:
    """Whether generators of this code are awaited (`types.coroutine`)."""
    return bool(getattr(code, "co_flags", 0) & inspect.CO_ITERABLE_COROUTINE)


#: Starts a call, given what its function was given; None where nothing is traced.
Start = Callable[[tuple[Any, ...], dict[str, Any]], TracedCall | None]


def generator(
    make: Callable[..., Any], start: Start, *, awaited: bool = False
) -> Callable[..., Generator[Any, Any, Any]]:
    """A generator function that steps through ``make(...)``; send, throw, close and the return value pass through.
    ``awaited``: it is used as a coroutine (`types.coroutine`), so that what it yields is for the event loop.

    ``start`` gives the call its span, at the first step. Steps may be taken by different threads (a thread pool behind
    a StreamingResponse).
    """

    def traced(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = make(*args, **kwargs)
        call = start(args, kwargs)
        if call is None:
            return (yield from inner)
        chunks, how, result = Chunks(call), "closed", None
        context, room, left, keep = call.context, chunks.room, chunks.left, chunks.items.append
        send, argument, thrown, first = inner.send, None, None, not awaited
        try:
            while True:
                token = enter(context)
                try:
                    item = send(argument) if thrown is None else inner.throw(thrown)
                except StopIteration as stop:
                    how, result = "complete", stop.value
                    return result
                except BaseException as fault:
                    how = "error" if issubclass(type(fault), Exception) else "cancelled"
                    call.fail(fault)
                    raise
                finally:
                    reset(token)  # always here: a step begins and ends in one place
                if first:
                    call.first_chunk()
                    first = False
                if type(item) is str and left and (rest := room - len(item)) >= 0:  # most, at no further cost
                    room = rest
                    left -= 1
                    keep(item)
                elif not awaited:
                    room, left = chunks.add(item, room, left)
                try:
                    argument, thrown = (yield item), None
                except GeneratorExit:
                    inner.close()
                    raise
                except BaseException as fault:  # noqa: BLE001 - throw() belongs to the inner generator
                    thrown = fault
        finally:
            chunks.finish(how, result)

    if awaited:
        types.coroutine(traced)  # marks the function itself
    return traced


def async_generator(make: Callable[..., Any], start: Start) -> Callable[..., AsyncGenerator[Any, Any]]:
    """The same for async generators; early ``break``, ``aclose`` and cancellation end the span with what there was."""

    async def traced(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = make(*args, **kwargs)
        call = start(args, kwargs) or TracedCall("", "chain", None)
        chunks, how = Chunks(call), "closed"
        context, room, left, keep = call.context, chunks.room, chunks.left, chunks.items.append
        send, argument, thrown, first = inner.asend, None, None, True
        try:
            while True:
                token = enter(context)
                try:
                    item = await (send(argument) if thrown is None else inner.athrow(thrown))
                except StopAsyncIteration:
                    how = "complete"
                    return
                except GeneratorExit:  # collected while it waited; Python before 3.13 does not tell
                    raise
                except BaseException as fault:
                    how = "error" if issubclass(type(fault), Exception) else "cancelled"
                    call.fail(fault)
                    raise
                finally:
                    try:
                        reset(token)
                    except (ValueError, RuntimeError):  # collected while it waited: the context it began in is gone
                        pass
                if first:
                    call.first_chunk()
                    first = False
                if type(item) is str and left and (rest := room - len(item)) >= 0:  # most, at no further cost
                    room = rest
                    left -= 1
                    keep(item)
                else:
                    room, left = chunks.add(item, room, left)
                try:
                    argument, thrown = (yield item), None
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as fault:  # noqa: BLE001 - athrow() belongs to the inner generator
                    thrown = fault
        finally:
            chunks.finish(how)

    return traced
