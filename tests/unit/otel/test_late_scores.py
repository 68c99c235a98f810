"""A score that comes after its span has left is counted by what became of the evaluation span that carries it (promise 3)."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

import spangrade as sg
from spangrade import semconv as s
from spangrade.model.outcome import Outcome
from spangrade.otel import destinations as otlp
from spangrade.otel.engine import Engine, current_engine
from spangrade.testing import CollectingExporter

from .others import answer


class Late:
    """A metric of two scores whose result is there only when it is told so."""

    def __init__(self) -> None:
        self._gate = threading.Event()
        self.scored = threading.Event()

        @sg.metric(timeout=60)
        def late(sample: sg.Sample) -> dict[str, float]:
            self._gate.wait(30)
            return {"one": 1.0, "two": 0.5}

        self.metric = late

    def call(self, engine: Engine) -> None:
        """A call whose span leaves without a score; the score comes then."""
        self._gate.clear()
        answer("a")
        engine.sink.hold.release_all()
        self._gate.set()
        assert engine.pipeline.drain(30, judges=True)


@pytest.fixture(name="late")
def _late(monkeypatch: pytest.MonkeyPatch) -> Iterator[Late]:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    made = Late()
    yield made
    made._gate.set()


def engine_now() -> Engine:
    engine = current_engine()
    assert engine is not None
    return engine


def counts() -> Any:
    return next(count for count in engine_now().ledger.snapshot().values() if count.name == "late")


def is_evaluation(span: Any) -> bool:
    return (span.attributes or {}).get(s.OI_KIND) == "EVALUATOR"


def test_it_is_in_flight_until_the_exporter_has_answered(late: Late, exporter: CollectingExporter) -> None:
    sg.configure(metrics=[late.metric], exporter=exporter)
    with exporter.block():
        late.call(engine_now())
        assert (counts().of(Outcome.SCORED), counts().in_flight) == (1, 1)
    assert sg.flush(30)
    assert counts().delivered == {"evaluation_span": 1}
    assert len([span for span in exporter.spans if is_evaluation(span)]) == 2


def test_an_export_that_fails_leaves_it_undelivered(late: Late) -> None:
    sg.configure(metrics=[late.metric], exporter=CollectingExporter(fail=True))
    late.call(engine_now())
    assert not sg.flush(30)
    assert (counts().delivered, counts().undelivered) == ({}, {"export_failed": 1})


def test_an_evaluation_span_that_a_full_queue_loses_leaves_it_undelivered(
    late: Late, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    sg.configure(metrics=[late.metric], exporter=exporter)
    tracer, busy = trace_api.get_tracer("app"), threading.Event()
    monkeypatch.setattr(exporter, "export", lambda spans: busy.set() or CollectingExporter.export(exporter, spans))
    with exporter.block():
        tracer.start_span("first").end()
        assert not sg.flush(0.2)
        assert busy.wait(30)
        late.call(engine_now())
        for _ in range(7_000):
            tracer.start_span("other").end()
        assert counts().undelivered == {"queue_full": 1}
    assert counts().delivered == {}


def test_at_the_end_what_the_exporter_never_answered_is_undelivered(
    late: Late, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "shutdown", lambda: None)  # it does not even answer when it is ended
    sg.configure(metrics=[late.metric], exporter=exporter)
    engine = engine_now()
    with exporter.block():
        late.call(engine)
        sg.shutdown()
    (count,) = engine.ledger.snapshot().values()
    assert (count.delivered, count.undelivered) == ({}, {"not_exported": 1})


def test_the_answer_counts_though_another_configure_came_in_between(late: Late, exporter: CollectingExporter) -> None:
    sg.configure(metrics=[late.metric], exporter=exporter)
    with exporter.block():
        late.call(engine_now())
        sg.configure(metrics=[late.metric], exporter=exporter)
    assert sg.flush(30)
    assert counts().delivered == {"evaluation_span": 1}


def test_where_the_exporter_is_somebody_elses_handing_over_is_all_that_is_known(
    late: Late, exporter: CollectingExporter
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    sg.configure(metrics=[late.metric], tracer_provider=provider)
    late.call(engine_now())
    assert counts().delivered == {"evaluation_span": 1}


@pytest.mark.parametrize("placed", ["by hand", "several destinations"])
def test_scores_on_spans_that_a_queue_loses_are_counted_once(
    placed: str, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no exporter of ours answers, handing on is all that is known; of several, the first one's answer counts."""
    yes = sg.metric(name="late")(lambda sample: 1)
    if placed == "by hand":
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(sg.SpangradeProcessor(exporter))
        sg.configure(metrics=[yes], tracer_provider=provider)
    else:
        given = iter([CollectingExporter(), exporter])
        monkeypatch.setattr(otlp, "span_exporter", lambda endpoint: next(given))
        monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
        places = [{"preset": "otlp", "endpoint": f"http://127.0.0.1:{port}"} for port in (4318, 4319)]
        sg.configure(metrics=[yes], destinations=places)
        provider = trace_api.get_tracer_provider()  # type: ignore[assignment]
    engine = engine_now()
    with exporter.block():
        provider.get_tracer("app").start_span("first").end()
        assert not sg.flush(0.5)  # it is with the exporter
        answer("a")
        assert engine.pipeline.drain(30, judges=False)
        tracer = provider.get_tracer("app")
        for _ in range(7_000):
            tracer.start_span("other").end()
        answer("b")
        assert engine.pipeline.drain(30, judges=False)
    assert sg.flush(30)
    assert (counts().of(Outcome.SCORED), counts().delivered, counts().undelivered) == (2, {"span_event": 2}, {})


class NotEvaluations(Sampler):
    """Records them, and samples them not."""

    def should_sample(self, parent_context: Any, trace_id: int, name: str, *args: Any, **kwargs: Any) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY if name.startswith("evaluation") else Decision.RECORD_AND_SAMPLE)

    def get_description(self) -> str:
        return "not evaluations"


def _ours(exporter: CollectingExporter) -> dict[str, Any]:
    return {"exporter": exporter}


def _theirs(exporter: CollectingExporter) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("made", [_ours, _theirs])
def test_a_provider_that_does_not_sample_the_evaluation_span_takes_no_score(
    made: Callable[[CollectingExporter], dict[str, Any]], late: Late, exporter: CollectingExporter
) -> None:
    provider = TracerProvider(sampler=NotEvaluations(), shutdown_on_exit=False)
    if made is _theirs:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    sg.configure(metrics=[late.metric], tracer_provider=provider, **made(exporter))
    late.call(engine_now())
    assert (counts().delivered, counts().undelivered) == ({}, {"no_carrier": 1})
