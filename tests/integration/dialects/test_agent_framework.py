"""Microsoft's Agent Framework for Python, for real: what was said stands on its spans, in log records, or in both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Run
from .openai_samples import ANSWERED_TOOLS, ASKED_TOOLS, CALLS, SAMPLES, expected, samples
from .running import Ran

RESULTS = ("50 degrees and raining", "70 degrees and sunny")
DONE = [{**call, "result": result} for call, result in zip(CALLS, RESULTS, strict=True)]
# The older conventions have no parts of counts.
COUNTS = {"on the spans": {"cache_read_tokens": 0, "reasoning_tokens": 0}, "in log records": {}}
ANSWER = SAMPLES["tools", 1]["output"]
# Its tools' schemas are pydantic's.
TOOL = {
    "type": "function",
    "name": "get_current_weather",
    "description": "Get the current weather in a given location",
    "parameters": {
        "properties": {"location": {"title": "Location", "type": "string"}},
        "required": ["location"],
        "title": "get_current_weather_input",
        "type": "object",
    },
}
# By itself it writes both. An opt-in to something else takes it back to the older conventions.
OLDER = {"OTEL_SEMCONV_STABILITY_OPT_IN": "http"}
WAYS: dict[str, dict[str, str]] = {"on the spans": {}, "in log records": OLDER}


@pytest.fixture(scope="module")
def run_way(run_app: Run) -> Callable[[str], Ran]:
    """Each way is run once."""
    done: dict[str, Ran] = {}

    def run(way: str) -> Ran:
        if way not in done:
            env = {"ENABLE_SENSITIVE_DATA": "true", **WAYS[way]}
            done[way] = run_app("agent_framework_agent", ("agent",), venv="microsoft", env=env)
        return done[way]

    return run


@pytest.mark.parametrize("way", WAYS)
def test_each_model_and_tool_call_is_its_sample(run_way: Callable[[str], Ran], way: str) -> None:
    """Two of each."""
    ran = run_way(way)
    told: dict[str, Any] = {"usage": COUNTS[way], "span_name": "chat gpt-4o-mini"}
    found = [sample for sample in samples(ran, "agent") if sample["context"]["kind"] == "llm"]
    assert found == [expected("tools", 0, **told), expected("tools", 1, **told)]
    dialects = {call.reading.dialect for call in ran.calls("agent", "llm")}
    assert dialects == {"agent_framework+otel_genai+otel_genai_events"}
    told_of_tools = {"in log records": ("id", "name")}.get(way, ("id", "name", "arguments"))  # the older: who they are
    for call, done in zip(ran.calls("agent", "tool"), DONE, strict=True):
        wanted = (done["arguments"], done["result"]) if "arguments" in told_of_tools else (None, None)
        assert (call.reading.input, call.reading.output) == wanted
        assert call.reading.tool_calls == ({key: done[key] for key in told_of_tools},)


def test_an_agent_is_its_question_and_its_last_answer(run_way: Callable[[str], Ran]) -> None:
    """Its output is the whole run; a tool's result is no answer. The older conventions have no messages of agents."""
    agent = run_way("on the spans").sample("agent", "agent")
    assert (agent["input"], agent["output"]) == (ASKED_TOOLS[1]["content"], ANSWER)
    assert agent["context"]["tool_calls"] == DONE
    assert agent["context"]["tools"] == [TOOL]
    older = run_way("in log records").sample("agent", "agent")
    assert (older["input"], older["output"]) == (None, None)


@pytest.mark.parametrize("way", WAYS)
def test_end_to_end_it_is_the_question_and_the_answer(run_way: Callable[[str], Ran], way: str) -> None:
    """With the tools' results, and each token counted once."""
    root = run_way(way).root("agent")
    assert (root["input"], root["output"]) == (ASKED_TOOLS[1]["content"], ANSWER)
    assert root["context"]["usage"] == {"input_tokens": 174, "output_tokens": 76, **COUNTS[way]}
    assert root["context"]["tool_calls"] == DONE
    assert root["context"]["system"] == ANSWERED_TOOLS[0]["content"]


def test_without_capture_nothing_was_said(run_app: Run) -> None:
    """The default."""
    ran = run_app("agent_framework_agent", ("agent",), venv="microsoft")
    calls = ran.calls("agent")
    assert {call.kind for call in calls} == {"agent", "llm", "tool"}
    assert {(call.reading.input, call.reading.output, call.reading.messages) for call in calls} == {(None, None, ())}
