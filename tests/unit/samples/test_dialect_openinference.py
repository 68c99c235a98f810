"""OpenInference."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.samples.extract import extract, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
LLM = {"openinference.span.kind": "LLM"}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("LLM", "llm"),
        ("llm", "llm"),
        ("CHAIN", "chain"),
        ("AGENT", "agent"),
        ("TOOL", "tool"),
        ("RETRIEVER", "retriever"),
        ("RERANKER", "reranker"),
        ("EMBEDDING", "embedding"),
        ("GUARDRAIL", "guardrail"),
        ("EVALUATOR", "evaluator"),
        ("PROMPT", None),
        ("UNKNOWN", None),
        (7, None),
    ],
)
def test_span_kinds(value: object, kind: str | None) -> None:
    """A prompt that is filled in is no call; an unknown kind says nothing."""
    assert quick_kind({"openinference.span.kind": value}) == kind


def test_content_without_a_kind_is_a_chain() -> None:
    """Unless something else tells."""
    assert quick_kind({"input.value": "q"}) == "chain"
    assert quick_kind({"output.value": "a", "openinference.span.kind": "UNKNOWN"}) == "chain"
    assert quick_kind({"input.value": "q", "llm.model_name": "m"}) == "llm"


def test_a_chain_has_its_values(call_of: CallOf) -> None:
    """Text is text, even when it looks like JSON; a JSON mime type is parsed."""
    attributes = {
        "openinference.span.kind": "CHAIN",
        "input.value": '{"looks": "like"}',
        "output.value": '{"is": ["JSON", 1.5, null]}',
        "output.mime_type": "application/json",
        "metadata": '{"tier": "gold", "n": 3}',
        "tag.tags": ("a", "b"),
        "session.id": "s1",
        "user.id": 42,
    }
    reading = call_of(attributes).reading
    assert reading.input == '{"looks": "like"}'
    assert reading.output == {"is": ["JSON", 1.5, None]}
    assert reading.metadata == {"tier": "gold", "n": 3, "tags": ["a", "b"]}
    assert (reading.session_id, reading.user_id) == ("s1", "42")


@pytest.mark.parametrize("value", ['{"cut": "he', "[1, 2", '{"a": {"b": "text [truncated, original 950 bytes]'])
def test_json_that_was_cut_stays_text_and_is_marked(call_of: CallOf, value: str) -> None:
    """What a judge would see is at least readable."""
    attributes = {"openinference.span.kind": "CHAIN", "output.value": value, "output.mime_type": "application/json"}
    reading = call_of(attributes).reading
    assert (reading.output, reading.truncated) == (value, True)


@pytest.mark.parametrize("value", ["hello", "{not json", "", "[a] [b]"])
def test_text_that_was_called_json_is_not_cut(call_of: CallOf, value: str) -> None:
    """Producers get the mime type wrong."""
    attributes = {"openinference.span.kind": "CHAIN", "output.value": value, "output.mime_type": "application/json"}
    reading = call_of(attributes).reading
    assert (reading.output, reading.truncated) == (value, False)


def test_model_tokens_and_finish_reason(call_of: CallOf) -> None:
    """The model as answered comes first."""
    attributes = {
        **LLM,
        "llm.model_name": "m",
        "llm.response.model_name": "m-1",
        "llm.token_count.prompt": 57,
        "llm.token_count.completion": "6",
        "llm.finish_reason": "stop",
    }
    reading = call_of(attributes).reading
    assert (reading.model, reading.finish_reasons) == ("m-1", ("stop",))
    assert reading.usage == {"input_tokens": 57, "output_tokens": 6}


def test_contents_are_read_like_content(call_of: CallOf) -> None:
    """C062: text in message.contents.N must not give an empty message. Thoughts are apart, audio has a transcript."""
    message = "llm.input_messages.0.message."
    said = "llm.output_messages.0.message."
    attributes = {
        **LLM,
        f"{message}role": "user",
        f"{message}contents.0.message_content.type": "text",
        f"{message}contents.0.message_content.text": "Listen",
        f"{message}contents.1.message_content.type": "audio",
        f"{message}contents.1.message_content.audio.audio.url": "data:audio/wav;base64,AAAA",
        f"{said}contents.0.message_content.type": "reasoning",
        f"{said}contents.0.message_content.text": "a dog?",
        f"{said}contents.1.message_content.type": "text",
        f"{said}contents.1.message_content.text": "A cat.",
    }
    reading = call_of(attributes).reading
    assert (reading.input, reading.output, reading.reasoning) == (
        "Listen\n[audio: audio/wav, 3 bytes]",
        "A cat.",
        "a dog?",
    )


def test_completions_have_prompts_and_choices(call_of: CallOf) -> None:
    """llm.prompts.N, llm.choices.N."""
    attributes = {**LLM, "llm.prompts.0.prompt.text": "Once", "llm.choices.0.completion.text": "upon a time"}
    reading = call_of(attributes).reading
    assert (reading.input, reading.output) == ("Once", "upon a time")


def test_flattened_messages_come_before_the_raw_request(call_of: CallOf) -> None:
    """The raw response still gives the id."""
    attributes = {
        **LLM,
        "input.value": '{"messages": [{"role": "user", "content": "raw"}]}',
        "input.mime_type": "application/json",
        "output.value": '{"id": "r1", "choices": [{"message": {"role": "assistant", "content": "raw"}}]}',
        "output.mime_type": "application/json",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "flat",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "flat too",
    }
    reading = call_of(attributes).reading
    assert (reading.input, reading.output, reading.response_id) == ("flat", "flat too", "r1")


@pytest.mark.parametrize(
    ("request_", "response", "input_", "output"),
    [
        ({"messages": [{"role": "user", "content": "Q"}]}, {"choices": [{"message": {"content": "A"}}]}, "Q", "A"),
        ({"prompt": "Q"}, {"choices": [{"text": "A", "finish_reason": "length"}]}, "Q", "A"),
        (
            {"system": "S", "messages": [{"role": "user", "content": [{"type": "text", "text": "Q"}]}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "T"}, {"type": "text", "text": "A"}]},
            "Q",
            "A",
        ),
        (
            {"contents": [{"role": "user", "parts": [{"text": "Q"}]}]},
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "A"}]}, "finishReason": "STOP"}]},
            "Q",
            "A",
        ),
        (
            {"messages": [{"role": "user", "content": "Q"}]},
            {"message": {"role": "assistant", "content": "A"}},
            "Q",
            "A",
        ),
        (
            {"messages": [[{"id": ["x", "HumanMessage"], "kwargs": {"content": "Q", "type": "human"}}]]},
            {"generations": [[{"text": "A"}]]},
            "Q",
            "A",
        ),
        ([{"role": "user", "content": "Q"}], [{"role": "assistant", "content": "A"}], "Q", "A"),
        (
            {"request": {"input": [{"role": "user", "content": "Q"}]}},
            {"output": [{"role": "assistant", "content": "A"}]},
            "Q",
            "A",
        ),
        ({"prompts": ["Q"]}, {"role": "assistant", "content": "A"}, "Q", "A"),
        (
            {"system_instruction": {"parts": [{"text": "S"}]}, "contents": "Q"},
            {"candidates": [{"content": {"parts": [{"text": "A"}]}}]},
            "Q",
            "A",
        ),
        ({"what": "is this"}, {"we": "do not know"}, {"what": "is this"}, {"we": "do not know"}),
    ],
    ids=[
        "openai",
        "completions",
        "anthropic",
        "gemini",
        "ollama",
        "langchain",
        "lists",
        "wrapped",
        "prompts",
        "gemini text",
        "unknown",
    ],
)
def test_raw_payloads(call_of: CallOf, request_: object, response: object, input_: object, output: object) -> None:
    """Requests and responses of the usual APIs; what is not known stays a JSON value."""
    attributes = {
        **LLM,
        "input.value": json.dumps(request_),
        "input.mime_type": "application/json",
        "output.value": json.dumps(response),
        "output.mime_type": "application/json",
    }
    reading = call_of(attributes).reading
    assert (reading.input, reading.output) == (input_, output)


def test_json_that_nobody_called_json_is_read_too(call_of: CallOf) -> None:
    """And of a message list that was cut, what is whole."""
    given = {
        **LLM,
        "input.value": '[{"role": "user", "content": "Q"}, {"role": "assi',
        "output.value": '{"choices": [{"text": "A"}]}',
    }
    reading = call_of(given).reading
    assert (reading.input, reading.output) == ("Q", "A")
    text = {**LLM, "input.value": "[INST] Q", "output.value": "{A}"}
    assert call_of(text).reading.input == "[INST] Q"
    assert call_of(text).reading.output == "{A}"


def test_documents_as_one_structured_attribute(call_of: CallOf) -> None:
    """Where the sender's SDK allows lists of maps."""
    held = ({"document.content": "type F", "document.metadata": '{"p": 1}'}, "trams")
    reading = call_of({"openinference.span.kind": "RETRIEVER", "retrieval.documents": held}).reading
    assert reading.documents == ({"content": "type F", "metadata": {"p": 1}}, {"content": "trams"})


