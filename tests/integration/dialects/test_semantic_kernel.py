"""Semantic Kernel for Python, for real: its messages are records of Python's logging."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import Run
from .openai_samples import ANSWERED_TOOLS, ASKED_TOOLS, CALLS, expected, samples, uncaptured
from .replay import Place, Replay
from .running import Ran

SCENARIOS = ("chat", "tools", "agent")
SWITCH = "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS"
NAME = "weather-get_current_weather"
PLUGIN_CALLS = [{**call, "name": NAME} for call in CALLS]
# It tells the model that was asked, and not the one that answered.
TOLD: dict[str, Any] = {"model": "gpt-4o-mini", "span_name": "chat gpt-4o-mini"}


def with_plugin(replay: Replay) -> Place:
    """The recorded exchange, with the function's name as Semantic Kernel offers it."""
    place = replay.place()
    asks = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": NAME, "arguments": json.dumps(call["arguments"])},
        }
        for call in CALLS
    ]
    turns = (
        ("r1", {"role": "assistant", "content": None, "tool_calls": asks}, "tool_calls", (75, 51)),
        ("r2", {"role": "assistant", "content": "Rain, and sun."}, "stop", (99, 25)),
    )
    for response_id, message, reason, (given, answered) in turns:
        place.say(
            "plugin",
            "/v1/chat/completions",
            {
                "id": response_id,
                "object": "chat.completion",
                "created": 1,
                "model": "gpt-4o-mini-2024-07-18",
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {"prompt_tokens": given, "completion_tokens": answered, "total_tokens": given + answered},
            },
        )
    return place


@pytest.fixture(scope="module")
def ran(run_app: Run, replay: Replay) -> Ran:
    return run_app(
        "semantic_kernel_chat",
        SCENARIOS,
        venv="microsoft",
        env={f"{SWITCH}_SENSITIVE": "true"},
        place=with_plugin(replay),
    )


def test_a_chat(ran: Ran) -> None:
    assert samples(ran, "chat") == [expected("chat", **TOLD)]
    assert ran.call("chat").reading.dialect == "semantic_kernel+otel_genai+otel_genai_events"


def test_functions_that_the_model_called_and_their_results(ran: Ran) -> None:
    """Two model calls and what ran between them. It writes no arguments of functions on their spans."""
    asks, answers = ran.calls("tools", "llm")
    assert (asks.reading.input, asks.reading.output) == (ASKED_TOOLS[1]["content"], None)
    assert asks.reading.tool_calls == tuple(PLUGIN_CALLS)
    assert asks.reading.finish_reasons == ("tool_calls",)
    assert answers.reading.output == "Rain, and sun."
    history = [
        {**message, "tool_calls": PLUGIN_CALLS} if "tool_calls" in message else message for message in ANSWERED_TOOLS
    ]
    assert list(answers.reading.messages) == history
    tools = ran.calls("tools", "tool")
    assert [call.reading.tool_calls[0]["id"] for call in tools] == [call["id"] for call in CALLS]
    assert [call.reading.output for call in tools] == ["50 degrees and raining", "70 degrees and sunny"]


def test_an_agent_has_its_messages_on_its_span(ran: Ran) -> None:
    sample = ran.sample("agent", "agent")
    assert (sample["input"], sample["output"]) == ("Say this is a test", "This is a test.")
    root = ran.root("agent")
    assert (root["input"], root["output"]) == ("Say this is a test", "This is a test.")
    assert root["context"]["usage"] == {"input_tokens": 12, "output_tokens": 5}


def test_without_capture_nothing_was_said(run_app: Run) -> None:
    """Switched on, but not for what is sensitive."""
    ran = run_app("semantic_kernel_chat", ("chat", "agent"), venv="microsoft", env={SWITCH: "true"})
    assert samples(ran, "chat") == [uncaptured("chat", **TOLD)]
    root = ran.root("agent")
    assert (root["input"], root["output"]) == (None, None)
    assert ran.call("chat").reading.dialect == "semantic_kernel+otel_genai"
