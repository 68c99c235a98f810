"""openinference-instrumentation-openai, for real."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Run
from .openai_samples import OPENAI_TOOL, SAMPLES, expected, samples
from .running import Ran

SCENARIOS = sorted({scenario for scenario, _turn in SAMPLES})
DETAILS = {"cache_read_tokens": 0, "reasoning_tokens": 0}
HIDDEN = {"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"}


@pytest.fixture(scope="module")
def ran(run_app: Run) -> Ran:
    return run_app("openinference_openai", SCENARIOS, venv="openinference")


@pytest.fixture(scope="module")
def hidden(run_app: Run) -> Ran:
    return run_app("openinference_openai", ("chat", "choices", "tools"), venv="openinference", env=HIDDEN)


def said(scenario: str, turn: int) -> dict[str, Any]:
    """What this library tells besides: details of the tokens, the offered tools."""
    span = "Response" if scenario == "responses" else "ChatCompletion"
    tools = {"tools": [OPENAI_TOOL]} if (scenario, turn) == ("tools", 0) else {}
    return {"span_name": span, **tools}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_call_is_its_sample(ran: Ran, scenario: str) -> None:
    """A chat, a stream, several choices, a tool and its results, Responses, a picture, a call that fails."""
    found = samples(ran, scenario)
    turns = range(len([key for key in SAMPLES if key[0] == scenario]))
    assert found == [expected(scenario, turn, usage=DETAILS, **said(scenario, turn)) for turn in turns]
    assert {call.reading.dialect for call in ran.calls(scenario)} == {"openinference"}


def test_a_stream_tells_when_its_answer_began(ran: Ran) -> None:
    call = ran.call("streaming")
    first = call.reading.first_chunk_s
    assert first is not None
    assert 0 < first <= (call.span.end_ns - call.span.start_ns) / 1e9


@pytest.mark.parametrize("scenario", ["chat", "choices", "tools"])
def test_what_is_hidden_was_never_said(hidden: Ran, scenario: str) -> None:
    """The library writes __REDACTED__ in place of values: no question and no answer."""
    for found in samples(hidden, scenario):
        assert (found["input"], found["output"]) == (None, None)
        assert not {"messages", "system", "output_messages", "tool_calls"} & set(found["context"])
        assert found["context"]["usage"]["input_tokens"] > 0
