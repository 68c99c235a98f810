"""C004, C010, C013, C014: streams that are closed, never read, stepped by many tasks, or left before their usage came."""

import asyncio
import gc
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from tests.cases.conftest import Product, output

import spangrade as sg
from spangrade import semconv as s
from spangrade.testing import CollectingExporter, event_scores


@sg.trace
def tokens() -> Iterator[str]:
    yield "one "
    yield "two "


@sg.trace
async def atokens() -> AsyncIterator[str]:
    yield "one "
    yield "two "


def closed() -> None:
    stream = tokens()
    next(stream)
    stream.close()


def thrown() -> None:
    stream = tokens()
    next(stream)
    with pytest.raises(GeneratorExit):
        stream.throw(GeneratorExit)


def aclosed() -> None:
    async def main() -> None:
        stream = atokens()
        await anext(stream)
        await stream.aclose()

    asyncio.run(main())


def left_in_a_loop() -> None:
    async def main() -> None:
        async for _ in atokens():
            break
        await asyncio.sleep(0)  # Python closes it in a task of its own

    asyncio.run(main())


def left_at_the_end() -> None:
    """The runner cancels what closes the stream, and so the stream."""

    async def main() -> None:
        async for _ in atokens():
            break

    asyncio.run(main())


def interrupted() -> None:
    stream = tokens()
    next(stream)
    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt)


@pytest.mark.parametrize("leave", [closed, thrown, aclosed, left_in_a_loop, left_at_the_end, interrupted])
def test_c004_leaving_a_stream_is_no_error_anywhere(leave: Callable[[], None], product: Product) -> None:
    """Not in the span, not in the sample that a metric filters by, and it is said how the stream ended."""
    leave()
    gc.collect()
    (span,) = product.spans
    attributes = dict(span.attributes or {})
    assert span.status.status_code.name == "UNSET"
    assert [event.name for event in span.events if event.name == "exception"] == []
    assert s.ERROR_TYPE not in attributes
    assert attributes[s.ENDED] == ("cancelled" if leave in (interrupted, left_at_the_end) else "closed")
    assert output(span) == "one "
    (sample,) = product.samples
    assert (sample.output, sample.context["status"]) == ("one ", "ok")


def test_c004_a_stream_that_its_reader_makes_fail_is_an_error(product: Product) -> None:
    stream = tokens()
    next(stream)
    with pytest.raises(ValueError, match="no"):
        stream.throw(ValueError("no"))
    (span,) = product.spans
    assert (span.status.status_code.name, output(span)) == ("ERROR", "one ")
    assert product.samples[0].context["status"] == "error"


def test_c004_a_stream_that_returns_early_by_itself_is_complete(product: Product) -> None:
    @sg.trace
    def short() -> Iterator[str]:
        try:
            yield "one"
        finally:
            pass
        return

    assert list(short()) == ["one"]
    assert dict(product.only("short").attributes or {})[s.ENDED] == "complete"


@sg.trace
def hands_out() -> Iterator[str]:
    return (word for word in ("one", "two"))


@sg.trace
async def acoroutine() -> str:
    raise AssertionError("nobody awaits it")


def coroutine_left() -> None:
    acoroutine().close()


@pytest.mark.parametrize("make", [tokens, atokens, hands_out, coroutine_left])
def test_c010_streams_that_nobody_reads_cost_nothing_that_stays(
    make: Callable[[], Any], exporter: CollectingExporter
) -> None:
    """A hundred thousand of them: no body runs, and memory is where it was."""
    sg.configure(exporter=CollectingExporter(fail=True))  # keeps nothing of what it is given
    times = 100_000 if make is not hands_out else 5_000  # each of these is a span, which has to be exported
    for _ in range(200):
        make()
    sg.flush(10)
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(times):
            make()
        sg.flush(20)
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 1_000_000


def test_c013_each_step_in_a_task_of_its_own_nests_and_leaks_nothing(
    product: Product, caplog: pytest.LogCaptureFixture, parent_of: Callable[[Any], int | None]
) -> None:
    @sg.trace
    async def inner(n: int) -> int:
        await asyncio.sleep(0)
        return n

    @sg.trace
    async def numbers() -> AsyncIterator[int]:
        for n in range(4):
            yield await inner(n)

    async def main() -> list[int]:
        stream = numbers()
        got = [await asyncio.create_task(anext(stream)) for _ in range(3)]  # type: ignore[arg-type]
        assert not trace_api.get_current_span().get_span_context().is_valid
        got.append(await anext(stream))
        await asyncio.create_task(stream.aclose())  # type: ignore[attr-defined]
        return got

    assert asyncio.run(main()) == [0, 1, 2, 3]
    span = product.only("numbers")
    assert [parent_of(child) for child in product.named("inner")] == [span.context.span_id] * 4
    assert [record for record in caplog.records if record.levelname in ("ERROR", "WARNING")] == []
    assert len(product.samples) == 1


def test_c013_two_tasks_that_take_turns_at_one_stream(product: Product) -> None:
    @sg.trace
    async def numbers() -> AsyncIterator[int]:
        for n in range(6):
            await asyncio.sleep(0)
            yield n

    async def main() -> list[int]:
        stream, turn, got = numbers(), asyncio.Lock(), []

        async def take() -> None:
            for _ in range(3):
                async with turn:
                    got.append(await anext(stream))

        await asyncio.gather(take(), take())
        return got

    assert asyncio.run(main()) == list(range(6))
    gc.collect()
    assert json.loads(output(product.only("numbers"))) == list(range(6))


@sg.trace(kind="llm")
async def model() -> AsyncIterator[str]:
    for word in ("It ", "is ", "late."):
        await asyncio.sleep(0)
        yield word
    span = trace_api.get_current_span()  # the last chunk brings the usage
    span.set_attributes({s.INPUT_TOKENS: 7, s.OUTPUT_TOKENS: 3})


@sg.metric
def cost(sample: sg.Sample) -> float | None:
    usage = sample.context.get("usage")
    return None if usage is None else float(usage["output_tokens"])


@pytest.mark.parametrize("whole", [True, False])
def test_c014_usage_that_never_came_is_absent_and_not_zero(whole: bool, product: Product) -> None:
    """So a metric of costs can skip the call, and does not pull the average down."""

    async def main() -> None:
        async def read(first: asyncio.Event) -> None:
            async for _ in model():
                first.set()
                if not whole:
                    await asyncio.Event().wait()

        first = asyncio.Event()
        task = asyncio.create_task(read(first))
        await first.wait()
        if not whole:
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    product.configure(cost)
    asyncio.run(main())
    gc.collect()
    span = product.only("model")
    (sample,) = product.samples
    if whole:
        assert (sample.output, sample.context["usage"]) == ("It is late.", {"input_tokens": 7, "output_tokens": 3})
        assert event_scores(span)["cost"][s.SCORE_VALUE] == 3
    else:
        assert sample.output == "It "
        assert "usage" not in sample.context
        assert "cost" not in event_scores(span)  # skipped
        assert [key for key in dict(span.attributes or {}) if "usage" in key] == []
