"""C108, C110: a collector that is away for long, and spans that never end."""

import gc
import logging
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from tests.cases.conftest import Product

import spangrade as sg
from spangrade import semconv as s
from spangrade.delivery.hold import MAX_SPANS
from spangrade.model.outcome import Outcome
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter, event_scores

QUEUE = 64


@sg.trace
def answer(question: str) -> str:
    return question


@sg.trace
def answer_at_length(question: str) -> str:
    return question[::-1]


def counts() -> Any:
    engine = current_engine()
    assert engine is not None
    return next(count for count in engine.ledger.snapshot().values() if count.name == "seen")


def test_c108_while_the_collector_is_away_what_waits_is_bounded_and_counted_and_then_it_goes_on(
    exporter: CollectingExporter, product: Product, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A small queue in place of a long time. The oldest spans go; every pair is still accounted for at the end."""
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", str(QUEUE))
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "32")
    away = CollectingExporter()
    product.configure(exporter=away)
    most = MAX_SPANS + QUEUE
    times = most + 600
    with away.block():
        engine = current_engine()
        assert engine is not None
        for n in range(times):
            assert answer(str(n)) == str(n)
            if n % 500 == 499 or n == times - 1:  # scored meanwhile, whatever the exporter does
                assert engine.pipeline.drain(30, judges=False)
        assert counts().of(Outcome.SCORED) + counts().of(Outcome.DROPPED) == times
    assert sg.flush(30)
    arrived = sorted(int(str((span.attributes or {})[s.OI_OUTPUT])) for span in away.spans)
    assert len(arrived) == len(set(arrived))
    assert most <= len(arrived) <= most + 32  # one batch was with the exporter already
    assert arrived[-1_000:] == list(range(times - 1_000, times))  # nearly in order: metrics run side by side
    answer("back again")
    assert sg.flush(30)
    assert set(event_scores(away.spans[-1])) == {"seen"}
    sg.shutdown()
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) <= 2


def test_c108_pairs_of_spans_that_were_pushed_out_are_counted_as_undelivered(
    product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", str(QUEUE))
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "32")
    away = CollectingExporter()
    product.configure(exporter=away)
    times = MAX_SPANS + QUEUE + 600
    engine = current_engine()
    assert engine is not None
    with away.block():
        for n in range(times):
            answer(str(n))
            if n % 500 == 499 or n == times - 1:
                assert engine.pipeline.drain(30, judges=False)
    sg.flush(30)
    delivered = len(away.spans)
    sg.shutdown()
    (count,) = engine.ledger.snapshot().values()
    assert count.of(Outcome.SCORED) == sum(count.delivered.values()) + sum(count.undelivered.values())
    assert sum(count.delivered.values()) <= delivered
    assert sum(count.undelivered.values()) > 0


def test_c108_what_waits_is_bounded_in_bytes_too() -> None:
    """600 calls of 600 kB while the exporter is stuck: 360 MB, of which the queue keeps 64 MiB; some are with the exporter."""
    away = CollectingExporter()
    sg.configure(metrics=[sg.metric(name="seen")(lambda sample: 1)], exporter=away)
    gc.collect()
    with away.block():
        tracemalloc.start()
        try:
            engine = current_engine()
            assert engine is not None
            for n in range(600):
                answer_at_length(f"{n} " + "x" * 300_000)
                if n % 25 == 24:  # scored meanwhile
                    assert engine.pipeline.drain(30, judges=False)
            gc.collect()
            waiting, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert waiting < 1.3 * 64 * 2**20
    sg.shutdown()
    (count,) = engine.ledger.snapshot().values()
    assert count.of(Outcome.SCORED) == 600 == sum(count.delivered.values()) + sum(count.undelivered.values())
    assert count.undelivered["queue_full"] > 450


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens, and nobody else may."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_c108_a_collector_that_refuses_is_no_flood_of_log_lines_and_delays_no_call(
    protocol: str, nobody: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Twenty batches that fail: a few lines in all, from whomever, and the calls were not held up by any of them."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    sg.configure(metrics=[sg.metric(name="seen")(lambda sample: 1)], endpoint=nobody)
    for n in range(20):
        assert answer(str(n)) == str(n)
        assert not sg.flush(5)
    sg.shutdown()
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert 0 < len(lines) <= 3, lines  # the exporter's, a retry's, and one of ours of the flush
    assert "Traceback" not in caplog.text


def test_c110_spans_that_never_end_cost_a_bounded_amount(exporter: CollectingExporter) -> None:
    """Started by anybody, with content, and never ended."""
    sg.configure(metrics=[sg.metric(name="seen")(lambda sample: 1)], exporter=exporter)
    tracer = trace_api.get_tracer("app")
    content = "x" * 1_000

    def start(times: int) -> int:
        for _ in range(times):
            tracer.start_span("never", attributes={s.OI_INPUT: content})
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = start(17_000)  # the count is reached
        after = start(17_000)
    finally:
        tracemalloc.stop()
    assert after - before < 1_000_000
    answer("still scored")
    assert sg.flush(10)
    assert [set(event_scores(span)) for span in exporter.spans] == [{"seen"}]


def test_c110_streams_that_are_kept_and_never_read_on_do_not_stop_the_others(product: Product) -> None:
    @sg.trace
    def stream() -> Iterator[int]:
        yield 1
        yield 2

    held = []
    for _ in range(2_000):
        one = stream()
        next(one)
        held.append(one)
    answer("between")
    assert [sample.output for sample in product.samples] == ["between"]
    held.clear()
    del one
    gc.collect()
    assert len(product.named("stream")) == 2_000
    assert threading.active_count() < 30
