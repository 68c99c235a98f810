"""What the SDK costs an application, beside a bare OpenTelemetry span that records the same, in one run.

    make bench-sdk                    (python -m tests.benchmarks.sdk [--rounds 21] [--calls 60] [--no-peers])

Prints the table that the README shows. Nothing is asserted about time: read the ratios.
"""

import argparse
import cProfile
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider, sampling
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import spangrade as sg
from spangrade.otel.processor import SpangradeProcessor
from spangrade.tracing import call as tracing_call
from tests.benchmarks import beside, peers
from tests.benchmarks.calls import METRICS, Nowhere, Timed, by_hand, one_by_one, traced
from tests.benchmarks.paired import Pair, paired


def function_calls(timed: Timed) -> int:
    """How many functions, of Python's and of C's, one call runs on its thread; exact, whatever the machine is doing."""
    timed(3)
    counts = []
    for times in (1, 2):
        profile = cProfile.Profile()
        profile.enable()
        timed(times)
        profile.disable()
        counts.append(sum(entry.callcount for entry in profile.getstats()))
    return counts[1] - counts[0] - 3  # two looks at the clock, and the list that keeps them


def row(name: str, pair: Pair, goal: str = "", calls: tuple[int, int] | None = None) -> None:
    counted = f"{calls[0]} | {calls[1]}" if calls is not None else " | "
    print(f"| {name} | {pair.bare:.1f} | {pair.ours:.1f} | {pair.ratio:.2f} | {goal} | {counted} |", flush=True)


@contextmanager
def publicly() -> Iterator[None]:
    """Calls are traced by the public API, as with an SDK that lazily filled spans were not tried with."""
    before, tracing_call.lazily = tracing_call.lazily, lambda *_: None  # type: ignore[attr-defined]
    tracing_call._State.tracer_of = None
    try:
        yield
    finally:
        tracing_call.lazily = before  # type: ignore[attr-defined]
        tracing_call._State.tracer_of = None


@contextmanager
def through(provider: TracerProvider) -> Iterator[None]:
    """Calls are traced through this provider, and not scored."""
    tracing_call.use_provider(provider)
    try:
        yield
    finally:
        tracing_call.use_provider(None)


@contextmanager
def switched_off() -> Iterator[None]:
    os.environ["SPANGRADE_DISABLED"] = "true"
    try:
        yield
    finally:
        del os.environ["SPANGRADE_DISABLED"]


@contextmanager
def below_an_unsampled_parent() -> Iterator[None]:
    context = trace_api.SpanContext(0xA, 0xB, is_remote=True, trace_flags=trace_api.TraceFlags(0))
    with trace_api.use_span(trace_api.NonRecordingSpan(context)):
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument(
        "--no-peers", action="store_true", help="skip the other vendors' SDKs (they need their own venv)"
    )
    options = parser.parse_args()

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    sg.configure(metrics=METRICS, exporter=Nowhere())
    bare, ours = by_hand(provider), traced()

    def pair(name: str, mine: Timed | None = None) -> Pair:
        return paired(bare[name], mine or ours[name], options.rounds, options.calls, lambda: sg.flush(10))

    print("| traced, captured, selected, handed over | bare µs | ours µs | x bare | goal | calls bare | calls ours |")
    print("|---|---|---|---|---|---|---|")
    goals = ("0.30", "0.30", "0.30", "0.40", "0.60")
    for name, goal in zip(ours, goals, strict=True):
        row(name, pair(name), goal, (function_calls(bare[name]), function_calls(ours[name])))
        sg.flush(10)
    with publicly():
        row("sync, by the public API only", pair("sync"), "0.80", (0, function_calls(ours["sync"])))
    dropping = TracerProvider(sampler=sampling.ParentBased(sampling.TraceIdRatioBased(0)))
    with through(dropping):
        row("sync, a root that the sampler drops", pair("sync"), "0.20")
    with below_an_unsampled_parent():
        row("sync, under an unsampled parent", pair("sync"), "0.05")
    with switched_off():
        row("sync, SPANGRADE_DISABLED", pair("sync"), "0.05")
    on_end(options.rounds)
    print()
    beside.scored_beside_an_event_loop()
    beside.held_in_memory()
    sg.shutdown()
    if not options.no_peers:
        peers.main(options.rounds, options.calls)


class _Keep(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def on_end(rounds: int) -> None:
    """Spans that are none of our calls, beside the SDK's batch processor alone."""
    keep, provider = _Keep(), TracerProvider()
    provider.add_span_processor(keep)
    tracer = provider.get_tracer("other")
    with tracer.start_as_current_span("GET /", attributes={f"http.attribute.{i}": "value" for i in range(12)}):
        pass
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 10}
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "x" * 8_000}]}])
    with tracer.start_as_current_span("chat", attributes={**model, "gen_ai.input.messages": messages}):
        pass
    mine, theirs = SpangradeProcessor(BatchSpanProcessor(Nowhere())), BatchSpanProcessor(Nowhere())

    def ends(processor: SpanProcessor, span: ReadableSpan) -> Callable[[], Any]:
        return lambda: processor.on_end(span)

    for name, span, goal in zip(
        ("an HTTP span's end", "a foreign model span's end, 8 KB"), keep.spans, ("", "10 µs"), strict=True
    ):
        one, other = one_by_one(ends(theirs, span)), one_by_one(ends(mine, span))
        row(name, paired(one, other, rounds, 100, lambda: sg.flush(10)), goal)


if __name__ == "__main__":
    main()
