"""A function that returns a stream object: the caller has that very object, and the call lasts to its last item."""

import asyncio
import gc
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.unit.tracing.conftest import Spans
from tests.unit.tracing.given_streams import WORDS, AsyncStream, Stream, acollect, ahands_out, ended, hands_out

import spangrade as sg
from spangrade import semconv as s


def test_the_caller_gets_the_very_object_and_nothing_was_taken_from_it(traced: Spans) -> None:
    made: Stream[str] = Stream()
    before = dict(vars(made))
    got = hands_out(lambda: made)
    assert got is made
    assert vars(got) == before
    assert isinstance(got, Stream)
    assert got.__class__ is Stream
    assert isinstance(got, Iterator)
    assert type(got).__name__ == "Stream"
    assert (type(got).__module__, type(got).__qualname__) == (Stream.__module__, Stream.__qualname__)
    assert got.close.__doc__ == "Give the connection back."
    assert inspect.signature(got.close) == inspect.signature(made.close)
    assert repr(got).startswith(object.__repr__(made).partition(" at ")[0])
    got.new_attribute = 1
    assert list(got) == list(WORDS)
    assert type(got) is Stream
    assert got.taken == 4


def test_the_span_lasts_to_the_last_item_and_knows_when_the_first_came(traced: Spans) -> None:
    stream = hands_out(Stream)
    assert next(stream) == "one "
    assert Spans.open() == 1
    assert list(stream) == ["two ", "three"]
    assert Spans.open() == 0
    assert ended(traced) == ("one two three", "complete")
    span = traced.only()
    assert 0 < span.attributes[s.TIME_TO_FIRST_CHUNK] <= (span.end_time - span.start_time) / 1e9


def test_a_coroutine_function_that_returns_one_is_the_same(traced: Spans) -> None:
    async def main() -> list[str]:
        return await acollect(await ahands_out(AsyncStream))

    assert asyncio.run(main()) == list(WORDS)
    assert ended(traced) == ("one two three", "complete")


def test_items_that_are_no_text_are_a_list(traced: Spans) -> None:
    assert list(hands_out(lambda: Stream([{"n": 1}, 2]))) == [{"n": 1}, 2]
    assert ended(traced) == ('[{"n":1},2]', "complete")


def test_a_retriever_that_returns_one_has_its_documents(traced: Spans) -> None:
    @sg.trace(kind="retriever")
    def search() -> Any:
        return Stream(["a", "b"])

    assert list(search()) == ["a", "b"]
    assert [one["content"] for one in json.loads(traced.attributes()[s.RETRIEVAL_DOCUMENTS])] == [
        "a",
        "b",
    ]


# --- every way out -----------------------------------------------------------------------------------------------------------


def exhausted(stream: Any) -> None:
    list(stream)


def closed(stream: Any) -> None:
    next(stream)
    stream.close()
    assert stream.closed == 1


def left(stream: Any) -> None:
    with stream as same:
        assert same is stream
        next(stream)
    assert stream.closed == 1


def left_by_a_fault(stream: Any) -> None:
    def read() -> None:
        with stream:
            next(stream)
            raise LookupError

    with pytest.raises(LookupError):
        read()


def left_by_an_interrupt(stream: Any) -> None:
    def read() -> None:
        with stream:
            next(stream)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read()


def dropped(stream: Any) -> None:
    next(stream)


def dropped_in_a_cycle(stream: Any) -> None:
    next(stream)
    stream.cycle = stream


def never_read(stream: Any) -> None:
    pass


def closed_unread(stream: Any) -> None:
    stream.close()


def closed_twice(stream: Any) -> None:
    next(stream)
    stream.close()
    stream.close()
    assert stream.closed == 2


WAYS = [
    (exhausted, "complete", "one two three"),
    (closed, "closed", "one "),
    (left, "closed", "one "),
    (left_by_a_fault, "closed", "one "),
    (left_by_an_interrupt, "cancelled", "one "),
    (dropped, "closed", "one "),
    (dropped_in_a_cycle, "closed", "one "),
    (never_read, "unconsumed", None),
    (closed_unread, "unconsumed", None),
    (closed_twice, "closed", "one "),
]


@pytest.mark.parametrize(("leave", "how", "output"), WAYS)
def test_one_end_on_every_way_out(leave: Callable[[Any], None], how: str, output: Any, traced: Spans) -> None:
    leave(hands_out(Stream))
    gc.collect()
    assert Spans.open() == 0
    assert ended(traced) == (output, how)
    assert traced.only().status.status_code.name == "UNSET"


def test_an_exception_in_the_middle_is_the_callers_and_the_calls(traced: Spans) -> None:
    fault = ValueError("reset")
    stream = hands_out(lambda: Stream(["half"], fault))
    assert next(stream) == "half"
    with pytest.raises(ValueError, match="reset") as caught:
        next(stream)
    assert caught.value is fault
    assert ended(traced) == ("half", "error")
    assert traced.only().status.status_code.name == "ERROR"
    assert type(stream) is Stream


