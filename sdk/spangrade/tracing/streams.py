"""Streamed results: the span lasts to the last chunk, and is current only while the stream's own code runs.

A context that stays attached over a ``yield`` leaks into the consumer, and detaching it after an early ``break`` fails in
another task; so it is attached around each step and never between two.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Final

from opentelemetry import context as otel_context

from spangrade import _guard
from spangrade import semconv as s
from spangrade.tracing.call import TracedCall

MAX_CHUNKS: Final = 100_000
MAX_CHARS: Final = 1_048_576


class Chunks:
    """What was produced so far, bounded: the joined text when all of it is text, else the list."""

    __slots__ = ("_chars", "_items", "_text")

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._text = True
        self._chars = 0

    def add(self, item: Any) -> None:
        """One chunk."""
        if len(self._items) >= MAX_CHUNKS or self._chars >= MAX_CHARS:
            return
        if type(item) is str:
            self._chars += len(item)
        else:
            self._text = False
        self._items.append(item)

    @property
    def value(self) -> Any:
        """Joined text, a list of items, or None when nothing came."""
        if not self._items:
            return None
        return "".join(self._items) if self._text else self._items


def _finish(call: TracedCall, chunks: Chunks, how: str, result: Any = None) -> None:
    with _guard.guard("stream.finish"):
        value = chunks.value
        call.output(result if value is None else value)
        call.span.set_attribute(s.ENDED, how)
    call.end()


Begin = Callable[[tuple[Any, ...], dict[str, Any]], TracedCall]


def generator(make: Callable[..., Any], begin: Begin) -> Callable[..., Generator[Any, Any, Any]]:
    """A generator function that steps through ``make(...)``; send, throw, close and the return value pass through.

    ``begin`` gives the call its span, at the first step. Steps may be taken by different threads (a thread pool behind
    a StreamingResponse).
    """

    def traced(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = make(*args, **kwargs)
        call = begin(args, kwargs)
        chunks, how, result = Chunks(), "closed", None
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
                    how = "error" if isinstance(fault, Exception) else "cancelled"
                    call.fail(fault)
                    raise
                finally:
                    otel_context.detach(token)
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
            _finish(call, chunks, how, result)

    return traced


def async_generator(make: Callable[..., Any], begin: Begin) -> Callable[..., AsyncGenerator[Any, Any]]:
    """The same for async generators; early ``break``, ``aclose`` and cancellation end the span with what there was."""

    async def traced(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = make(*args, **kwargs)
        call = begin(args, kwargs)
        chunks, how = Chunks(), "closed"
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
                    how = "error" if isinstance(fault, Exception) else "cancelled"
                    call.fail(fault)
                    raise
                finally:
                    otel_context.detach(token)
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
            _finish(call, chunks, how)

    return traced
