"""Genkit, from its source."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.samples.assemble import sample_of
from spangrade.samples.extract import is_content_key, quick_kind
from spangrade.samples.reading import Call


def action(kind: str, given: Any, gave: Any, **more: Any) -> dict[str, Any]:
    held = {"genkit:type": "action", "genkit:metadata:subtype": kind, "genkit:input": json.dumps(given)}
    return {**held, "genkit:output": json.dumps(gave), **more}


@pytest.mark.parametrize(
    ("word", "kind"),
    [("flow", "chain"), ("model", "llm"), ("tool", "tool"), ("retriever", "retriever"), ("evaluator", "evaluator"),
     ("prompt", None), ("util", "chain")],
)  # fmt: skip
def test_its_actions_are_our_kinds(word: str, kind: str | None) -> None:
    assert quick_kind(action(word, 1, 1)) == kind


def test_a_model_call(call_of: Callable[..., Call]) -> None:
    """Parts whose key says what they are; counts; why it ended."""
    given = {
        "messages": [
            {"role": "system", "content": [{"text": "Be kind"}]},
            {
                "role": "user",
                "content": [{"text": "Look"}, {"media": {"contentType": "image/png", "url": "https://x/y"}}],
            },
            {"role": "model", "content": [{"toolRequest": {"name": "look", "ref": "c1", "input": {"q": 1}}}]},
            {"role": "tool", "content": [{"toolResponse": {"name": "look", "ref": "c1", "output": "found"}}]},
        ],
        "tools": [{"name": "look"}],
    }
    gave = {
        "message": {"role": "model", "content": [{"reasoning": "hm"}, {"text": "Hello"}]},
        "finishReason": "stop",
        "usage": {"inputTokens": 12, "outputTokens": 5},
    }
    reading = call_of(action("model", given, gave)).reading
    assert reading.input.startswith("Look\n[image")
    assert (reading.output, reading.system, reading.reasoning) == ("Hello", "Be kind", "hm")
    assert reading.messages[2]["tool_calls"] == [{"id": "c1", "name": "look", "arguments": {"q": 1}}]
    assert reading.messages[3] == {"role": "tool", "content": "found", "tool_call_id": "c1", "name": "look"}
    assert (reading.usage, reading.finish_reasons) == ({"input_tokens": 12, "output_tokens": 5}, ("stop",))
    assert reading.tools == ({"name": "look"},)
    asked = {"message": {"role": "model", "content": [{"toolRequest": {"name": "look", "input": {}}}]}}
    assert call_of(action("model", given, asked)).reading.output is None


def test_a_retriever_and_a_flow(call_of: Callable[..., Call]) -> None:
    """Documents of parts."""
    given = {"query": {"content": [{"text": "plug"}]}}
    found = {"documents": [{"content": [{"text": "type F"}], "metadata": {"p": 1}}]}
    sample = sample_of(call_of(action("retriever", given, found)))
    assert sample.input == "plug"
    assert sample.documents == [{"content": "type F", "metadata": {"p": 1}}]
    flow = call_of(action("flow", "Which plug?", "Type F.", **{"genkit:sessionId": "s1"})).reading
    assert (flow.input, flow.output, flow.session_id) == ("Which plug?", "Type F.", "s1")
    assert is_content_key("genkit:input")


@pytest.mark.parametrize("value", ["[", "{}", "5", '{"messages": [5]}', '{"message": 5, "candidates": [5]}', 7])
def test_rubbish_does_no_harm(call_of: Callable[..., Call], value: Any) -> None:
    for kind in ("model", "retriever", "tool", "flow"):
        call_of({"genkit:metadata:subtype": kind, "genkit:input": value, "genkit:output": value})
