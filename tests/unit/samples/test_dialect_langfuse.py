"""Langfuse: what its SDKs 3 to 5 write on spans. The values are those of langfuse 5.0.4 where no other is said."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.model.span import SpanData
from spangrade.samples.assemble import sample_of
from spangrade.samples.extract import extract, is_content_key, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
TYPE, GIVEN, GAVE = "langfuse.observation.type", "langfuse.observation.input", "langfuse.observation.output"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def generation(given: Any, gave: Any, **more: Any) -> dict[str, Any]:
    return {
        TYPE: "generation",
        GIVEN: given if isinstance(given, str) else json.dumps(given),
        GAVE: gave if isinstance(gave, str) else json.dumps(gave),
        "langfuse.observation.model.name": "gpt-4o-mini-2024-07-18",
        **more,
    }


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("span", "chain"),
        ("generation", "llm"),
        ("agent", "agent"),
        ("tool", "tool"),
        ("chain", "chain"),
        ("retriever", "retriever"),
        ("embedding", "embedding"),
        ("guardrail", "guardrail"),
        ("evaluator", "evaluator"),
        ("event", None),
        ("something_new", "chain"),
    ],
)
def test_its_types_are_our_kinds(value: str, kind: str | None) -> None:
    assert quick_kind({TYPE: value, GIVEN: "q"}) == kind


def test_a_generation_of_its_openai_wrapper(call_of: CallOf) -> None:
    """Messages, model, usage in the provider's names, user, session, metadata in JSON's quotes."""
    call = call_of(
        generation(
            [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Which plug?"}],
            {"role": "assistant", "content": "Type F."},
            **{
                "langfuse.observation.usage_details": json.dumps(
                    {
                        "completion_tokens": 5,
                        "prompt_tokens": 12,
                        "total_tokens": 17,
                        "completion_tokens_details": {"reasoning_tokens": 2},
                        "prompt_tokens_details": {"cached_tokens": 4},
                    }
                ),
                "langfuse.observation.metadata.tier": '"gold"',
                "langfuse.trace.metadata.x": '"123"',
                "langfuse.trace.metadata.n": "123",
                "langfuse.trace.tags": ("a", "b"),
                "user.id": "u1",
                "session.id": "s1",
            },
        )
    )
    reading = call.reading
    assert (reading.kind, reading.input, reading.output) == ("llm", "Which plug?", "Type F.")
    assert (reading.system, reading.model) == ("Be kind", "gpt-4o-mini-2024-07-18")
    assert [m["content"] for m in reading.messages] == ["Be kind", "Which plug?"]
    assert reading.usage == {"input_tokens": 12, "output_tokens": 5, "cache_read_tokens": 4, "reasoning_tokens": 2}
    assert (reading.user_id, reading.session_id) == ("u1", "s1")
    assert reading.metadata == {"tier": "gold", "x": "123", "n": 123, "tags": ["a", "b"]}


def test_a_streamed_generation(span_of: Callable[..., SpanData]) -> None:
    """The text alone, the finish reason among the metadata, and when the answer began."""
    began = 1_764_547_200_000_000_000  # 2025-12-01T00:00:00Z
    attributes = generation(
        [{"role": "user", "content": "q"}],
        "This is it.",
        **{
            "langfuse.observation.completion_start_time": '"2025-12-01T00:00:00.250000Z"',
            "langfuse.observation.metadata.finish_reason": '"stop"',
        },
    )
    call = extract(span_of(attributes, start_ns=began, end_ns=began + 10**9))
    assert call is not None
    assert (call.reading.output, call.reading.finish_reasons) == ("This is it.", ("stop",))
    assert call.reading.first_chunk_s == 0.25
    assert call.reading.metadata == {}


@pytest.mark.parametrize("when", ["", "soon", '"2025-13-01"', 5, '"1999-01-01T00:00:00Z"'])
def test_a_time_that_is_none_is_no_first_chunk(call_of: CallOf, when: Any) -> None:
    call = call_of(generation("q", "a", **{"langfuse.observation.completion_start_time": when}))
    assert call.reading.first_chunk_s is None


def test_a_turn_of_tool_calls_is_no_empty_answer(call_of: CallOf) -> None:
    """With the offered tools beside the messages; the call in today's form and in OpenAI's first one."""
    given = {"tools": [TOOL], "messages": [{"role": "user", "content": "Which plug?"}]}
    asked = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q":1}'}}
    reading = call_of(generation(given, {"role": "assistant", "tool_calls": [asked], "content": None})).reading
    assert (reading.input, reading.output) == ("Which plug?", None)
    assert reading.tool_calls == ({"id": "c1", "name": "look", "arguments": {"q": 1}},)
    assert reading.tools == (TOOL,)
    old = {"role": "assistant", "function_call": {"name": "look", "arguments": '{"q":1}'}, "content": None}
    assert call_of(generation(given, old)).reading.tool_calls == ({"name": "look", "arguments": {"q": 1}},)


def test_an_item_of_the_responses_api_is_no_response(call_of: CallOf) -> None:
    """It writes the only message alone, with that message's id."""
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A"}]}
    given = [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}]
    reading = call_of(generation(given, item)).reading
    assert (reading.input, reading.output, reading.response_id) == ("Hi", "A", None)


