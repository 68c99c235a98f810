"""Beside processors and providers of others: who sees what, who exports, and what becomes of the scores."""

import contextvars
import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import (
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

import spangrade as sg
from spangrade import semconv as s
from spangrade.model.outcome import Outcome
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter, ScriptedJudgeClient, event_scores

CALL = {s.OI_KIND: "LLM", s.OI_INPUT: "q", s.OI_OUTPUT: "Paris."}


@sg.trace
def answer(question: str) -> str:
    return f"answer to {question}"


def yes(sample: sg.Sample) -> bool:
    return True


def scored(evaluator: str = "yes") -> int:
    engine = current_engine()
    assert engine is not None
    return engine.ledger.snapshot()[evaluator].of(Outcome.SCORED)


def their_provider(*processors: Any, sampler: Sampler | None = None) -> TracerProvider:
    provider = TracerProvider(sampler=sampler)
    for one in processors:
        provider.add_span_processor(one)
    trace_api.set_tracer_provider(provider)
    return provider


class Reader(SpanProcessor):
    """A vendor's processor that sends by a way of its own, as Sentry's does: no exporter to be seen."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, dict[str, Any]]] = []
        self.shut = False

    def shutdown(self) -> None:
        self.shut = True

    def on_end(self, span: ReadableSpan) -> None:
        self.seen.append((span.name, len(span.events), dict(span.attributes or {})))


class Baggage(SpanProcessor):
    """Puts something on spans as they start, and has no other business."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        span.set_attribute("tenant", "a")


class Duck:
    """Looks like a processor of an older SDK: no base class, no `_on_ending`."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing."""

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span.name)

    def shutdown(self) -> None:
        """Nothing."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


# --- processors of others --------------------------------------------------------------------------------------------


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
    # The SDK calls `_on_ending` of every processor and lets what it raises through to whoever ends the span.
    their_provider(Duck(), SimpleSpanProcessor(exporter))
    sg.configure(metrics=[yes])
    assert answer("a") == "answer to a"
    assert [where for where, _ in swallowed_faults] == ["trace.end"]
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


# --- providers set twice, late, by somebody else ---------------------------------------------------------------------


def test_a_provider_that_is_set_after_ours_gets_opentelemetrys_own_warning_and_no_span(
    exporter: CollectingExporter, caplog: pytest.LogCaptureFixture
) -> None:
    sg.configure(metrics=[yes], exporter=exporter)
    theirs, late = CollectingExporter(), TracerProvider()
    late.add_span_processor(SimpleSpanProcessor(theirs))
    trace_api.set_tracer_provider(late)
    answer("a")
    assert sg.flush(5)
    (warning,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert (warning.name, warning.getMessage()) == (
        "opentelemetry.trace",
        "Overriding of current TracerProvider is not allowed",
    )
    assert theirs.spans == []
    assert set(event_scores(exporter.named("answer")[0])) == {"yes"}


def test_calls_before_the_provider_is_set_are_not_recorded_and_those_after_it_are_scored_once(
    exporter: CollectingExporter,
) -> None:
    tracer = trace_api.get_tracer("made while there was no provider")
    with tracer.start_as_current_span("llm", attributes=CALL):
        answer("nobody listens")
    provider = their_provider(SimpleSpanProcessor(exporter))
    answer("theirs, and nobody scores")
    sg.configure(metrics=[yes])
    with tracer.start_as_current_span("llm", attributes=CALL):
        pass
    answer("scored")
    assert sg.flush(5)
    assert provider is trace_api.get_tracer_provider()
    names = [sp.name.rsplit(".", 1)[-1] for sp in exporter.spans]
    assert sorted(names) == ["answer", "answer", "evaluation yes", "evaluation yes", "llm"]
    assert scored() == 2


def test_configure_sets_up_no_second_time_what_it_sets_up_through_a_call_that_runs(
    exporter: CollectingExporter,
) -> None:
    """A call that is open while `configure` runs is scored once, by what was said last."""
    sg.configure(metrics=[yes], exporter=exporter)
    with sg.trace("outer"):
        sg.set_output("x")
        sg.configure(metrics=[yes], exporter=exporter)
    assert sg.flush(5)
    assert len(exporter.named("outer")) == 1
    assert scored() == 1


def test_a_provider_given_after_ours_was_made_takes_the_calls_and_ours_keeps_what_it_has(
    exporter: CollectingExporter,
) -> None:
    first = exporter
    sg.configure(metrics=[yes], exporter=first)
    answer("first")
    second, mine = CollectingExporter(), TracerProvider()
    sg.configure(metrics=[yes], exporter=second, tracer_provider=mine)
    answer("second")
    assert sg.flush(5)
    assert set(event_scores(second.named("answer")[0])) == {"yes"}
    trace_api.get_tracer_provider().force_flush()  # type: ignore[attr-defined]
    assert set(event_scores(first.named("answer")[0])) == {"yes"}
    assert scored() == 2


def test_after_the_application_shut_our_provider_down_a_new_configure_scores_again(
    exporter: CollectingExporter,
) -> None:
    """A shut provider keeps its processors, so that one of ours is there must not count as set up."""
    sg.configure(metrics=[yes], exporter=exporter)
    answer("a")
    trace_api.get_tracer_provider().shutdown()  # type: ignore[attr-defined]
    again = CollectingExporter()
    sg.configure(metrics=[yes], exporter=again)
    answer("b")
    assert sg.flush(5)
    assert set(event_scores(again.named("answer")[0])) == {"yes"}
    assert len(exporter.named("answer")) == 1


def test_after_their_provider_was_shut_down_scores_of_a_new_configure_leave_by_the_new_one(
    exporter: CollectingExporter,
) -> None:
    their_provider(SimpleSpanProcessor(CollectingExporter())).shutdown()
    sg.configure(metrics=[yes])
    trace_api.get_tracer_provider().shutdown()  # type: ignore[attr-defined]
    sg.configure(metrics=[yes], exporter=exporter, tracer_provider=TracerProvider())
    answer("b")
    assert sg.flush(5)
    assert set(event_scores(exporter.named("answer")[0])) == {"yes"}


def test_what_a_later_configure_says_of_exporting_counts_in_a_provider_that_nobody_else_exports_too(
    exporter: CollectingExporter,
) -> None:
    their_provider()
    sg.configure(metrics=[yes], exporter=CollectingExporter())
    sg.configure(metrics=[yes], exporter=exporter)
    answer("a")
    assert sg.flush(5)
    assert set(event_scores(exporter.named("answer")[0])) == {"yes"}


def test_shutdown_ends_no_provider_that_somebody_else_made(exporter: CollectingExporter) -> None:
    reader = Reader()
    provider = their_provider(Baggage())
    sg.configure(metrics=[yes], exporter=exporter)
    provider.shutdown()
    sg.configure(metrics=[yes], exporter=CollectingExporter())  # the processor of before is there, and is used again
    provider.add_span_processor(reader)
    answer("a")
    sg.shutdown()
    assert not reader.shut


def test_after_a_vendor_put_another_provider_behind_its_proxy_a_new_configure_attaches_to_that(
    exporter: CollectingExporter,
) -> None:
    """Logfire's `configure`, called again, shuts the provider down that it had and goes on with a new one."""

    class Proxy(trace_api.TracerProvider):
        def __init__(self) -> None:
            self.provider = TracerProvider()

        def get_tracer(self, *args: Any, **kwargs: Any) -> trace_api.Tracer:
            return self.provider.get_tracer(*args, **kwargs)

        def add_span_processor(self, processor: SpanProcessor) -> None:
            self.provider.add_span_processor(processor)

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return self.provider.force_flush(timeout_millis)

    proxy = Proxy()
    proxy.add_span_processor(SimpleSpanProcessor(CollectingExporter()))
    trace_api.set_tracer_provider(proxy)
    sg.configure(metrics=[yes])
    proxy.provider.shutdown()
    proxy.provider = TracerProvider()
    proxy.add_span_processor(SimpleSpanProcessor(exporter))
    sg.configure(metrics=[yes])
    with proxy.get_tracer("theirs").start_as_current_span("llm", attributes=CALL):
        pass
    assert sg.flush(5)
    assert [sp.name for sp in exporter.spans] == ["llm", "evaluation yes"]


