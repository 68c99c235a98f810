"""Pydantic AI's agents, for real, in all formats of its instrumentation: one run, one conversation."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from .conftest import Run
from .openai_samples import ASKED_TOOLS, CALLS, expected, samples
from .replay import Replay
from .running import Ran

FORMATS = ("1", "2", "3", "5", "6")
ANSWER = "Today, the weather in Seattle is 50 degrees and raining, while in San Francisco, it's 70 degrees and sunny."
WEATHER = {"city": "Rome", "degrees": 21}
RESULTS = [{"location": call["arguments"]["location"], "weather": "sunny"} for call in CALLS]
MADE = {
    "id": "made-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o-mini-2024-07-18",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c9",
                        "type": "function",
                        "function": {"name": "final_result", "arguments": '{"city": "Rome", "degrees": 21}'},
                    }
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17},
}


def run_in(run_app: Run, replay: Replay, form: str, **env: str) -> Ran:
    place = replay.place()
    place.say("weather", "/v1/chat/completions", MADE)
    venv = "pydantic_ai_early" if form == "1" else "vendors"
    return run_app("pydantic_ai_agent", ("tools", "structured"), venv=venv, env={"FORMAT": form, **env}, place=place)


@pytest.fixture(scope="module", params=FORMATS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def ran(run_app: Run, replay: Replay, form: str) -> Ran:
    return run_in(run_app, replay, form)


def turns(messages: Any) -> Any:
    """The conversation without what some formats do not tell: why a turn ended."""
    return [{key: value for key, value in message.items() if key != "finish_reason"} for message in messages]


def test_the_run_is_one_sample(ran: Ran, form: str) -> None:
    """The question, the answer, what was said between, the tools' results, and the tokens counted once."""
    whole = ran.root("tools")
    context = whole["context"]
    assert (whole["input"], whole["output"]) == (ASKED_TOOLS[1]["content"], ANSWER)
    assert (context["kind"], context["system"]) == ("agent", "You're a helpful assistant.")
    assert turns(context["messages"])[:3] == [*ASKED_TOOLS, {"role": "assistant", "content": "", "tool_calls": CALLS}]
    results = [message for message in context["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == [call["id"] for call in CALLS]
    assert all("sunny" in message["content"] for message in results)
    found = [{**call, "result": result} for call, result in zip(CALLS, RESULTS, strict=True)]
    assert context["tool_calls"] == found
    usage = {key: context["usage"][key] for key in ("input_tokens", "output_tokens")}
    assert usage == {"input_tokens": 75 + 99, "output_tokens": 51 + 25}


def test_its_model_calls_are_the_same_samples(ran: Ran, form: str) -> None:
    """As others tell of them; the tool's declaration is Pydantic AI's own, and format 1 tells neither id nor reason."""
    first, second = [sample for sample in samples(ran, "tools") if sample["context"]["kind"] == "llm"]
    more: dict[str, Any] = {"span_name": "chat gpt-4o-mini", "session_id": first["context"].get("session_id")}
    more |= {"response_id": None, "finish_reasons": None} if form == "1" else {"finish_reasons": ["tool_call"]}
    assert {**first["context"], "tools": None} == {**expected("tools", 0, **more)["context"], "tools": None}
    assert (first["input"], first["output"]) == (ASKED_TOOLS[1]["content"], None)
    assert second["output"] == ANSWER
    assert second["context"]["messages"][0] == ASKED_TOOLS[0]
    assert [m["role"] for m in second["context"]["messages"]] == ["system", "user", "assistant", "tool", "tool"]
    assert second["context"]["usage"] == {"input_tokens": 99, "output_tokens": 25}


def test_its_tools_have_arguments_and_result(ran: Ran) -> None:
    calls = ran.calls("tools", "tool")
    found = [(call.reading.input, call.reading.output) for call in calls]
    for (given, gave), call, result in itertools.zip_longest(found, CALLS, RESULTS):
        assert (given, gave) == (call["arguments"], result)


def test_structured_output_is_an_object(ran: Ran) -> None:
    """C050: what the application gets, not the tool call by which the model gave it."""
    whole = ran.root("structured")
    assert (whole["input"], whole["output"]) == ("What's the weather in Rome?", WEATHER)


@pytest.mark.parametrize("form", ["1", "5"])
def test_without_capture_nothing_was_said(run_app: Run, replay: Replay, form: str) -> None:
    """The shape of the conversation is there, and no word of it."""
    ran = run_in(run_app, replay, form, CONTENT="false")
    whole = ran.root("tools")
    assert (whole["input"], whole["output"]) == (None, None)
    assert "sunny" not in str(whole)
    for sample in samples(ran, "tools"):
        assert (sample["input"], sample["output"]) == (None, None)
