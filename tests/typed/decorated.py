"""What a type checker must see of decorated functions: the same as without us. Checked by `test_types.py`, never run."""

import functools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, Protocol, TypeVar, assert_type, overload

import spangrade as sg

T = TypeVar("T")


@sg.trace
def plain(question: str, *, top: int = 3) -> list[str]:
    return [question] * top


@sg.trace(name="n", kind="llm", ignore_inputs=["client"], capture_output=False)
def said(question: str, client: object = None) -> int:
    return len(question)


@sg.trace("named", capture_input=["question"])
async def later(question: str) -> bytes:
    return question.encode()


@sg.trace
def parts(question: str) -> Iterator[str]:
    yield from question


@sg.trace
async def streamed(question: str) -> AsyncIterator[str]:
    yield question


@sg.trace
def first(items: list[T]) -> T:
    return items[0]


@overload
def either(given: int) -> int: ...
@overload
def either(given: str) -> str: ...
@sg.trace
def either(given: int | str) -> int | str:
    return given


both = sg.trace(either)


@sg.trace
@functools.lru_cache
def cached(n: int) -> str:
    return str(n)


class Shop:
    @sg.trace
    def method(self, question: str) -> "Shop":
        return self

    @sg.trace
    @staticmethod
    def static(question: str) -> str:
        return question

    @staticmethod
    @sg.trace
    def static_below(question: str) -> str:
        return question

    @classmethod
    @sg.trace
    def of_class(cls, question: str) -> str:
        return question

    @property
    @sg.trace
    def size(self) -> int:
        return 1


class Base(ABC):
    @abstractmethod
    @sg.trace
    def ask(self, question: str) -> str: ...


class Asks(Protocol):
    def __call__(self, question: str, *, top: int = 3) -> list[str]: ...


assert_type(plain("q", top=1), list[str])
assert_type(said("q"), int)
assert_type(first([1]), int)
assert_type(first(["a"]), str)
assert_type(both(1), int)
assert_type(both("a"), str)
assert_type(cached(1), str)
assert_type(cached.cache_info().hits, int)
assert_type(Shop().method("q"), Shop)
assert_type(Shop.static("q"), str)
assert_type(Shop().static("q"), str)
assert_type(Shop.static_below("q"), str)
assert_type(Shop.of_class("q"), str)
assert_type(Shop().size, int)
asks: Asks = plain
handlers: list[Callable[[str], Awaitable[bytes]]] = [later]


async def main() -> None:
    coroutine: Coroutine[Any, Any, bytes] = later("q")
    assert_type(await coroutine, bytes)
    async for part in streamed("q"):
        assert_type(part, str)
    for part in parts("q"):
        assert_type(part, str)
    with sg.trace("block") as block:
        assert_type(block.name, str)
    async with sg.trace("block"):
        pass


plain(1)  # type: ignore[arg-type]
plain("q", bottom=1)  # type: ignore[call-arg]
Shop().method()  # type: ignore[call-arg]
sg.trace(kind="nonsense")  # type: ignore[call-overload]
Base()  # type: ignore[abstract]