def test_several_choices_are_kept(call_of: CallOf) -> None:
    choices = [{"role": "assistant", "content": text} for text in ("A", "B")]
    reading = call_of(generation([{"role": "user", "content": "q"}], choices)).reading
    assert reading.output == "A"
    assert [m["content"] for m in reading.output_messages] == ["A", "B"]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"args": ["Which plug?"], "kwargs": {}}, "Which plug?"),
        ({"args": [], "kwargs": {"question": "Which plug?"}}, "Which plug?"),
        ({"args": ["Which plug?"], "kwargs": {"style": "short"}}, {"args": ["Which plug?"], "style": "short"}),
        ({"args": ["a", "b"], "kwargs": {}}, ["a", "b"]),
        ({"args": [], "kwargs": {}}, None),
        ({"question": "Which plug?"}, {"question": "Which plug?"}),  # set by hand
        ({"args": "no list", "kwargs": 1}, {"args": "no list", "kwargs": 1}),
        ("Which plug?", "Which plug?"),
        ("5", "5"),
    ],
)
def test_the_input_of_a_decorated_function_is_its_arguments(call_of: CallOf, given: Any, asked: Any) -> None:
    """As `@sg.trace` has it; text stays text."""
    value = given if isinstance(given, str) else json.dumps(given)
    reading = call_of({TYPE: "span", GIVEN: value, GAVE: "Type F."}).reading
    assert (reading.kind, reading.input, reading.output) == ("chain", asked, "Type F.")


def test_a_retriever_has_the_documents_that_it_returned(call_of: CallOf) -> None:
    found = [{"page_content": "type F", "metadata": {"page": 1}}]
    call = call_of({TYPE: "retriever", GIVEN: '{"args": ["plug"], "kwargs": {}}', GAVE: json.dumps(found)})
    assert call.reading.input == "plug"
    assert sample_of(call).documents == [{"content": "type F", "metadata": {"page": 1}}]


def test_the_traces_own_input_and_output_fill_what_the_observation_lacks(call_of: CallOf) -> None:
    """SDKs 3 and 4, and applications that set them by hand; the older names of user and session."""
    legacy = {
        "langfuse.trace.input": '{"q": 1}',
        "langfuse.trace.output": "trace out",
        "langfuse.user.id": "u1",
        "langfuse.session.id": "s1",
        "langfuse.trace.metadata": '{"tier": "gold"}',
    }
    reading = call_of({TYPE: "span", GAVE: "own out", **legacy}).reading
    assert (reading.input, reading.output) == ({"q": 1}, "own out")
    assert (reading.user_id, reading.session_id, reading.metadata) == ("u1", "s1", {"tier": "gold"})
    assert call_of(legacy).reading.output == "trace out"


def test_structured_messages_of_a_model_call_are_believed_before_its_summary(call_of: CallOf) -> None:
    """A span of another instrumentation that somebody also described for Langfuse."""
    messages = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": '[{"role": "user", "content": "message in"}]',
        "gen_ai.output.messages": '[{"role": "assistant", "content": "message out"}]',
    }
    reading = call_of({**messages, **generation("summary in", "summary out")}).reading
    assert (reading.input, reading.output) == ("message in", "message out")


def test_without_content_there_is_none(call_of: CallOf) -> None:
    """`capture_input=False, capture_output=False`."""
    reading = call_of({TYPE: "generation", "langfuse.observation.model.name": "m"}).reading
    assert (reading.input, reading.output, reading.messages) == (None, None, ())


def test_usage_in_langfuses_own_names(call_of: CallOf) -> None:
    """Given by hand; rubbish is none."""
    details = {"input": 9, "output": "2", "total": 11}
    assert call_of(
        generation("q", "a", **{"langfuse.observation.usage_details": json.dumps(details)})
    ).reading.usage == {"input_tokens": 9, "output_tokens": 2}
    for rubbish in ("[]", "{", "5", '{"input": "many"}', 5):
        assert call_of(generation("q", "a", **{"langfuse.observation.usage_details": rubbish})).reading.usage == {}


def test_cut_json_is_said(call_of: CallOf) -> None:
    """The length limit of attributes."""
    reading = call_of(generation('[{"role": "user", "content": "Which plug fits in', "a")).reading
    assert reading.truncated
    assert reading.output == "a"


def test_its_content_is_content() -> None:
    for key in (GIVEN, GAVE, "langfuse.trace.input", "langfuse.trace.output"):
        assert is_content_key(key)
    for key in (TYPE, "langfuse.observation.model.name", "langfuse.trace.metadata.tier"):
        assert not is_content_key(key)
