"""A function that returns a generator, an async generator or a coroutine: the call ends when that does, and never later."""

import asyncio
import gc
import inspect
import logging
import sys
import threading
import types
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s


def parts(n: int = 3) -> Iterator[str]:
    for i in range(n):
        yield str(i)


async def aparts(n: int = 3) -> AsyncIterator[str]:
    for i in range(n):
        yield str(i)


async def later() -> str:
    await asyncio.sleep(0)
    return "late"


MAKERS: dict[str, Callable[[], Any]] = {"generator": parts, "async generator": aparts, "coroutine": later}


@sg.trace
def hands_out(make: Callable[[], Any]) -> Any:
    return make()


@sg.trace
async def ahands_out(make: Callable[[], Any]) -> Any:
    return make()


def by_function(make: Callable[[], Any]) -> Any:
    return hands_out(make)


def by_coroutine(make: Callable[[], Any]) -> Any:
    return asyncio.run(ahands_out(make))


BOTH = pytest.mark.parametrize("hand_out", [by_function, by_coroutine])


def read(stream: Any) -> Any:
    async def collect() -> list[Any]:
        return [item async for item in stream]

    if isinstance(stream, types.GeneratorType):
        return list(stream)
    return asyncio.run(stream if isinstance(stream, types.CoroutineType) else collect())


@BOTH
@pytest.mark.parametrize("kind", MAKERS)
def test_the_caller_gets_the_real_thing_and_the_call_lasts_to_its_end(
    kind: str, hand_out: Callable[..., Any], traced: Spans
) -> None:
    stream, plain = hand_out(MAKERS[kind]), MAKERS[kind]()
    assert type(stream) is type(plain)
    assert (stream.__name__, stream.__qualname__) == (plain.__name__, plain.__qualname__)
    assert Spans.open() == 1
    assert read(stream) == read(plain)
    assert Spans.open() == 0
    assert traced.attributes()[s.OI_OUTPUT] == ("late" if kind == "coroutine" else "012")


@BOTH
@pytest.mark.parametrize("way", ["dropped", "closed", "in a cycle"])
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.filterwarnings("ignore:coroutine 'later' was never awaited")
def test_a_stream_that_nobody_ever_steps_ends_its_call_when_it_goes(
    kind: str, way: str, hand_out: Callable[..., Any], traced: Spans
) -> None:
    stream = hand_out(MAKERS[kind])
    if way == "closed" and kind == "async generator":
        asyncio.run(stream.aclose())
    elif way == "closed":
        stream.close()
    elif way == "in a cycle":
        cycle: list[Any] = [stream]
        cycle.append(cycle)
        del cycle
    del stream
    gc.collect()
    assert Spans.open() == 0
    assert traced.attributes()[s.ENDED] == "unconsumed"


def test_many_streams_that_nobody_steps_leave_nothing(traced: Spans) -> None:
    for _ in range(1_000):
        hands_out(parts)
    assert Spans.open() == 0


@pytest.mark.parametrize("way", ["dropped", "closed"])
def test_python_warns_of_a_coroutine_that_was_never_awaited_as_if_it_were_untraced(way: str, traced: Spans) -> None:
    def warned(make: Callable[[], Any]) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            coroutine = make()
            if way == "closed":
                coroutine.close()
            del coroutine
            gc.collect()
        return [str(warning.message).splitlines()[0] for warning in caught]

    assert warned(lambda: hands_out(later)) == warned(later)


