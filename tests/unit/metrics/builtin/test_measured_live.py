"""Measurements of traced calls, as they leave: what the span says reaches the metric."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import spangrade as sg
from spangrade.metrics import cost, latency, time_to_first_chunk, tokens, tool_calls_valid
from spangrade.testing import CollectingExporter

Events = Callable[[str], dict[str, Any]]


@pytest.fixture
def events(exporter: CollectingExporter) -> Events:
    metrics = [
        latency(),
        latency(threshold=60, name="fast"),
        time_to_first_chunk(),
        tokens(),
        cost(),
        tool_calls_valid(),
    ]
    sg.configure(metrics=metrics, exporter=exporter)

    def find(name: str) -> dict[str, Any]:
        assert sg.flush(30)
        (span,) = exporter.named(name)
        return {str((e.attributes or {})["gen_ai.evaluation.name"]): dict(e.attributes or {}) for e in span.events}

    return find


def test_a_stream_has_both_times_and_a_plain_call_has_one(events: Events) -> None:
    @sg.trace
    def stream(question: str) -> Iterator[str]:
        yield "one "
        yield "two"

    @sg.trace
    def whole(question: str) -> str:
        return "one two"

    assert "".join(stream("q")) == "one two"
    whole("q")
    found = events("stream")
    first, all_of_it = (found[name]["gen_ai.evaluation.score.value"] for name in ("time_to_first_chunk", "latency"))
    assert 0 <= first <= all_of_it
    assert "gen_ai.evaluation.score.label" not in found["latency"]
    assert found["fast"]["gen_ai.evaluation.score.label"] == "pass"
    assert set(events("whole")) == {"latency", "fast"}  # the rest has nothing to say: skipped, and not 0


def test_a_model_call_of_an_instrumentation_has_tokens_cost_and_checked_tool_calls(events: Events) -> None:
    import json

    from opentelemetry import trace as trace_api

    tool = {"type": "function", "function": {"name": "find", "parameters": {"properties": {"n": {"type": "integer"}}}}}
    said = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "find", "arguments": {"n": "x"}}]}]
    with trace_api.get_tracer("theirs").start_as_current_span("chat") as span:
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": "gpt-4o",
                "gen_ai.usage.input_tokens": 1_000,
                "gen_ai.usage.output_tokens": 100,
                "gen_ai.response.time_to_first_chunk": 0.25,
                "gen_ai.tool.definitions": json.dumps([tool]),
                "gen_ai.input.messages": json.dumps(
                    [{"role": "user", "parts": [{"type": "text", "content": "find it"}]}]
                ),
                "gen_ai.output.messages": json.dumps(said),
            }
        )
    found = {name: attributes["gen_ai.evaluation.score.value"] for name, attributes in events("chat").items()}
    assert found.pop("latency") >= 0
    assert found.pop("cost") > 0
    assert found.pop("fast") >= 0
    assert found == {"time_to_first_chunk": 0.25, "tokens": 1_100, "tool_calls_valid": 0}
    assert "$.n: 'x' is not of type 'integer'" in events("chat")["tool_calls_valid"]["gen_ai.evaluation.explanation"]
