"""Application in any language → agent → Jaeger: the scores are on the right span, and nothing else has changed.

Each application sends its trace twice: through the agent, and past it. What Jaeger has of the second is what the first is
held to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from spangrade import semconv as s

from . import apps
from .agent_process import AgentProcess
from .apps import LLM, SPANS, Language, Protocol
from .conftest import Jaeger, MakeAgent
from .processes import eventually

COMBINATIONS = [(language, protocol) for language in ("js", "python") for protocol in ("http", "grpc")]
SCORED = 'spangrade_pairs_total{{evaluator="{}",outcome="scored",reason=""}}'


@dataclass(frozen=True)
class Sent:
    """What Jaeger has of one application's trace, and what the agent counted."""

    through: dict[str, Any]
    past: dict[str, Any]
    counters: dict[str, float]
    faults: float


def send(language: Language, protocol: Protocol, agent: AgentProcess, jaeger: Jaeger) -> Sent:
    direct = apps.run(language, protocol, jaeger.otlp_http if protocol == "http" else jaeger.otlp_grpc)
    scored = apps.run(language, protocol, agent.endpoint(protocol))
    counters = eventually(
        agent.counters, lambda found: found.get(SCORED.format("length_words"), 0) == 1, "one score is counted"
    )
    faults = agent.faults()
    agent.drain()
    return Sent(jaeger.settled(scored), jaeger.settled(direct), counters, faults)


@pytest.fixture(scope="module", params=COMBINATIONS, ids="-".join)
def sent(request: pytest.FixtureRequest, jaeger: Jaeger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sent]:
    language, protocol = cast("tuple[Language, Protocol]", request.param)
    agent = AgentProcess.start(tmp_path_factory.mktemp("agent"), forward=jaeger.otlp_http)
    try:
        yield send(language, protocol, agent, jaeger)
    finally:
        agent.stop()


def events(jaeger: Jaeger, trace: dict[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """The evaluation events of a span by evaluator."""
    found = jaeger.logs(jaeger.span(trace, name), s.EVALUATION_EVENT)
    by_evaluator = {str(event[s.EVALUATION_NAME]): event for event in found}
    assert len(by_evaluator) == len(found), "an evaluator's event came twice"
    return by_evaluator


def without_ids(jaeger: Jaeger, trace: dict[str, Any], name: str) -> dict[str, Any]:
    """All that Jaeger has of a span but what differs from run to run: ids, times, the scores."""
    span = jaeger.span(trace, name)
    names = {each["spanID"]: each["operationName"] for each in trace["spans"]}
    tags = jaeger.tags(span)
    return {
        "attributes": {key: value for key, value in tags.items() if key != s.SCORED_BY},
        "events": [event for event in jaeger.logs(span) if event["event"] != s.EVALUATION_EVENT],
        "parents": [(reference["refType"], names[reference["spanID"]]) for reference in span["references"]],
        "resource": {key: value for key, value in jaeger.resource(trace, span).items() if key != "service.instance.id"},
        # What Jaeger says of the application's clock (JavaScript's cuts start times to milliseconds) differs from run to run too.
        "warnings": [each for each in span["warnings"] or [] if not each.startswith("clock skew")],
    }


def test_the_scores_are_events_on_the_llm_span_with_all_their_attributes(sent: Sent, jaeger: Jaeger) -> None:
    found = events(jaeger, sent.through, LLM)
    assert set(found) == {"overlap", "length_words"}
    overlap, words = found["overlap"], found["length_words"]
    # Five of its eight words that mean something are in the document, which came in another span.
    assert 0.3 < overlap[s.SCORE_VALUE] < 0.9
    assert "Drones bring them" in overlap[s.EXPLANATION]
    assert words[s.SCORE_VALUE] == 9
    for name, event in found.items():
        assert event[s.EVALUATOR_NAME] == name
        assert event[s.EVALUATOR_KIND] == "code"
        assert event[s.EVALUATOR_VERSION]
        assert event[s.PROBABILITY] == 1
        assert len(event[s.SCORE_ID]) == 32
        assert s.ASSEMBLY not in event
    taken = str(jaeger.tags(jaeger.span(sent.through, LLM))[s.SCORED_BY])
    assert "overlap@" in taken
    assert "length_words@" in taken


def test_every_span_arrives_exactly_once(sent: Sent, jaeger: Jaeger) -> None:
    assert sorted(span["operationName"] for span in sent.through["spans"]) == sorted(SPANS)


def test_but_for_the_scores_every_span_is_as_it_is_without_the_agent(sent: Sent, jaeger: Jaeger) -> None:
    for name in SPANS:
        assert without_ids(jaeger, sent.through, name) == without_ids(jaeger, sent.past, name)
    assert [name for name in SPANS if events(jaeger, sent.through, name)] == [LLM]
    assert [name for name in SPANS if s.SCORED_BY in jaeger.tags(jaeger.span(sent.through, name))] == [LLM]


def test_the_agents_own_counters_account_for_every_span(sent: Sent) -> None:
    counters = sent.counters
    assert counters["spangrade_spans_received_total"] == len(SPANS)
    assert counters["spangrade_spans_held_total"] == 1
    assert counters["spangrade_spans_passed_on_total"] == len(SPANS) - 1
    assert counters["spangrade_spans_duplicate_total"] == counters["spangrade_spans_rejected_total"] == 0
    assert sent.faults == 0
    assert counters[SCORED.format("overlap")] == counters[SCORED.format("length_words")] == 1


def test_two_agents_in_a_row_score_each_pair_once(jaeger: Jaeger, agent: MakeAgent) -> None:
    gateway = agent(forward=jaeger.otlp_http)
    sidecar = agent(forward=gateway.http, metrics=["length_words"])
    trace_id = apps.run("python", "grpc", sidecar.endpoint("grpc"))
    sidecar.drain()
    gateway.drain()
    trace = jaeger.settled(trace_id)
    assert sorted(span["operationName"] for span in trace["spans"]) == sorted(SPANS)
    assert set(events(jaeger, trace, LLM)) == {"overlap", "length_words"}