class Keeps:
    """Hands out one stream again and again."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def plain(self) -> Any:
        return self._stream

    traced = sg.trace(plain)

    @sg.trace
    async def atraced(self) -> Any:
        return self._stream


def test_a_generator_that_an_object_keeps_goes_on_where_it_was(traced: Spans) -> None:
    def use(get: Callable[[], Any]) -> list[Any]:
        return [next(get(), "end") for _ in range(4)]

    for how in ("traced", "atraced"):
        keeps = Keeps(parts())
        get: Callable[[], Any] = getattr(keeps, how)
        assert use(get if how == "traced" else lambda get=get: asyncio.run(get())) == use(Keeps(parts()).plain)
    assert Spans.open() == 0
    assert {span.attributes[s.OI_OUTPUT] for span in traced.all()} == {"<builtins.generator>"}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_stream_that_somebody_else_holds_is_returned_untouched(kind: str, traced: Spans) -> None:
    keeps = Keeps(MAKERS[kind]())
    assert keeps.traced() is keeps._stream
    assert asyncio.run(keeps.atraced()) is keeps._stream
    gc.collect()
    assert Spans.open() == 0
    assert read(keeps._stream) == read(MAKERS[kind]())
    assert len(traced.all()) == 2


def test_a_stream_that_has_begun_is_returned_untouched(traced: Spans) -> None:
    def begun() -> Any:
        generator = parts()
        next(generator)
        return generator

    async def abegun() -> Any:
        generator = aparts()
        await anext(generator)
        rest = await ahands_out(lambda: generator)
        return [item async for item in rest]

    assert hands_out(begun).gi_frame.f_code is parts.__code__
    assert list(hands_out(begun)) == ["1", "2"]
    assert asyncio.run(abegun()) == ["1", "2"]
    assert Spans.open() == 0


def test_an_exhausted_async_generator_is_returned_untouched(traced: Spans) -> None:
    async def main() -> Any:
        def exhausted() -> Any:
            return made.pop()

        made = [aparts(0)]
        assert [item async for item in made[0]] == []
        return hands_out(exhausted)

    assert asyncio.run(main()).ag_frame is None
    assert Spans.open() == 0


def test_send_throw_and_close_reach_a_returned_generator(traced: Spans) -> None:
    def echo() -> Any:
        got = []
        try:
            while True:
                got.append((yield len(got)))
        except LookupError:
            return got

    generator = hands_out(echo)
    with pytest.raises(TypeError, match="just-started"):
        generator.send(1)
    generator = hands_out(echo)
    assert next(generator) == 0
    assert generator.send("a") == 1
    with pytest.raises(StopIteration) as stop:
        generator.throw(LookupError())
    assert stop.value.value == ["a"]
    generator = hands_out(parts)
    next(generator)
    generator.close()
    assert list(generator) == []
    assert Spans.open() == 0


def test_nothing_is_followed_where_nothing_is_traced(traced: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_DISABLED", "true")
    made = parts()
    assert hands_out(lambda: made) is made
    assert hands_out(parts).gi_code is parts.__code__  # type: ignore[attr-defined]
    assert by_coroutine(parts).gi_code is parts.__code__  # type: ignore[attr-defined]


def test_a_retriever_gets_back_its_iterator_unread(traced: Spans) -> None:
    @sg.trace(kind="retriever")
    def search(make: Callable[[], Any]) -> Any:
        return make()

    class Once:
        def __init__(self) -> None:
            self._left = iter(["a", "b"])

        def __iter__(self) -> Iterator[str]:
            return self._left

    keeps = Keeps(parts())
    assert list(search(keeps.plain)) == ["0", "1", "2"]
    assert list(search(lambda: map(str.upper, "ab"))) == ["A", "B"]
    assert list(search(lambda: iter(["a"]))) == ["a"]
    assert list(search(Once)) == ["a", "b"]


# --- a call that is collected while it waits --------------------------------------------------------------------------------


def abandon(coroutine: Any) -> None:
    """Step it once, in another context, and drop it."""

    def step() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(coroutine)
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        del task

    thread = threading.Thread(target=step)
    thread.start()
    thread.join()


@pytest.fixture
def quiet_loop() -> Iterator[None]:
    logger = logging.getLogger("asyncio")  # says that a pending task was destroyed, with or without us
    logger.disabled = True
    yield
    logger.disabled = False


@pytest.mark.usefixtures("quiet_loop")
def test_a_waiting_call_that_is_collected_with_its_loop_ends_without_an_error_in_the_log(
    traced: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    @sg.trace
    async def waits() -> None:
        await asyncio.Event().wait()

    @sg.trace
    async def streams() -> AsyncIterator[int]:
        await asyncio.Event().wait()
        yield 1

    async def blocks() -> None:
        async with sg.trace("block"):
            await asyncio.Event().wait()

    async def consumes() -> None:
        async for _ in streams():
            pass

    for make in (waits, blocks, consumes):
        abandon(make())
        gc.collect()
    assert Spans.open() == 0
    assert [span.attributes[s.ENDED] for span in traced.all()] == ["cancelled", "cancelled", "closed"]
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.usefixtures("quiet_loop")
def test_an_evaluator_that_is_collected_with_its_loop_says_nothing_either(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spangrade import _suppress

    async def evaluates() -> None:
        with _suppress.evaluator_scope():
            await asyncio.Event().wait()

    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: ignored.append(repr(args.exc_value)))
    abandon(evaluates())
    gc.collect()
    assert ignored == []
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_detaching_twice_or_elsewhere_is_no_error_and_other_runtimes_keep_their_own_way(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry import context as otel_context

    from spangrade import _suppress

    token = otel_context.attach(otel_context.Context({"k": 1}))
    _suppress.detach(token)
    assert otel_context.get_value("k") is None
    _suppress.detach(token)
    seen: list[Any] = []
    monkeypatch.setattr(otel_context, "detach", seen.append)
    _suppress.detach("a token of another runtime")
    assert seen == ["a token of another runtime"]
    assert caplog.records == []


def test_a_streams_own_work_nests_under_its_call_whoever_made_it(traced: Spans) -> None:
    def works() -> Iterator[int]:
        with trace_api.get_tracer("app").start_as_current_span("inside"):
            pass
        yield 1

    assert list(hands_out(works)) == [1]
    inside, call = traced.all()
    assert (inside.name, inside.parent.span_id) == ("inside", call.context.span_id)
    assert inspect.isgenerator(hands_out(works))
