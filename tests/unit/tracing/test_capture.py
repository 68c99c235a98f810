"""What a call was given and gave, as attributes: within bounds that hold for every value."""

import asyncio
import base64
import json
import random
from typing import Any

import pytest
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s
from spangrade._values import MAX_BYTES

IMAGE = "data:image/png;base64," + base64.b64encode(b"\x89PNG" + random.Random(1).randbytes(600_000)).decode()
BIG: dict[str, Any] = {
    "text": "é" * 3_000_000,
    "controls": "\x00\x1f" * 600_000,
    "quotes": {"a": ['"\\\n' * 300_000, "\x00" * 300_000]},
    "many": [{"role": "user", "content": '"' * 50} for _ in range(60_000)],
    "numbers": [[float(i)] * 30 for i in range(5_000)],
    "keys": {'"\n' * 10 + str(i): i for i in range(50_000)},
    "emoji": ["\U0001f600" * 1_000] * 5_000,
}


def size(span: Any) -> int:
    return sum(len(str(value).encode()) for value in span.attributes.values())


@pytest.mark.parametrize("kind", ["llm", "chain", "tool", "retriever"])
@pytest.mark.parametrize("name", BIG)
def test_a_span_stays_below_a_mebibyte_whatever_goes_in_and_out(name: str, kind: Any, traced: Spans) -> None:
    @sg.trace(kind=kind)
    def f(value: Any) -> Any:
        return value

    assert f(BIG[name]) is BIG[name]
    assert size(traced.only()) < 1 << 20


def test_both_forms_together_stay_below_a_mebibyte(traced: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_SPAN_CONTENT", "both")

    @sg.trace
    def f(value: Any) -> Any:
        return value

    f(BIG["text"])
    span = traced.only()
    assert size(span) < 1 << 20
    assert {s.INPUT_MESSAGES, s.OI_INPUT, s.OUTPUT_MESSAGES, s.OI_OUTPUT} <= set(span.attributes)


@pytest.mark.parametrize("kind", ["llm", "chain"])
def test_an_image_is_named_and_the_words_around_it_stay(kind: Any, traced: Spans) -> None:
    @sg.trace(kind=kind)
    def vision(messages: Any) -> Any:
        return {"text": "a cat", "thumb": IMAGE, "raw": b"\x89PNG" * 100_000}

    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": IMAGE}}]
    vision([{"role": "user", "content": parts}])
    found = traced.attributes()
    said, answered = (
        str(found[key])
        for key in ((s.INPUT_MESSAGES, s.OUTPUT_MESSAGES) if kind == "llm" else (s.OI_INPUT, s.OI_OUTPUT))
    )
    assert len(said) < 1_000
    assert len(answered) < 1_000
    assert "What is it?" in said
    assert "<media image/png length=600004 sha256 of the first 16384=" in said
    assert "a cat" in answered
    assert answered.count("<media image/png length=") == 2


def test_a_long_conversation_keeps_its_end(traced: Spans) -> None:
    @sg.trace(kind="llm")
    def ask(messages: Any) -> str:
        return "ok"

    history = [{"role": "user", "content": f"{n} " + "x" * 9_000} for n in range(100)]
    ask([{"role": "system", "content": "y" * 900_000}, *history, {"role": "user", "content": "the question"}])
    messages = json.loads(traced.attributes()[s.INPUT_MESSAGES])
    assert messages[-1] == {"role": "user", "parts": [{"type": "text", "content": "the question"}]}
    assert all("role" in message for message in messages)


def test_messages_that_are_not_as_they_should_be_are_written_all_the_same(traced: Spans) -> None:
    @sg.trace(kind="llm")
    def ask(messages: Any) -> str:
        return "ok"

    for calls in ("text", 7, {"id": 1}, ["text"], [{"function": "f"}], [{"id": "1", "function": {"name": "f"}}]):
        ask([{"role": "assistant", "content": "hi", "tool_calls": calls}])
    for span in traced.all():
        (message,) = json.loads(span.attributes[s.INPUT_MESSAGES])
        assert message["parts"][0] == {"type": "text", "content": "hi"}


def test_the_text_of_an_exception_is_not_asked_for_where_nothing_is_recorded(
    traced: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:

    asked: list[str] = []

    class Loud(Exception):
        def __str__(self) -> str:
            asked.append("str")
            return ""

    @sg.trace
    async def fails() -> None:
        raise Loud

    monkeypatch.setenv("SPANGRADE_DISABLED", "true")
    with pytest.raises(Loud):
        asyncio.run(fails())
    assert asked == []


def test_the_bound_is_in_bytes(traced: Spans) -> None:
    @sg.trace
    def f(value: str) -> None: ...

    f("漢" * 1_000_000)
    text = str(traced.attributes()[s.OI_INPUT])
    assert MAX_BYTES * 0.9 < len(text.encode()) <= MAX_BYTES * 1.01
    assert "characters cut]" in text
