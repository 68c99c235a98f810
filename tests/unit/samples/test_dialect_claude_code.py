"""Claude Code, from its documentation."""

from collections.abc import Callable
from typing import Any

from spangrade.model.span import EventData, SpanData
from spangrade.samples.extract import extract, is_content_key, quick_kind
from spangrade.samples.reading import Call


def test_a_prompt_and_a_model_request(call_of: Callable[..., Call]) -> None:
    """Tokens of the cache are counted with the input's."""
    asked = call_of({"span.type": "claude_code.interaction", "user_prompt": "Mend it", "session.id": "s1"})
    assert (asked.kind, asked.reading.input, asked.reading.session_id) == ("agent", "Mend it", "s1")
    model = call_of(
        {
            "span.type": "claude_code.llm_request",
            "model": "claude-x",
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_tokens": 60,
            "cache_creation_tokens": 30,
            "new_context": "Mend it",
            "response.model_output": "Done",
        }
    ).reading
    assert (model.kind, model.input, model.output, model.model) == ("llm", "Mend it", "Done", "claude-x")
    assert model.usage == {
        "input_tokens": 100,
        "output_tokens": 5,
        "cache_read_tokens": 60,
        "cache_write_tokens": 30,
    }


def test_a_tool(span_of: Callable[..., SpanData]) -> None:
    """What it gave back is an event."""
    attributes: dict[str, Any] = {"span.type": "claude_code.tool", "tool_name": "Bash", "full_command": "ls"}
    call = extract(span_of(attributes, events=[EventData("tool.output", {"output": "a b"})]))
    assert call is not None
    assert (call.reading.input, call.reading.output) == ({"full_command": "ls"}, "a b")
    assert call.reading.tool_calls == ({"name": "Bash", "arguments": {"full_command": "ls"}},)


def test_what_is_redacted_is_not_there(call_of: Callable[..., Call]) -> None:
    """By default; and other spans with such an attribute are none of its."""
    reading = call_of({"span.type": "claude_code.interaction", "user_prompt": "<REDACTED>"}).reading
    assert (reading.input, reading.output) == (None, None)
    assert quick_kind({"span.type": "http", "user_prompt": "x"}) is None
    assert is_content_key("user_prompt")
