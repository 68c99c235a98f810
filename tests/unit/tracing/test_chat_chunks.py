"""Chunks of chat clients are recorded as what they say together: the joined text, and the tool calls beside it."""

import dataclasses
import json
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk
from pydantic import BaseModel
from tests.unit.tracing.chat_chunks import ANTHROPIC, OPENAI, RESPONSES, TEXTS, WORDS, anthropic_delta, openai_chunk
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s
from spangrade.tracing import chat
from spangrade.tracing.chat import Joined


class Plain:
    """Plain attributes."""

    def __init__(self, **held: Any) -> None:
        self.__dict__.update(held)


class Record(BaseModel, extra="allow"):
    """As clients have them."""


def slotted(**held: Any) -> Any:
    return dataclasses.make_dataclass("Chunk", list(held), slots=True)(**held)


FORMS: dict[str, Callable[..., Any]] = {
    "dict": dict,
    "plain attributes": Plain,
    "namespace": types.SimpleNamespace,
    "pydantic": Record,
    "slots": slotted,
}


def shaped(value: Any, form: Callable[..., Any], dialect: str = "") -> Any:
    if dialect == "Bedrock":  # whose client knows dicts only
        return value
    if isinstance(value, dict):
        return form(**{key: shaped(item, form) for key, item in value.items()})
    return [shaped(item, form) for item in value] if isinstance(value, list) else value


def run(items: list[Any], kind: Any = "chain") -> None:
    @sg.trace(kind=kind)
    def stream() -> Iterator[Any]:
        yield from items

    for _ in stream():
        pass


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dialect", TEXTS)
def test_chunks_of_a_chat_are_recorded_as_their_joined_text(dialect: str, form: str, traced: Spans) -> None:
    run([shaped(chunk, FORMS[form], dialect) for chunk in TEXTS[dialect]])
    attributes = traced.attributes()
    assert (attributes[s.OI_OUTPUT], attributes[s.OI_OUTPUT_MIME]) == ("It is late.", s.MIME_TEXT)


@pytest.mark.parametrize("dialect", TEXTS)
def test_of_a_model_call_they_are_one_message(dialect: str, traced: Spans) -> None:
    run(TEXTS[dialect], "llm")
    assert json.loads(traced.attributes()[s.OUTPUT_MESSAGES]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "It is late."}]}
    ]


def test_a_stream_object_gives_the_same(traced: Spans) -> None:
    class Stream:
        def __init__(self) -> None:
            self.left = [ChatCompletionChunk.model_validate(chunk) for chunk in OPENAI]

        def __iter__(self) -> "Stream":
            return self

        def __next__(self) -> Any:
            if not self.left:
                raise StopIteration
            return self.left.pop(0)

    @sg.trace
    def ask() -> Any:
        return Stream()

    assert len(list(ask())) == len(OPENAI)
    assert traced.attributes()[s.OI_OUTPUT] == "It is late."


CALL = {"id": "call-1", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "UTC"}'}}
CALLS: dict[str, list[Any]] = {
    "OpenAI chat": [
        openai_chunk(
            tool_calls=[
                {"index": 0, "id": "call-1", "type": "function", "function": {"name": "clock", "arguments": ""}}
            ]
        ),
        openai_chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"zone": '}}]),
        openai_chunk(tool_calls=[{"index": 0, "function": {"arguments": '"UTC"}'}}]),
    ],
    "OpenAI Responses": [
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {"type": "function_call", "call_id": "call-1", "name": "clock", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"zone": '},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '"UTC"}'},
        {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": '{"zone": "UTC"}'},
    ],
    "Anthropic": [
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "call-1", "name": "clock", "input": {}},
        },
        anthropic_delta("input_json_delta", 1, partial_json='{"zone": '),
        anthropic_delta("input_json_delta", 1, partial_json='"UTC"}'),
    ],
    "LangChain": [
        {
            "type": "AIMessageChunk",
            "content": "",
            "tool_call_chunks": [{"name": "clock", "args": "", "id": "call-1", "index": 0}],
        },
        {"type": "AIMessageChunk", "content": "", "tool_call_chunks": [{"args": '{"zone": "UTC"}', "index": 0}]},
    ],
    "Bedrock": [
        {
            "contentBlockStart": {
                "start": {"toolUse": {"toolUseId": "call-1", "name": "clock"}},
                "contentBlockIndex": 1,
            }
        },
        {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"zone": "UTC"}'}}, "contentBlockIndex": 1}},
    ],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dialect", CALLS)
def test_a_tool_call_in_pieces_is_put_together(dialect: str, form: str, traced: Spans) -> None:
    run([shaped(chunk, FORMS[form], dialect) for chunk in CALLS[dialect]])
    found = json.loads(traced.attributes()[s.OI_OUTPUT])
    assert found == {"role": "assistant", "content": None, "tool_calls": [CALL]}


@pytest.mark.parametrize("dialect", CALLS)
def test_of_a_model_call_it_is_a_part_of_the_message(dialect: str, traced: Spans) -> None:
    run([*TEXTS[dialect][:-1], *CALLS[dialect]], "llm")
    (message,) = json.loads(traced.attributes()[s.OUTPUT_MESSAGES])
    assert message["parts"] == [
        {"type": "text", "content": "It is late."},
        {"type": "tool_call", "id": "call-1", **CALL["function"]},
    ]


WHOLE_CALLS: dict[str, Any] = {
    "Ollama": {
        "message": {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "clock", "arguments": {"zone": "UTC"}}}],
        },
        "done": False,
    },
    "Gemini": {"candidates": [{"content": {"parts": [{"function_call": {"name": "clock", "args": {"zone": "UTC"}}}]}}]},
}


