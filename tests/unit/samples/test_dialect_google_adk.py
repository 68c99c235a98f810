"""Google's Agent Development Kit, its schema 1; schema 2 is OpenTelemetry GenAI."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.model.span import SpanData
from spangrade.samples.assemble import sample_of
from spangrade.samples.content import is_content_key
from spangrade.samples.extract import extract, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
ADK = "gcp.vertex.agent"


def model_call(request: Any, response: Any, **more: Any) -> dict[str, Any]:
    return {
        "gen_ai.system": ADK,
        "gen_ai.request.model": "gemini-3",
        f"{ADK}.invocation_id": "e-1",
        f"{ADK}.session_id": "s1",
        f"{ADK}.llm_request": json.dumps(request),
        f"{ADK}.llm_response": json.dumps(response),
        **more,
    }


def tool_call(arguments: Any, response: Any, **more: Any) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "plugs",
        "gen_ai.tool.call.id": "c1",
        f"{ADK}.llm_request": "{}",
        f"{ADK}.llm_response": "{}",
        f"{ADK}.tool_call_args": json.dumps(arguments),
        f"{ADK}.tool_response": json.dumps(response),
        **more,
    }


REQUEST = {
    "model": "gemini-3",
    "config": {
        "system_instruction": "Be kind",
        "tools": [{"function_declarations": [{"name": "plugs", "description": "d"}]}, {"google_search": {}}],
    },
    "contents": [
        {"role": "user", "parts": [{"text": "Which plug?"}]},
        {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "plugs", "args": {"city": "Lisbon"}}}]},
        {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "plugs", "response": {"result": "F"}}}]},
    ],
}
RESPONSE = {
    "model_version": "gemini-3-001",
    "content": {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "Type F."}]},
    "finish_reason": "STOP",
    "usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 4, "thoughts_token_count": 2},
}


def test_a_model_call_is_its_request_and_response(call_of: CallOf) -> None:
    """Gemini's types as JSON; the system text and the tools stand in the configuration."""
    call = call_of(model_call(REQUEST, RESPONSE))
    sample = sample_of(call)
    assert (call.kind, sample.input, sample.output) == ("llm", "Which plug?", "Type F.")
    assert sample.context["system"] == "Be kind"
    assert sample.context["messages"] == [
        {"role": "system", "content": "Be kind"},
        {"role": "user", "content": "Which plug?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "name": "plugs", "arguments": {"city": "Lisbon"}}],
        },
        {"role": "tool", "content": '{"result":"F"}', "tool_call_id": "c1", "name": "plugs"},
    ]
    assert (sample.context["model"], sample.context["session_id"]) == ("gemini-3-001", "s1")
    assert sample.context["reasoning"] == "hm"
    assert sample.context["finish_reasons"] == ["STOP"]
    assert sample.context["usage"] == {"input_tokens": 10, "output_tokens": 6, "reasoning_tokens": 2}
    assert sample.context["tools"] == [{"name": "plugs", "description": "d"}, {"google_search": {}}]


def test_a_response_of_tool_calls_is_no_empty_answer(call_of: CallOf) -> None:
    """Only calls."""
    said = {"content": {"role": "model", "parts": [{"function_call": {"name": "plugs", "args": {"city": "Lisbon"}}}]}}
    reading = call_of(model_call(REQUEST, said)).reading
    assert reading.output is None
    assert reading.tool_calls == ({"name": "plugs", "arguments": {"city": "Lisbon"}},)


def test_a_tool_span_is_its_arguments_and_response(call_of: CallOf) -> None:
    """The model's side of it is empty and says nothing."""
    call = call_of(tool_call({"city": "Lisbon"}, {"result": "F"}))
    assert (call.kind, call.reading.input, call.reading.output) == ("tool", {"city": "Lisbon"}, {"result": "F"})
    assert call.reading.tool_calls == ({"id": "c1", "name": "plugs", "arguments": {"city": "Lisbon"}},)


@pytest.mark.parametrize("response", [{}, {"result": "<not specified>"}])
def test_what_is_not_told_is_none(call_of: CallOf, response: Any) -> None:
    """ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=false; a tool that still runs."""
    reading = call_of(tool_call({}, response, **{"gen_ai.tool.call.id": "<not specified>"})).reading
    assert (reading.input, reading.output) == (None, None)
    reading = call_of(model_call({}, {})).reading
    assert (reading.kind, reading.input, reading.output, reading.messages) == ("llm", None, None, ())


def test_a_request_that_was_cut_gives_what_is_whole(call_of: CallOf) -> None:
    """And says so."""
    attributes = model_call(REQUEST, RESPONSE)
    attributes[f"{ADK}.llm_response"] = attributes[f"{ADK}.llm_response"][:110]
    reading = call_of(attributes).reading
    assert reading.input == "Which plug?"
    assert reading.output in (None, "Type F.")
    assert reading.truncated


def test_the_sum_of_merged_tools_is_no_call() -> None:
    """Each of them has a span of its own."""
    assert quick_kind(tool_call({}, {}, **{"gen_ai.tool.name": "(merged tools)"})) is None


def test_a_span_of_schema_2_is_told_by_its_scope(span_of: Callable[..., SpanData]) -> None:
    """So that the advice on how to capture content is the right one."""
    call = extract(span_of({"gen_ai.operation.name": "invoke_agent"}, scope_name=ADK))
    assert call is not None
    assert call.reading.dialect == "google_adk+otel_genai"


def test_what_is_content() -> None:
    """Left out with export_content=False."""
    keys = ("llm_request", "llm_response", "tool_call_args", "tool_response", "data")
    assert all(is_content_key(f"{ADK}.{key}") for key in keys)
    assert not is_content_key(f"{ADK}.session_id")
