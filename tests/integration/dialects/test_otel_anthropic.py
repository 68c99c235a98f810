"""OpenTelemetry's own instrumentation of Anthropic, for real."""

from __future__ import annotations

from typing import Any

import pytest

from .anthropic_samples import ASKED, OFFERED, expected
from .conftest import Run
from .openai_samples import samples
from .running import Ran

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
WAYS = {
    "on the span": {CAPTURE: "SPAN_ONLY"},
    "the details event": {CAPTURE: "EVENT_ONLY", "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT": "true"},
}
TOOLS = [{"type": "function", "name": n, "description": said, "parameters": schema} for n, said, schema in OFFERED]


@pytest.fixture(scope="module", params=WAYS.values(), ids=list(WAYS))
def ran(run_app: Run, request: Any) -> Ran:
    return run_app("otel_anthropic", tuple(ASKED), venv="otel_genai", env=request.param)


def test_each_call_is_its_sample(ran: Ran) -> None:
    """Messages, streams, tools and their results, thoughts, cached tokens."""
    for scenario in ASKED:
        found = samples(ran, scenario)
        for turn, sample in enumerate(found):
            more: dict[str, Any] = {"tools": TOOLS} if scenario.startswith("tools") else {}
            name = f"chat {sample['context']['model']}"
            assert sample == expected(scenario, turn, span_name=name, **more), scenario
        assert len(found) == (2 if scenario == "cached" else 1)
        assert {call.reading.dialect for call in ran.calls(scenario)} == {"otel_genai"}


def test_without_capture_nothing_was_said(run_app: Run) -> None:
    """Input and output are None, never ""."""
    ran = run_app("otel_anthropic", ("message", "tools"), venv="otel_genai")
    for sample in (*samples(ran, "message"), *samples(ran, "tools")):
        assert (sample["input"], sample["output"]) == (None, None)
        assert not {"messages", "system", "output_messages"} & set(sample["context"])
        assert sample["context"]["usage"]["output_tokens"] > 0