def aways() -> dict[str, tuple[Callable[[Any], Any], str, Any]]:
    async def exhausted(stream: Any) -> None:
        assert await acollect(stream) == list(WORDS)

    async def broken_off(stream: Any) -> None:
        async for _ in stream:
            break

    async def closed(stream: Any) -> None:
        await anext(stream)
        assert inspect.iscoroutinefunction(stream.close)
        await stream.close()
        assert stream.closed == 1

    async def left(stream: Any) -> None:
        async with stream:
            await anext(stream)
        assert stream.closed == 1

    async def cancelled(stream: Any) -> None:
        async def read() -> None:
            async with stream:
                await anext(stream)
                reading.set()
                await asyncio.Event().wait()

        reading = asyncio.Event()
        task = asyncio.create_task(read())
        await reading.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def cancelled_in_a_step(stream: Any) -> None:
        await anext(stream)
        task = asyncio.create_task(stream.__anext__())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def never_read(stream: Any) -> None:
        pass

    return {
        "exhausted": (exhausted, "complete", "one two three"),
        "broken off": (broken_off, "closed", "one "),
        "closed": (closed, "closed", "one "),
        "left": (left, "closed", "one "),
        "cancelled": (cancelled, "cancelled", "one "),
        "cancelled in a step": (cancelled_in_a_step, "cancelled", "one "),
        "never read": (never_read, "unconsumed", None),
    }


@pytest.mark.parametrize("way", aways())
def test_one_end_on_every_way_out_of_an_asynchronous_one(way: str, traced: Spans) -> None:
    leave, how, output = aways()[way]

    async def main() -> None:
        await leave(hands_out(AsyncStream))

    asyncio.run(main())
    gc.collect()
    assert Spans.open() == 0
    assert ended(traced) == (output, how)


def test_a_stream_without_room_for_anything_ends_when_it_is_dropped(traced: Spans) -> None:
    class Slots:
        __slots__ = ("n",)

        def __init__(self) -> None:
            self.n = 0

        def __next__(self) -> int:
            self.n += 1
            return self.n

    stream = hands_out(Slots)
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(AttributeError):
        stream.other = 1
    del stream
    assert Spans.open() == 0
    assert ended(traced) == ("[1,2]", "closed")


def test_the_streams_own_finalizer_runs_as_ever(traced: Spans) -> None:
    finalized: list[str] = []

    class Finalizes(Stream[str]):
        def __del__(self) -> None:
            self.close()
            finalized.append(self.request_id)

    stream = hands_out(Finalizes)
    next(stream)
    del stream
    assert finalized == ["req-1"]
    assert ended(traced) == ("one ", "closed")
    assert list(hands_out(Finalizes)) == list(WORDS)
    assert finalized == ["req-1", "req-1"]


def test_faults_of_ours_cost_the_caller_nothing(
    traced: Spans, monkeypatch: pytest.MonkeyPatch, swallowed_faults: list[Any]
) -> None:
    from spangrade.tracing import stand_ins

    def breaks(*_: Any) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(stand_ins, "Following", breaks)
    stream = hands_out(Stream)
    assert type(stream) is Stream
    assert list(stream) == list(WORDS)
    assert Spans.open() == 0
    assert len(swallowed_faults) == 1
    swallowed_faults.clear()
    assert sys.getrefcount(stream) > 0


class Sent:
    """Generators in all but their type, sent to by name."""

    def __next__(self) -> str:
        return "n"

    def send(self, value: str = "") -> str:
        return value

    def throw(self, kind: Any, *, why: str) -> str:
        return why


class ASent:
    async def __anext__(self) -> str:
        return "n"

    async def asend(self, value: str = "") -> str:
        return value

    async def athrow(self, kind: Any, *, why: str) -> str:
        return why


class HandsOutSent:
    def __iter__(self) -> Any:
        return Sent()

    def __aiter__(self) -> Any:
        return ASent()

    def close(self) -> None: ...


@pytest.mark.parametrize("make", [Sent, HandsOutSent])
def test_what_is_sent_by_name_arrives(make: Callable[[], Any], traced: Spans) -> None:
    stream = hands_out(make)
    steps = stream if hasattr(stream, "send") else iter(stream)
    assert (next(steps), steps.send(value="s"), steps.throw(KeyError, why="w")) == ("n", "s", "w")
    del stream, steps
    assert ended(traced) == ("nsw", "closed")


@pytest.mark.parametrize("make", [ASent, HandsOutSent])
def test_so_does_what_is_sent_by_name_and_awaited(make: Callable[[], Any], traced: Spans) -> None:
    async def main() -> tuple[str, ...]:
        stream = hands_out(make)
        steps = stream if hasattr(stream, "asend") else aiter(stream)
        return await anext(steps), await steps.asend(value="s"), await steps.athrow(KeyError, why="w")

    assert asyncio.run(main()) == ("n", "s", "w")
    assert ended(traced) == ("nsw", "closed")
