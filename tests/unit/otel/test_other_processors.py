"""Beside processors of others: who sees what, who exports, and what becomes of the scores."""

import logging
import threading
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

import spangrade as sg
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter, event_scores

from .others import CALL, Baggage, Duck, Reader, answer, scored, their_provider, yes


@pytest.mark.parametrize("they_first", [True, False])
def test_a_processor_that_reads_ended_spans_sees_each_once_and_nothing_of_ours_on_it(
    they_first: bool, exporter: CollectingExporter
) -> None:
    reader = Reader()
    provider = their_provider(*([reader] if they_first else []))
    sg.configure(metrics=[yes], exporter=exporter)
    if not they_first:
        provider.add_span_processor(reader)
    with provider.get_tracer("theirs").start_as_current_span("llm", attributes=CALL) as span:
        span.add_event("mine")
    assert sg.flush(5)
    assert reader.seen == [("llm", 1, CALL)]
    assert set(event_scores(exporter.named("llm")[0])) == {"yes"}


def test_spans_of_a_provider_that_somebody_reads_go_to_no_new_place_unless_one_was_said(
    exporter: CollectingExporter, caplog: pytest.LogCaptureFixture
) -> None:
    reader = Reader()
    their_provider(reader)
    with caplog.at_level(logging.INFO, "spangrade"):
        sg.configure(metrics=[yes])
    answer("a")
    assert sg.flush(5)
    # Late: the scores leave as evaluation spans through their provider, for its processor to send.
    assert [name for name, _, _ in reader.seen] == ["answer", "evaluation yes"]
    assert "late: the existing provider exports its spans" in caplog.text


@pytest.mark.parametrize("said", ["endpoint", "environment"])
def test_once_a_place_is_said_the_spans_that_nobody_exports_are_held_and_sent_there(
    said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    their_provider(Reader())
    place = "http://127.0.0.1:9/"
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    if said == "environment":
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", place)
    with caplog.at_level(logging.INFO, "spangrade"):
        sg.configure(metrics=[yes], endpoint=place if said == "endpoint" else None)
    assert "held for their scores" in caplog.text


def test_a_processor_that_only_marks_spans_does_not_make_a_provider_somebodys(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    their_provider(Baggage())
    with caplog.at_level(logging.INFO, "spangrade"):
        sg.configure(metrics=[yes])
    assert "held for their scores" in caplog.text


def test_beside_a_duck_typed_processor_without_the_newest_hook_a_traced_call_works(
    exporter: CollectingExporter, swallowed_faults: list[tuple[str, BaseException]]
) -> None:
    # The SDK calls `_on_ending` of every processor and lets what it raises through to whoever ends the span. Our calls end
    # without asking for what is not there; the late score is a span of the SDK's own.
    their_provider(Duck(), SimpleSpanProcessor(exporter))
    sg.configure(metrics=[yes])
    assert answer("a") == "answer to a"
    assert swallowed_faults == [] or swallowed_faults[0][0] == "sink.evaluation_span"
    assert [span.name for span in exporter.spans if not span.name.startswith("evaluation")] == ["answer"]
    assert sg.flush(10)
    assert [where for where, _ in swallowed_faults] == ["sink.evaluation_span"]
    engine = current_engine()
    assert engine is not None
    assert engine.ledger.snapshot()["yes"].undelivered == {"no_carrier": 1}
    swallowed_faults.clear()


def test_a_duck_typed_exporting_processor_goes_on_working_behind_ours() -> None:
    duck = Duck()
    duck.span_exporter = CollectingExporter()  # type: ignore[attr-defined]
    provider = their_provider(duck)
    sg.configure(metrics=[yes], take_over=True)
    with provider.get_tracer("theirs").start_as_current_span("llm", attributes=CALL):
        pass
    assert sg.flush(5)
    assert duck.ended == ["llm"]


def test_a_processor_of_ours_inside_another_vendors_wrapper_is_found_and_no_second_one_is_added(
    exporter: CollectingExporter,
) -> None:
    class Wrapper(SpanProcessor):
        """As Logfire wraps what it is given."""

        def __init__(self, processor: SpanProcessor) -> None:
            self.processor = processor

        def on_start(self, span: Span, parent_context: Context | None = None) -> None:
            self.processor.on_start(span, parent_context)

        def on_end(self, span: ReadableSpan) -> None:
            self.processor.on_end(span)

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return self.processor.force_flush(timeout_millis)

    class Proxy(trace_api.TracerProvider):
        """As Logfire's, which can be given another provider later."""

        def __init__(self, provider: TracerProvider) -> None:
            self.provider = provider

        def get_tracer(self, *args: Any, **kwargs: Any) -> trace_api.Tracer:
            return self.provider.get_tracer(*args, **kwargs)

        def add_span_processor(self, processor: SpanProcessor) -> None:
            self.provider.add_span_processor(processor)

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return self.provider.force_flush(timeout_millis)

    inner = TracerProvider()
    inner.add_span_processor(Wrapper(Wrapper(sg.SpangradeProcessor(BatchSpanProcessor(exporter)))))
    trace_api.set_tracer_provider(Proxy(inner))
    sg.configure(metrics=[yes])
    answer("a")
    assert sg.flush(5)
    inner.force_flush()
    assert [sp.name.rsplit(".", 1)[-1] for sp in exporter.spans] == ["answer"]
    assert set(event_scores(exporter.spans[0])) == {"yes"}
    assert scored() == 1


def test_the_providers_flush_does_not_wait_for_a_score_that_waits_for_the_providers_lock(
    exporter: CollectingExporter,
) -> None:
    class Locked(trace_api.TracerProvider):
        """As Logfire's: whoever asks for a tracer during its flush waits until that is over."""

        def __init__(self, provider: TracerProvider) -> None:
            self.provider, self.lock, self.contended = provider, threading.Lock(), False

        def get_tracer(self, *args: Any, **kwargs: Any) -> trace_api.Tracer:
            if not self.lock.acquire(timeout=0.2):
                self.contended = True
                self.lock.acquire()
            try:
                return self.provider.get_tracer(*args, **kwargs)
            finally:
                self.lock.release()

        def add_span_processor(self, processor: SpanProcessor) -> None:
            self.provider.add_span_processor(processor)

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            with self.lock:
                return self.provider.force_flush(timeout_millis)

    inner = TracerProvider()
    inner.add_span_processor(BatchSpanProcessor(exporter))
    locked = Locked(inner)
    trace_api.set_tracer_provider(locked)
    in_metric, go_on = threading.Event(), threading.Event()

    def slow(sample: sg.Sample) -> bool:
        in_metric.set()
        return go_on.wait(5)

    sg.configure(metrics=[slow])
    answer("a")
    assert in_metric.wait(5)
    flush = threading.Thread(target=locked.force_flush, args=(2_000,))
    flush.start()
    while not locked.lock.locked():
        pass
    go_on.set()
    flush.join()
    assert sg.flush(5)
    assert not locked.contended
    assert len(exporter.named("evaluation slow")) == 1
