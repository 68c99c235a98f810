"""What a stream gave is kept within bounds, as it was when it came."""

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import pytest
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s
from spangrade._values import MAX_BYTES
from spangrade.tracing import chunks


@sg.trace
def stream(items: Iterable[Any]) -> Iterator[Any]:
    yield from items


@sg.trace
async def astream(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


def drain(items: Iterable[Any]) -> None:
    for _ in stream(items):
        pass


def adrain(items: Iterable[Any]) -> None:
    async def main() -> None:
        async for _ in astream(items):
            pass

    asyncio.run(main())


@pytest.mark.parametrize("run", [drain, adrain])
def test_a_stream_of_big_objects_does_not_keep_them(run: Any, traced: Spans) -> None:
    tracemalloc.start()
    try:
        run(bytes([n]) * 1_000_000 for n in range(60))
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()
    output = json.loads(traced.attributes()[s.OI_OUTPUT])
    assert len(output) == 60
    assert output[0].startswith("<bytes length=1000000 sha256")


def test_objects_are_copied_when_they_come_since_streams_reuse_them(traced: Spans) -> None:
    def reused() -> Iterator[dict[str, int]]:
        chunk: dict[str, int] = {}
        for n in range(3):
            chunk["n"] = n
            yield chunk

    drain(reused())
    assert json.loads(traced.attributes()[s.OI_OUTPUT]) == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_a_long_stream_of_objects_is_cut_and_says_so(traced: Spans) -> None:
    drain({"delta": "x" * 100, "n": n} for n in range(50_000))
    text = traced.attributes()[s.OI_OUTPUT]
    assert len(text) <= MAX_BYTES * 1.1
    items = json.loads(text)
    assert items[0]["n"] == 0
    assert items[-1] == "<more items cut>"


def test_text_beyond_the_bound_is_counted_and_not_kept(traced: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MAX_CHARS", 100)
    drain(["a" * 60, "b" * 60, "c" * 60])
    assert traced.attributes()[s.OI_OUTPUT] == "a" * 60 + "b" * 40 + "…[80 characters cut]…"


def test_one_chunk_of_enormous_text_is_cut(traced: Spans) -> None:
    tracemalloc.start()
    try:
        drain("z" * 30_000_000 for _ in range(2))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 10_000_000
    assert len(traced.attributes()[s.OI_OUTPUT]) <= MAX_BYTES * 1.1


def test_text_and_objects_together_become_a_list(traced: Spans) -> None:
    drain(["a", {"b": 1}, "c", None])
    assert json.loads(traced.attributes()[s.OI_OUTPUT]) == ["a", {"b": 1}, "c", None]


class Document:
    def __init__(self, text: str) -> None:
        self.text = text


def test_a_streaming_retriever_gives_documents_of_every_form(traced: Spans) -> None:
    @sg.trace(kind="retriever")
    def search(items: Iterable[Any]) -> Iterator[Any]:
        yield from items

    assert len(list(search(["plain", ("pair", 0.5), Document("object"), [{"text": "page"}, "of results"]]))) == 4
    found = json.loads(traced.attributes()[s.RETRIEVAL_DOCUMENTS])
    assert [document["content"] for document in found] == ["plain", "pair", "object", "page", "of results"]
    assert found[1]["score"] == 0.5


def test_documents_that_did_not_fit_are_counted_and_are_no_document(traced: Spans) -> None:
    @sg.trace(kind="retriever")
    def search() -> Iterator[str]:
        yield from ("text " * 2_000 for _ in range(80))

    @sg.trace(kind="retriever")
    def search_at_once() -> list[str]:
        return ["text " * 2_000] * 80

    list(search())
    search_at_once()
    for span in traced.all():
        found = json.loads(span.attributes[s.RETRIEVAL_DOCUMENTS])
        assert 40 < len(found) < 60
        assert all(isinstance(document, dict) for document in found)
        assert found[-1]["metadata"]["spangrade.cut"] == {"given": 80, "kept": len(found)}


def test_a_fault_in_keeping_a_chunk_does_not_reach_the_consumer(
    traced: Spans, monkeypatch: pytest.MonkeyPatch, swallowed_faults: list[Any]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(chunks.Chunks, "_add", broken)
    assert list(stream([1, 2])) == [1, 2]
    assert [where for where, _ in swallowed_faults] == ["stream.chunk"]
    swallowed_faults.clear()