def test_two_providers_each_keep_their_own_spans_and_each_call_is_scored_once(exporter: CollectingExporter) -> None:
    others = CollectingExporter()
    one, two = TracerProvider(), TracerProvider()
    one.add_span_processor(sg.SpangradeProcessor(BatchSpanProcessor(exporter)))
    two.add_span_processor(sg.SpangradeProcessor(BatchSpanProcessor(others)))
    sg.configure(metrics=[yes], tracer_provider=one)
    for provider in (one, two):
        with provider.get_tracer("theirs").start_as_current_span("llm", attributes=CALL):
            pass
    assert sg.flush(5)
    two.force_flush()
    for place in (exporter, others):
        (span,) = place.spans
        assert set(event_scores(span)) == {"yes"}
    assert scored() == 2


# --- threads of ours ------------------------------------------------------------------------------------------------


REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("REQUEST")


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """What is current where each thread starts: Sentry and others give a new thread just that."""
    found: dict[str, str | None] = {}
    start = threading.Thread.start

    def patched(thread: threading.Thread) -> None:
        found[thread.name] = REQUEST.get(None)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", patched)
    return found


def test_the_threads_that_export_know_nothing_of_the_request_in_which_they_start(
    around: dict[str, str | None], exporter: CollectingExporter
) -> None:
    token = REQUEST.set("a request")
    sg.configure(metrics=[yes], endpoint="http://127.0.0.1:9")
    sg.configure(metrics=[yes], exporter=exporter)  # which lets the exporters of before end on a thread of their own
    answer("a")
    assert sg.flush(5)
    REQUEST.reset(token)
    for name in ("spangrade-export", "spangrade-retire-exporter"):
        assert around[name] is None, name


