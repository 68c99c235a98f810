"""`trace` over what other decorators made: what counts is what the function itself is and returns."""

import asyncio
import contextlib
import functools
import inspect
import types
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s


def runs(fn: Callable[..., Any]) -> Callable[..., Any]:
    """As many command lines and task queues have it: a coroutine function becomes a plain one."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run(fn(*args, **kwargs))

    return wrapper


def collects(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function becomes one that returns a list."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return list(fn(*args, **kwargs))

    return wrapper


def test_a_plain_function_made_of_a_coroutine_function_still_returns_its_value(traced: Spans) -> None:
    @sg.trace
    @runs
    async def main(q: str) -> str:
        return q * 2

    assert not inspect.iscoroutinefunction(main)
    assert main("ab") == "abab"
    assert traced.attributes()[s.OI_OUTPUT] == "abab"


def test_a_plain_function_made_of_a_generator_function_still_returns_its_list(traced: Spans) -> None:
    @sg.trace
    @collects
    def parts(n: int) -> Iterator[int]:
        yield from range(n)

    assert parts(3) == [0, 1, 2]
    assert traced.attributes()[s.OI_OUTPUT] == "[0,1,2]"


def test_a_coroutine_function_made_of_a_plain_one_is_awaited(traced: Spans) -> None:
    def in_thread(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        async def wrapper(*args: Any) -> Any:
            return await asyncio.to_thread(fn, *args)

        return wrapper

    @sg.trace
    @in_thread
    def slow(q: str) -> str:
        return q.upper()

    assert inspect.iscoroutinefunction(slow)
    assert asyncio.run(slow("a")) == "A"
    assert traced.attributes()[s.OI_OUTPUT] == "A"


def test_context_managers_made_of_generators_work(traced: Spans) -> None:
    @sg.trace
    @contextlib.contextmanager
    def opened(q: str) -> Iterator[str]:
        yield q

    @sg.trace
    @contextlib.asynccontextmanager
    async def aopened(q: str) -> AsyncIterator[str]:
        yield q

    async def use() -> str:
        async with aopened("b") as got:
            return got

    with opened("a") as got:
        assert got == "a"
    assert asyncio.run(use()) == "b"
    assert len(traced.all()) == 2


def test_a_cached_generator_function_hands_out_the_same_generator(traced: Spans) -> None:
    @sg.trace
    @functools.lru_cache
    def numbers() -> Iterator[int]:
        yield from range(4)

    assert next(numbers()) == 0
    assert next(numbers()) == 1
    assert list(numbers()) == [2, 3]
    assert Spans.open() == 0


def test_partials_of_every_kind_keep_their_kind(traced: Spans) -> None:
    async def acall(a: int, b: int) -> int:
        return a + b

    def gen(a: int, b: int) -> Iterator[int]:
        yield from (a, b)

    def plain(a: int, b: int) -> int:
        return a * b

    three = [sg.trace(functools.partial(fn, 2)) for fn in (acall, gen, plain)]
    assert inspect.iscoroutinefunction(three[0])
    assert inspect.isgeneratorfunction(three[1])
    assert asyncio.run(three[0](3)) == 5
    assert list(three[1](3)) == [2, 3]
    assert three[2](3) == 6
    assert len(traced.all()) == 3


class Answers:
    async def __call__(self, q: str) -> str:
        await asyncio.sleep(0)
        return q + "!"


class Parts:
    def __call__(self, n: int) -> Iterator[int]:
        yield from range(n)


class Plain:
    def __call__(self, q: str) -> str:
        return q


def test_callable_objects_are_what_their_call_is(traced: Spans) -> None:
    answers, parts, plain = sg.trace(Answers()), sg.trace(Parts()), sg.trace(Plain())
    assert inspect.iscoroutinefunction(answers)
    assert inspect.isgeneratorfunction(parts)
    assert asyncio.run(answers("q")) == "q!"  # type: ignore[arg-type]
    assert list(parts(2)) == [0, 1]
    assert plain("x") == "x"
    assert [span.attributes[s.OI_OUTPUT] for span in traced.all()] == ["q!", "[0,1]", "x"]


def test_a_generator_that_may_be_awaited_still_may(traced: Spans) -> None:
    @sg.trace
    @types.coroutine
    def old(q: str) -> Any:
        yield
        return q

    @sg.trace
    def returns_old(q: str) -> Any:
        return old.__wrapped__(q)  # type: ignore[attr-defined]

    async def main() -> list[str]:
        return [await old("a"), await returns_old("b")]

    assert asyncio.run(main()) == ["a", "b"]
    assert [span.attributes[s.OI_OUTPUT] for span in traced.all()] == ["a", "b"]


def test_what_a_function_returns_is_not_asked_for_its_class(traced: Spans) -> None:
    class Lazy:
        """A proxy that wakes up when it is asked for its class: one of Django's or Werkzeug's."""

        @property
        def __class__(self) -> Any:
            raise RuntimeError("working outside of the request")

        @__class__.setter
        def __class__(self, value: Any) -> None: ...

    lazy = Lazy()

    @sg.trace
    def f(x: Any) -> Any:
        return x

    @sg.trace
    async def af(x: Any) -> Any:
        return x

    assert f(lazy) is lazy
    assert asyncio.run(af(lazy)) is lazy
    for span in traced.all():
        assert "Lazy>" in span.attributes[s.OI_INPUT]
        assert "Lazy>" in span.attributes[s.OI_OUTPUT]


def test_a_generator_function_says_that_it_is_one_and_refuses_wrong_arguments_no_later_than_its_first_step(
    traced: Spans,
) -> None:
    @sg.trace
    def one(a: int) -> Iterator[int]:
        yield a

    assert inspect.isgeneratorfunction(one)
    wrong = one(1, 2, 3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"takes 1 positional argument but 3 were given"):
        next(wrong)
    assert Spans.open() == 0
