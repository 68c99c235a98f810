"""OpenTelemetry's own instrumentations of OpenAI, for real: the older one by both conventions, its successor by the newer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from .conftest import Run
from .openai_samples import CALLS, TOOL, expected, samples, uncaptured
from .running import Ran

CHAT = ("chat", "streaming", "choices", "tools", "picture", "fails")
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
LATEST = {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}
SUCCESSOR = {"SUCCESSOR": "1"}
SPAN, EVENT = {CAPTURE: "SPAN_ONLY"}, {CAPTURE: "EVENT_ONLY", "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT": "true"}


@dataclass(frozen=True)
class Way:
    """A library in a venv, how it is switched on, and what it makes of it."""

    venv: str
    env: Mapping[str, str]
    dialect: str = "otel_genai"
    successor: bool = False


WAYS = {
    "v2, messages as log records": Way("openai_v2", {CAPTURE: "true"}, "otel_genai+otel_genai_events"),
    "v2, on the span": Way("openai_v2", {**LATEST, **SPAN}),
    "v2, the details event": Way("openai_v2", {**LATEST, **EVENT}),
    "genai, on the span": Way("otel_genai", {**SUCCESSOR, **SPAN}, successor=True),
    "genai, the details event": Way("otel_genai", {**SUCCESSOR, **EVENT}, successor=True),
}
SILENT = {
    "v2": Way("openai_v2", {}, "otel_genai+otel_genai_events"),
    "v2, latest": Way("openai_v2", LATEST),
    "genai": Way("otel_genai", SUCCESSOR, successor=True),
}
Running = Callable[[Way], Ran]


@pytest.fixture(scope="module")
def run_way(run_app: Run) -> Running:
    """Each way is run once."""
    done: dict[int, Ran] = {}

    def run(way: Way) -> Ran:
        if id(way) not in done:
            # openai-v2 knows nothing of Responses.
            scenarios = (*CHAT, "responses") if way.successor else CHAT
            done[id(way)] = run_app("otel_openai", scenarios, venv=way.venv, env=way.env)
        return done[id(way)]

    return run


def named(model: str = "gpt-4o-mini", **more: Any) -> dict[str, Any]:
    return {"span_name": f"chat {model}", **more}


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_the_same_calls_are_the_same_samples(run_way: Running, way: Way) -> None:
    """A chat, a stream, several choices, a tool and its results, a call that fails."""
    ran = run_way(way)
    offered = {"tools": [TOOL]} if way.successor else {}
    assert samples(ran, "chat") == [expected("chat", **named())]
    assert samples(ran, "streaming") == [expected("streaming", **named("gpt-4"))]
    assert samples(ran, "choices") == [expected("choices", **named())]
    assert samples(ran, "tools") == [expected("tools", 0, **named(**offered)), expected("tools", 1, **named())]
    assert samples(ran, "fails") == [expected("fails", **named("this-model-does-not-exist"))]
    assert {call.reading.dialect for call in ran.calls("chat")} == {way.dialect}


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_a_picture_is_described(run_way: Running, way: Way) -> None:
    """openai-v2 by the newer conventions loses a message of parts; nobody makes a question of that."""
    lost = {"messages": None, "input": None} if way.venv == "openai_v2" and way.dialect == "otel_genai" else {}
    assert samples(run_way(way), "picture") == [expected("picture", **named(**lost))]


@pytest.mark.parametrize("name", ["genai, on the span", "genai, the details event"])
def test_the_responses_api(run_way: Running, name: str) -> None:
    assert samples(run_way(WAYS[name]), "responses") == [expected("responses", **named())]


@pytest.mark.parametrize("way", SILENT.values(), ids=list(SILENT))
def test_without_capture_nothing_was_said(run_way: Running, way: Way) -> None:
    """Input and output are None, never "", and models, tokens, reasons and the names of called tools are known."""
    ran = run_way(way)
    assert samples(ran, "chat") == [uncaptured("chat", **named())]
    assert samples(ran, "choices") == [uncaptured("choices", **named())]
    untold = {"finish_reasons": None} if way.env == LATEST else {}
    assert samples(ran, "streaming") == [uncaptured("streaming", **named("gpt-4", **untold))]
    records = way.dialect != "otel_genai"
    calls = [{key: call[key] for key in ("id", "name")} for call in CALLS] if records else None
    assert samples(ran, "tools") == [
        uncaptured("tools", 0, **named(tool_calls=calls)),
        uncaptured("tools", 1, **named()),
    ]
    assert {call.reading.dialect for call in ran.calls("chat")} == {way.dialect}