def test_no_thread_of_ours_knows_anything_of_the_request_in_which_it_starts(
    around: dict[str, str | None], exporter: CollectingExporter
) -> None:
    reply = '{"explanation": "e", "verdict": "pass"}'
    judge = sg.LlmJudge(name="j", criteria="c", model="m", live=True).with_client(ScriptedJudgeClient(reply))
    token = REQUEST.set("a request")
    sg.configure(metrics=[yes], judges=[sg.live(judge, rate=1.0)], exporter=exporter)
    answer("a")
    assert sg.flush(5)
    sg.configure(metrics=[yes], exporter=exporter)
    sg.shutdown()
    REQUEST.reset(token)
    ours = {name: request for name, request in around.items() if name.startswith(("spangrade-", "Otel"))}
    assert len(ours) > 3
    assert {name for name, request in ours.items() if request is not None} == set()


# --- head sampling ---------------------------------------------------------------------------------------------------


def test_behind_a_head_sampler_of_a_tenth_exactly_the_sampled_calls_are_scored(exporter: CollectingExporter) -> None:
    provider = their_provider(SimpleSpanProcessor(exporter), sampler=ParentBased(TraceIdRatioBased(0.1)))
    sg.configure(metrics=[yes])
    for number in range(200):
        assert answer(str(number)) == f"answer to {number}"
    assert sg.flush(10)
    sampled = len(exporter.named("answer"))
    assert 3 <= sampled <= 60  # a tenth of 200; outside with a probability below 1e-6
    assert len(exporter.named("evaluation yes")) == scored() == sampled
    assert provider.sampler is not None


@pytest.mark.parametrize("sampled", [True, False])
def test_a_callers_decision_holds_for_the_whole_call_below_it(sampled: bool, exporter: CollectingExporter) -> None:
    their_provider(SimpleSpanProcessor(exporter), sampler=ParentBased(TraceIdRatioBased(0.0)))
    sg.configure(metrics=[yes])
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    caller = NonRecordingSpan(SpanContext(1, 2, is_remote=True, trace_flags=flags))
    with trace_api.use_span(caller):
        answer("a")
    assert sg.flush(5)
    assert len(exporter.spans) == (2 if sampled else 0)


def test_a_span_that_is_recorded_and_not_sampled_is_neither_scored_nor_held(exporter: CollectingExporter) -> None:
    class RecordOnly(Sampler):
        def should_sample(
            self, parent_context: Any, trace_id: int, name: str, *rest: Any, **named: Any
        ) -> SamplingResult:
            return SamplingResult(Decision.RECORD_ONLY)

        def get_description(self) -> str:
            return "RecordOnly"

    reader = Reader()
    their_provider(reader, SimpleSpanProcessor(exporter), sampler=RecordOnly())
    sg.configure(metrics=[yes])
    answer("a")
    assert sg.flush(5)
    assert [name.rsplit(".", 1)[-1] for name, _, _ in reader.seen] == ["answer"]
    assert exporter.spans == []
    engine = current_engine()
    assert engine is not None
    assert "yes" not in engine.ledger.snapshot() or scored() == 0


def test_the_decision_of_an_unsampled_root_reaches_spans_of_others_below_it(exporter: CollectingExporter) -> None:
    provider = their_provider(SimpleSpanProcessor(exporter), sampler=ParentBased(TraceIdRatioBased(0.0)))
    sg.configure(metrics=[yes])

    @sg.trace
    def outer() -> Sequence[str]:
        with provider.get_tracer("theirs").start_as_current_span("llm", attributes=CALL):
            return ["done"]

    assert outer() == ["done"]
    assert sg.flush(5)
    assert exporter.spans == []
