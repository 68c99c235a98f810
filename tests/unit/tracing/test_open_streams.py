"""Streams that are half read when everything ends: their calls end then, with what there was (C002's further case)."""

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s
from spangrade.testing import CollectingExporter
from spangrade.tracing import open_streams


@sg.trace
def tokens() -> Iterator[str]:
    yield "one "
    yield "two "


@sg.trace
async def atokens() -> AsyncIterator[str]:
    yield "one "
    yield "two "


class Stream:
    def __init__(self) -> None:
        self._left = ["one ", "two "]

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if not self._left:
            raise StopIteration
        return self._left.pop(0)


@sg.trace
def hands_out(make: Callable[[], Any]) -> Any:
    return make()


def plain_tokens() -> Iterator[str]:
    yield from ("one ", "two ")


MAKERS: dict[str, Callable[[], Any]] = {
    "generator": tokens,
    "returned generator": lambda: hands_out(plain_tokens),
    "object": lambda: hands_out(Stream),
    "builtin": lambda: hands_out(lambda: iter(["one ", "two "])),
}


def ends(exporter: CollectingExporter) -> list[tuple[Any, Any]]:
    return [((one.attributes or {}).get(s.OI_OUTPUT), (one.attributes or {}).get(s.ENDED)) for one in exporter.spans]


@pytest.mark.parametrize("kind", MAKERS)
def test_a_half_read_stream_ends_at_shutdown_and_its_reader_gets_the_rest(
    kind: str, exporter: CollectingExporter, caplog: pytest.LogCaptureFixture
) -> None:
    scored: list[Any] = []
    sg.configure(exporter=exporter, metrics=[sg.metric(name="seen")(lambda sample: scored.append(sample.output) or 1)])
    stream = MAKERS[kind]()
    assert next(stream) == "one "
    sg.shutdown()
    assert ends(exporter) == [("one ", "closed")]
    assert scored == ["one "]
    assert list(stream) == ["two "]
    del stream
    gc.collect()
    assert len(exporter.spans) == 1
    assert open_streams._Open.streams == {}
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def test_a_half_read_asynchronous_stream_does_too(
    exporter: CollectingExporter, caplog: pytest.LogCaptureFixture
) -> None:
    sg.configure(exporter=exporter)

    async def main() -> None:
        stream = atokens()
        assert await anext(stream) == "one "
        sg.shutdown()
        assert ends(exporter) == [("one ", "closed")]
        assert [item async for item in stream] == ["two "]

    asyncio.run(main())
    assert len(exporter.spans) == 1
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind != "generator"])  # that one has not begun its call
def test_a_stream_that_nobody_has_begun_to_read_is_unconsumed(kind: str, exporter: CollectingExporter) -> None:
    sg.configure(exporter=exporter)
    stream = MAKERS[kind]()
    sg.shutdown()
    assert ends(exporter) == [(None, "unconsumed")]
    assert list(stream) == ["one ", "two "]
    assert len(exporter.spans) == 1


def test_a_stream_whose_step_is_blocked_ends_at_shutdown(exporter: CollectingExporter) -> None:
    sg.configure(exporter=exporter)
    waits, go_on = threading.Event(), threading.Event()

    @sg.trace
    def slow() -> Iterator[str]:
        yield "one "
        waits.set()
        go_on.wait(10)
        yield "two "

    thread = threading.Thread(target=lambda: list(slow()))
    thread.start()
    assert waits.wait(10)
    sg.shutdown()
    assert ends(exporter) == [("one ", "closed")]
    go_on.set()
    thread.join()
    assert len(exporter.spans) == 1


def test_one_whose_output_is_not_captured_ends_too(exporter: CollectingExporter) -> None:
    sg.configure(exporter=exporter)
    stream = sg.trace(capture_output=False)(plain_tokens)()
    stream_object = sg.trace(capture_output=False)(lambda: Stream())()  # noqa: PLW0108 - a class is not traced
    assert [next(stream), next(stream_object)] == ["one ", "one "]
    sg.shutdown()
    assert ends(exporter) == [(None, "closed")] * 2


def test_streams_that_end_are_forgotten_and_more_than_the_bound_are_not_remembered(
    traced: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_streams, "MAX_OPEN", 3)
    streams = [tokens() for _ in range(5)]
    for stream in streams:
        next(stream)
    assert len(open_streams._Open.streams) == 3
    for stream in streams:
        assert list(stream) == ["two "]
    assert open_streams._Open.streams == {}
    assert [one.attributes[s.ENDED] for one in traced.all()] == ["complete"] * 5


def test_a_child_process_leaves_its_parents_streams_alone(traced: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no hook told of the fork: the process id says it."""
    stream = tokens()
    next(stream)
    assert open_streams.any_open()
    here = os.getpid()
    monkeypatch.setattr(open_streams, "getpid", lambda: here + 1)
    assert not open_streams.any_open()
    open_streams.end_open_streams()
    assert Spans.open() == 1
    other = tokens()
    next(other)
    assert len(open_streams._Open.streams) == 1
    open_streams.end_open_streams()
    assert Spans.open() == 1
    del other
    monkeypatch.undo()
    assert list(stream) == ["two "]
