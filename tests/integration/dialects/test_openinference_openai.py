"""openinference-instrumentation-openai, for real."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Run
from .running import Ran

SCENARIOS = ("chat", "streaming", "choices", "tools", "responses", "picture", "fails")
ASKED = {"role": "user", "content": "Say this is a test"}
PARROT = {"role": "system", "content": "You are a parrot."}


@pytest.fixture(scope="module")
def ran(run_app: Run) -> Ran:
    return run_app("openinference_openai", SCENARIOS, venv="openinference")


def expected(output: Any, *messages: Any, usage: Any = (12, 5), **context: Any) -> dict[str, Any]:
    """The sample of a call whose last message but the context is what the user asked."""
    said = {
        "messages": list(messages),
        "model": "gpt-4o-mini-2024-07-18",
        "provider": "openai",
        "usage": {"input_tokens": usage[0], "output_tokens": usage[1], "cache_read_tokens": 0, "reasoning_tokens": 0},
        "finish_reasons": ["stop"],
        "kind": "llm",
        "span_name": "ChatCompletion",
        "status": "ok",
        **context,
    }
    asked = next(message["content"] for message in reversed(messages) if message["role"] == "user")
    found = {key: value for key, value in said.items() if value is not None}
    return {"input": asked, "output": output, "context": found, "metadata": {"service.name": "app"}}


def test_a_chat(ran: Ran) -> None:
    assert ran.sample("chat") == expected(
        "This is a test.",
        PARROT,
        ASKED,
        system="You are a parrot.",
        response_id="chatcmpl-ASYMQRl3A3DXL9FWCK9tnGRcKIO7q",
    )
    assert ran.call("chat").reading.dialect == "openinference"


def test_a_stream_is_its_answer_and_tells_when_it_began(ran: Ran) -> None:
    assert ran.sample("streaming") == expected(
        '"This is a test."', ASKED, model="gpt-4-0613", response_id="chatcmpl-ASYMZ4oSykiIFK4lXLReDiKyAjsQl"
    )
    call = ran.call("streaming")
    first = call.reading.first_chunk_s
    assert first is not None
    assert 0 < first <= (call.span.end_ns - call.span.start_ns) / 1e9
