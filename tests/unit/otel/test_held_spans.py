"""Our own provider: every span goes on once, with its scores, whatever metrics and exporters do (promises 1 to 5, 7, 8)."""

import threading
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import spangrade as sg
from spangrade import semconv as s
from spangrade._guard import count
from spangrade.model.outcome import Outcome
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter, ScriptedJudgeClient, event_scores


def counts(name: str) -> Any:
    engine = current_engine()
    assert engine is not None
    return next(c for c in engine.ledger.snapshot().values() if c.name == name)


def law_holds() -> None:
    engine = current_engine()
    assert engine is not None
    for c in engine.ledger.snapshot().values():
        assert c.met == c.pending + sum(c.of(o) for o in Outcome)
        assert c.of(Outcome.SCORED) == sum(c.delivered.values()) + sum(c.undelivered.values()) + c.in_flight


@sg.trace
def answer(question: str) -> str:
    return f"answer to {question}"


def yes(sample: sg.Sample) -> bool:
    return True


def test_scores_ride_on_the_span_as_events(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[yes, "overlap"], exporter=exporter)
    answer("why")
    assert sg.flush(5)
    (span,) = exporter.named("answer")
    scores = event_scores(span)
    assert set(scores) == {"yes"}
    assert scores["yes"][s.SCORE_VALUE] == 1.0
    assert scores["yes"][s.SCORE_LABEL] == "pass"
    assert scores["yes"][s.PROBABILITY] == 1.0
    assert span.attributes is not None
    assert span.attributes[s.SCORED_BY] == ("yes", counts("overlap").name + "@" + _hash("overlap"))
    assert counts("overlap").outcomes == {(Outcome.SKIPPED, "documents missing"): 1}
    law_holds()


def _hash(name: str) -> str:
    engine = current_engine()
    assert engine is not None
    return next(key.partition("@")[2] for key, c in engine.ledger.snapshot().items() if c.name == name)


@pytest.mark.parametrize("bad", ["raises", "exits", "prints", "mutates", "interrupts"])
def test_no_metric_can_harm_the_application(bad: str, exporter: CollectingExporter, capsys: Any) -> None:
    def metric(sample: sg.Sample) -> float:
        if bad == "raises":
            raise RuntimeError("boom")
        if bad == "exits":
            raise SystemExit(7)
        if bad == "interrupts":
            raise KeyboardInterrupt
        if bad == "prints":
            print("a metric's own words")
        if bad == "mutates":
            sample.metadata["x"] = 1
        return 1.0

    sg.configure(metrics=[metric, yes], exporter=exporter)
    assert [answer(str(n)) for n in range(5)] == [f"answer to {n}" for n in range(5)]
    assert sg.flush(5)
    spans = exporter.named("answer")
    assert len(spans) == 5
    assert all(event_scores(span)["yes"][s.SCORE_VALUE] == 1.0 for span in spans)
    failed = [event_scores(span)["metric"].get(s.ERROR_TYPE) for span in spans]
    expected = {
        "raises": "RuntimeError",
        "exits": "SystemExit",
        "interrupts": "KeyboardInterrupt",
        "mutates": "TypeError",
    }
    assert failed == [expected.get(bad)] * 5
    out, err = capsys.readouterr()
    assert out == ("a metric's own words\n" * 5 if bad == "prints" else "")
    assert err == ""
    law_holds()


def test_a_metric_that_hangs_delays_its_span_by_the_hold_and_no_longer(exporter: CollectingExporter) -> None:
    release = threading.Event()

    @sg.metric(timeout=60)
    def hangs(sample: sg.Sample) -> float:
        release.wait()
        return 1.0

    sg.configure(metrics=[hangs, yes], exporter=exporter, hold=0.2)
    answer("a")
    # No flush: the hold's own deadline lets it go, the batch processor's schedule is what flush is asked for.
    engine = current_engine()
    assert engine is not None
    assert _until(lambda: len(engine.sink.hold) == 0 and engine.sink.hold.expired == 1)
    assert not sg.flush(1.5)
    assert _until(lambda: bool(exporter.named("answer")))
    (span,) = exporter.named("answer")
    assert set(event_scores(span)) == {"yes"}
    release.set()
    assert _until(lambda: counts("hangs").of(Outcome.SCORED) == 1)
    assert sg.flush(5)
    # The late score took a later carrier: an evaluation span below the one that left.
    (late,) = exporter.named("evaluation hangs")
    assert late.parent is not None
    assert span.context is not None
    assert late.parent.span_id == span.context.span_id
    assert late.start_time == late.end_time == span.end_time
    assert counts("hangs").delivered == {"evaluation_span": 1}
    law_holds()


def _until(true: Any, timeout: float = 10.0) -> bool:
    gate = threading.Event()
    for _ in range(int(timeout / 0.01)):
        if true():
            return True
        gate.wait(0.01)
    return bool(true())


