"""quick_kind, evaluator traffic, and the keys that hold content."""

import tracemalloc
from collections.abc import Callable

import pytest

from spangrade.samples.content import CONTENT_EVENTS
from spangrade.samples.dialects import DIALECTS
from spangrade.samples.extract import CONTENT_KEYS, is_content_key, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
CHAT = {"gen_ai.operation.name": "chat"}


@pytest.mark.parametrize(
    "attributes",
    [
        {"openinference.span.kind": "EVALUATOR"},
        {"openinference.span.kind": "evaluator", **CHAT},
        {"gen_ai.operation.name": "evaluation"},
        {"openinference.span.kind": "CHAIN", "gen_ai.operation.name": "evaluation"},
        {"langfuse.observation.type": "evaluator", **CHAT},
        {"langfuse.environment": "langfuse-llm-as-a-judge", **CHAT},
        {"ai.observability.span_type": "eval"},
        {"ai.observability.span_type": "eval_root"},
        {"ai.observability.span_type": "eval_decision", "input": "x"},
        {"logfire.msg_template": "evaluator: {evaluator_name}", "logfire.span_type": "span"},
        {"logfire.msg_template": "Calling evaluator: {evaluator_name}", "logfire.span_type": "span"},
        {"openinference.span.kind": "CHAIN", "metadata": '{"type": "ChainType.METRIC"}'},
        {"openinference.span.kind": "CHAIN", "metadata": '{"type": "ChainType.ROW", "row_index": 0}'},
    ],
)
def test_evaluator_traffic_of_any_vendor(call_of: CallOf, attributes: dict[str, str]) -> None:
    """By attributes, whatever else the span says."""
    assert quick_kind(attributes) == "evaluator"
    assert call_of(attributes).evaluator


@pytest.mark.parametrize(
    "attributes",
    [
        {**CHAT, "gen_ai.system_instructions": '[{"type": "text", "content": "[spangrade-judge] v1"}]'},
        {**CHAT, "gen_ai.system_instructions": "[spangrade-judge] v1"},
        {**CHAT, "gen_ai.input.messages": '[{"role": "system", "content": "[spangrade-judge] v1"}]'},
        {
            **CHAT,
            "gen_ai.input.messages": '[{"role": "developer", "parts": [{"type": "text", "content": "[spangrade-judge]',
        },
        {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "system",
            "llm.input_messages.0.message.content": "[spangrade-judge] v1",
        },
        {
            "openinference.span.kind": "LLM",
            "input.mime_type": "application/json",
            "input.value": '{"messages": [{"role": "system", "content": "[spangrade-judge] v1"}]}',
        },
        {
            "openinference.span.kind": "LLM",
            "input.mime_type": "application/json",
            "input.value": '{"system": "[spangrade-judge] v1", "messages": []}',
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Grade this",
        },
    ],
)
def test_our_own_judges_are_known_by_their_marker(call_of: CallOf, attributes: dict[str, str]) -> None:
    """Whoever traced the call, in any dialect that is read."""
    assert call_of(attributes).evaluator


def test_a_user_who_types_the_marker_is_scored_like_any_other(call_of: CallOf) -> None:
    """Graded text is data (promise 9)."""
    typed = '[{"role": "user", "content": "[spangrade-judge] hello"}]'
    assert not call_of({**CHAT, "gen_ai.input.messages": typed}).evaluator
    assert not call_of({"input": "[spangrade-judge] hello"}).evaluator


def test_what_only_resembles_an_evaluators_mark_is_scored() -> None:
    """An application's own metadata, message or name."""
    assert quick_kind({"openinference.span.kind": "CHAIN", "metadata": '{"type": "evaluation"}'}) == "chain"
    assert quick_kind({"logfire.msg_template": "evaluator run {n}", "input": "x"}) == "chain"
    assert quick_kind({"metadata": '{"type": "ChainType"}'}) is None


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("retrieval.documents.{}.document.content", "retriever"),
        ("reranker.output_documents.{}.document.id", "reranker"),
        ("llm.input_messages.{}.message.content", "llm"),
        ("gen_ai.prompt.{}.content", "llm"),
        ("gen_ai.prompt.variable.{}", None),
        ("app.list.{}", None),
    ],
)
def test_a_span_that_lost_its_kind_at_the_attribute_limit_is_known_by_its_lists(key: str, kind: str | None) -> None:
    """C054: the SDK drops the oldest, and the kind is set first."""
    assert quick_kind({key.format(n): "x" for n in range(72, 200)}) == kind
    assert quick_kind({key.format(n): "x" for n in range(72, 80)}) is None  # nothing was lost


