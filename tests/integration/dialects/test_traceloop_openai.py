"""OpenLLMetry's instrumentation of OpenAI, for real: messages on the span, flattened (up to 0.54), and as log records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from .conftest import Run
from .openai_samples import ANSWERED_TOOLS, CALLS, OPENAI_TOOL, TOOL, expected, samples, uncaptured
from .running import Ran

SCENARIOS = ("chat", "streaming", "choices", "tools", "responses", "picture", "fails")
READ = {"cache_read_tokens": 0}
TOLD = {**READ, "reasoning_tokens": 0}


@dataclass(frozen=True)
class Way:
    """A version, and how it is told to write what was said."""

    venv: str
    env: Mapping[str, str]
    dialect: str
    records: bool = False


WAYS = {
    "0.62": Way("traceloop", {}, "traceloop+otel_genai"),
    "0.62, log records": Way("traceloop", {"EVENTS": "1"}, "traceloop+otel_genai+otel_genai_events", records=True),
    "0.53, flattened": Way("traceloop_flattened", {}, "traceloop+otel_genai"),
    "0.53, log records": Way(
        "traceloop_flattened", {"EVENTS": "1"}, "traceloop+otel_genai+otel_genai_events", records=True
    ),
}
Running = Callable[[Way], Ran]


@pytest.fixture(scope="module")
def run_way(run_app: Run) -> Running:
    """Each way is run once."""
    done: dict[int, Ran] = {}

    def run(way: Way) -> Ran:
        if id(way) not in done:
            done[id(way)] = run_app("traceloop_openai", SCENARIOS, venv=way.venv, env=way.env)
        return done[id(way)]

    return run


def chat(scenario: str, turn: int = 0, usage: Mapping[str, int] = TOLD, **context: Any) -> dict[str, Any]:
    return expected(scenario, turn, usage=usage, **{"span_name": "openai.chat", **context})


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_the_same_calls_are_the_same_samples(run_way: Running, way: Way) -> None:
    """A chat, several choices, a call that fails, and the Responses API."""
    ran = run_way(way)
    assert samples(ran, "chat") == [chat("chat")]
    assert samples(ran, "choices") == [chat("choices")]
    assert samples(ran, "fails") == [chat("fails")]
    told = {"finish_reasons": None} if way.venv == "traceloop_flattened" else {}
    assert samples(ran, "responses") == [chat("responses", span_name="openai.response", **told)]
    assert {call.reading.dialect for call in ran.calls("chat")} == {way.dialect}


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_a_tool_and_its_results(run_way: Running, way: Way) -> None:
    """Its log records do not say to which call a result belongs."""
    asks, answers = samples(run_way(way), "tools")
    shape = OPENAI_TOOL if way.venv == "traceloop_flattened" else TOOL
    reason = "tool_call" if way.venv == "traceloop" and not way.records else "tool_calls"
    assert asks == chat("tools", 0, tools=None if way.records else [shape], finish_reasons=[reason])
    untied = [{k: v for k, v in message.items() if k != "tool_call_id"} for message in ANSWERED_TOOLS]
    assert answers == chat("tools", 1, messages=untied if way.records else ANSWERED_TOOLS)


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_a_stream_tells_when_it_began(run_way: Running, way: Way) -> None:
    """The record of its answer belongs to no span, so there the answer is not known."""
    ran = run_way(way)
    (sample,) = samples(ran, "streaming")
    if way.records:
        assert sample["output"] is None
    else:
        assert sample == chat("streaming", usage=READ)
    call = ran.call("streaming")
    assert call.reading.first_chunk_s is not None
    assert 0 < call.reading.first_chunk_s <= (call.span.end_ns - call.span.start_ns) / 1e9


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_a_picture_is_described(run_way: Running, way: Way) -> None:
    """On the span it hands a picture to Traceloop to keep, and loses the message where that fails; nobody makes a question
    of that."""
    lost = {} if way.records else {"messages": None, "input": None}
    assert samples(run_way(way), "picture") == [chat("picture", **lost)]


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_without_capture_nothing_was_said(run_app: Run, way: Way) -> None:
    """TRACELOOP_TRACE_CONTENT=false."""
    env = {**way.env, "TRACELOOP_TRACE_CONTENT": "false"}
    ran = run_app("traceloop_openai", ("chat", "tools"), venv=way.venv, env=env)
    flattened = way.venv == "traceloop_flattened"
    named: dict[str, Any] = {"usage": TOLD, "span_name": "openai.chat"}
    if flattened and not way.records:
        named["finish_reasons"] = None  # it stands among what was said
    assert samples(ran, "chat") == [uncaptured("chat", **named)]
    asked = [{key: call[key] for key in ("id", "name")} for call in CALLS] if way.records else None
    reasons = {} if flattened else {"finish_reasons": ["tool_call"]}
    assert samples(ran, "tools") == [
        uncaptured("tools", 0, **{**named, "tool_calls": asked, **reasons}),
        uncaptured("tools", 1, **named),
    ]