def test_a_judge_that_hangs_is_given_up_on_and_the_span_has_left_before(exporter: CollectingExporter) -> None:
    release = threading.Event()

    def hang(_request: Any) -> str:
        release.wait()
        return '{"reasoning": "late", "verdict": "pass"}'

    judge = sg.LlmJudge(name="helpful", criteria="helps", scale="binary", model="m").with_client(
        ScriptedJudgeClient(hang)
    )
    sg.configure(metrics=[yes], judges=[sg.live(judge, rate=1.0)], exporter=exporter, hold=0.2)
    assert answer("a") == "answer to a"
    engine = current_engine()
    assert engine is not None
    assert _until(lambda: len(engine.sink.hold) == 0 and engine.sink.hold.expired == 1)
    assert not sg.flush(1.5)
    assert _until(lambda: bool(exporter.named("answer")))
    (span,) = exporter.named("answer")
    assert set(event_scores(span)) == {"yes"}
    assert counts("helpful").pending == 1
    release.set()
    assert sg.flush(5)
    (late,) = exporter.named("evaluation helpful")
    assert dict(late.attributes or {})[s.SCORE_VALUE] == 1.0
    law_holds()


def test_force_flush_of_the_provider_waits_for_metrics_and_not_for_judges(exporter: CollectingExporter) -> None:
    release = threading.Event()

    def hang(_request: Any) -> str:
        release.wait()
        return "late"

    judge = sg.LlmJudge(name="helpful", criteria="helps", scale="binary", model="m").with_client(
        ScriptedJudgeClient(hang)
    )
    sg.configure(metrics=[yes], judges=[sg.live(judge, rate=1.0)], exporter=exporter, hold=60)
    answer("a")
    provider: Any = trace_api.get_tracer_provider()
    assert provider.force_flush(5_000)
    (span,) = exporter.named("answer")
    assert set(event_scores(span)) == {"yes"}
    release.set()


@pytest.mark.parametrize("how", ["fails", "raises", "raises from below"])
def test_an_exporter_that_is_down_harms_nobody_and_is_counted(
    how: str, exporter: CollectingExporter, swallowed_faults: list[Any]
) -> None:
    exporter.fail = how == "fails"
    exporter.raise_ = {"fails": None, "raises": RuntimeError("down"), "raises from below": OSError("down")}[how]
    sg.configure(metrics=[yes], exporter=exporter)
    for n in range(20):
        assert answer(str(n)) == f"answer to {n}"
    assert not sg.flush(5)  # it says so
    assert counts("yes").of(Outcome.SCORED) == 20
    assert counts("yes").undelivered == {"export_failed": 20}
    law_holds()
    swallowed_faults.clear()


def test_an_exporter_that_blocks_delays_no_call_and_loses_no_span(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[yes], exporter=exporter)
    with exporter.block():
        for n in range(200):
            answer(str(n))
        assert not sg.flush(0.2)
    assert sg.flush(10)
    assert len(exporter.named("answer")) == 200
    assert sum(counts("yes").delivered.values()) == 200  # a short flush may have let some go before their metric


def test_shutdown_in_the_middle_exports_every_span_once_and_counts_every_pair(exporter: CollectingExporter) -> None:
    release = threading.Event()

    def slow(sample: sg.Sample) -> float:
        release.wait(30)
        return 1.0

    sg.configure(metrics=[slow, yes], exporter=exporter)
    for n in range(50):
        answer(str(n))
    engine = current_engine()
    assert engine is not None
    threading.Timer(0.3, release.set).start()
    sg.shutdown()
    spans = exporter.named("answer")
    assert len(spans) == 50
    assert len({span.context.span_id for span in spans if span.context}) == 50
    for c in engine.ledger.snapshot().values():
        assert (c.met, c.pending, c.in_flight) == (50, 0, 0)
    sg.shutdown()
    answer("after the end")  # still harmless


def test_ten_times_more_calls_than_can_be_scored_lose_no_span(exporter: CollectingExporter) -> None:
    gate = threading.Event()

    def slow(sample: sg.Sample) -> float:
        gate.wait(60)
        return 1.0

    sg.configure(metrics=[slow], exporter=exporter, hold=0.5)
    for n in range(6_000):  # more than the hold takes
        answer(str(n))
    engine = current_engine()
    assert engine is not None
    assert len(engine.sink.hold) <= 4_096
    gate.set()
    provider: Any = trace_api.get_tracer_provider()
    assert _until(lambda: len(engine.sink.hold) == 0, 60)
    assert provider.force_flush(120_000)
    sg.shutdown()
    c = engine.ledger.snapshot()["slow"]
    assert (c.met, c.pending, c.in_flight) == (6_000, 0, 0)
    spans = exporter.named("answer")
    assert len(spans) == len({span.context.span_id for span in spans if span.context}) == 6_000


def test_what_a_metric_traces_is_neither_scored_nor_part_of_the_applications_trace(
    exporter: CollectingExporter,
) -> None:
    runs: list[str] = []

    def nosy(sample: sg.Sample) -> float:
        runs.append(str(sample.output))
        assert not trace_api.get_current_span().get_span_context().is_valid
        answer("from a metric")
        with trace_api.get_tracer("metric").start_as_current_span(
            "own work", attributes={s.OI_KIND: "LLM", s.OI_INPUT: "q"}
        ):
            pass
        return 1.0

    sg.configure(metrics=[nosy], exporter=exporter)
    answer("once")
    assert sg.flush(5)
    assert sg.flush(5)
    assert runs == ["answer to once"]
    (span,) = exporter.named("answer")
    (own,) = exporter.named("own work")
    assert span.context is not None
    assert own.context is not None
    assert own.context.trace_id != span.context.trace_id
    assert s.SCORED_BY not in (own.attributes or {})


