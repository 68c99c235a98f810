"""A function that returns a stream object: the caller has that very object, and the call lasts to its last item."""

import asyncio
import copy
import gc
import inspect
import itertools
import json
import operator
import pickle
import sys
import threading
import typing
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

import pytest
from opentelemetry import trace as trace_api
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


# --- the same object ---------------------------------------------------------------------------------------------------------


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


# --- where its code runs -----------------------------------------------------------------------------------------------------


def nesting(make: Callable[[], Any], traced: Spans, read: Callable[[Any], Any]) -> None:
    read(make())
    calls = {span.name: span for span in traced.all()}
    (outer,) = [span for name, span in calls.items() if name.endswith("hands_out")]
    inside = [span for span in traced.all() if span.name == "inside"]
    assert {span.parent.span_id for span in inside} == {outer.context.span_id}
    assert all(span.parent is None for span in traced.all() if span.name == "consumer")


def span(name: str) -> Any:
    return trace_api.get_tracer("app").start_as_current_span(name)


def test_its_own_work_nests_under_its_call_and_the_readers_does_not(traced: Spans) -> None:
    class Works(Stream[str]):
        def __next__(self) -> str:
            with span("inside"):
                return super().__next__()

    def read(stream: Any) -> None:
        for _ in stream:
            with span("consumer"):
                pass

    nesting(lambda: hands_out(Works), traced, read)


def test_an_asynchronous_ones_work_nests_too_whoever_steps_it(traced: Spans) -> None:
    class Works(AsyncStream[str]):
        async def __anext__(self) -> str:
            with span("inside"):
                return await super().__anext__()

    async def read(stream: Any) -> None:
        for _ in range(3):
            await asyncio.create_task(stream.__anext__())
            with span("consumer"):
                pass

    nesting(lambda: hands_out(Works), traced, lambda stream: asyncio.run(read(stream)))


def test_steps_by_threads_that_take_turns_are_one_call(traced: Spans) -> None:
    stream = hands_out(lambda: Stream(range(40)))
    lock, got = threading.Lock(), []

    def take() -> None:
        for _ in range(10):
            with lock:
                got.append(next(stream))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == list(range(40))
    assert next(stream, None) is None
    assert ended(traced) == (str(list(range(40))).replace(" ", ""), "complete")


def test_a_step_that_takes_another_of_its_own_methods_is_counted_once(traced: Spans) -> None:
    class Sends(Generator[int, Any, Any]):
        def __init__(self) -> None:
            self.n = 0

        def send(self, value: Any) -> int:
            self.n += 1
            if self.n > 3:
                self.close()  # at its end, as clients do
                raise StopIteration
            return self.n

        def throw(self, *fault: Any) -> int:  # type: ignore[override]
            raise fault[0]

        def close(self) -> None:
            pass

    class Iterates(Stream[str]):
        def __iter__(self) -> Iterator[str]:
            for _ in range(2):
                yield next(self)

    assert list(hands_out(Sends)) == [1, 2, 3]
    assert list(hands_out(Iterates)) == ["one ", "two "]
    assert [span.attributes[s.OI_OUTPUT] for span in traced.all()] == ["[1,2,3]", "one two "]
    sends = hands_out(Sends)
    assert sends.send(None) == 1
    with pytest.raises(LookupError):
        sends.throw(LookupError())
    assert traced.all()[-1].attributes[s.OI_OUTPUT] == "[1]"


def test_a_call_in_which_the_same_stream_was_made_lasts_as_long(traced: Spans) -> None:
    @sg.trace
    def model() -> Any:
        return Stream()

    @sg.trace
    def answer() -> Any:
        return model()

    @sg.trace
    def answer_by_builtin() -> Any:
        return hands_out(lambda: map(str.upper, WORDS))

    assert list(answer()) == list(WORDS)
    assert list(answer_by_builtin()) == [word.upper() for word in WORDS]
    spans = traced.all()
    assert [span.name.rpartition(".")[2] for span in spans] == ["model", "answer", "hands_out", "answer_by_builtin"]
    assert [span.attributes[s.OI_OUTPUT].lower() for span in spans] == ["one two three"] * 4
    assert [span.attributes[s.ENDED] for span in spans] == ["complete"] * 4


def test_a_stream_that_an_object_keeps_is_followed_by_one_call_at_a_time(traced: Spans) -> None:
    class Keeps:
        def __init__(self) -> None:
            self.stream: Any = Stream()

        @sg.trace
        def get(self) -> Any:
            return self.stream

    keeps = Keeps()
    assert [next(keeps.get()) for _ in range(3)] == list(WORDS)
    assert Spans.open() == 1
    assert next(keeps.get(), None) is None
    assert Spans.open() == 0
    assert sorted(span.attributes[s.OI_OUTPUT] for span in traced.all())[-1] == "one two three"
    assert len(traced.all()) == 4


