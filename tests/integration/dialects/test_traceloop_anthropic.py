"""OpenLLMetry's instrumentation of Anthropic, for real: messages on the span, and flattened (up to 0.54)."""

from __future__ import annotations

from typing import Any

import pytest

from .anthropic_samples import ASKED, OFFERED, expected
from .conftest import Run
from .openai_samples import samples
from .running import Ran

DECLARED = [{"name": n, "description": said, "input_schema": schema} for n, said, schema in OFFERED]
FUNCTIONS = [
    {"type": "function", "function": {"name": n, "description": said, "parameters": schema}}
    for n, said, schema in OFFERED
]
NONE_CACHED = {"cache_read_tokens": 0, "cache_write_tokens": 0}
# Of a stream it adds what its beginning told to what its end told of the whole.
COUNTED = {"streaming": 174, "stream_manager": 109, "tools_streaming": 158, "thinking_streaming": 218}


@pytest.fixture(scope="module")
def newer(run_app: Run) -> Ran:
    return run_app("traceloop_anthropic", tuple(ASKED), venv="traceloop")


@pytest.fixture(scope="module")
def flattened(run_app: Run) -> Ran:
    return run_app("traceloop_anthropic", tuple(ASKED), venv="traceloop_flattened")


def cached(scenario: str, turn: int) -> dict[str, int]:
    """It tells both parts always."""
    if scenario in COUNTED:
        return {**NONE_CACHED, "output_tokens": COUNTED[scenario]}
    if scenario != "cached":
        return NONE_CACHED
    return {"cache_write_tokens" if turn else "cache_read_tokens": 0}


@pytest.mark.parametrize("scenario", ASKED)
def test_each_call_is_its_sample(newer: Ran, scenario: str) -> None:
    """Messages, streams, tools and their results, thoughts, cached tokens."""
    tools = {"tools": DECLARED} if scenario.startswith("tools") else {}
    turns = range(2 if scenario == "cached" else 1)
    assert samples(newer, scenario) == [
        expected(scenario, turn, span_name="anthropic.chat", usage=cached(scenario, turn), **tools) for turn in turns
    ]
    assert {call.reading.dialect for call in newer.calls(scenario)} == {"traceloop+otel_genai"}


@pytest.mark.parametrize("scenario", ASKED)
def test_flattened_messages_are_the_same_sample(flattened: Ran, scenario: str) -> None:
    """Of a stream it tells no tokens, and of several tools called in one the last only."""
    told: dict[str, Any] = {"span_name": "anthropic.chat", "provider": "Anthropic", "finish_reasons": ["end_turn"]}
    if scenario.startswith("tools"):
        told |= {"tools": FUNCTIONS, "finish_reasons": ["tool_use"]}
    if scenario == "tools_streaming":
        told["tool_calls"] = expected(scenario)["context"]["tool_calls"][-1:]
    found = samples(flattened, scenario)
    for turn, sample in enumerate(found):
        wanted = expected(scenario, turn, usage=cached(scenario, turn), **told)
        if scenario in COUNTED:
            del wanted["context"]["usage"]
        assert sample == wanted
    assert len(found) == (2 if scenario == "cached" else 1)


@pytest.mark.parametrize("venv", ["traceloop", "traceloop_flattened"])
def test_without_capture_nothing_was_said(run_app: Run, venv: str) -> None:
    """TRACELOOP_TRACE_CONTENT=false."""
    env = {"TRACELOOP_TRACE_CONTENT": "false"}
    ran = run_app("traceloop_anthropic", ("message", "tools"), venv=venv, env=env)
    for sample in (*samples(ran, "message"), *samples(ran, "tools")):
        assert (sample["input"], sample["output"]) == (None, None)
        assert not {"messages", "system", "output_messages"} & set(sample["context"])
