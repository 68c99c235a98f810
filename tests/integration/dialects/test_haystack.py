"""Haystack with its OpenTelemetry tracer, for real: a pipeline, an agent."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Run
from .openai_samples import ANSWERED_TOOLS, CALLS, MINI, PARROT, expected, samples
from .running import Ran

SCENARIOS = ("pipeline", "agent")
QUESTION = "Which plug in Lisbon?"
PARTS = {"cache_read_tokens": 0, "reasoning_tokens": 0}
SUNNY = [
    *ANSWERED_TOOLS[:3],
    *({"role": "tool", "content": "sunny", "tool_call_id": call["id"], "name": call["name"]} for call in CALLS),
]


@pytest.fixture(scope="module")
def ran(run_app: Run) -> Ran:
    return run_app("haystack_pipeline", SCENARIOS, venv="vendors", env={"HAYSTACK_CONTENT_TRACING_ENABLED": "true"})


def told(**more: Any) -> dict[str, Any]:
    """It tells neither provider nor response's id."""
    return {"provider": None, "response_id": None, "usage": PARTS, **more}


def test_a_pipeline_is_one_sample_with_its_documents(ran: Ran) -> None:
    """The question that its components share, the answer, the one document that was found."""
    whole = ran.root("pipeline")
    (document,) = whole["documents"]
    assert document.pop("score") > 0
    assert document == {"id": "d1", "content": "Lisbon has type F.", "metadata": {"page": 1}}
    assert (whole["input"], whole["output"]) == (QUESTION, "This is a test.")
    prompt = {"role": "user", "content": f"Lisbon has type F. {QUESTION}"}
    assert whole["context"] == {
        "kind": "chain",
        "span_name": "haystack.pipeline.run",
        "status": "ok",
        "searched": True,
        "messages": [PARROT, prompt],
        "system": PARROT["content"],
        "model": MINI,
        "finish_reasons": ["stop"],
        "usage": {"input_tokens": 12, "output_tokens": 5, **PARTS},
    }


def test_its_components_are_calls_of_their_kinds(ran: Ran) -> None:
    """A prompt being filled in is none."""
    assert [call.kind for call in ran.calls("pipeline")] == ["chain", "retriever", "llm"]
    found = ran.sample("pipeline", "retriever")
    assert (found["input"], found["documents"][0]["content"]) == (QUESTION, "Lisbon has type F.")
    prompt = f"Lisbon has type F. {QUESTION}"
    asked = told(
        span_name="haystack.component.run", messages=[PARROT, {"role": "user", "content": prompt}], input=prompt
    )
    assert ran.sample("pipeline", "llm") == expected("chat", **asked)


def test_an_agent_is_its_run(ran: Ran) -> None:
    """Question, answer, the turns between, the tools' results."""
    whole = ran.root("agent")
    assert (whole["input"], whole["output"]) == (SUNNY[1]["content"], expected("tools", 1)["output"])
    assert whole["context"]["messages"] == SUNNY
    assert whole["context"]["tool_calls"] == [{**call, "result": "sunny"} for call in CALLS]
    assert whole["context"]["usage"] == {"input_tokens": 174, "output_tokens": 76, **PARTS}
    first, second = [sample for sample in samples(ran, "agent") if sample["context"]["kind"] == "llm"]
    (tool,) = first["context"]["tools"]
    more = told(span_name="haystack.agent.step.llm", tools=[tool])
    assert (tool["name"], tool["parameters"]["required"]) == ("get_current_weather", ["location"])
    assert first == expected("tools", 0, **more)
    assert second == expected("tools", 1, **{**more, "messages": SUNNY})
    for sample, call in zip(ran.calls("agent", "tool"), CALLS, strict=True):
        assert (sample.reading.input, sample.reading.output) == (call["arguments"], "sunny")


def test_without_capture_nothing_was_said(run_app: Run) -> None:
    """By default. A pipeline's own inputs are written down all the same."""
    ran = run_app("haystack_pipeline", SCENARIOS, venv="vendors")
    for scenario in SCENARIOS:
        for sample in samples(ran, scenario):
            asked = QUESTION if sample["context"]["span_name"] == "haystack.pipeline.run" else None
            assert (sample["input"], sample["output"]) == (asked, None)
    assert ran.root("agent")["input"] is None