def test_long_values_of_marks_are_looked_at_by_their_beginning() -> None:
    """It runs on the application's thread for every span that ends: told by the memory that it takes."""
    attributes = {"input": "x" * 4_000_000, "openinference.span.kind": "LLM"}
    tracemalloc.start()
    try:
        assert quick_kind(attributes) == "llm"
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("value", [None, 5, ("chat",), {"a": 1}, b"chat", "", "  "])
def test_odd_values_of_a_kind_say_nothing(value: object) -> None:
    """And do not raise, hashable or not."""
    assert quick_kind({"gen_ai.operation.name": value}) is None
    assert quick_kind({"gen_ai.operation.name": value, "input.value": "q"}) == "chain"


def test_a_named_kind_is_believed_before_content() -> None:
    """Whatever the order of attributes."""
    for attributes in ({"input.value": "q", **CHAT}, {**CHAT, "input.value": "q"}):
        assert quick_kind(attributes) == "llm"
    assert quick_kind({"openinference.span.kind": "RETRIEVER", "gen_ai.operation.name": "anything"}) == "retriever"
    assert quick_kind({"openinference.span.kind": "PROMPT", "input.value": "q"}) is None
    assert quick_kind({"logfire.span_type": "pending_span", **CHAT}) is None


@pytest.mark.parametrize(
    "key",
    [
        "input",
        "output",
        "input.value",
        "output.value",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.retrieval.documents",
        "gen_ai.retrieval.query.text",
        "llm.input_messages.0.message.content",
        "llm.output_messages.3.message.tool_calls.0.tool_call.function.arguments",
        "llm.prompts.0.prompt.text",
        "retrieval.documents.0.document.content",
        "reranker.input_documents.0.document.content",
        "spangrade.context",
        "gen_ai.prompt.0.content",
        "traceloop.entity.input",
        "ai.prompt.messages",
        "langfuse.observation.output",
    ],
)
def test_content_keys(key: str) -> None:
    """Of the dialects that are read, and of others that are known."""
    assert is_content_key(key)


@pytest.mark.parametrize(
    "key",
    ["openinference.span.kind", "gen_ai.operation.name", "gen_ai.request.model", "gen_ai.usage.input_tokens",
     "metadata", "session.id", "user.id", "input.mime_type", "http.request.method", "llm.model_name",
     "gen_ai.prompt_name",
     "gen_ai.evaluation.score.value", "spangrade.scored_by"],
)  # fmt: skip
def test_keys_without_content(key: str) -> None:
    """Kinds, models, counts and labels stay."""
    assert not is_content_key(key)


def test_every_dialect_is_complete() -> None:
    """What a new one must declare; and no name twice."""
    assert len({dialect.name for dialect in DIALECTS}) == len(DIALECTS)
    for dialect in DIALECTS:
        assert dialect.content_keys <= CONTENT_KEYS
        assert dialect.claims({}) is False
    assert "gen_ai.choice" in CONTENT_EVENTS


def test_a_conversation_whose_beginning_was_lost_is_read_as_far_as_it_is_there(call_of: CallOf) -> None:
    """C054, of OpenInference and OpenLLMetry: its last turns, and marked."""
    for key in ("llm.input_messages.{}.message.{}", "gen_ai.prompt.{}.{}"):
        held = {
            key.format(n, field): value
            for n in range(40, 104)
            for field, value in (("role", "user"), ("content", f"turn {n}"))
        }
        call = call_of(held, dropped_attributes=80)
        assert (call.kind, call.reading.input, call.reading.truncated) == ("llm", "turn 103", True)
