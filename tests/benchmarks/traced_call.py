"""What a traced and scored call costs the application's thread, as a ratio to a bare OpenTelemetry span with the same content.

    python -m tests.benchmarks.traced_call [--rounds 15]

Both run in this process, interleaved, with the SDK's batch processor and an exporter that throws spans away. Bare
OpenTelemetry is what a careful user writes by hand: start_as_current_span, two attributes, json. Ours adds capture by
signature, the offer to the pipeline, and three metrics that run beside it. Machines are noisy: read the ratios.
"""

import argparse
import asyncio
import cProfile
import json
import statistics
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import spangrade as sg
from spangrade.otel.processor import SpangradeProcessor

PAYLOAD = {"question": "How long does a refund take?", "history": [{"role": "user", "content": "x" * 40}] * 8, "k": 5}
ANSWER = "A refund takes five working days after the parcel has arrived. " * 16
DOCUMENTS = [{"id": f"d{i}", "content": "Refunds take five working days. " * 25, "score": 0.5} for i in range(5)]


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


def bare_cases(provider: TracerProvider) -> dict[str, Callable[[], Any]]:
    tracer = provider.get_tracer("bare")

    def sync() -> str:
        with tracer.start_as_current_span("call") as span:
            span.set_attribute("input.value", json.dumps(PAYLOAD))
            span.set_attribute("output.value", json.dumps(ANSWER))
        return ANSWER

    def rag() -> str:
        with tracer.start_as_current_span("call") as span:
            span.set_attribute("input.value", json.dumps(PAYLOAD))
            with tracer.start_as_current_span("search") as child:
                child.set_attribute("input.value", json.dumps("q"))
                child.set_attribute("retrieval.documents", json.dumps(DOCUMENTS))
            span.set_attribute("output.value", json.dumps(ANSWER))
        return ANSWER

    async def later() -> str:
        return sync()

    def stream() -> Iterator[str]:
        parts = []
        with tracer.start_as_current_span("call") as span:
            span.set_attribute("input.value", json.dumps(PAYLOAD))
            for _ in range(50):
                parts.append("chunk ")
                yield "chunk "
            span.set_attribute("output.value", json.dumps("".join(parts)))

    async def astream() -> AsyncIterator[str]:
        for chunk in stream():
            yield chunk

    return runners(sync, rag, later, stream, astream)


def our_cases() -> dict[str, Callable[[], Any]]:
    @sg.trace
    def sync(payload: Any) -> str:
        return ANSWER

    @sg.trace(kind="retriever")
    def search(query: str) -> Any:
        return DOCUMENTS

    @sg.trace
    def rag(payload: Any) -> str:
        search("q")
        return ANSWER

    @sg.trace
    async def later(payload: Any) -> str:
        return ANSWER

    @sg.trace
    def stream(payload: Any) -> Iterator[str]:
        for _ in range(50):
            yield "chunk "

    @sg.trace
    async def astream(payload: Any) -> AsyncIterator[str]:
        for _ in range(50):
            yield "chunk "

    return runners(
        lambda: sync(PAYLOAD),
        lambda: rag(PAYLOAD),
        lambda: later(PAYLOAD),
        lambda: stream(PAYLOAD),
        lambda: astream(PAYLOAD),
    )


def runners(sync: Any, rag: Any, later: Any, stream: Any, astream: Any) -> dict[str, Callable[[], Any]]:
    loop = asyncio.new_event_loop()

    async def consume() -> None:
        async for _ in astream():
            pass

    return {
        "sync": sync,
        "rag (child retriever, 5 documents)": rag,
        "async": lambda: loop.run_until_complete(later()),
        "stream of 50 chunks": lambda: [None for _ in stream()],
        "async stream of 50 chunks": lambda: loop.run_until_complete(consume()),
    }


def cpu_us(run: Callable[[], Any], calls: int) -> float:
    """Thread CPU microseconds per call: what the application's thread spends, other threads left out."""
    started = time.thread_time_ns()
    for _ in range(calls):
        run()
    return (time.thread_time_ns() - started) / calls / 1e3


def wall_us(run: Callable[[], Any], calls: int) -> float:
    started = time.perf_counter_ns()
    for _ in range(calls):
        run()
    return (time.perf_counter_ns() - started) / calls / 1e3


def function_calls(run: Callable[[], Any]) -> int:
    """How many functions one call runs on the application's thread; exact, whatever the machine is doing."""
    run()
    profile = cProfile.Profile()
    profile.enable()
    run()
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats()) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=40)
    options = parser.parse_args()

    bare_provider = TracerProvider()
    bare_provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    sg.configure(metrics=[words, polite, long_enough], exporter=Nowhere())
    bare, ours = bare_cases(bare_provider), our_cases()

    print(
        f"{'case':38} {'bare us':>9} {'ours us':>9} {'x bare':>7} {'wall x':>7} {'calls bare':>11} {'calls ours':>11}"
    )
    for name in bare:
        cpu: list[tuple[float, float]] = []
        wall: list[float] = []
        for _ in range(options.rounds):
            cpu.append((cpu_us(bare[name], options.calls), cpu_us(ours[name], options.calls)))
            sg.flush(10)  # scoring has its own threads: let it finish, so that rounds do not weigh on each other
            one = wall_us(bare[name], options.calls)
            wall.append(wall_us(ours[name], options.calls) / one)
            sg.flush(10)
        ratio = statistics.median(mine / theirs for theirs, mine in cpu)
        print(
            f"{name:38} {statistics.median(t for t, _ in cpu):9.1f} {statistics.median(m for _, m in cpu):9.1f} {ratio:7.2f} "
            f"{statistics.median(wall):7.2f} {function_calls(bare[name]):11} {function_calls(ours[name]):11}"
        )
    others(bare_provider)
    sg.shutdown()


class _Keep(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def others(bare_provider: TracerProvider) -> None:
    """What spans that are none of our calls cost, and what scoring costs on our threads."""
    keep = _Keep()
    provider = TracerProvider()
    provider.add_span_processor(keep)
    tracer = provider.get_tracer("other")
    with tracer.start_as_current_span("GET /", attributes={f"http.attribute.{i}": "value" for i in range(12)}):
        pass
    llm = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 10}
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "x" * 8_000}]}])
    with tracer.start_as_current_span("chat", attributes={**llm, "gen_ai.input.messages": messages}):
        pass
    plain, foreign = keep.spans
    mine, theirs = SpangradeProcessor(BatchSpanProcessor(Nowhere())), BatchSpanProcessor(Nowhere())
    for name, span in (("on_end of an HTTP span", plain), ("on_end of a foreign LLM span of 8 KB", foreign)):
        ratio = [
            (cpu_us(lambda span=span: theirs.on_end(span), 200), cpu_us(lambda span=span: mine.on_end(span), 200))
            for _ in range(15)
        ]
        sg.flush(10)
        a, b = (statistics.median(values) for values in zip(*ratio, strict=True))
        print(f"{name:38} {a:9.1f} {b:9.1f} {b / a:7.2f}")

    @sg.trace
    def scored(payload: Any) -> str:
        return ANSWER

    before, started = time.process_time(), time.thread_time()
    for _ in range(500):
        scored(PAYLOAD)
    sg.flush(30)
    spent = (time.process_time() - before - (time.thread_time() - started)) / 500 * 1e6
    print(
        f"{'threads beside it, per scored call':38} {'':9} {spent:9.1f}   (extraction, 3 metrics, events; threads: {threading.active_count()})"
    )


if __name__ == "__main__":
    main()
