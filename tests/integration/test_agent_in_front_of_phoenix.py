"""Application → agent → Arize Phoenix: the scores are on the LLM span there; that it takes no logs does no harm."""

from __future__ import annotations

from pathlib import Path

import httpx

from spangrade import semconv as s

from . import apps, otlp
from .apps import LLM, SPANS
from .conftest import MakeAgent
from .phoenix_process import Phoenix, Span, named, scored_events
from .processes import eventually

# A metric that is too late for its span: it waits until the test has seen the span arrive without it.
SLOW_METRIC = """
import threading, time
from pathlib import Path
import spangrade as sg

GO = Path({go!r})

@sg.metric(name="slow", version=1)
def slow(output):
    deadline = time.monotonic() + 60
    while not GO.exists() and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    return 0.25
"""


def evaluation_events(span: Span) -> dict[str, Span]:
    """The evaluation events of a span by evaluator."""
    found = scored_events(span, s.EVALUATION_EVENT)
    by_evaluator = {str(event[s.EVALUATION_NAME]): event for event in found}
    assert len(by_evaluator) == len(found), "an evaluator's event came twice"
    return by_evaluator


def test_the_scores_are_events_on_the_llm_span_and_nothing_is_sent_twice(phoenix: Phoenix, agent: MakeAgent) -> None:
    scoring = agent(forward=phoenix.otlp_http)
    trace_id = apps.run("python", "http", scoring.endpoint("http"))
    # Phoenix keeps the first of two equal span ids, so only the sender can tell that it sent one.
    sent = 'spangrade_queue_sent_total{signal="traces"}'
    counters = eventually(scoring.counters, lambda found: found.get(sent, 0) >= 1, "the scored span has been sent on")
    scoring.drain()
    assert counters[sent] == counters["spangrade_spans_held_total"] == 1
    assert counters["spangrade_spans_passed_on_total"] == len(SPANS) - 1

    spans = phoenix.settled(trace_id)
    assert sorted(span["name"] for span in spans) == sorted(SPANS)
    assert [span["name"] for span in spans if evaluation_events(span)] == [LLM]
    llm = named(spans, LLM)
    assert llm["span_kind"] == "LLM"
    assert scored_events(llm, "first token") == [{"after_ms": 1.5}]
    found = evaluation_events(llm)
    assert set(found) == {"overlap", "length_words"}
    overlap, words = found["overlap"], found["length_words"]
    assert 0.3 < overlap[s.SCORE_VALUE] < 0.9
    assert "Drones bring them" in overlap[s.EXPLANATION]
    assert words[s.SCORE_VALUE] == 9
    for name, event in found.items():
        assert (event[s.EVALUATOR_NAME], event[s.EVALUATOR_KIND], event[s.PROBABILITY]) == (name, "code", 1)
        assert event[s.EVALUATOR_VERSION]
        assert len(event[s.SCORE_ID]) == 32


def test_a_late_score_comes_as_a_child_span_since_phoenix_takes_no_logs(
    phoenix: Phoenix, agent: MakeAgent, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    (tmp_path / "slow_metric.py").write_text(SLOW_METRIC.format(go=str(go)), encoding="utf-8")
    scoring = agent(forward=phoenix.otlp_http, metrics=["length_words", "slow_metric:slow"], path=tmp_path)
    trace_id = apps.run("python", "grpc", scoring.endpoint("grpc"))
    spans = eventually(lambda: phoenix.spans(trace_id), lambda found: len(found) == len(SPANS), "it left", timeout=30)
    assert set(evaluation_events(named(spans, LLM))) == {"length_words"}

    go.touch()
    eventually(lambda: phoenix.spans(trace_id), lambda found: len(found) > len(SPANS), "the score came", timeout=30)
    assert scoring.admin("/readyz").status_code == 200
    assert scoring.faults() == 0
    scoring.drain()
    assert "takes no OTLP logs" in scoring.log()

    spans = phoenix.settled(trace_id)
    assert sorted(span["name"] for span in spans) == sorted([*SPANS, "evaluation slow"])
    late, llm = named(spans, "evaluation slow"), named(spans, LLM)
    assert late["parent_id"] == llm["context"]["span_id"]
    assert late["start_time"] == late["end_time"] == llm["end_time"]
    assert late["attributes"][s.SCORE_VALUE] == 0.25


def test_logs_that_phoenix_refuses_are_refused_to_their_sender_and_traces_go_on(
    phoenix: Phoenix, agent: MakeAgent
) -> None:
    scoring = agent(forward=phoenix.otlp_http)
    with httpx.Client(trust_env=False) as client:
        answer = client.post(f"{scoring.http}/v1/logs", content=otlp.log_record("hello"), headers=otlp.PROTOBUF)
    assert answer.status_code == 404, answer.text
    assert scoring.admin("/readyz").status_code == 200
    trace_id = apps.run("python", "grpc", scoring.endpoint("grpc"))
    scoring.drain()
    spans = phoenix.settled(trace_id)
    assert set(evaluation_events(named(spans, LLM))) == {"overlap", "length_words"}
