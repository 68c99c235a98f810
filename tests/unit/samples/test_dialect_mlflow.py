"""MLflow tracing, as its OTLP exporter sends it: each attribute a JSON text. The values are those of mlflow-tracing 3.17.2."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.model.span import EventData, SpanData
from spangrade.samples.assemble import sample_of
from spangrade.samples.extract import extract, is_content_key, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]


def span(kind: str, inputs: Any = None, outputs: Any = None, **more: Any) -> dict[str, Any]:
    held = {"mlflow.spanType": json.dumps(kind)}
    if inputs is not None:
        held["mlflow.spanInputs"] = json.dumps(inputs)
    if outputs is not None:
        held["mlflow.spanOutputs"] = json.dumps(outputs)
    return {**held, **{key.replace("__", "."): value for key, value in more.items()}}


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("LLM", "llm"),
        ("CHAT_MODEL", "llm"),
        ("CHAIN", "chain"),
        ("AGENT", "agent"),
        ("TOOL", "tool"),
        ("RETRIEVER", "retriever"),
        ("RERANKER", "reranker"),
        ("EMBEDDING", "embedding"),
        ("GUARDRAIL", "guardrail"),
        ("EVALUATOR", "evaluator"),
        ("UNKNOWN", "chain"),
        ("WORKFLOW", "chain"),
        ("my own", "chain"),
    ],
)
def test_its_types_are_our_kinds(word: str, kind: str) -> None:
    """In JSON's quotes, or without."""
    assert quick_kind(span(word)) == kind
    assert quick_kind({"mlflow.spanType": word}) == kind


def test_a_chat_model(call_of: CallOf) -> None:
    """OpenAI's request and response whole; what MLflow made of it beside them."""
    request = {
        "model": "gpt-4o-mini",
        "messages": [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}],
    }
    message = {"content": "Hello", "refusal": None, "role": "assistant", "tool_calls": None}
    response = {"id": "r1", "choices": [{"finish_reason": "stop", "index": 0, "message": message}], "model": "m"}
    usage = {"input_tokens": 12, "output_tokens": 5, "total_tokens": 17, "cache_read_input_tokens": 4}
    reading = call_of(
        span(
            "CHAT_MODEL",
            request,
            response,
            mlflow__llm__model='"gpt-4o-mini-2024-07-18"',
            mlflow__llm__provider='"openai"',
            mlflow__chat__tokenUsage=json.dumps(usage),
            mlflow__traceTag__tier="gold",
            session__id="s1",
            user__id='"u1"',
        )
    ).reading
    assert (reading.kind, reading.input, reading.output, reading.system) == ("llm", "Hi", "Hello", "Be kind")
    assert (reading.model, reading.provider, reading.response_id) == ("gpt-4o-mini-2024-07-18", "openai", "r1")
    assert reading.usage == {"input_tokens": 12, "output_tokens": 5, "cache_read_tokens": 4}  # the cached ones are in
    assert reading.finish_reasons == ("stop",)
    assert (reading.session_id, reading.user_id, reading.metadata) == ("s1", "u1", {"tier": "gold"})


def test_a_stream_tells_when_it_began(span_of: Callable[..., SpanData]) -> None:
    """By the event of its first piece."""
    event = EventData("mlflow.chunk.item.0", {"mlflow.chunk.value": "{}"}, time_ns=1_500_000_000)
    call = extract(span_of(span("CHAT_MODEL"), events=[event], start_ns=1_000_000_000, end_ns=2_000_000_000))
    assert call is not None
    assert call.reading.first_chunk_s == 0.5
    assert is_content_key("mlflow.chunk.value")


def test_langchains_batches(call_of: CallOf) -> None:
    """One list of messages for each prompt, and its generations."""
    given = [[{"content": "Be kind", "type": "system"}, {"content": "Hi", "type": "human"}]]
    gave = {"generations": [[{"text": "Hello", "message": {"content": "Hello", "type": "ai"}}]]}
    reading = call_of(span("CHAT_MODEL", given, gave)).reading
    assert (reading.input, reading.output, reading.system) == ("Hi", "Hello", "Be kind")


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"question": "Which plug?"}, "Which plug?"),
        ({"question": "Which plug?", "style": "short"}, {"question": "Which plug?", "style": "short"}),
        ({}, None),
    ],
)
def test_a_decorated_function_has_its_arguments(call_of: CallOf, given: Any, asked: Any) -> None:
    """As `@sg.trace` has it."""
    reading = call_of(span("UNKNOWN", given, "Type F.", mlflow__spanFunctionName='"answer"')).reading
    assert (reading.kind, reading.input, reading.output) == ("chain", asked, "Type F.")


def test_a_state_of_messages_is_its_last_turns(call_of: CallOf) -> None:
    """LangGraph and its kin."""
    asked = {"messages": [{"role": "user", "content": "Which plug?"}]}
    said = {"messages": [*asked["messages"], {"content": "Type F.", "type": "ai"}]}
    reading = call_of(span("CHAIN", asked, said)).reading
    assert (reading.input, reading.output) == ("Which plug?", "Type F.")
    assert reading.messages == ({"role": "user", "content": "Which plug?"},)


def test_a_retriever_has_documents(call_of: CallOf) -> None:
    found = [{"page_content": "type F", "metadata": {"p": 1}, "id": "d1"}]
    sample = sample_of(call_of(span("RETRIEVER", {"q": "plug"}, found)))
    assert sample.input == "plug"
    assert sample.documents == [{"id": "d1", "content": "type F", "metadata": {"p": 1}}]
    assert sample_of(call_of(span("RETRIEVER", {"q": "plug"}, []))).context["searched"] is True


def test_a_tool_has_its_arguments_by_name(call_of: CallOf) -> None:
    sample = sample_of(call_of(span("TOOL", {"city": "Lisbon"}, {"plug": "F"}), name="look"))
    assert (sample.input, sample.output) == ({"city": "Lisbon"}, {"plug": "F"})
    assert sample.context["tool_calls"] == [{"name": "look", "arguments": {"city": "Lisbon"}, "result": {"plug": "F"}}]


@pytest.mark.parametrize("value", ["[", "{", "not json", 7, None, "null", '""'])
def test_rubbish_does_no_harm(call_of: CallOf, value: Any) -> None:
    for key in ("mlflow.spanInputs", "mlflow.chat.tokenUsage", "mlflow.llm.model", "mlflow.chat.tools"):
        reading = call_of({"mlflow.spanType": '"CHAT_MODEL"', key: value}).reading
        assert (reading.kind, reading.usage, reading.messages) == ("llm", {}, ())


def test_its_content_is_content() -> None:
    for key in ("mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.tools"):
        assert is_content_key(key)
    assert not is_content_key("mlflow.spanType")
