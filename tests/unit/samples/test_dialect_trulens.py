"""TruLens with OpenTelemetry. The values are those of trulens-core 2.16.0."""

import enum
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.samples.assemble import sample_of
from spangrade.samples.extract import is_content_key, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]


def span(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "ai.observability.span_type": kind,
        **{f"ai.observability.{k.replace('__', '.')}": v for k, v in more.items()},
    }


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("record_root", "chain"),
        ("generation", "llm"),
        ("retrieval", "retriever"),
        ("reranking", "reranker"),
        ("agent", "agent"),
        ("tool", "tool"),
        ("MCP", "tool"),
        ("guardrail", "guardrail"),
        ("graph_node", "chain"),
        ("workflow_step", "chain"),
        ("unknown", "chain"),
        ("eval", "evaluator"),
        ("eval_root", "evaluator"),
        ("eval_decision", "evaluator"),
    ],
)
def test_its_types_are_our_kinds(word: str, kind: str) -> None:
    """Its evaluations are never scored (C083)."""
    assert quick_kind(span(word)) == kind


def test_in_its_own_process_a_type_is_an_enum(call_of: CallOf) -> None:
    """A text all the same, so that the process and the agent see the same call."""

    class SpanType(str, enum.Enum):  # noqa: UP042 - as theirs is
        RETRIEVAL = "retrieval"

    call = call_of({**span("x"), "ai.observability.span_type": SpanType.RETRIEVAL})
    assert (call.kind, call.reading.kind) == ("retriever", "retriever")


def test_a_record_has_its_own_input_and_output(call_of: CallOf) -> None:
    reading = call_of(
        span(
            "record_root",
            record_root__input="Which plug?",
            record_root__output="Type F.",
            call__kwargs__query="Which plug?",
            call__kwargs__style="short",
            call__return='{"answer": "Type F."}',
            conversation_id="s1",
        )
    ).reading
    assert (reading.kind, reading.input, reading.output, reading.session_id) == (
        "chain",
        "Which plug?",
        "Type F.",
        "s1",
    )


def test_a_function_has_its_arguments_and_what_it_returned(call_of: CallOf) -> None:
    """As `@sg.trace` has it; mappings are JSON."""
    reading = call_of(span("unknown", call__kwargs__query="q", call__kwargs__n=3, call__return='{"a": 1}')).reading
    assert (reading.input, reading.output) == ({"query": "q", "n": 3}, {"a": 1})


def test_a_generation(call_of: CallOf) -> None:
    """A text, or messages; counts and time to first token."""
    more = {"cost__num_prompt_tokens": 12, "cost__num_completion_tokens": 5, "cost__model": "m-1"}
    call = call_of(
        span(
            "generation",
            call__kwargs__prompt="Hi",
            call__return="Hello",
            generation__time_to_first_token_ms=250,
            **more,
        )
    )
    reading = call.reading
    assert (reading.kind, reading.input, reading.output, reading.model) == ("llm", "Hi", "Hello", "m-1")
    assert reading.usage == {"input_tokens": 12, "output_tokens": 5}
    assert reading.first_chunk_s == 0.25
    messages = '[{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}]'
    reading = call_of(span("generation", call__kwargs__messages=messages, call__return="Hello")).reading
    assert (reading.input, reading.output, reading.system) == ("Hi", "Hello", "Be kind")


def test_a_retrieval_has_query_and_texts(call_of: CallOf) -> None:
    """Without ids and scores; its own keys and the conventions' beside them."""
    sample = sample_of(
        call_of(
            span(
                "retrieval",
                call__kwargs__query="plug",
                call__kwargs__k=2,
                call__return=("type F", "trams"),
                retrieval__query_text="plug",
                retrieval__retrieved_contexts=("type F", "trams"),
            )
        )
    )
    assert sample.input == "plug"
    assert sample.documents == [{"content": "type F"}, {"content": "trams"}]
    nothing = call_of(span("retrieval", retrieval__query_text="plug", retrieval__retrieved_contexts=())).reading
    assert nothing.documents == ()


def test_a_reranker_has_scores(call_of: CallOf) -> None:
    """Where there is one for each text."""
    texts = {"reranking__query_text": "plug", "reranking__output_context_texts": ("a", "b")}
    reading = call_of(span("reranking", **texts, reranking__output_context_scores=(0.9, 0.5))).reading
    assert reading.documents == ({"content": "a", "score": 0.9}, {"content": "b", "score": 0.5})
    reading = call_of(span("reranking", **texts, reranking__output_context_scores=(0.9,))).reading
    assert reading.documents == ({"content": "a"}, {"content": "b"})


def test_a_tool_has_its_arguments_by_name(call_of: CallOf) -> None:
    attributes = {**span("tool", call__kwargs__city="Lisbon", call__return='{"plug": "F"}'), "gen_ai.tool.name": "look"}
    sample = sample_of(call_of(attributes))
    assert (sample.input, sample.output) == ({"city": "Lisbon"}, {"plug": "F"})
    assert sample.context["tool_calls"] == [{"name": "look", "arguments": {"city": "Lisbon"}, "result": {"plug": "F"}}]


def test_without_content_there_is_none(call_of: CallOf) -> None:
    for kind in ("record_root", "generation", "retrieval", "tool", "agent"):
        reading = call_of(span(kind)).reading
        assert (reading.input, reading.output) == (None, None)


@pytest.mark.parametrize("value", ["[", "{", 7, (), {"a": 1}, None])
def test_rubbish_does_no_harm(call_of: CallOf, value: Any) -> None:
    for key in ("retrieval__retrieved_contexts", "reranking__output_context_scores", "cost__num_prompt_tokens"):
        assert call_of(span("reranking", **{key: value})).reading.kind == "reranker"


def test_its_content_is_content() -> None:
    for key in (
        "record_root.input",
        "call.kwargs.query",
        "call.return",
        "retrieval.query_text",
        "graph_node.input_state",
    ):
        assert is_content_key(f"ai.observability.{key}")
    assert not is_content_key("ai.observability.span_type")
