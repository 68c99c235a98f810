"""Stream objects as client libraries give them, and functions that return them."""

import asyncio
import typing
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s

T = TypeVar("T")
WORDS = ("one ", "two ", "three")


class Stream(Generic[T]):
    """As client libraries give it."""

    def __init__(self, items: typing.Iterable[T] = WORDS, fault: BaseException | None = None) -> None:  # type: ignore[assignment]
        self.request_id = "req-1"
        self.closed = 0
        self.taken = 0
        self._left = list(items)
        self._fault = fault

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        self.taken += 1
        if not self._left:
            if self._fault is not None:
                raise self._fault
            raise StopIteration
        return self._left.pop(0)

    def close(self) -> None:
        """Give the connection back."""
        self.closed += 1

    def __enter__(self) -> "Stream[T]":
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()


class AsyncStream(Generic[T]):
    """The same, asynchronous."""

    def __init__(self, items: typing.Iterable[T] = WORDS, fault: BaseException | None = None) -> None:  # type: ignore[assignment]
        self.closed = 0
        self._left = list(items)
        self._fault = fault

    def __aiter__(self) -> "AsyncStream[T]":
        return self

    async def __anext__(self) -> T:
        await asyncio.sleep(0)
        if not self._left:
            if self._fault is not None:
                raise self._fault
            raise StopAsyncIteration
        return self._left.pop(0)

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1

    async def __aenter__(self) -> "AsyncStream[T]":
        return self

    async def __aexit__(self, *fault: object) -> None:
        await self.close()


class Reply:
    """It can only be iterated over."""

    def __init__(self, items: typing.Iterable[Any] = WORDS) -> None:
        self.items = list(items)
        self.closed = 0

    def __iter__(self) -> Iterator[Any]:
        yield from self.items

    def close(self) -> None:
        self.closed += 1


@sg.trace
def hands_out(make: Callable[[], Any]) -> Any:
    return make()


@sg.trace
async def ahands_out(make: Callable[[], Any]) -> Any:
    return make()


def ended(traced: Spans) -> tuple[Any, Any]:
    """What the only call put out, and how it ended."""
    attributes = traced.attributes()
    return attributes.get(s.OI_OUTPUT), attributes.get(s.ENDED)


async def acollect(stream: Any) -> list[Any]:
    return [item async for item in stream]