def test_a_response_without_choices_is_no_output(call_of: CallOf) -> None:
    """Not the raw response as text."""
    attributes = {**LLM, "output.value": '{"choices": []}', "output.mime_type": "application/json"}
    assert call_of(attributes).reading.output is None


def test_text_of_an_llm_span_is_itself_without_its_thoughts(call_of: CallOf) -> None:
    """No messages, only values."""
    reading = call_of({**LLM, "input.value": "Q", "output.value": "<think>hm</think>\n\nA"}).reading
    assert (reading.input, reading.output, reading.reasoning) == ("Q", "A", "hm")


def test_retrieved_documents(call_of: CallOf) -> None:
    """In order of number; metadata is JSON text."""
    prefix = "retrieval.documents."
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "plug",
        f"{prefix}10.document.content": "third",
        f"{prefix}2.document.content": "second",
        f"{prefix}2.document.score": "0.5",
        f"{prefix}0.document.id": 7,
        f"{prefix}0.document.content": "first",
        f"{prefix}0.document.metadata": '{"page": 1}',
    }
    assert call_of(attributes).reading.documents == (
        {"id": "7", "content": "first", "metadata": {"page": 1}},
        {"content": "second", "score": 0.5},
        {"content": "third"},
    )


def test_a_reranker_gives_what_it_put_out(call_of: CallOf) -> None:
    """Not what it was given."""
    attributes = {
        "openinference.span.kind": "RERANKER",
        "reranker.query": "plug",
        "reranker.input_documents.0.document.content": "trams",
        "reranker.output_documents.0.document.content": "type F",
    }
    reading = call_of(attributes).reading
    assert reading.documents == ({"content": "type F"},)
    assert reading.query == "plug"