# --- iterables, and iterators of other kinds ---------------------------------------------------------------------------------


def test_an_iterable_is_followed_by_the_iterator_that_it_gives(traced: Spans) -> None:
    reply = hands_out(Reply)
    assert Spans.open() == 1
    iterator = iter(reply)
    assert inspect.isgenerator(iterator)
    assert list(iterator) == list(WORDS)
    assert type(reply) is Reply
    assert list(reply) == list(WORDS)
    assert ended(traced) == ("one two three", "complete")


def test_a_temporary_iterable_lives_as_long_as_its_iterator(traced: Spans) -> None:
    class Once:
        def __init__(self) -> None:
            self._left = iter(WORDS)

        def __iter__(self) -> Iterator[str]:
            return self._left

        def close(self) -> None:
            pass

    for n, word in enumerate(hands_out(Once)):
        assert word == WORDS[n]
        assert Spans.open() == 1
    assert ended(traced) == ("one two three", "complete")


def test_an_iterator_that_is_broken_off_and_taken_up_again_goes_on(traced: Spans) -> None:
    class Inner(Stream[str]):
        """As OpenAI's: each iterator goes on with the same stream."""

        def __iter__(self) -> Iterator[str]:
            while self._left:
                yield super().__next__()

    stream = hands_out(Inner)
    for _ in stream:
        break
    assert Spans.open() == 1
    assert list(stream) == ["two ", "three"]
    assert ended(traced) == ("one two three", "complete")


def test_an_iterable_that_somebody_else_holds_is_left_alone(traced: Spans) -> None:
    kept = Reply()
    assert hands_out(lambda: kept) is kept
    assert type(kept) is Reply
    assert Spans.open() == 0


BUILTIN: dict[str, Callable[[], Any]] = {
    "map": lambda: map(str, (1, 2)),
    "filter": lambda: filter(None, ["1", "2"]),
    "zip": lambda: zip("12"),
    "enumerate": lambda: enumerate("12"),
    "reversed": lambda: reversed(["2", "1"]),
    "list": lambda: iter(["1", "2"]),
    "dict": lambda: iter({"1": 1, "2": 2}),
    "text": lambda: iter("12"),
    "callable": lambda: iter(iter(["1", "2", "end"]).__next__, "end"),
    "chain": lambda: itertools.chain("1", "2"),
    "islice": lambda: itertools.islice(itertools.count(1), 2),
    "accumulate": lambda: itertools.accumulate([1, 1]),
    "starmap": lambda: itertools.starmap(str, [("1",), ("2",)]),
    "takewhile": lambda: itertools.takewhile(bool, [1, 2, 0]),
}


@pytest.mark.parametrize("kind", BUILTIN)
def test_pythons_own_iterators_are_followed_and_pass_for_themselves(kind: str, traced: Spans) -> None:
    make = BUILTIN[kind]
    iterator = hands_out(make)
    assert isinstance(iterator, type(make()))
    assert isinstance(iterator, Iterator)
    assert iter(iterator) is iterator
    assert operator.length_hint(iterator, 7) == operator.length_hint(make(), 7)
    assert repr(iterator).partition(" at ")[0] == repr(make()).partition(" at ")[0]
    assert list(iterator) == list(make())
    assert next(iterator, "over") == "over"
    assert ended(traced)[1] == "complete"
    assert "1" in ended(traced)[0]
    assert "2" in ended(traced)[0]


def test_a_builtin_iterator_that_is_dropped_or_kept_elsewhere(traced: Spans) -> None:
    kept = iter(["1", "2"])
    assert hands_out(lambda: kept) is kept
    assert next(hands_out(lambda: map(str, (1, 2)))) == "1"
    hands_out(itertools.count)
    assert Spans.open() == 0
    assert [span.attributes.get(s.ENDED) for span in traced.all()] == [None, "closed", "unconsumed"]
    assert list(kept) == ["1", "2"]


def test_copies_and_pickles_are_of_the_class_itself(traced: Spans) -> None:
    stream, listed = hands_out(Stream), hands_out(lambda: iter([1, 2]))
    for other in (copy.copy(stream), copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))):
        assert type(other) is Stream
        assert list(other) in (list(WORDS), [])  # a shallow copy shares the list
        stream._left[:] = list(WORDS)
    assert list(copy.copy(listed)) == [1, 2]
    assert list(stream) == list(WORDS)
    assert list(listed) == [1, 2]
    assert [span.attributes[s.OI_OUTPUT] for span in traced.all()] == ["one two three", "[1,2]"]


