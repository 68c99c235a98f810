"""The Vercel AI SDK's spans of version 6 and before; what Node really sends is in tests/integration/dialects/test_vercel.py."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade.model.span import SpanData
from spangrade.samples.content import is_content_key
from spangrade.samples.extract import extract
from spangrade.samples.kinds import quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
INNER = {"ai.operationId": "ai.generateText.doGenerate"}
ASKED = json.dumps(
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "When?"}]}]
)


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("ai.generateText", "agent"),
        ("ai.streamText", "agent"),
        ("ai.generateObject", "agent"),
        ("ai.streamObject", "agent"),
        ("ai.generateText.doGenerate", "llm"),
        ("ai.streamText.doStream", "llm"),
        ("ai.streamObject.doStream", "llm"),
        ("ai.toolCall", "tool"),
        ("ai.embed", "embedding"),
        ("ai.embedMany.doEmbed", "embedding"),
        ("ai.rerank.doRerank", "reranker"),
        ("ai.somethingNew", None),
    ],
)
def test_kinds(operation: str, kind: str | None) -> None:
    assert quick_kind({"ai.operationId": operation}) == kind


def test_kind_and_reading_agree(call_of: CallOf) -> None:
    for operation in ("ai.streamText", "ai.toolCall", "ai.embedMany", "ai.generateObject.doGenerate"):
        call = call_of({"ai.operationId": operation})
        assert call.reading.dialect == "vercel"
        assert call.kind == quick_kind({"ai.operationId": operation})


def test_a_model_call_before_version_4_has_its_answer_under_result(call_of: CallOf) -> None:
    reading = call_of(
        {
            **INNER,
            "ai.prompt.messages": ASKED,
            "ai.result.text": "Now.",
            "ai.finishReason": "stop",
            "ai.usage.promptTokens": 3,
            "ai.usage.completionTokens": 2,
            "ai.model.id": "m",
            "ai.model.provider": "mistral.chat",
        }
    ).reading
    assert (reading.input, reading.output, reading.system) == ("When?", "Now.", "Be brief.")
    assert reading.finish_reasons == ("stop",)
    assert reading.usage == {"input_tokens": 3, "output_tokens": 2}
    assert (reading.model, reading.provider) == ("m", "mistral")


def test_a_turn_of_tool_calls_is_no_empty_answer(call_of: CallOf) -> None:
    calls = [{"toolCallId": "c1", "toolName": "find", "input": '{"q": "x"}'}, {"toolName": "find", "args": {"q": "y"}}]
    for text in ({}, {"ai.response.text": ""}):
        reading = call_of({**INNER, **text, "ai.response.toolCalls": json.dumps(calls)}).reading
        assert reading.output is None
        assert reading.tool_calls == (
            {"id": "c1", "name": "find", "arguments": {"q": "x"}},
            {"name": "find", "arguments": {"q": "y"}},
        )


def test_the_results_of_tools_are_taken_out_of_their_wrapping(call_of: CallOf) -> None:
    outputs = [
        {"type": "text", "value": "rain"},
        {"type": "json", "value": {"mm": 3}},
        {"type": "error-text", "value": "e"},
    ]
    parts = [{"type": "tool-result", "toolCallId": f"c{i}", "output": out} for i, out in enumerate(outputs)]
    reading = call_of({**INNER, "ai.prompt.messages": json.dumps([{"role": "tool", "content": parts}])}).reading
    assert [(m["role"], m["tool_call_id"], m["content"]) for m in reading.messages] == [
        ("tool", "c0", "rain"),
        ("tool", "c1", '{"mm":3}'),
        ("tool", "c2", "e"),
    ]


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ({"prompt": "When?"}, "When?"),
        ({"system": "Be brief.", "prompt": "When?"}, "When?"),
        ({"messages": [{"role": "user", "content": "Hi"}, {"role": "user", "content": "When?"}]}, "When?"),
        ({"prompt": [{"role": "user", "content": "When?"}]}, "When?"),
        ({"system": {"role": "system", "content": "Be brief."}, "prompt": "When?"}, "When?"),
    ],
)
def test_what_the_application_gave_in_any_of_its_forms(call_of: CallOf, prompt: Any, asked: str) -> None:
    reading = call_of({"ai.operationId": "ai.generateText", "ai.prompt": json.dumps(prompt)}).reading
    assert reading.input == asked
    assert reading.system == ("Be brief." if "system" in prompt else None)


def test_a_tools_span_is_the_call_with_its_result(call_of: CallOf) -> None:
    reading = call_of(
        {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "find",
            "ai.toolCall.id": "c1",
            "ai.toolCall.args": '{"q": "x"}',
            "ai.toolCall.result": '"found"',
        }
    ).reading
    assert (reading.input, reading.output) == ({"q": "x"}, "found")
    assert reading.tool_calls == ({"id": "c1", "name": "find", "arguments": {"q": "x"}},)


def test_what_was_embedded_and_what_was_ranked(call_of: CallOf) -> None:
    assert call_of({"ai.operationId": "ai.embed", "ai.value": '"a"'}).reading.input == "a"
    assert call_of({"ai.operationId": "ai.embedMany", "ai.values": ('"a"', '"b"')}).reading.input == ["a", "b"]
    ranked = {
        "ai.operationId": "ai.rerank.doRerank",
        "ai.documents": ('"one"', '"two"'),
        "ai.ranking": ('{"index": 1, "relevanceScore": 0.9}', '{"index": 0, "relevanceScore": 0.2}', '{"index": 7}'),
    }
    found = call_of(ranked).reading.documents
    assert [(one["content"], one["score"]) for one in found or ()] == [("two", 0.9), ("one", 0.2)]


def test_milliseconds_are_seconds_and_more_than_a_day_of_them_is_none(call_of: CallOf) -> None:
    for held, seconds in ((250, 0.25), (120_000.0, 120.0), (1e12, None), ("soon", None), (None, None)):
        assert call_of({**INNER, "ai.response.msToFirstChunk": held}).reading.first_chunk_s == seconds


def test_without_content_nothing_was_said(call_of: CallOf) -> None:
    for operation in ("ai.generateText", "ai.generateText.doGenerate"):
        reading = call_of({"ai.operationId": operation, "ai.response.finishReason": "stop"}).reading
        assert (reading.input, reading.output, reading.messages, reading.output_messages) == (None, None, (), ())
        assert reading.finish_reasons == ("stop",)


def test_what_holds_text_is_content_and_counts_are_not() -> None:
    for key in (
        "ai.prompt",
        "ai.prompt.messages",
        "ai.response.text",
        "ai.toolCall.result",
        "ai.values",
        "ai.result.text",
    ):
        assert is_content_key(key), key
    for key in ("ai.operationId", "ai.response.model", "ai.usage.inputTokens", "ai.response.finishReason"):
        assert not is_content_key(key), key


WILD = st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.booleans(), st.lists(st.text()).map(tuple))
KEYS = [
    "ai.prompt",
    "ai.prompt.messages",
    "ai.prompt.tools",
    "ai.response.text",
    "ai.response.toolCalls",
    "ai.response.reasoning",
    "ai.response.msToFirstChunk",
    "ai.toolCall.args",
    "ai.values",
    "ai.documents",
    "ai.ranking",
    "ai.telemetry.metadata.userId",
]


@settings(max_examples=60, deadline=None)
@given(
    operation=st.sampled_from(["ai.generateText", "ai.streamText.doStream", "ai.toolCall", "ai.embed", "ai.rerank"]),
    attributes=st.dictionaries(st.sampled_from(KEYS), WILD),
)
def test_whatever_stands_in_the_attributes_is_read_without_a_fault(operation: str, attributes: dict[str, Any]) -> None:
    span = SpanData(1, 1, None, "s", 1, 2, {"ai.operationId": operation, **attributes})
    call = extract(span)  # `nothing_swallowed` raises what was a fault
    assert call is not None