@pytest.mark.parametrize(
    ("output", "documents"),
    [
        (["a", {"text": "b"}], ({"content": "a"}, {"content": "b"})),
        ({"documents": [{"page_content": "a", "metadata": {"p": 1}}]}, ({"content": "a", "metadata": {"p": 1}},)),
        ([], ()),
        ({"documents": []}, ()),
        ({"answer": 1}, None),
        ([1, 2], None),
    ],
)
def test_a_retrievers_output_can_be_its_documents(call_of: CallOf, output: object, documents: object) -> None:
    """A traced function that returns what it found; numbers are not documents, and not "nothing found" either."""
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "output.value": json.dumps(output),
        "output.mime_type": "application/json",
    }
    assert call_of(attributes).reading.documents == documents


def test_a_tool_span(call_of: CallOf) -> None:
    """Name and values."""
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "plugs",
        "input.value": '{"city": "Lisbon"}',
        "input.mime_type": "application/json",
        "output.value": "type F",
    }
    reading = call_of(attributes).reading
    assert reading.tool_calls == ({"name": "plugs", "arguments": {"city": "Lisbon"}},)
    assert (reading.input, reading.output) == ({"city": "Lisbon"}, "type F")


def test_a_span_that_lost_attributes_is_marked(call_of: CallOf) -> None:
    """C054: 100 documents of another instrumentor push the oldest attributes out."""
    attributes = {f"retrieval.documents.{n}.document.content": f"foreign {n}" for n in range(40, 100)}
    attributes |= {"retrieval.documents.0.document.content": "first"}
    call = call_of(attributes, dropped_attributes=140)
    assert call.kind == "retriever"
    assert call.reading.truncated
    assert len(call.reading.documents or ()) == 61


def test_http_spans_are_no_calls(span_of: Callable[..., object]) -> None:
    """C106: only model and RAG spans become Samples."""
    for attributes in ({"http.request.method": "GET", "url.full": "http://x"}, {"db.query.text": "SELECT 1"}, {}):
        assert quick_kind(attributes) is None
        assert extract(span_of(attributes)) is None  # type: ignore[arg-type]


# --- what real runs showed (tests/integration/dialects) ---------------------------------------------------------------


def oi(kind: str, given: Any = None, result: Any = None, **more: Any) -> dict[str, Any]:
    """A span of that kind whose values are JSON."""
    found = {"openinference.span.kind": kind, **{key.replace("__", "."): value for key, value in more.items()}}
    for side, value in (("input", given), ("output", result)):
        if value is not None:
            found |= {f"{side}.value": json.dumps(value), f"{side}.mime_type": "application/json"}
    return found


def test_why_each_of_several_choices_ended_is_told_by_the_raw_response(call_of: CallOf) -> None:
    flat = {
        f"llm.output_messages.{i}.message.{key}": value
        for i in range(2)
        for key, value in (("role", "assistant"), ("content", f"a{i}"))
    }
    choices = [{"finish_reason": reason, "message": {"content": "x"}} for reason in ("stop", "length")]
    reading = call_of({**oi("LLM", None, {"choices": choices}), **flat, "llm.finish_reason": "stop"}).reading
    assert reading.finish_reasons == ("stop", "length")
    assert [message["finish_reason"] for message in reading.output_messages] == ["stop", "length"]