def test_one_that_makes_another_of_its_kind_makes_an_untraced_one(traced: Spans) -> None:
    class Forks(Stream[str]):
        def fork(self) -> "Forks":
            return type(self)()

    stream = hands_out(Forks)
    other = stream.fork()
    assert list(other) == list(WORDS)
    assert type(other) is Forks
    assert list(stream) == list(WORDS)
    assert len(traced.all()) == 1


def test_a_class_that_is_changed_by_somebody_else_stays_changed(traced: Spans) -> None:
    class Other(Stream[str]):
        pass

    stream = hands_out(Stream)
    next(stream)
    stream.__class__ = Other
    assert type(stream) is Other
    assert Spans.open() == 0
    assert list(stream) == ["two ", "three"]


def test_abstract_classes_protocols_and_classes_with_slots_are_followed(traced: Spans) -> None:
    class Abstract(ABC):
        @abstractmethod
        def __next__(self) -> str: ...

        def __iter__(self) -> Iterator[str]:
            return self  # type: ignore[return-value]

    @typing.runtime_checkable
    class Proto(typing.Protocol):
        def __next__(self) -> str: ...

    class A(Abstract):
        __slots__ = ("left",)

        def __init__(self) -> None:
            self.left = list(WORDS)

        def __next__(self) -> str:
            if self.left:
                return self.left.pop(0)
            raise StopIteration

    class P(A, Proto):
        pass

    for kind in (A, P):
        stream = hands_out(kind)
        assert isinstance(stream, kind)
        assert list(stream) == list(WORDS)
    assert [span.attributes[s.OI_OUTPUT] for span in traced.all()] == ["one two three"] * 2


# --- what is not followed ----------------------------------------------------------------------------------------------------


def test_a_class_that_goes_leaves_nothing_behind(traced: Spans) -> None:
    from spangrade.tracing import streamlike

    def one() -> None:
        class Gone(Stream[str]):
            pass

        list(hands_out(Gone))

    one()
    gc.collect()
    before = len(streamlike._verdicts)
    for _ in range(20):
        one()
    gc.collect()
    assert len(streamlike._verdicts) == before
    assert [kind for kind in Stream.__subclasses__() if kind.__name__ == "Gone"] == []


def test_many_that_nobody_reads_leave_nothing(traced: Spans) -> None:
    from spangrade.tracing import open_streams, stand_ins

    for _ in range(300):
        hands_out(Stream)
        hands_out(Reply)
        hands_out(lambda: map(str, ()))
    assert Spans.open() == 0
    assert stand_ins._followed == {}
    assert open_streams._Open.streams == {}


def test_nothing_is_followed_where_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_DISABLED", "true")
    assert type(hands_out(Stream)) is Stream
    assert type(hands_out(lambda: map(str, ()))) is map


async def _agen() -> AsyncIterator[str]:
    yield "x"


def test_an_asynchronous_iterator_whose_next_is_no_coroutine_function(traced: Spans) -> None:
    class Wraps:
        def __init__(self) -> None:
            self._inner = _agen()

        def __aiter__(self) -> "Wraps":
            return self

        def __anext__(self) -> Any:
            return self._inner.__anext__()

        async def aclose(self) -> None:
            await self._inner.aclose()  # type: ignore[attr-defined]

    async def main() -> None:
        assert await acollect(hands_out(Wraps)) == ["x"]
        stream = hands_out(Wraps)
        assert await stream.__anext__() == "x"
        await stream.aclose()

    asyncio.run(main())
    assert [span.attributes[s.ENDED] for span in traced.all()] == ["complete", "closed"]
    assert [span.attributes[s.OI_OUTPUT] for span in traced.all()] == ["x", "x"]


def test_an_asynchronous_iterable_whose_iterator_is_a_generator(traced: Spans) -> None:
    class Items:
        async def __aiter__(self) -> AsyncIterator[str]:
            for word in WORDS:
                yield word

    async def main() -> None:
        assert await acollect(hands_out(Items)) == list(WORDS)
        async for _ in hands_out(Items):
            break

    asyncio.run(main())
    gc.collect()
    assert [(one.attributes[s.OI_OUTPUT], one.attributes[s.ENDED]) for one in traced.all()] == [
        ("one two three", "complete"),
        ("one ", "closed"),
    ]


def test_no_step_that_is_never_awaited_warns_twice(traced: Spans) -> None:
    async def main() -> None:
        stream = hands_out(AsyncStream)
        with pytest.warns(RuntimeWarning, match="never awaited") as warned:
            stream.__anext__()
        assert len(warned) == 1

    asyncio.run(main())


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
