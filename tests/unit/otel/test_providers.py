"""Whose provider it is decides who exports: ours, somebody else's (late mode), or theirs behind ours."""

import logging
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

import spangrade as sg
from spangrade import semconv as s
from spangrade.otel import sdk_private
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter, event_scores


@sg.trace
def answer(question: str) -> str:
    return f"answer to {question}"


def yes(sample: sg.Sample) -> bool:
    return True


def theirs(exporter: CollectingExporter, kind: Any = BatchSpanProcessor) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(kind(exporter))
    trace_api.set_tracer_provider(provider)
    return provider


def test_late_mode_exports_no_span_of_theirs_and_scores_come_as_children(exporter: CollectingExporter) -> None:
    provider = theirs(exporter)
    sg.configure(metrics=[yes])
    answer("a")
    assert sg.flush(5)
    (span,) = exporter.named("answer")
    assert event_scores(span) == {}
    (late,) = exporter.named("evaluation yes")
    assert late.parent is not None
    assert span.context is not None
    assert (late.parent.trace_id, late.parent.span_id) == (span.context.trace_id, span.context.span_id)
    assert late.start_time == late.end_time == span.end_time
    assert late.links == ()
    attributes = dict(late.attributes or {})
    assert attributes[s.OI_KIND] == "EVALUATOR"
    assert attributes[s.SCORE_VALUE] == 1.0
    assert event_scores(late)["yes"][s.SCORE_ID] == attributes[s.SCORE_ID]
    processors = sdk_private.processors_of(provider)
    assert processors is not None
    assert len(processors) == 2
    engine = current_engine()
    assert engine is not None
    assert engine.ledger.snapshot()["yes"].delivered == {"evaluation_span": 1}


def test_late_scores_are_redacted_too_though_their_exporter_is_not_ours(exporter: CollectingExporter) -> None:
    def leaky(sample: sg.Sample) -> sg.Score:
        return sg.Score(1, explanation=f"it says {sample.output}")

    theirs(exporter)
    sg.configure(metrics=[leaky], redact=lambda text: text.replace("secret", "***"))
    with sg.trace("call"):
        sg.set_output("secret")
    assert sg.flush(5)
    (late,) = exporter.named("evaluation leaky")
    assert "secret" not in repr(dict(late.attributes or {})) + repr([dict(e.attributes or {}) for e in late.events])


@pytest.mark.parametrize("kind", [BatchSpanProcessor, SimpleSpanProcessor])
def test_take_over_puts_their_exporter_behind_ours(kind: Any, exporter: CollectingExporter) -> None:
    provider = theirs(exporter, kind)
    sg.configure(metrics=[yes], take_over=True)
    answer("a")
    assert sg.flush(5)
    assert sg.flush(5)
    (span,) = exporter.spans
    assert event_scores(span)["yes"][s.SCORE_VALUE] == 1.0
    processors = sdk_private.processors_of(provider)
    assert processors is not None
    assert [type(p).__name__ for p in processors] == ["SpangradeProcessor"]


