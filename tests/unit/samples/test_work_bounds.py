"""How much one span can make us do has an end, in every dialect: counted in characters parsed and functions called, not in time."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from spangrade.model.span import EventData, SpanData
from spangrade.samples import jsontext, room
from spangrade.samples.assemble import sample_of
from spangrade.samples.dialects import DIALECTS
from spangrade.samples.extract import extract
from spangrade.samples.messages import MAX_MESSAGES

SpanOf = Callable[..., SpanData]
KINDS: dict[str, dict[str, Any]] = {
    # What makes a span one of this dialect's, so that its reader is asked.
    dialect.name: {key: next(iter(mark.values), "x") for key, mark in dialect.kind_marks.items() if mark.values}
    for dialect in DIALECTS
}
CONTENT = [(dialect.name, key) for dialect in DIALECTS for key in sorted(dialect.content_keys)]
PREFIXES = [
    (dialect.name, prefix) for dialect in DIALECTS for prefix in dialect.content_prefixes if prefix.endswith(".")
]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The lengths of the texts that are parsed as JSON."""
    lengths: list[int] = []
    plain = jsontext.from_json

    def counting(text: Any, *args: Any, **more: Any) -> Any:
        lengths.append(len(text))
        return plain(text, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(jsontext, "from_json", counting)
        yield lengths


def calls_of(span: SpanData) -> int:
    """How many functions run while it is read, Python's and C's."""
    count = 0

    def look(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(look)
    try:
        extract(span)
    finally:
        sys.setprofile(None)
    return count


def test_of_five_megabytes_four_are_read(span_of: SpanOf, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as lengths:
        call = extract(span_of({"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages(5_000_000)}))
    assert call is not None
    assert call.reading.truncated
    assert call.reading.input is not None
    assert max(lengths) == room.MAX_VALUE_CHARS


def messages(characters: int) -> str:
    turn = {"role": "user", "content": "What is the plug in Lisbon? " * 10}
    return json.dumps([turn] * (characters // 300))


@pytest.mark.parametrize(("dialect", "key"), CONTENT)
def test_a_long_attribute_is_parsed_in_part(
    span_of: SpanOf, monkeypatch: pytest.MonkeyPatch, dialect: str, key: str
) -> None:
    """JSON, JSON in JSON, JSON that is cut: a few times what is read of a span at most, and the call says that it was cut.
    With a tenth of the real bound, since there are many keys."""
    monkeypatch.setattr(room, "MAX_VALUE_CHARS", 400_000)
    whole = messages(500_000)
    for text in (whole, json.dumps(whole), whole[:-9]):
        with counted(monkeypatch) as lengths:
            call = extract(span_of({**KINDS[dialect], key: text}))
        assert all(length <= room.MAX_VALUE_CHARS for length in lengths)
        assert sum(lengths) <= 8 * room.MAX_VALUE_CHARS
        if call is not None:
            assert call.reading.truncated
            assert len(call.reading.messages) <= MAX_MESSAGES
            assert len(repr(sample_of(call))) < 20_000_000


@pytest.mark.parametrize(("dialect", "prefix"), PREFIXES)
def test_ten_times_as_many_flattened_keys_take_ten_times_as_much(span_of: SpanOf, dialect: str, prefix: str) -> None:
    """No list is walked again for each of its elements."""

    def keys(count: int) -> dict[str, Any]:
        fields = ("role", "content", "message.role", "message.content", "document.content")
        return {f"{prefix}{n // 5}.{fields[n % 5]}": "x" for n in range(count)}

    few, many = (calls_of(span_of({**KINDS[dialect], **keys(n)})) for n in (300, 3_000))
    assert many < 12 * few + 5_000


def test_thousands_of_events_take_no_more_than_in_proportion(span_of: SpanOf) -> None:
    """Messages of the conventions up to 1.36."""

    def span(count: int) -> SpanData:
        events = [EventData("gen_ai.user.message", {"content": f"turn {n}"}, n) for n in range(count)]
        return span_of({"gen_ai.operation.name": "chat", "gen_ai.system": "openai"}, events=events)

    few, many = (calls_of(span(n)) for n in (300, 3_000))
    assert many < 12 * few


def test_many_levels_of_json_in_json_are_not_followed(span_of: SpanOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are met in practice."""
    text = json.dumps([{"role": "user", "content": "deep"}])
    for _ in range(12):
        text = json.dumps(text)
    for dialect in DIALECTS:
        for key in dialect.content_keys:
            with counted(monkeypatch) as lengths:
                extract(span_of({**KINDS[dialect.name], key: text}))
            assert len(lengths) <= 16, (dialect.name, key)


def test_a_nest_without_end_is_text(span_of: SpanOf) -> None:
    call = extract(span_of({"gen_ai.operation.name": "chat", "gen_ai.input.messages": '[{"a":' * 200_000}))
    assert call is not None
    assert call.reading.output is None


def test_the_longest_values_are_cut_first_and_the_rest_stays_whole(span_of: SpanOf) -> None:
    held = {"input": "q", **{f"long{n}": "x" * (2 * 2**20) for n in range(6)}, "output": "a" * 1_000}
    kept, cut = room.within(held)
    assert cut
    assert (kept["input"], kept["output"]) == ("q", "a" * 1_000)
    assert sum(len(value) for value in kept.values()) <= room.MAX_SPAN_CHARS
    assert room.within({"input": "q"}) == ({"input": "q"}, False)
    call = extract(span_of(held))
    assert call is not None
    assert (call.reading.input, call.reading.truncated) == ("q", True)


def test_the_last_events_are_kept() -> None:
    """An answer comes last."""
    events = [EventData("e", {"n": n, "text": "x" * (4 * 2**20)}, n) for n in range(4)]
    kept, cut = room.events_within(events)
    assert cut
    assert [len(event.attributes["text"]) for event in kept] == [0, 0, 4 * 2**20, 4 * 2**20]
    many = [EventData("e", {"n": n}, n) for n in range(room.MAX_EVENTS + 5)]
    kept, cut = room.events_within(many)
    assert (len(kept), kept[-1].attributes["n"], cut) == (room.MAX_EVENTS, room.MAX_EVENTS + 4, True)
    few = many[:3]
    assert room.events_within(few) == (few, False)
