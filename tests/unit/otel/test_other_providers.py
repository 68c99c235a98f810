"""Providers set twice, late, by somebody else in the middle, and shut down by whoever; threads that start meanwhile."""

import contextvars
import logging
import threading
from typing import Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace as trace_api
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

import spangrade as sg
from spangrade.testing import CollectingExporter, ScriptedJudgeClient, event_scores

from .others import CALL, Baggage, Reader, answer, scored, their_provider, yes


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


def test_evaluation_spans_start_and_end_where_nothing_is_suppressed_and_are_not_scored_themselves(
    exporter: CollectingExporter,
) -> None:
    """Vendors' providers drop what is made where instrumentation is suppressed, as it is on our threads."""

    class Dropping(SpanProcessor):
        def __init__(self) -> None:
            self.where: list[tuple[str, list[str]]] = []

        def _look(self, name: str) -> None:
            self.where.append((name, [key for key in otel_context.get_current() if "suppress" in key]))

        def on_start(self, span: Span, parent_context: Context | None = None) -> None:
            self._look(span.name)

        def on_end(self, span: ReadableSpan) -> None:
            self._look(span.name)

    looking = Dropping()
    provider = their_provider(looking, SimpleSpanProcessor(exporter))
    before: list[Any] = []

    @sg.metric
    def within(sample: sg.Sample) -> bool:
        before.append([key for key in otel_context.get_current() if "suppress" in key])
        return True

    sg.configure(metrics=[within], tracer_provider=provider)
    answer("a")
    answer("b")
    assert sg.flush(5)
    assert [name for name, _ in looking.where].count("evaluation within") == 4
    assert [keys for _, keys in looking.where] == [[]] * 8
    assert len(before) == 2
    assert all(before)
    assert scored("within") == 2


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
