"""Spring AI, as its documentation has it. Micrometer writes every attribute as text."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.samples.assemble import sample_of
from spangrade.samples.content import is_content_key
from spangrade.samples.kinds import quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
FRAMEWORK = {"gen_ai.operation.name": "framework", "gen_ai.system": "spring_ai"}
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.system": "openai",
    "gen_ai.request.model": "gpt-4o-mini",
    "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
    "gen_ai.response.finish_reasons": '["STOP"]',
    "gen_ai.response.id": "r1",
    "gen_ai.usage.input_tokens": "12",
    "gen_ai.usage.output_tokens": "5",
    "gen_ai.usage.total_tokens": "17",
}


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({**FRAMEWORK, "spring.ai.kind": "chat_client"}, "chain"),
        ({**FRAMEWORK, "spring.ai.kind": "advisor"}, None),
        ({**FRAMEWORK, "spring.ai.kind": "tool_call"}, "tool"),
        ({**FRAMEWORK, "gen_ai.operation.name": "execute_tool", "spring.ai.kind": "tool_call"}, "tool"),
        ({"spring.ai.kind": "vector_store", "db.operation.name": "query", "db.vector.query.content": "q"}, "retriever"),
        ({"spring.ai.kind": "vector_store", "db.operation.name": "add"}, None),
        (CHAT, "llm"),
    ],
)
def test_kinds(attributes: dict[str, Any], kind: str | None) -> None:
    assert quick_kind(attributes) == kind


def test_a_chat_models_span_without_content_has_its_model_and_tokens(call_of: CallOf) -> None:
    sample = sample_of(call_of(CHAT))
    assert (sample.input, sample.output) == (None, None)
    assert sample.context["usage"] == {"input_tokens": 12, "output_tokens": 5}
    assert sample.context["finish_reasons"] == ["STOP"]
    assert (sample.context["model"], sample.context["provider"]) == ("gpt-4o-mini-2024-07-18", "openai")


def test_a_chat_client_says_its_conversation_and_is_no_agent(call_of: CallOf) -> None:
    call = call_of({**FRAMEWORK, "spring.ai.kind": "chat_client", "spring.ai.chat.client.conversation.id": "c1"})
    assert (call.kind, call.reading.session_id) == ("chain", "c1")
    assert (call.reading.input, call.reading.output) == (None, None)


def test_a_chat_client_until_1_0_says_what_it_was_given(call_of: CallOf) -> None:
    told = {"spring.ai.chat.client.user.text": "When?", "spring.ai.chat.client.system.text": "Be brief."}
    reading = call_of({**FRAMEWORK, "spring.ai.kind": "chat_client", **told}).reading
    assert (reading.input, reading.system) == ("When?", "Be brief.")


def test_a_tool_has_its_arguments_and_result(call_of: CallOf) -> None:
    call = call_of(
        {
            **FRAMEWORK,
            "spring.ai.kind": "tool_call",
            "spring.ai.tool.definition.name": "weather",
            "spring.ai.tool.call.arguments": '{"city": "Oslo"}',
            "spring.ai.tool.call.result": "rain",
        }
    )
    assert (call.kind, call.reading.input, call.reading.output) == ("tool", {"city": "Oslo"}, "rain")
    assert call.reading.tool_calls == ({"name": "weather", "arguments": {"city": "Oslo"}},)


def test_a_search_has_its_query_and_documents(call_of: CallOf) -> None:
    found = ("Parcels arrive soon.", "Returns are free.")
    for held in (found, json.dumps(found)):
        reading = call_of({"db.vector.query.content": "When?", "db.vector.query.response.documents": held}).reading
        assert (reading.kind, reading.query, reading.input) == ("retriever", "When?", "When?")
        assert [one["content"] for one in reading.documents or ()] == list(found)
    assert call_of({"db.vector.query.content": "When?"}).reading.documents is None


def test_what_holds_text_is_content() -> None:
    for key in ("spring.ai.tool.call.result", "db.vector.query.content", "spring.ai.chat.client.user.text"):
        assert is_content_key(key)
    assert not is_content_key("spring.ai.tool.definition.name")
