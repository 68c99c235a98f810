"""OpenTelemetry GenAI, conventions 1.37 and later."""

import json
from collections.abc import Callable

import pytest

from spangrade.model.span import EventData, SpanData
from spangrade.samples.assemble import sample_of
from spangrade.samples.dialects.otel_genai import OPERATIONS
from spangrade.samples.extract import extract, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]


def chat(user: str = "Hi", *parts: dict[str, object], **more: object) -> dict[str, object]:
    """A chat span's attributes: one user turn, and an answer of these parts."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": user}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": list(parts), "finish_reason": "stop"}]),
        **more,
    }


def text(content: str) -> dict[str, object]:
    return {"type": "text", "content": content}


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("chat", "llm"),
        ("generate_content", "llm"),
        ("text_completion", "llm"),
        ("embeddings", "embedding"),
        ("retrieval", "retriever"),
        ("execute_tool", "tool"),
        ("invoke_agent", "agent"),
        ("create_agent", "agent"),
        ("invoke_workflow", "chain"),
        ("evaluation", "evaluator"),
        ("Chat", "llm"),
        ("handle_conversation_turn", "agent"),
        ("llm_call", "llm"),
        ("tool_call", "tool"),
        ("user_prompt", None),
    ],
)
def test_operation_names_tell_the_kind(operation: str, kind: str | None) -> None:
    """Unknown ones are like agents."""
    assert quick_kind({"gen_ai.operation.name": operation}) == kind


def test_messages_without_an_operation_are_a_model_call() -> None:
    """The SDK drops the oldest attributes first, so the name may be gone."""
    assert quick_kind({"gen_ai.input.messages": "[]"}) == "llm"


def test_every_field_has_its_place(call_of: CallOf) -> None:
    """Model as answered, ids, usage, finish reasons, session, user, system."""
    reading = call_of(
        chat(
            "Hi",
            text("Hello"),
            **{
                "gen_ai.request.model": "m",
                "gen_ai.response.model": "m-1",
                "gen_ai.response.id": "r1",
                "gen_ai.response.finish_reasons": ("stop",),
                "gen_ai.usage.input_tokens": "57",
                "gen_ai.usage.output_tokens": 6.0,
                "gen_ai.conversation.id": "c1",
                "user.id": "u1",
                "gen_ai.system_instructions": '[{"type": "text", "content": "Be kind"}]',
            },
        )
    ).reading
    assert (reading.kind, reading.input, reading.output, reading.system) == ("llm", "Hi", "Hello", "Be kind")
    assert (reading.model, reading.response_id, reading.finish_reasons) == ("m-1", "r1", ("stop",))
    assert reading.usage == {"input_tokens": 57, "output_tokens": 6}
    assert (reading.session_id, reading.user_id) == ("c1", "u1")
    assert reading.messages == ({"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"})
    assert reading.output_messages == ({"role": "assistant", "content": "Hello", "finish_reason": "stop"},)


@pytest.mark.parametrize("count", ["many", -1, True, None, "1e99", float("nan"), [1], b"5"])
def test_a_count_that_is_none_is_absent(call_of: CallOf, count: object) -> None:
    """Rubbish is never taken for a number, and unknown is never 0."""
    assert call_of(chat("Hi", **{"gen_ai.usage.input_tokens": count})).reading.usage == {}


def test_a_count_of_zero_is_kept_when_it_was_sent(call_of: CallOf) -> None:
    """0 is a number."""
    assert call_of(chat("Hi", **{"gen_ai.usage.input_tokens": 0})).reading.usage == {"input_tokens": 0}


def test_the_input_is_the_last_user_turn_and_tool_turns_are_none(call_of: CallOf) -> None:
    """Pydantic AI sends tool results with role user; a result may be called response or result."""
    messages = [
        {"role": "user", "parts": [text("Which plug?")]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "plugs", "arguments": {"c": 1}}]},
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": {"plug": "F"}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c2", "response": "none"}]},
    ]
    reading = call_of({"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(messages)}).reading
    assert reading.input == "Which plug?"
    assert [m["role"] for m in reading.messages] == ["user", "assistant", "tool", "tool"]
    assert reading.messages[2] == {"role": "tool", "content": '{"plug":"F"}', "tool_call_id": "c1"}
    assert reading.messages[3]["content"] == "none"


def test_a_turn_of_tool_calls_is_no_empty_answer(call_of: CallOf) -> None:
    """The output is None, so that nothing grades an empty text; the calls are there."""
    reading = call_of(chat("Hi", {"type": "tool_call", "id": "c1", "name": "look", "arguments": '{"q": 1}'})).reading
    assert reading.output is None
    assert reading.tool_calls == ({"id": "c1", "name": "look", "arguments": {"q": 1}},)


def test_an_empty_text_is_an_empty_answer(call_of: CallOf) -> None:
    """None and "" are told apart."""
    assert call_of(chat("Hi", text(""))).reading.output == ""
    assert call_of(chat("Hi")).reading.output is None


def test_of_several_choices_the_first_is_the_output_and_all_are_kept(call_of: CallOf) -> None:
    """n=2."""
    choices = [{"role": "assistant", "parts": [text(t)], "finish_reason": "stop"} for t in ("A", "B")]
    reading = call_of(chat("Hi", **{"gen_ai.output.messages": json.dumps(choices)})).reading
    assert reading.output == "A"
    assert [m["content"] for m in reading.output_messages] == ["A", "B"]
    assert reading.finish_reasons == ("stop", "stop")


def test_media_is_described_by_its_kind(call_of: CallOf) -> None:
    """No base64 reaches a judge."""
    parts = [
        {"type": "uri", "modality": "video", "uri": "https://x/v.mp4"},
        {"type": "blob", "mime_type": "audio/wav", "content": "AAAA"},
        {"type": "file", "mime_type": "application/pdf", "file_id": "f1"},
        {"type": "generic", "generic_type": "sketch"},
        {"type": "holograms"},
    ]
    messages = json.dumps([{"role": "user", "parts": [text("Look"), *parts]}])
    reading = call_of({"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages}).reading
    marks = (
        "[video: by URL]",
        "[audio: audio/wav, 3 bytes]",
        "[document: application/pdf, by id]",
        "[sketch]",
        "[holograms]",
    )
    assert reading.input == "\n".join(("Look", *marks))


def test_messages_may_be_structured_values(call_of: CallOf) -> None:
    """Tuples and dicts, as the SDK holds them."""
    given = ({"role": "user", "parts": ({"type": "text", "content": "Hi"},)},)
    assert call_of({"gen_ai.operation.name": "chat", "gen_ai.input.messages": given}).reading.input == "Hi"


@pytest.mark.parametrize(
    "value", ["Hi", '"[{\\"role\\": \\"user\\", \\"content\\": \\"Hi\\"}]"', '[{"role":"user","content":"Hi"}]']
)
def test_messages_may_be_text_or_openai_style(call_of: CallOf, value: str) -> None:
    """Gemini CLI and others do not keep to the schema."""
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": value}
    if value.startswith('"'):  # a JSON text that holds a JSON text
        attributes["gen_ai.input.messages"] = json.loads(value)
    assert call_of(attributes).reading.input == "Hi"


def test_gemini_parts_without_a_type(call_of: CallOf) -> None:
    """Role model, thoughts flagged, function calls and answers."""
    messages = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"q": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"r": 2}}}]},
    ]
    said = [{"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "Hello"}]}]
    reading = call_of(
        {
            "gen_ai.operation.name": "generate_content",
            "gen_ai.input.messages": json.dumps(messages),
            "gen_ai.output.messages": json.dumps(said),
        }
    ).reading
    assert (reading.input, reading.output, reading.reasoning) == ("Hi", "Hello", "hm")
    assert reading.messages[1]["tool_calls"] == [{"name": "look", "arguments": {"q": 1}}]
    assert reading.messages[2] == {"role": "tool", "content": '{"r":2}', "name": "look"}


def test_a_tool_span_has_arguments_and_result(call_of: CallOf) -> None:
    """JSON parsed, text left as it is."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "plugs",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"city": "Lisbon"}',
        "gen_ai.tool.call.result": "123",
    }
    reading = call_of(attributes).reading
    assert (reading.kind, reading.input, reading.output) == ("tool", {"city": "Lisbon"}, "123")
    assert reading.tool_calls == ({"id": "c1", "name": "plugs", "arguments": {"city": "Lisbon"}},)


