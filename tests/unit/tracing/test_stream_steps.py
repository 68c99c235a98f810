"""The steps of a returned stream object: whoever takes them, its own work nests under its call, and each item counts once."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from tests.unit.tracing.conftest import Spans
from tests.unit.tracing.given_streams import WORDS, AsyncStream, Stream, acollect, ended, hands_out

import spangrade as sg
from spangrade import semconv as s


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
