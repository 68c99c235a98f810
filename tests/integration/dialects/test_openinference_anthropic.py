"""openinference-instrumentation-anthropic, for real."""

from __future__ import annotations

from typing import Any

import pytest

from .anthropic_samples import ASKED, OFFERED, expected
from .conftest import Run
from .openai_samples import samples
from .running import Ran

TOOLS = [{"name": name, "description": said, "input_schema": schema} for name, said, schema in OFFERED]


@pytest.fixture(scope="module")
def ran(run_app: Run) -> Ran:
    return run_app("openinference_anthropic", tuple(ASKED), venv="openinference")


@pytest.mark.parametrize("scenario", ASKED)
def test_each_call_is_its_sample(ran: Ran, scenario: str) -> None:
    """Messages, streams, tools and their results, thoughts, cached tokens; why it ended is in Anthropic's words."""
    found = samples(ran, scenario)
    assert len(found) == (2 if scenario == "cached" else 1)
    for turn, sample in enumerate(found):
        more: dict[str, Any] = {"tools": TOOLS} if scenario.startswith("tools") else {}
        span = "messages.stream" if scenario == "stream_manager" else "messages.create"
        ended = ["tool_use" if scenario.startswith("tools") else "end_turn"]
        assert sample == expected(scenario, turn, span_name=span, finish_reasons=ended, **more)
    assert {call.reading.dialect for call in ran.calls(scenario)} == {"openinference"}
