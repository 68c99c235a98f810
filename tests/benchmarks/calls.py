"""The calls that are measured: the same work traced by hand with bare OpenTelemetry, and with `sg.trace`.

A call takes a dict of about 500 bytes and gives a text of 1 KB; ``rag`` has a child retriever with 5 documents of 800
characters; a stream gives 50 chunks. Bare OpenTelemetry is what a careful user writes: start_as_current_span, two
attributes, json. It records what ours records.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

import spangrade as sg

PAYLOAD = {"question": "How long does a refund take?", "history": [{"role": "user", "content": "x" * 40}] * 6, "k": 5}
ANSWER = "A refund takes five working days after the parcel has arrived. " * 16
DOCUMENTS = [{"id": f"d{i}", "content": "Refunds take five working days. " * 25, "score": 0.5} for i in range(5)]
CHUNKS = ["chunk "] * 50

#: Runs a call so many times, one after the other, and gives the nanoseconds that each took.
Timed = Callable[[int], list[int]]


class Nowhere(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


@sg.metric
def words(output: str) -> int:
    return len(str(output).split())


@sg.metric
def polite(output: str) -> bool:
    return "please" not in str(output)


@sg.metric
def long_enough(output: str) -> bool:
    return len(str(output)) > 100


METRICS = (words, polite, long_enough)


def one_by_one(call: Callable[[], Any]) -> Timed:
    """A plain call."""

    def run(times: int) -> list[int]:
        took = []
        for _ in range(times):
            started = time.perf_counter_ns()
            call()
            took.append(time.perf_counter_ns() - started)
        return took

    return run


def awaited(call: Callable[[], Any]) -> Timed:
    """An async call, inside of one running loop."""

    async def main(times: int) -> list[int]:
        took = []
        for _ in range(times):
            started = time.perf_counter_ns()
            await call()
            took.append(time.perf_counter_ns() - started)
        return took

    return lambda times: asyncio.run(main(times))


def _consumed(stream: Callable[[], Iterator[str]]) -> Callable[[], None]:
    def consume() -> None:
        for _ in stream():
            pass

    return consume


def _aconsumed(stream: Callable[[], AsyncIterator[str]]) -> Callable[[], Any]:
    async def consume() -> None:
        async for _ in stream():
            pass

    return consume


def _timed(sync: Any, later: Any, rag: Any, stream: Any, astream: Any) -> dict[str, Timed]:
    return {
        "sync": one_by_one(sync),
        "async": awaited(later),
        "RAG (retriever with 5 documents)": one_by_one(rag),
        "stream of 50 chunks": one_by_one(_consumed(stream)),
        "async stream of 50 chunks": awaited(_aconsumed(astream)),
    }


def by_hand(provider: TracerProvider) -> dict[str, Timed]:
    """Bare OpenTelemetry."""
    tracer = provider.get_tracer("bare")

    def sync() -> str:
        with tracer.start_as_current_span("call") as span:
            span.set_attribute("input.value", json.dumps(PAYLOAD))
            span.set_attribute("output.value", json.dumps(ANSWER))
        return ANSWER

    async def later() -> str:
        return sync()

    def rag() -> str:
        with tracer.start_as_current_span("call") as span:
            span.set_attribute("input.value", json.dumps(PAYLOAD))
            with tracer.start_as_current_span("search") as child:
                child.set_attribute("input.value", json.dumps("q"))
                child.set_attribute("retrieval.documents", json.dumps(DOCUMENTS))
            span.set_attribute("output.value", json.dumps(ANSWER))
        return ANSWER

    def stream() -> Iterator[str]:
        parts = []
        with tracer.start_as_current_span("call") as span:
            span.set_attribute("input.value", json.dumps(PAYLOAD))
            for chunk in CHUNKS:
                parts.append(chunk)
                yield chunk
            span.set_attribute("output.value", json.dumps("".join(parts)))

    async def astream() -> AsyncIterator[str]:
        parts = []
        with tracer.start_as_current_span("call") as span:
            span.set_attribute("input.value", json.dumps(PAYLOAD))
            for chunk in CHUNKS:
                parts.append(chunk)
                yield chunk
            span.set_attribute("output.value", json.dumps("".join(parts)))

    return _timed(sync, later, rag, stream, astream)


def traced() -> dict[str, Timed]:
    """Ours, as they are decorated: through whatever is configured when they run."""

    @sg.trace
    def sync(payload: Any) -> str:
        return ANSWER

    @sg.trace
    async def later(payload: Any) -> str:
        return ANSWER

    @sg.trace(kind="retriever")
    def search(query: str) -> Any:
        return DOCUMENTS

    @sg.trace
    def rag(payload: Any) -> str:
        search("q")
        return ANSWER

    @sg.trace
    def stream(payload: Any) -> Iterator[str]:
        yield from CHUNKS

    @sg.trace
    async def astream(payload: Any) -> AsyncIterator[str]:
        for chunk in CHUNKS:
            yield chunk

    return _timed(
        lambda: sync(PAYLOAD),
        lambda: later(PAYLOAD),
        lambda: rag(PAYLOAD),
        lambda: stream(PAYLOAD),
        lambda: astream(PAYLOAD),
    )