@pytest.mark.parametrize("dialect", WHOLE_CALLS)
def test_tool_calls_that_come_whole_are_one_each(dialect: str, traced: Spans) -> None:
    run([WHOLE_CALLS[dialect]] * 2)
    calls = json.loads(traced.attributes()[s.OI_OUTPUT])["tool_calls"]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [{"zone": "UTC"}] * 2
    assert [call["function"]["name"] for call in calls] == ["clock"] * 2


@pytest.mark.parametrize(
    "thought",
    [
        openai_chunk(reasoning_content="Hm."),
        {"type": "response.reasoning_summary_text.delta", "delta": "Hm."},
        anthropic_delta("thinking_delta", thinking="Hm."),
    ],
)
def test_thoughts_are_kept_apart_from_the_answer(thought: Any, traced: Spans) -> None:
    answer = {"o": OPENAI, "r": RESPONSES, "c": ANTHROPIC}[str(thought.get("type", "o"))[0]]
    run([thought, *answer])
    run([thought, *answer], "llm")
    plain, model = traced.all()
    assert plain.attributes[s.OI_OUTPUT] == "It is late."
    (message,) = json.loads(model.attributes[s.OUTPUT_MESSAGES])
    assert message["parts"] == [
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "It is late."},
    ]


@pytest.mark.parametrize("dialect", ["Anthropic helper", "OpenAI chat helper"])
def test_who_streams_the_helpers_text_events_alone_hears_them(dialect: str, traced: Spans) -> None:
    run([event for event in TEXTS[dialect] if event["type"] in ("text", "content.delta")])
    assert traced.attributes()[s.OI_OUTPUT] == "It is late."


def test_a_refusal_is_what_was_said(traced: Spans) -> None:
    run([openai_chunk(refusal="I "), openai_chunk(refusal="cannot.")])
    assert traced.attributes()[s.OI_OUTPUT] == "I cannot."


def test_several_choices_are_a_message_each(traced: Spans) -> None:
    run([openai_chunk(n, content=word) for word in WORDS for n in (0, 1)])
    found = json.loads(traced.attributes()[s.OI_OUTPUT])
    assert found == [{"role": "assistant", "content": "It is late."}] * 2


def test_a_stream_that_is_left_before_its_first_word_has_said_nothing(traced: Spans) -> None:
    @sg.trace
    def stream() -> Iterator[Any]:
        yield from OPENAI

    next(stream())
    assert traced.attributes()[s.OI_OUTPUT] == ""


@pytest.mark.parametrize(
    "items",
    [
        [openai_chunk(content="a"), {"progress": 0.5}],
        [{"progress": 0.5}, openai_chunk(content="a")],
        ["a", openai_chunk(content="b")],
        [openai_chunk(content="a"), "b"],
        [openai_chunk(content="a"), None],
        [{"type": "ping"}, {"type": "message_stop"}],
        [{"choices": []}],
        [{"choices": [{"message": {"role": "assistant", "content": "whole"}}]}],
        [{"type": "text", "text": "a part of a message"}],
        [{"choices": "no", "type": 7, "message": None, "candidates": 3}],
        [{"message": "Disk full", "done": True}],
        [{"delta": "d"}],
        [[openai_chunk(content="a")]],
    ],
)
def test_what_is_mixed_or_unknown_stays_a_list(items: list[Any], traced: Spans) -> None:
    run(items)
    assert json.loads(traced.attributes()[s.OI_OUTPUT]) == items


def test_a_long_answer_is_whole_although_its_chunks_would_not_fit(traced: Spans) -> None:
    run([ChatCompletionChunk.model_validate(openai_chunk(content=f"word {n} ")) for n in range(3_000)])
    assert traced.attributes()[s.OI_OUTPUT] == "".join(f"word {n} " for n in range(3_000))


def test_an_endless_answer_is_cut_and_says_so(traced: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "MAX_CHARS", 100)
    run([openai_chunk(content="a" * 60), openai_chunk(content="b" * 60), openai_chunk(content="c" * 60)])
    assert traced.attributes()[s.OI_OUTPUT] == "a" * 60 + "b" * 40 + "…[80 characters cut]…"


def test_no_code_of_a_chunks_class_is_run(traced: Spans) -> None:
    class Fights:
        def __init__(self) -> None:
            self.delta = Plain(content="heard")

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError("code of the application's")

        @property
        def choices(self) -> Any:
            raise AssertionError("code of the application's")

    class Choices(list):  # type: ignore[type-arg]
        def __getitem__(self, at: Any) -> Any:
            raise AssertionError("code of the application's")

        __iter__ = __len__ = __getitem__

    run([Fights(), Plain(choices=Choices([Fights()]))])
    assert traced.attributes()[s.OI_OUTPUT].startswith("[")


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats()
KEYS = st.sampled_from(
    ["type", "choices", "delta", "content", "text", "message", "done", "candidates", "parts", "tool_calls", "index",
     "function", "arguments", "data", "contentBlockDelta", "content_block", "item", "id", "name", "tool_call_chunks"]
)  # fmt: skip
TYPES = st.sampled_from(
    ["response.output_text.delta", "content_block_delta", "content_block_start", "AIMessageChunk", "text",
     "raw_response_event", "content.delta", "response.output_item.added", "input_json_delta", "text_delta"]
)  # fmt: skip
WILD = st.recursive(
    LEAVES | TYPES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


@given(st.lists(WILD, max_size=6))
def test_whatever_comes_is_heard_without_a_fault_and_gives_plain_values(items: list[Any]) -> None:
    joined = Joined()
    if all(joined.hear(item) for item in items):
        json.dumps(joined.value(thoughts=True))
