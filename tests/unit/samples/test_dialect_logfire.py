"""Logfire's model clients, version 1 of their attributes. The values are those of logfire 5.4.0."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.samples.assemble import sample_of
from spangrade.samples.extract import is_content_key, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini", "logfire.span_type": "span"}
REQUEST = {
    "model": "gpt-4o-mini",
    "messages": [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}],
}


def chat(request: Any, response: Any = None, **more: Any) -> dict[str, Any]:
    held = {"request_data": json.dumps(request)}
    return {**CHAT, **held, **({} if response is None else {"response_data": json.dumps(response)}), **more}


def test_a_chat_of_openai(call_of: CallOf) -> None:
    """Message and usage under `response_data`; what OpenAI leaves empty is null."""
    message = {"content": "Hello", "refusal": None, "role": "assistant", "function_call": None, "tool_calls": None}
    usage = {"completion_tokens": 5, "prompt_tokens": 12, "prompt_tokens_details": {"cached_tokens": 4}}
    reading = call_of(chat(REQUEST, {"message": message, "usage": usage})).reading
    assert (reading.kind, reading.input, reading.output, reading.system) == ("llm", "Hi", "Hello", "Be kind")
    assert [m["role"] for m in reading.messages] == ["system", "user"]
    assert reading.usage == {"input_tokens": 12, "output_tokens": 5, "cache_read_tokens": 4}
    assert reading.dialect == "logfire+otel_genai"


def test_a_message_of_anthropic(call_of: CallOf) -> None:
    """The system text beside the messages; a tool's arguments under `input` once more."""
    request = {
        "model": "claude",
        "system": "Be kind",
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"name": "look"}],
    }
    message = {
        "role": "assistant",
        "tool_calls": [{"id": "t1", "function": {"arguments": '{"input":{"q":1}}', "name": "look"}}],
    }
    reading = call_of(
        chat(request, {"message": message, "usage": {"input_tokens": 3}}, **{"gen_ai.system": "anthropic"})
    ).reading
    assert (reading.input, reading.output, reading.system) == ("Hi", None, "Be kind")
    assert reading.tool_calls == ({"id": "t1", "name": "look", "arguments": {"q": 1}},)
    assert reading.tools == ({"name": "look"},)


def test_arguments_of_openais_tools_may_have_an_input(call_of: CallOf) -> None:
    """A tool with one parameter of that name is no Anthropic one."""
    message = {
        "role": "assistant",
        "tool_calls": [{"id": "t1", "type": "function", "function": {"arguments": '{"input":"x"}', "name": "look"}}],
    }
    reading = call_of(chat(REQUEST, {"message": message}, **{"gen_ai.system": "openai"})).reading
    assert reading.tool_calls == ({"id": "t1", "name": "look", "arguments": {"input": "x"}},)


@pytest.mark.parametrize(
    ("response", "output"),
    [
        ({"text": " there", "finish_reason": "stop", "usage": {"prompt_tokens": 2}}, " there"),
        ({"combined_chunk_content": "Hello", "chunk_count": 2}, "Hello"),
        ({"combined_chunk_content": "", "chunk_count": 0}, None),
        ({"usage": {"prompt_tokens": 2}}, None),
        ({"images": []}, None),
        (None, None),
    ],
)
def test_completions_and_streams(call_of: CallOf, response: Any, output: str | None) -> None:
    """A request without an answer, too: that of a stream, whose answer is in a span of its own."""
    reading = call_of(chat({"model": "m", "prompt": "Hello"}, response)).reading
    assert (reading.input, reading.output) == ("Hello", output)


def test_the_model_alone_is_no_content(call_of: CallOf) -> None:
    """Version 2 keeps it under `request_data`, and writes OpenTelemetry GenAI."""
    bare = {"request_data": '{"model":"gpt-4o-mini"}'}
    assert call_of({**CHAT, **bare}).reading.input is None
    messages = {"gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]'}
    assert call_of({**CHAT, **bare, **messages}).reading.input == "Hi"


def test_the_responses_api_has_events_and_its_last_items_are_the_answer(call_of: CallOf) -> None:
    """Thoughts, a call and a message: one answer. Nothing says which event is the answer."""
    events = [
        {"event.name": "gen_ai.system.message", "content": "Be kind", "role": "system"},
        {"event.name": "gen_ai.user.message", "content": "Hi", "role": "user"},
        {
            "event.name": "gen_ai.unknown",
            "role": "assistant",
            "content": "reasoning\n\nSee JSON for details",
            "data": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        },
        {
            "event.name": "gen_ai.assistant.message",
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"event.name": "gen_ai.assistant.message", "content": "Hello", "role": "assistant"},
    ]
    attributes = {**CHAT, "request_data": '{"model":"m","stream":false}', "events": json.dumps(events)}
    reading = call_of(attributes).reading
    assert (reading.input, reading.output, reading.system, reading.reasoning) == ("Hi", "Hello", "Be kind", "hm")
    assert [m["role"] for m in reading.messages] == ["system", "user"]
    assert reading.tool_calls == ({"id": "c1", "name": "look", "arguments": {}},)
    asked_only = {**attributes, "events": json.dumps(events[:2])}
    assert call_of(asked_only).reading.output is None


@pytest.mark.parametrize("value", ["[", "{}", "5", "[5, null]", "not json", 7, '[{"event.name": "other"}]', None])
def test_rubbish_is_no_conversation(call_of: CallOf, value: Any) -> None:
    for key in ("events", "request_data", "response_data"):
        reading = call_of({**CHAT, key: value}).reading
        assert (reading.input, reading.output, reading.messages) == (None, None, ())


def test_its_placeholders_are_no_call() -> None:
    """Sent when a span starts; the span itself follows (C065)."""
    assert quick_kind({**CHAT, "logfire.span_type": "pending_span"}) is None
    assert quick_kind(CHAT) == "llm"


def test_a_streams_answer_is_a_note_that_says_how_long_it_took(call_of: CallOf) -> None:
    """The span itself has no length; the model is the one that answered."""
    note = {"logfire.span_type": "log", "duration": 0.25, "gen_ai.response.model": "gpt-4o-mini-1"}
    call = call_of(chat(REQUEST, {"message": {"role": "assistant", "content": "Hello"}}, **note), end_ns=1_000)
    assert call.reading.model == "gpt-4o-mini-1"
    assert sample_of(call).context["duration_s"] == 0.25
    assert sample_of(call_of(chat(REQUEST, **{"duration": 0.25}))).context["duration_s"] == 1e-6


@pytest.mark.parametrize("key", ["request_data", "response_data", "events"])
def test_a_bare_key_makes_no_call(key: str) -> None:
    """Others use such names for other things."""
    assert quick_kind({key: "x", "http.request.method": "GET"}) is None
    assert is_content_key(key)
