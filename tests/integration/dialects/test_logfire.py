"""Logfire's instrumentation of model clients, for real: both versions of its attributes."""

from __future__ import annotations

from typing import Any

import pytest

from spangrade.samples.assemble import sample_of

from . import anthropic_samples
from .conftest import Run
from .openai_samples import OPENAI_TOOL, expected, samples
from .running import Ran

OPENAI = ("chat", "streaming", "choices", "tools", "responses", "fails")
ANTHROPIC = ("message", "streaming", "tools", "tools_history", "cached")
NAMES = {"responses": "Responses API with {gen_ai.request.model!r}"}
OFFERED = [
    {"name": name, "description": said, "input_schema": schema} for name, said, schema in anthropic_samples.OFFERED
]
Version = str


@pytest.fixture(scope="module", params=["1", "2"])
def version(request: pytest.FixtureRequest) -> Version:
    return str(request.param)


@pytest.fixture(scope="module")
def ran(run_app: Run, version: Version) -> Ran:
    scenarios = (*OPENAI, *(f"anthropic_{name}" for name in ANTHROPIC))
    return run_app("logfire_clients", scenarios, venv="vendors", env={"SEMCONV": version})


def told(version: Version, scenario: str = "", **more: Any) -> dict[str, Any]:
    """Version 1 has the provider's whole counts; the Responses API is written as events."""
    parts = {"cache_read_tokens": 0, "reasoning_tokens": 0} if version == "1" and scenario != "responses" else {}
    return {"span_name": NAMES.get(scenario, "Chat Completion with {request_data[model]!r}"), "usage": parts, **more}


def test_openais_calls_are_their_samples(ran: Ran, version: Version) -> None:
    """A chat, a tool and its results, Responses, a call that fails."""
    assert samples(ran, "chat") == [expected("chat", **told(version))]
    assert samples(ran, "tools") == [
        expected("tools", 0, **told(version, tools=[OPENAI_TOOL])),
        expected("tools", 1, **told(version)),
    ]
    assert samples(ran, "responses") == [expected("responses", **told(version, "responses"))]
    assert samples(ran, "fails") == [expected("fails", **told(version))]
    assert {call.reading.dialect for call in ran.calls("chat")} == {"logfire+otel_genai"}


def test_of_several_choices_version_1_keeps_the_first(ran: Ran, version: Version) -> None:
    more = {"output_messages": None} if version == "1" else {}
    assert samples(ran, "choices") == [expected("choices", **told(version, **more))]


@pytest.mark.parametrize("name", ["message", "tools", "tools_history", "cached"])
def test_anthropics_calls_are_their_samples(ran: Ran, version: Version, name: str) -> None:
    """A tool's arguments, the cached tokens among the input's."""
    found = samples(ran, f"anthropic_{name}")
    assert len(found) == (2 if name == "cached" else 1)
    for turn, sample in enumerate(found):
        more: dict[str, Any] = {"tools": OFFERED} if name.startswith("tools") else {}
        whole = anthropic_samples.expected(name, turn, span_name="Message with {request_data[model]!r}", **more)
        ended = "tool_use" if name.startswith("tools") and whole["context"].get("tool_calls") else "end_turn"
        whole["context"]["finish_reasons"] = [ended]
        counts = sample["context"]["usage"]  # version 1 writes those that are 0, too
        sample["context"]["usage"] = {key: count for key, count in counts.items() if count}
        assert sample == whole


@pytest.mark.parametrize("scenario", ["streaming", "anthropic_streaming"])
def test_a_streams_answer_is_a_call_of_its_own(ran: Ran, version: Version, scenario: str) -> None:
    """The span of the request ends before the first piece and has no answer; what took how long, the note says."""
    request, note = ran.calls(scenario)
    assert (request.reading.output, note.reading.output is not None) == (None, True)
    assert request.reading.input == note.reading.input
    assert request.span.span_id != note.span.span_id
    assert note.span.start_ns == note.span.end_ns
    assert sample_of(note).context["duration_s"] > 0
    if scenario == "streaming":
        name = "streaming response from {request_data[model]!r} took {duration:.2f}s"
        assert samples(ran, scenario)[1] == expected("streaming", **told(version, span_name=name))