def test_a_provider_whose_processors_cannot_be_moved_falls_back_to_late_mode(
    exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs(exporter)
    monkeypatch.setattr(sdk_private, "replace_processors", lambda provider, change: False)
    sg.configure(metrics=[yes], take_over=True)
    answer("a")
    assert sg.flush(5)
    assert [sp.name for sp in exporter.spans] == ["answer", "evaluation yes"]


def test_a_processor_that_the_application_placed_is_used(exporter: CollectingExporter) -> None:
    provider = TracerProvider()
    provider.add_span_processor(sg.SpangradeProcessor(BatchSpanProcessor(exporter)))
    trace_api.set_tracer_provider(provider)
    answer("before configure")
    sg.configure(metrics=[yes])
    answer("a")
    assert sg.flush(5)
    before, span = exporter.named("answer")
    assert event_scores(before) == {}
    assert event_scores(span)["yes"][s.SCORE_VALUE] == 1.0


def test_a_processor_takes_an_exporter_too_and_refuses_other_things(exporter: CollectingExporter) -> None:
    provider = TracerProvider()
    provider.add_span_processor(sg.SpangradeProcessor(exporter))
    trace_api.set_tracer_provider(provider)
    sg.configure(metrics=[yes])
    answer("a")
    assert sg.flush(5)
    assert event_scores(exporter.named("answer")[0])
    with pytest.raises(TypeError, match="takes a SpanProcessor or a SpanExporter, not str"):
        sg.SpangradeProcessor("http://localhost")  # type: ignore[arg-type]


def test_a_provider_without_any_exporter_is_ours_to_export(exporter: CollectingExporter) -> None:
    trace_api.set_tracer_provider(TracerProvider())
    sg.configure(metrics=[yes], exporter=exporter)
    answer("a")
    assert sg.flush(5)
    assert event_scores(exporter.named("answer")[0])


def test_a_given_provider_is_used_and_the_global_one_left_alone(exporter: CollectingExporter) -> None:
    mine = TracerProvider()
    sg.configure(metrics=[yes], exporter=exporter, tracer_provider=mine)
    answer("a")
    assert sg.flush(5)
    assert event_scores(exporter.named("answer")[0])
    assert isinstance(trace_api.get_tracer_provider(), trace_api.ProxyTracerProvider)


def test_a_provider_that_takes_no_processor_is_said_once_and_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    trace_api.set_tracer_provider(trace_api.NoOpTracerProvider())
    with caplog.at_level(logging.WARNING, "spangrade"):
        sg.configure(metrics=[yes])
        sg.configure(metrics=[yes])
    assert answer("a") == "answer to a"
    assert sum("takes no span processor" in r.getMessage() for r in caplog.records) == 1


def test_configure_again_replaces_what_was_said_and_stacks_nothing(exporter: CollectingExporter) -> None:
    calls: list[int] = []

    def cell() -> None:
        def length(sample: sg.Sample) -> float:
            calls.append(1)
            return 1.0

        sg.configure(metrics=[length], exporter=exporter)

    for _ in range(3):
        cell()
    answer("a")
    assert sg.flush(5)
    assert len(exporter.named("answer")) == 1
    assert calls == [1]
    processors = sdk_private.processors_of(trace_api.get_tracer_provider())
    assert processors is not None
    assert len(processors) == 1


def test_decorated_before_the_provider_was_set(exporter: CollectingExporter) -> None:
    assert answer("nobody listens") == "answer to nobody listens"
    sg.configure(metrics=[yes], exporter=exporter)
    answer("a")
    assert sg.flush(5)
    assert len(exporter.named("answer")) == 1


def test_scoring_exporter_scores_without_a_processor(exporter: CollectingExporter) -> None:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(sg.ScoringExporter(exporter)))
    trace_api.set_tracer_provider(provider)
    sg.configure(metrics=[yes, "overlap"], tracer_provider=TracerProvider(), exporter=CollectingExporter())
    trace_api.get_tracer_provider()

    tracer = provider.get_tracer("their app")
    with (
        tracer.start_as_current_span("GET /"),
        tracer.start_as_current_span("chain", attributes={s.OI_KIND: "CHAIN", s.OI_INPUT: "q", s.OI_OUTPUT: "Paris."}),
    ):
        documents = '[{"content": "Paris is in France."}]'
        with tracer.start_as_current_span(
            "find", attributes={s.OI_KIND: "RETRIEVER", s.RETRIEVAL_DOCUMENTS: documents}
        ):
            pass
        with tracer.start_as_current_span("llm", attributes={s.OI_KIND: "LLM", s.OI_INPUT: "q", s.OI_OUTPUT: "Paris."}):
            pass
    provider.force_flush()
    assert exporter.wait_for(lambda spans: len(spans) == 4)
    by_name = {sp.name: event_scores(sp) for sp in exporter.spans}
    assert set(by_name["chain"]) == {"yes", "overlap"}
    assert by_name["chain"]["overlap"][s.SCORE_VALUE] == 1.0
    assert not by_name["llm"]
    assert not by_name["find"]
    provider.shutdown()


def test_the_standard_entry_point_is_there() -> None:
    from importlib.metadata import entry_points

    found = [p for p in entry_points(group="opentelemetry_traces_exporter") if p.name == "spangrade"]
    if not found:
        pytest.skip("spangrade is not installed (run from the source tree); `make test` installs it")
    assert isinstance(found[0].load()(), sg.ScoringExporter)


def test_configure_says_once_what_it_does(exporter: CollectingExporter, caplog: pytest.LogCaptureFixture) -> None:
    theirs(exporter)
    with caplog.at_level(logging.INFO, "spangrade"):
        sg.configure(metrics=[yes])
    (line,) = [r.getMessage() for r in caplog.records]
    assert "late: the existing provider exports its spans" in line


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"metrics": ["overlapp"]}, "did you mean 'overlap'"),
        ({"metrics": "overlap"}, r"metrics=\['overlap'\]"),
        ({"metrics": [yes, yes]}, "two evaluators are named 'yes'"),
        ({"metrics": ["nowhere.at.all:metric"]}, "does not import: ModuleNotFoundError"),
        ({"metrics": [3]}, "is no metric"),
        ({"judges": [sg.LlmJudge(name="j", criteria="c")]}, "live=True"),
        ({"endpoint": "localhost"}, None),
        ({"endpoint": "ftp://x"}, "not a URL such as http://localhost:4318"),
        ({"hold": -1}, "seconds from 0 to 600"),
        ({"hold": "soon"}, "seconds from 0 to 600"),
        ({"score": "there"}, "'here' or 'agent'"),
        ({"redact": "secret"}, "function of a text"),
        ({"exporter": object()}, "not an opentelemetry.sdk SpanExporter"),
        ({"destinations": [{"preset": "jaeger"}]}, "'preset': 'otlp'"),
        ({"config_file": "/nonexistent.yaml"}, "cannot be read"),
    ],
)
def test_bad_settings_are_refused_in_words_and_change_nothing(arguments: Any, sentence: str | None) -> None:
    if sentence is None:
        sg.configure(**arguments)
        return
    with pytest.raises(sg.ConfigError, match=sentence):
        sg.configure(**arguments)
    assert current_engine() is None
    assert isinstance(trace_api.get_tracer_provider(), trace_api.ProxyTracerProvider)