@pytest.mark.parametrize(
    ("response", "reasons"),
    [
        ({"status": "completed", "output": [{"type": "message", "content": []}]}, ("stop",)),
        ({"status": "completed", "output": [{"type": "function_call", "name": "f"}]}, ("tool_calls",)),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}, ("length",)),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []},
            ("content_filter",),
        ),
        ({"status": "failed"}, ()),
    ],
)
def test_responses_have_a_status_which_is_a_reason(call_of: CallOf, response: Any, reasons: tuple[str, ...]) -> None:
    assert call_of(oi("LLM", None, {"object": "response", **response})).reading.finish_reasons == reasons


@pytest.mark.parametrize(
    "attributes",
    [
        oi("LLM", {"model": "m", "messages": [{"role": "user", "content": "q"}]}),
        oi("LLM", llm__invocation_parameters='{"model": "m"}'),
        oi("LLM", llm__invocation_parameters='{"model_name": "m"}'),
    ],
)
def test_of_a_call_that_failed_the_model_that_was_asked_for(call_of: CallOf, attributes: dict[str, Any]) -> None:
    assert call_of(attributes).reading.model == "m"


def test_a_call_that_stands_in_the_contents_and_beside_them_is_one(call_of: CallOf) -> None:
    """Anthropic's: contents of type tool_use, and the same again as tool calls, or there only."""
    message = "llm.output_messages.0.message"
    call = {"tool_call.id": "c1", "tool_call.function.name": "find", "tool_call.function.arguments": '{"q": 1}'}
    among = {f"{message}.contents.1.{key}": value for key, value in call.items()}
    beside = {f"{message}.tool_calls.0.{key}": value for key, value in call.items()}
    text = {
        f"{message}.role": "assistant",
        f"{message}.contents.0.message_content.type": "text",
        f"{message}.contents.0.message_content.text": "Let me see.",
        f"{message}.contents.1.message_content.type": "tool_use",
    }
    for more in ({**among, **beside}, among):
        reading = call_of({**oi("LLM"), **text, **more}).reading
        assert reading.output == "Let me see."
        assert reading.tool_calls == ({"id": "c1", "name": "find", "arguments": {"q": 1}},)


def test_a_state_of_messages_is_its_question_and_its_last_answer(call_of: CallOf) -> None:
    """LangGraph's: what a chain was given and gave back."""
    asked = {"type": "human", "data": {"content": "When?", "type": "human"}}
    called = {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "find", "args": {}, "id": "c1"}]}}
    done = {"type": "tool", "data": {"content": "found", "tool_call_id": "c1"}}
    said = {"type": "ai", "data": {"content": "Now."}}
    for given in ({"messages": [{"role": "user", "content": "When?"}]}, {"messages": [asked]}):
        reading = call_of(oi("CHAIN", given, {"messages": [asked, called, done, said]})).reading
        assert (reading.input, reading.output) == ("When?", "Now.")
        assert list(reading.messages) == [{"role": "user", "content": "When?"}]
    kept = {"question": "When?", "k": 3}
    assert call_of(oi("CHAIN", kept, kept)).reading.output == kept


def test_a_tools_message_is_its_text_and_names_its_call(call_of: CallOf) -> None:
    message = {"type": "tool", "data": {"content": "rain", "type": "tool", "tool_call_id": "c1"}}
    reading = call_of(oi("TOOL", {"city": "Oslo"}, message, tool__name="weather")).reading
    assert reading.output == "rain"
    assert reading.tool_calls == ({"id": "c1", "name": "weather", "arguments": {"city": "Oslo"}},)


def test_a_template_with_its_variables_is_what_was_sent_where_there_are_no_messages(call_of: CallOf) -> None:
    filled = {
        "llm.prompt_template.template": "From {docs} answer {question} {unknown}",
        "llm.prompt_template.variables": '{"docs": "D", "question": "{docs}?"}',
    }
    reading = call_of({**oi("LLM", {"prompt": "PromptTemplate(...)"}), **filled}).reading
    assert reading.input == "From D answer {docs}? {unknown}"
    messages = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "q"}
    assert call_of({**oi("LLM"), **filled, **messages}).reading.input == "q"
    sent = {"messages": [{"role": "user", "content": "q"}]}
    assert call_of({**oi("LLM", sent), **filled}).reading.input == "q"


@pytest.mark.parametrize("kind", ["LLM", "CHAIN", "TOOL", "RETRIEVER"])
def test_what_was_redacted_was_not_said(call_of: CallOf, kind: str) -> None:
    hidden = {
        "openinference.span.kind": kind,
        "input.value": "__REDACTED__",
        "output.value": "__REDACTED__",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "__REDACTED__",
    }
    reading = call_of(hidden).reading
    assert (reading.input, reading.output, reading.messages) == (None, None, ())