def test_the_applications_events_are_never_pushed_out_by_scores(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[yes], exporter=exporter)

    @sg.trace
    def chatty() -> str:
        for n in range(128):
            trace_api.get_current_span().add_event("token", {"n": n})
        return "x"

    chatty()
    assert sg.flush(5)
    assert sg.flush(5)
    span = next(sp for sp in exporter.spans if sp.name.endswith("chatty"))
    assert sum(e.name == "token" for e in span.events) == 128
    assert event_scores(span) == {}
    (late,) = exporter.named("evaluation yes")
    assert late.parent is not None
    assert span.context is not None
    assert late.parent.span_id == span.context.span_id


def test_the_original_span_is_not_touched(exporter: CollectingExporter) -> None:
    seen = CollectingExporter()
    sg.configure(metrics=[yes], exporter=exporter)
    provider: Any = trace_api.get_tracer_provider()
    provider.add_span_processor(SimpleSpanProcessor(seen))
    answer("a")
    assert sg.flush(5)
    (theirs,) = seen.named("answer")
    assert event_scores(theirs) == {}
    assert s.SCORED_BY not in (theirs.attributes or {})
    assert event_scores(exporter.named("answer")[0]) != {}


def test_a_span_that_is_no_call_goes_on_at_once_and_untouched(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[yes], exporter=exporter)
    with trace_api.get_tracer("app").start_as_current_span("GET /", attributes={"http.request.method": "GET"}):
        pass
    assert sg.flush(5)
    (span,) = exporter.named("GET /")
    assert dict(span.attributes or {}) == {"http.request.method": "GET"}


def test_the_head_sampler_decides_before_us(exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    sg.configure(metrics=[yes], exporter=exporter)
    assert answer("a") == "answer to a"
    assert sg.flush(5)
    assert exporter.spans == []


def test_content_can_be_stripped_and_text_redacted_after_scoring(exporter: CollectingExporter) -> None:
    seen: list[Any] = []

    def look(sample: sg.Sample) -> sg.Score:
        seen.append(sample.output)
        return sg.Score(1, explanation="it says secret-123")

    sg.configure(
        metrics=[look], exporter=exporter, export_content=False, redact=lambda t: t.replace("secret-123", "***")
    )
    answer("secret-123")
    assert sg.flush(5)
    (span,) = exporter.named("answer")
    assert seen == ["answer to secret-123"]
    assert s.OI_INPUT not in (span.attributes or {})
    assert s.OI_OUTPUT not in (span.attributes or {})
    assert event_scores(span)["look"][s.EXPLANATION] == "it says ***"


def test_a_redaction_that_fails_withholds_the_text(exporter: CollectingExporter, swallowed_faults: list[Any]) -> None:
    def broken(text: str) -> str:
        raise RuntimeError("no")

    sg.configure(metrics=[yes], exporter=exporter, redact=broken)
    answer("private")
    assert sg.flush(5)
    assert "private" not in repr([dict(sp.attributes or {}) for sp in exporter.spans])
    assert count() > 0
    swallowed_faults.clear()


def test_scoring_off_traces_and_does_not_score(exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_SCORING", "off")
    sg.configure(metrics=[yes], exporter=exporter)
    answer("a")
    assert sg.flush(5)
    (span,) = exporter.named("answer")
    assert span.events == ()


@pytest.mark.parametrize("switch", ["SPANGRADE_DISABLED", "OTEL_SDK_DISABLED"])
def test_disabled_means_nothing_at_all(
    switch: str, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(switch, "true")
    before = threading.active_count()
    sg.configure(metrics=[yes], exporter=exporter)
    assert answer("a") == "answer to a"
    assert sg.flush(1)
    assert exporter.spans == []
    assert threading.active_count() <= before
    assert isinstance(trace_api.get_tracer_provider(), trace_api.ProxyTracerProvider)
    monkeypatch.delenv(switch)
    sg.configure(exporter=exporter)  # and on again


def test_a_metric_that_hangs_leaves_a_force_flush_time_for_the_export(exporter: CollectingExporter) -> None:
    gate, asked = threading.Event(), []

    class Behind(SpanProcessor):
        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            asked.append(timeout_millis)
            return True

    provider = TracerProvider()
    processor = sg.SpangradeProcessor(Behind())
    provider.add_span_processor(processor)

    @sg.metric(timeout=60)
    def hangs(output: str) -> float:
        gate.wait(30)
        return 1.0

    sg.configure(tracer_provider=provider, metrics=[hangs])
    with provider.get_tracer("t").start_as_current_span("call", attributes={"openinference.span.kind": "CHAIN"}):
        pass
    try:
        assert not processor.force_flush(300)
        assert asked
        assert 0 < asked[-1] <= 150
    finally:
        gate.set()