@pytest.mark.parametrize("as_text", [True, False])
def test_a_retrieval_span_has_query_and_documents(call_of: CallOf, as_text: bool) -> None:
    """With the text that our SDK writes, or only the ids and scores of the conventions."""
    documents = [{"id": "d1", "content": "type F", "score": 0.9, "metadata": {"page": 1}}, {"id": "d2", "score": None}]
    attributes = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": "plug",
        "gen_ai.retrieval.documents": json.dumps(documents) if as_text else tuple(documents),
    }
    reading = call_of(attributes).reading
    assert (reading.kind, reading.input, reading.query) == ("retriever", "plug", "plug")
    assert reading.documents == (documents[0], {"id": "d2", "content": ""})


def test_an_empty_list_of_documents_is_a_search_that_found_nothing(call_of: CallOf) -> None:
    """Not the same as no documents."""
    assert call_of({"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": "[]"}).reading.documents == ()
    assert call_of({"gen_ai.operation.name": "retrieval"}).reading.documents is None


def test_cut_documents_keep_the_whole_ones(call_of: CallOf) -> None:
    """And say so."""
    whole = json.dumps([{"content": "type F"}, {"content": "trams run late"}])
    reading = call_of({"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": whole[:-12]}).reading
    assert reading.documents == ({"content": "type F"},)
    assert reading.truncated


