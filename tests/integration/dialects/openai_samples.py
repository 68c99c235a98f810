"""The samples of what `apps/openai_calls.py` asks, whichever library traced it.

What libraries tell differently is said by the test: the span's name, which parts of the token counts, whether offered tools are
told, and in which shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .running import Ran

ASKED: Final = {"role": "user", "content": "Say this is a test"}
PARROT: Final = {"role": "system", "content": "You are a parrot."}
PICTURE: Final = {"role": "user", "content": "What is this?\n[image: image/png, 8 bytes]"}
MINI: Final = "gpt-4o-mini-2024-07-18"
_WEATHER: Final = "What's the weather in Seattle and San Francisco today?"
_FUNCTION: Final = {
    "name": "get_current_weather",
    "description": "Get the current weather in a given location",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}
#: The tool that was offered, as the GenAI conventions declare it, and as OpenAI does.
TOOL: Final = {"type": "function", **_FUNCTION}
OPENAI_TOOL: Final = {"type": "function", "function": _FUNCTION}
CALLS: Final = [
    {"id": call_id, "name": "get_current_weather", "arguments": {"location": place}}
    for call_id, place in (
        ("call_JpNb8OiAkbIbHzDggfpdDHpi", "Seattle, WA"),
        ("call_vaFQc3zK6hHTRZKXRI5Eo2cJ", "San Francisco, CA"),
    )
]
_HELPER: Final = {"role": "system", "content": "You're a helpful assistant."}
ASKED_TOOLS: Final = [_HELPER, {"role": "user", "content": _WEATHER}]
ANSWERED_TOOLS: Final = [
    *ASKED_TOOLS,
    {"role": "assistant", "content": "", "tool_calls": CALLS},
    {"role": "tool", "content": "50 degrees and raining", "tool_call_id": CALLS[0]["id"]},
    {"role": "tool", "content": "70 degrees and sunny", "tool_call_id": CALLS[1]["id"]},
]
_TWICE: Final = "This is a test. How can I assist you further?"
_CHOICE: Final = {"role": "assistant", "content": _TWICE, "finish_reason": "stop"}


def _call(output: Any, messages: list[Any], response_id: str | None, tokens: tuple[int, int], **more: Any) -> Any:
    context = {
        "messages": messages,
        "model": MINI,
        "provider": "openai",
        "response_id": response_id,
        "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]},
        "finish_reasons": ["stop"],
        "kind": "llm",
        "status": "ok",
        **more,
    }
    question = next(m["content"] for m in reversed(messages) if m["role"] == "user")
    return {"input": question, "output": output, "context": context, "metadata": {"service.name": "app"}}


#: By scenario and turn.
SAMPLES: Final[Mapping[tuple[str, int], Any]] = {
    ("chat", 0): _call(
        "This is a test.",
        [PARROT, ASKED],
        "chatcmpl-ASYMQRl3A3DXL9FWCK9tnGRcKIO7q",
        (12, 5),
        system="You are a parrot.",
    ),
    ("streaming", 0): _call(
        '"This is a test."', [ASKED], "chatcmpl-ASYMZ4oSykiIFK4lXLReDiKyAjsQl", (12, 5), model="gpt-4-0613"
    ),
    ("choices", 0): _call(
        _TWICE,
        [ASKED],
        "chatcmpl-ASYMUBq69UHDarAz2fsd0O50rv0r1",
        (12, 24),
        output_messages=[_CHOICE, _CHOICE],
        finish_reasons=["stop", "stop"],
    ),
    ("tools", 0): _call(
        None,
        ASKED_TOOLS,
        "chatcmpl-ASYMU9Ntix7ePttk0MSuerJstef6U",
        (75, 51),
        system="You're a helpful assistant.",
        finish_reasons=["tool_calls"],
        tool_calls=CALLS,
    ),
    ("tools", 1): _call(
        "Today, the weather in Seattle is 50 degrees and raining, while in San Francisco, it's 70 degrees and sunny.",
        ANSWERED_TOOLS,
        "chatcmpl-ASYMVzdmBGDbUoHFmt6R16tdtZUzR",
        (99, 25),
        system="You're a helpful assistant.",
    ),
    ("responses", 0): _call(
        "This is a test.",
        [PARROT, ASKED],
        "resp_0f4faba17dcd0f1e0069e2f3e4907881909179832ba1237025",
        (22, 6),
        system="You are a parrot.",
    ),
    ("picture", 0): _call("This is a test.", [PICTURE], "chatcmpl-ASYMQRl3A3DXL9FWCK9tnGRcKIO7q", (12, 5)),
    ("fails", 0): _call(
        None, [ASKED], None, (0, 0), model="this-model-does-not-exist", usage=None, finish_reasons=None, status="error"
    ),
}


def expected(scenario: str, turn: int = 0, *, usage: Mapping[str, int] | None = None, **context: Any) -> dict[str, Any]:
    """The sample, with what the library tells besides: token counts, and fields of the context in place of (None: without)
    those that are usual. ``input`` among them is the sample's."""
    sample = SAMPLES[scenario, turn]
    asked = context.pop("input", sample["input"])
    said = {**sample["context"], **context}
    if said["usage"] is not None:
        said["usage"] = {**said["usage"], **(usage or {})}
    found = {key: value for key, value in said.items() if value is not None}
    return {**sample, "input": asked, "context": found}


def uncaptured(scenario: str, turn: int = 0, **context: Any) -> dict[str, Any]:
    """The sample where what was said was not captured."""
    sample = expected(scenario, turn, **{"messages": None, "system": None, "output_messages": None, **context})
    return {**sample, "input": None, "output": None}


def samples(ran: Ran, scenario: str) -> list[dict[str, Any]]:
    """Those of a scenario's calls, in order."""
    from spangrade.samples.assemble import sample_of

    from .apps.as_json import plain

    return [plain(sample_of(call)) for call in ran.calls(scenario)]
