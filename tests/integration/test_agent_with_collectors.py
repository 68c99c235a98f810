"""Application → Collector → agent → Collector, with the configurations that collector_config/ offers, run as they are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from spangrade import semconv as s

from . import apps, otlp
from .agent_process import AgentProcess
from .apps import LLM, SPANS, Language, Protocol
from .conftest import CONFIGS, PORT_VARIABLES, Jaeger, MakeAgent, MakeCollector, start_jaeger_on
from .processes import eventually, free_ports, url


def evaluators(jaeger: Jaeger, trace: dict[str, Any]) -> dict[str, list[str]]:
    """Span → the evaluators whose events are on it; every span is there once."""
    assert sorted(span["operationName"] for span in trace["spans"]) == sorted(SPANS)
    return {
        name: sorted(
            str(event[s.EVALUATION_NAME]) for event in jaeger.logs(jaeger.span(trace, name), s.EVALUATION_EVENT)
        )
        for name in SPANS
    }


SCORES_ON_THE_LLM_SPAN = {name: ["length_words", "overlap"] if name == LLM else [] for name in SPANS}


@pytest.mark.parametrize("config", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_configuration_is_valid_as_it_is(config: Path, jaeger_binary: Path) -> None:
    ours = ("JAEGER_", "COLLECTOR_", "AGENT_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    result = subprocess.run([jaeger_binary, "validate", "--config", config], env=env, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()


@pytest.mark.parametrize(("language", "protocol"), [("js", "grpc"), ("python", "http")])
def test_between_two_collectors_the_scores_are_on_the_llm_span_and_every_span_arrives_once(
    language: Language,
    protocol: Protocol,
    agent: MakeAgent,
    collector_before: MakeCollector,
    jaeger_after: Jaeger,
) -> None:
    scoring = agent(forward=jaeger_after.otlp_http)
    before = collector_before(scoring)
    trace_id = apps.run(language, protocol, before.endpoint(protocol))
    before.drain()
    scoring.drain()

    trace = jaeger_after.settled(trace_id)
    assert evaluators(jaeger_after, trace) == SCORES_ON_THE_LLM_SPAN
    overlap, _ = sorted(
        jaeger_after.logs(jaeger_after.span(trace, LLM), s.EVALUATION_EVENT), key=lambda event: event[s.SCORE_VALUE]
    )
    assert "Drones bring them" in str(overlap[s.EXPLANATION])


def test_while_the_agents_destination_is_away_the_collector_in_front_keeps_the_spans(
    agent: MakeAgent, collector_before: MakeCollector, jaeger_binary: Path, tmp_path: Path
) -> None:
    """The agent tells its sender "later", the Collector tries again, and every span arrives once all the same."""
    ports = free_ports(PORT_VARIABLES)
    scoring: AgentProcess = agent(forward=url(ports["JAEGER_OTLP_HTTP_PORT"]))
    before = collector_before(scoring)
    trace_id = apps.run("python", "grpc", before.endpoint("grpc"))
    eventually(before.log, lambda text: "Exporting failed. Will retry" in text, "the agent has refused")
    with start_jaeger_on(jaeger_binary, ports, tmp_path) as jaeger:
        jaeger.trace(trace_id, min_spans=len(SPANS))
        before.drain()
        scoring.drain()
        trace = jaeger.settled(trace_id)
        assert evaluators(jaeger, trace) == SCORES_ON_THE_LLM_SPAN


def test_the_collector_behind_the_agent_takes_logs_as_well(agent: MakeAgent, jaeger_after: Jaeger) -> None:
    """Late scores have a way out there: Jaeger alone answers 404."""
    scoring = agent(forward=jaeger_after.otlp_http)
    with httpx.Client(trust_env=False) as client:
        answer = client.post(f"{scoring.http}/v1/logs", content=otlp.log_record("hello"), headers=otlp.PROTOBUF)
    assert answer.status_code == 200, answer.text
    eventually(jaeger_after.log, lambda text: '"log records": 1' in text, "the record is in the debug exporter's log")
