"""`tool_calls_valid`: calls against declarations in every shape."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.tool_calls_valid import tool_calls_valid
from spangrade.metrics.builtin.tool_declarations import declared
from spangrade.model.score import Graded, ReturnError, Skip

Grade = Callable[..., Graded]
SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
    "required": ["query"],
}
SHAPES: dict[str, Any] = {
    "openai chat": [{"type": "function", "function": {"name": "find", "parameters": SCHEMA}}],
    "openai responses, otel": [{"type": "function", "name": "find", "description": "d", "parameters": SCHEMA}],
    "anthropic": [{"name": "find", "input_schema": SCHEMA}],
    "mcp": {"tools": [{"name": "find", "inputSchema": SCHEMA}]},
    "gemini": [
        {
            "functionDeclarations": [
                {
                    "name": "find",
                    "parameters": {
                        "type": "OBJECT",
                        "properties": {"query": {"type": "STRING"}, "limit": {"type": "INTEGER", "minimum": 1}},
                        "required": ["query"],
                    },
                }
            ]
        }
    ],
    "bedrock": [{"toolSpec": {"name": "find", "inputSchema": {"json": SCHEMA}}}],
    "by name": {"find": SCHEMA},
    "json text": json.dumps([{"name": "find", "input_schema": SCHEMA}]),
    "schema as text": [{"name": "find", "parameters": json.dumps(SCHEMA)}],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_declarations_of_every_provider_are_understood(grade: Grade, shape: str) -> None:
    tools = SHAPES[shape]
    assert declared(tools)["find"].schema is not None
    for metric, context in ((tool_calls_valid(tools), {}), (tool_calls_valid(), {"tools": tools})):
        good = {"tool_calls": [{"name": "find", "arguments": {"query": "x", "limit": 2}}], **context}
        assert grade(metric, context=good).passed is True
        bad = {"tool_calls": [{"name": "find", "arguments": {"query": "x", "limit": 0}}], **context}
        assert "$.limit: 0 is less than the minimum of 1" in (grade(metric, context=bad).explanation or "")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ({"name": "find", "arguments": {"query": "x"}}, ""),
        ({"name": "find", "arguments": '{"query": "x"}'}, ""),
        ({"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"query": "x"}'}}, ""),
        ({"type": "tool_use", "name": "find", "input": {"query": "x"}}, ""),
        ({"name": "find", "arguments": {"query": "x", "limit": "ten"}}, "$.limit: 'ten' is not of type 'integer'"),
        ({"name": "find", "arguments": {"limit": 1}}, "'query' is a required property"),
        ({"name": "find"}, "'query' is a required property"),
        ({"name": "find", "arguments": ""}, "'query' is a required property"),
        ({"name": "find", "arguments": {"query": "x", "q": 1}}, "unexpected: 'q'"),
        ({"name": "find", "arguments": '{"query": "x"'}, "arguments are not JSON: EOF"),
        ({"name": "find", "arguments": "[1]"}, "arguments are a list"),
        ({"name": "find", "arguments": 5}, "arguments are a number"),
        ({"name": "Find", "arguments": {"query": "x"}}, "no such tool; declared are 'find'"),
        ({"arguments": {"query": "x"}}, "no such tool"),
    ],
)
def test_a_call_is_valid_or_says_why_not(grade: Grade, call: Any, says: str) -> None:
    score = grade(tool_calls_valid(), context={"tools": SHAPES["anthropic"], "tool_calls": [call]})
    assert score.passed is (not says)
    assert says in (score.explanation or "")


def test_the_value_is_the_share_of_valid_calls(grade: Grade) -> None:
    calls = [{"name": "find", "arguments": {"query": "x"}}] * 3 + [{"name": "gone"}]
    score = grade(tool_calls_valid(), context={"tools": SHAPES["anthropic"], "tool_calls": calls})
    assert (score.value, score.passed) == (0.75, False)
    assert (score.explanation or "").startswith("call 4 'gone': no such tool")


def test_calls_may_stand_in_the_output(grade: Grade) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"query": 1}'}}
    for output in ({"role": "assistant", "tool_calls": [call]}, [call], json.dumps({"tool_calls": [call]})):
        score = grade(tool_calls_valid(), output=output, context={"tools": SHAPES["anthropic"]})
        assert "$.query: 1 is not of type 'string'" in (score.explanation or "")


def test_unknown_names_are_allowed_where_the_schema_or_the_option_allows_them(grade: Grade) -> None:
    calls = [{"name": "find", "arguments": {"query": "x", "more": 1}}]
    open_ = {"name": "find", "input_schema": {**SCHEMA, "additionalProperties": True}}
    assert grade(tool_calls_valid(), context={"tools": [open_], "tool_calls": calls}).passed is True
    assert (
        grade(tool_calls_valid(allow_unknown=True), context={"tools": SHAPES["mcp"], "tool_calls": calls}).passed
        is True
    )
    joined = {"name": "find", "input_schema": {"allOf": [SCHEMA, {"properties": {"more": {"type": "integer"}}}]}}
    assert grade(tool_calls_valid(), context={"tools": [joined], "tool_calls": calls}).passed is True
    joined["input_schema"] = {"allOf": [SCHEMA]}
    assert grade(tool_calls_valid(), context={"tools": [joined], "tool_calls": calls}).passed is False


@pytest.mark.parametrize("tool", ["find", {"name": "find"}, {"type": "web_search_20250305", "name": "find"}])
def test_a_tool_without_a_schema_is_checked_by_name(grade: Grade, tool: Any) -> None:
    assert (
        grade(tool_calls_valid([tool]), context={"tool_calls": [{"name": "find", "arguments": {"any": 1}}]}).passed
        is True
    )
    assert grade(tool_calls_valid([tool]), context={"tool_calls": [{"name": "other"}]}).passed is False


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        ({}, "no tool call"),
        ({"tools": SHAPES["mcp"]}, "no tool call"),
        ({"tool_calls": []}, "no tool call"),
        ({"tool_calls": ["find"]}, "no tool call"),
        ({"tool_calls": [{"name": "find"}]}, "no declared tools"),
        ({"tool_calls": [{"name": "find"}], "tools": []}, "no declared tools"),
        ({"tool_calls": [{"name": "find"}], "tools": [{"description": "x"}, 5, None]}, "no declared tools"),
    ],
)
def test_without_calls_or_declarations_there_is_nothing_to_say(grade: Grade, context: Any, reason: str) -> None:
    with pytest.raises(Skip, match=reason):
        grade(tool_calls_valid(), context=context)


@pytest.mark.parametrize(
    "schema", [{"type": "thing"}, {"$ref": "https://example.com/x"}, {"properties": {"q": {"$ref": "#/$defs/no"}}}]
)
def test_a_declaration_that_is_no_schema_is_an_error_of_the_declaration(grade: Grade, schema: Any) -> None:
    context = {
        "tools": [{"name": "find", "parameters": schema}],
        "tool_calls": [{"name": "find", "arguments": {"q": 1}}],
    }
    with pytest.raises(ReturnError, match="the declaration of 'find' cannot be used"):
        grade(tool_calls_valid(), context=context)


def test_tools_without_a_name_are_refused_when_given_by_hand() -> None:
    with pytest.raises(ConfigError, match="no tool with a name"):
        tool_calls_valid([{"description": "x"}])


def test_without_the_extra_it_is_skipped(monkeypatch: pytest.MonkeyPatch, grade: Grade) -> None:
    from spangrade.metrics.builtin import tool_calls_valid as room

    room._validator.cache_clear()
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(Skip, match=r"spangrade\[schema\]"):
        grade(tool_calls_valid(SHAPES["mcp"]), context={"tool_calls": [{"name": "find", "arguments": {"query": "x"}}]})
