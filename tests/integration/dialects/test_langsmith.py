"""LangSmith's OTel export, for real: `@traceable` and its wrapper of OpenAI's client."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Run
from .openai_samples import OPENAI_TOOL, expected, samples
from .running import Ran
from .vendors_samples import check

SCENARIOS = ("chat", "streaming", "choices", "tools", "picture", "fails", "observed")
ENV = {
    "LANGSMITH_OTEL_ENABLED": "true",
    "LANGSMITH_OTEL_ONLY": "true",
    "LANGSMITH_TRACING": "true",
    "LANGSMITH_API_KEY": "unused",
    "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",
}


@pytest.fixture(scope="module")
def ran(run_app: Run) -> Ran:
    return run_app("langsmith_otel", SCENARIOS, venv="vendors", env=ENV)


def told(**more: Any) -> dict[str, Any]:
    return {"span_name": "ChatOpenAI", **more}


def test_model_calls_are_their_samples(ran: Ran) -> None:
    """A chat, a stream, several choices, a tool and its results, a picture."""
    assert samples(ran, "chat") == [expected("chat", **told())]
    assert samples(ran, "streaming") == [expected("streaming", **told())]
    assert samples(ran, "choices") == [expected("choices", **told())]
    assert samples(ran, "tools") == [
        expected("tools", 0, **told(tools=[OPENAI_TOOL])),
        expected("tools", 1, **told()),
    ]
    assert samples(ran, "picture") == [expected("picture", **told())]
    assert all(call.reading.dialect.startswith("langsmith+") for call in ran.calls("chat"))


def test_a_call_that_fails(ran: Ran) -> None:
    (sample,) = samples(ran, "fails")
    assert (sample["input"], sample["output"], sample["context"]["status"]) == ("Say this is a test", None, "error")


def test_a_traceable_application(ran: Ran) -> None:
    """A retriever, which it says makes embeddings, is one; the thread is the session, and the project is not."""
    metadata = {"service.name": "app", "tier": "gold", "tags": ["a"]}
    check(ran, "observed", model=told(), root={}, metadata=metadata, session_id="s1")


def test_hidden_is_not_captured(run_app: Run) -> None:
    """Input and output are None, never "" or {}."""
    hidden = {**ENV, "LANGSMITH_HIDE_INPUTS": "true", "LANGSMITH_HIDE_OUTPUTS": "true"}
    ran = run_app("langsmith_otel", ("observed",), venv="vendors", env=hidden)
    found = samples(ran, "observed")
    assert len(found) == 4
    assert all((sample["input"], sample["output"]) == (None, None) for sample in found)
