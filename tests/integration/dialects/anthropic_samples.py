"""The samples of what `apps/anthropic_calls.py` asks, whichever library traced it: the answers are read off the recordings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from .replay import cassette

_JOKE: Final = {"role": "user", "content": "Tell me a joke about OpenTelemetry"}
_LETTERS: Final = {"role": "user", "content": "How many times does the letter 'r' appear in it?"}
_HISTORY: Final = [
    {"role": "user", "content": "What is the weather and current time in San Francisco?"},
    {
        "role": "assistant",
        "content": "I'll help you.",
        "tool_calls": [{"id": "call_1", "name": "get_weather", "arguments": {"location": "San Francisco, CA"}}],
    },
    {"role": "tool", "content": "Sunny and 65 degrees", "tool_call_id": "call_1"},
]
#: What was asked: the recording, and the messages.
ASKED: Final[Mapping[str, tuple[str, list[Any]]]] = {
    "message": (
        "test_messages.test_anthropic_message_create_legacy",
        [{"role": "system", "content": "You are a comedian."}, _JOKE],
    ),
    "streaming": ("test_messages.test_anthropic_message_streaming_legacy", [_JOKE]),
    "stream_manager": ("test_messages.test_anthropic_message_stream_manager_legacy", [_JOKE]),
    "tools": (
        "test_messages.test_anthropic_tools_legacy",
        [{"role": "user", "content": "What is the weather in New York? Also what time is it there?"}],
    ),
    "tools_history": ("test_messages.test_anthropic_tools_history_legacy", _HISTORY),
    "tools_streaming": ("test_messages.test_anthropic_tools_streaming_legacy", _HISTORY[:1]),
    "thinking": ("test_thinking.test_anthropic_thinking_legacy", [_LETTERS]),
    "thinking_streaming": ("test_thinking.test_anthropic_thinking_streaming_legacy", [_LETTERS]),
    "cached": (
        "test_prompt_caching.test_anthropic_prompt_caching_legacy",
        [{"role": "user", "content": "An article. Summarise it."}],
    ),
}
_PARAMETERS: Final = {
    "get_weather": ("Get the current weather in a given location", "location"),
    "get_time": ("Get the current time in a given time zone", "timezone"),
}
#: The tools that were offered: name, description, JSON schema.
OFFERED: Final = [
    (name, said, {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]})
    for name, (said, key) in _PARAMETERS.items()
]


def expected(scenario: str, turn: int = 0, *, usage: Mapping[str, int] | None = None, **context: Any) -> dict[str, Any]:
    """The sample, with what the library tells otherwise: token counts, and fields of the context (None: without)."""
    name, messages = ASKED[scenario]
    answer = _answer(name, turn)
    said = {
        "messages": messages,
        "system": next((m["content"] for m in messages if m["role"] == "system"), None),
        "model": answer["model"],
        "provider": "anthropic",
        "response_id": answer["id"],
        "usage": {**_usage(answer["usage"]), **(usage or {})},
        "finish_reasons": ["tool_call" if answer["stop_reason"] == "tool_use" else "stop"],
        "tool_calls": _calls(answer["content"]) or None,
        "reasoning": next((part["thinking"] for part in answer["content"] if part["type"] == "thinking"), None),
        "kind": "llm",
        "status": "ok",
        **context,
    }
    texts = [part["text"] for part in answer["content"] if part["type"] == "text"]
    return {
        "input": next(m["content"] for m in messages if m["role"] == "user"),
        "output": texts[0] if texts else None,
        "context": {key: value for key, value in said.items() if value is not None},
        "metadata": {"service.name": "app"},
    }


def _calls(content: list[Any]) -> list[Any]:
    uses = [part for part in content if part["type"] == "tool_use"]
    return [{"id": part["id"], "name": part["name"], "arguments": part["input"]} for part in uses]


def _usage(told: Mapping[str, Any]) -> dict[str, int]:
    """Input tokens with the cached ones among them; of those, what there is."""
    read, written = told.get("cache_read_input_tokens") or 0, told.get("cache_creation_input_tokens") or 0
    found = {"input_tokens": told["input_tokens"] + read + written, "output_tokens": told["output_tokens"]}
    return found | ({"cache_read_tokens": read} if read else {}) | ({"cache_write_tokens": written} if written else {})


def _answer(name: str, turn: int) -> dict[str, Any]:
    """The recorded answer; of a stream what its events make."""
    pieces = cassette("anthropic", name)[turn].response.pieces
    if len(pieces) == 1:
        whole: dict[str, Any] = json.loads(pieces[0])
        return whole
    message: dict[str, Any] = {}
    inputs: dict[int, str] = {}
    for piece in pieces:
        event = json.loads(piece.decode().partition("data: ")[2])
        if event["type"] == "message_start":
            message = event["message"]
        elif event["type"] == "content_block_start":
            message["content"].append(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta, part = event["delta"], message["content"][event["index"]]
            for key in ("text", "thinking"):
                part.update({key: part[key] + delta[key]} if key in delta else {})
            inputs[event["index"]] = inputs.get(event["index"], "") + delta.get("partial_json", "")
        elif event["type"] == "message_delta":
            message["stop_reason"] = event["delta"]["stop_reason"]
            message["usage"] |= event["usage"]
    for index, text in inputs.items():
        if message["content"][index]["type"] == "tool_use":
            message["content"][index]["input"] = json.loads(text)
    return message
