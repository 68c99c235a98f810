"""MLflow's tracing, for real: `@mlflow.trace`, autolog of OpenAI's and Anthropic's clients, its own OTLP exporter."""

from __future__ import annotations

from typing import Any

import pytest

from . import anthropic_samples
from .conftest import Run
from .openai_samples import OPENAI_TOOL, expected, samples
from .running import Ran
from .vendors_samples import DOCUMENTS

OPENAI = ("chat", "streaming", "choices", "tools", "responses", "fails")
ANTHROPIC = ("message", "tools", "cached")
#: As OpenAI's are.
OFFERED = [
    {"type": "function", "function": {"name": name, "description": said, "parameters": schema}}
    for name, said, schema in anthropic_samples.OFFERED
]
# Nobody listens there; nothing is to be sent there.
ENV = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}


@pytest.fixture(scope="module")
def ran(run_app: Run) -> Ran:
    scenarios = (*OPENAI, *(f"anthropic_{name}" for name in ANTHROPIC), "observed")
    return run_app("mlflow_tracing", scenarios, venv="vendors", env=ENV)


def told(**more: Any) -> dict[str, Any]:
    """It tells no provider of OpenAI's client."""
    return {"span_name": "Completions", "provider": None, "usage": {"cache_read_tokens": 0}, **more}


def bare(sample: dict[str, Any]) -> dict[str, Any]:
    """Its resource has no service's name."""
    return {key: value for key, value in sample.items() if key != "metadata"}


def test_openais_calls_are_their_samples(ran: Ran) -> None:
    assert samples(ran, "chat") == [bare(expected("chat", **told()))]
    assert samples(ran, "streaming") == [bare(expected("streaming", **told()))]
    assert samples(ran, "choices") == [bare(expected("choices", **told()))]
    assert samples(ran, "tools") == [
        bare(expected("tools", 0, **told(tools=[OPENAI_TOOL]))),
        bare(expected("tools", 1, **told())),
    ]
    responses = told(span_name="Responses", finish_reasons=None)
    assert samples(ran, "responses") == [bare(expected("responses", **responses))]
    assert samples(ran, "fails") == [bare(expected("fails", **told()))]
    assert {call.reading.dialect for call in ran.calls("chat")} == {"mlflow"}


@pytest.mark.parametrize("name", ANTHROPIC)
def test_anthropics_calls_are_their_samples(ran: Ran, name: str) -> None:
    """Cached tokens are among the input's, as it counts."""
    for turn, sample in enumerate(samples(ran, f"anthropic_{name}")):
        more: dict[str, Any] = {"tools": OFFERED} if name == "tools" else {}
        if name == "cached":
            more["usage"] = {"cache_write_tokens": 0 if turn else 1163, "cache_read_tokens": 1163 if turn else 0}
        whole = anthropic_samples.expected(name, turn, span_name="Messages.create", **more)
        whole["context"]["finish_reasons"] = ["tool_use" if name == "tools" else "end_turn"]
        counts = sample["context"]["usage"]
        sample["context"]["usage"] = {key: counts[key] for key in whole["context"]["usage"]}
        assert sample == bare(whole)


def test_a_stream_tells_when_its_answer_began(ran: Ran) -> None:
    call = ran.call("streaming")
    assert call.reading.first_chunk_s is not None
    assert 0 < call.reading.first_chunk_s <= (call.span.end_ns - call.span.start_ns) / 1e9


def test_a_decorated_application(ran: Ran) -> None:
    """Retriever, tool and model below it."""
    whole, documents = ran.root("observed"), [{"id": "d1", **DOCUMENTS[0]}]
    assert (whole["input"], whole["output"], whole["documents"]) == ("Which plug?", "This is a test.", documents)
    assert whole["context"]["tool_calls"] == [
        {"name": "look", "arguments": {"city": "Lisbon"}, "result": {"plug": "F", "city": "Lisbon"}}
    ]
    assert whole["context"]["usage"] == {"input_tokens": 12, "output_tokens": 5, "cache_read_tokens": 0}
    assert ran.sample("observed", "llm") == bare(expected("chat", **told()))
