"""Langfuse's SDK, for real: `@observe`, its wrapper of OpenAI's client, its own span processor."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Run
from .openai_samples import OPENAI_TOOL, expected, samples
from .running import Ran
from .vendors_samples import check

SCENARIOS = ("chat", "streaming", "choices", "tools", "responses", "picture", "fails", "observed", "nothing_captured")
PARTS = {"cache_read_tokens": 0, "reasoning_tokens": 0}


@pytest.fixture(scope="module")
def ran(run_app: Run) -> Ran:
    return run_app("langfuse_observe", SCENARIOS, venv="vendors")


def told(**more: Any) -> dict[str, Any]:
    """It tells neither provider nor response's id, and why an answer ended only of a stream."""
    silent = {"provider": None, "response_id": None, "finish_reasons": None}
    return {"span_name": "OpenAI-generation", "usage": PARTS, **silent, **more}


def test_model_calls_are_their_samples(ran: Ran) -> None:
    """A chat, a stream, a tool and its results, Responses, a call that fails."""
    assert samples(ran, "chat") == [expected("chat", **told())]
    assert samples(ran, "streaming") == [expected("streaming", **told(finish_reasons=["stop"]))]
    assert samples(ran, "tools") == [
        expected("tools", 0, **told(tools=[OPENAI_TOOL])),
        expected("tools", 1, **told()),
    ]
    assert samples(ran, "responses") == [expected("responses", **told())]
    failed = expected("fails", **told())
    assert samples(ran, "fails") == [failed]
    assert {call.reading.dialect for call in ran.calls("chat")} == {"langfuse"}


def test_several_choices_are_kept(ran: Ran) -> None:
    choice = {"role": "assistant", "content": "This is a test. How can I assist you further?"}
    assert samples(ran, "choices") == [expected("choices", **told(output_messages=[choice, choice]))]


def test_a_picture_is_described(ran: Ran) -> None:
    """It takes the picture out and leaves a mark of its own."""
    question = "What is this?\n[image]"
    found = told(input=question, messages=[{"role": "user", "content": question}])
    assert samples(ran, "picture") == [expected("picture", **found)]


def test_a_stream_tells_when_its_answer_began(ran: Ran) -> None:
    call = ran.call("streaming")
    assert call.reading.first_chunk_s is not None
    assert 0 < call.reading.first_chunk_s <= (call.span.end_ns - call.span.start_ns) / 1e9


def test_a_decorated_application(ran: Ran) -> None:
    """Retriever, tool and model below it; user, session, tags and metadata."""
    check(
        ran,
        "observed",
        model=told(),
        root={"tier": "gold", "number": 5},
        metadata={"service.name": "app", "tags": ["a", "b"]},
        session_id="s1",
        user_id="u1",
    )


def test_nothing_captured_is_nothing(ran: Ran) -> None:
    (sample,) = samples(ran, "nothing_captured")
    assert (sample["input"], sample["output"], sample["context"]["kind"]) == (None, None, "chain")