def test_content_in_the_details_event_fills_what_the_span_lacks(span_of: Callable[..., SpanData]) -> None:
    """Event attributes have the same keys; the span's own come first."""
    details = chat("from the event", text("A"))
    span = span_of(
        {"gen_ai.operation.name": "chat", "gen_ai.output.messages": chat("", text("B"))["gen_ai.output.messages"]},
        events=(EventData("other", {}), EventData("gen_ai.client.inference.operation.details", details)),
    )
    call = extract(span)
    assert call is not None
    assert (call.reading.input, call.reading.output) == ("from the event", "B")


def test_content_that_was_not_captured_is_none(call_of: CallOf) -> None:
    """The default of every official instrumentation. Never ""."""
    reading = call_of({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}).reading
    assert (reading.input, reading.output, reading.messages) == (None, None, ())


def test_system_instructions_may_be_cut_text_or_a_message(call_of: CallOf) -> None:
    """A system text is kept as far as it goes: by its beginning a judge is known."""
    for value in ('[{"type": "text", "content": "[spangrade-judge] You gr', "[spangrade-judge] You gr"):
        call = call_of(chat("Hi", **{"gen_ai.system_instructions": value}))
        assert call.reading.system == "[spangrade-judge] You gr"
        assert call.evaluator
    given = '[{"role": "system", "parts": [{"type": "text", "content": "Be kind"}]}]'
    assert call_of(chat("Hi", **{"gen_ai.system_instructions": given})).reading.system == "Be kind"


def test_no_operation_of_the_table_is_unknown_to_the_targets() -> None:
    """Each is a kind that an evaluator can target, or the evaluator's own."""
    kinds = {"llm", "embedding", "retriever", "reranker", "tool", "agent", "chain", "evaluator", "not_a_call"}
    assert set(OPERATIONS.values()) <= kinds


def test_the_answer_of_an_agent_is_the_last_thing_it_said(call_of: CallOf) -> None:
    """Its output may be the whole run (agent-framework): a tool's result is no answer."""
    run = [
        {"role": "assistant", "parts": [text("Let me look."), {"type": "tool_call", "id": "c1", "name": "look"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "found"}]},
        {"role": "assistant", "parts": [text("It is there.")], "finish_reason": "stop"},
    ]
    call = call_of(chat("Hi", **{"gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": json.dumps(run)}))
    reading = call.reading
    assert (reading.kind, reading.output, reading.finish_reasons) == ("agent", "It is there.", ("stop",))
    assert reading.tool_calls == ({"id": "c1", "name": "look"},)
    assert len(reading.output_messages) == 3
    assert sample_of(call).context["tool_calls"] == [{"id": "c1", "name": "look", "result": "found"}]


def test_a_system_text_that_stands_in_both_places_is_one_turn(call_of: CallOf) -> None:
    """As instructions and as the first message."""
    given = [{"role": "system", "parts": [text("Be kind")]}, {"role": "user", "parts": [text("Hi")]}]
    reading = call_of(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(given),
            "gen_ai.system_instructions": json.dumps([text("Be kind")]),
        }
    ).reading
    assert [m["role"] for m in reading.messages] == ["system", "user"]


def test_input_and_output_may_come_in_two_details_events(span_of: Callable[..., SpanData]) -> None:
    """Structured values, as log records have them; models and tokens may stand there too."""
    asked = ({"role": "user", "parts": ({"type": "text", "content": "Hi"},)},)
    answered = ({"role": "assistant", "parts": ({"type": "text", "content": "Hello"},)},)
    call = extract(
        span_of(
            {"gen_ai.operation.name": "chat"},
            events=(
                EventData("gen_ai.client.inference.operation.details", {"gen_ai.input.messages": asked}),
                EventData(
                    "gen_ai.client.inference.operation.details",
                    {"gen_ai.output.messages": answered, "gen_ai.response.model": "m", "gen_ai.usage.input_tokens": 3},
                ),
            ),
        )
    )
    assert call is not None
    assert (call.reading.input, call.reading.output, call.reading.model) == ("Hi", "Hello", "m")
    assert call.reading.usage == {"input_tokens": 3}


def test_a_framework_is_no_models_provider(call_of: CallOf) -> None:
    """Frameworks put their own names there on spans of their own."""
    assert (
        call_of({"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "langchain"}).reading.provider is None
    )
    assert (
        call_of({"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "openai"}).reading.provider
        == "openai"
    )
