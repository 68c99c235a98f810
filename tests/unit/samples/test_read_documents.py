"""Documents in every form that people hold them in (C053)."""

import collections
import datetime
import itertools
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from spangrade.model.document import MAX_DOCUMENT_CHARS
from spangrade.model.documents import CUT, MAX_DOCUMENTS, read_documents

T = "Paris is the capital of France."


class LangChainDocument(BaseModel):
    page_content: str | None
    metadata: dict[str, Any] = {}
    id: str | None = None


class Plain:
    def __init__(self, page_content: Any, metadata: Any = None, id: Any = None) -> None:  # noqa: A002
        self.page_content, self.metadata, self.id = page_content, metadata or {}, id


@dataclass
class Node:
    text: str
    node_id: str
    metadata: dict[str, Any] = field(default_factory=dict)

    def get_content(self, metadata_mode: object = None) -> str:
        raise AssertionError("no method of the application is run")


@dataclass
class NodeWithScore:
    node: Any
    score: Any = None


@dataclass
class MediaResource:
    text: str | None


@dataclass
class NewNode:
    id_: str
    text_resource: MediaResource

    @property
    def text(self) -> str:
        raise AssertionError("no property of the application is run")


@dataclass
class HaystackDocument:
    id: str
    content: str
    meta: dict[str, Any]
    score: float | None = None


class Slotted:
    __slots__ = ("never_set", "page_content")

    def __init__(self, page_content: str) -> None:
        self.page_content = page_content


class Pair(NamedTuple):
    text: str
    score: float


class Scalar:
    """A score like numpy.float32."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value


@pytest.mark.parametrize(
    ("given", "documents"),
    [
        (None, None),
        ([], ()),
        ((), ()),
        ([[]], ()),
        ([T, "Rome."], ({"content": T}, {"content": "Rome."})),
        ((T, "Rome."), ({"content": T}, {"content": "Rome."})),
        (T, ({"content": T},)),
        ([{"content": T}, {"text": T}, {"page_content": T}, {"document": T}], ({"content": T},) * 4),
        ({"content": T}, ({"content": T},)),
        (LangChainDocument(page_content=T, metadata={"p": 1}), ({"content": T, "metadata": {"p": 1}},)),
        ([LangChainDocument(page_content=T)], ({"content": T},)),
        ([Plain(T, {"when": datetime.date(2024, 1, 2)})], ({"content": T, "metadata": {"when": "2024-01-02"}},)),
        ([(Plain(T, {}, "d1"), 0.83), (Plain("R"), Scalar(0.41))],
         ({"id": "d1", "content": T, "score": 0.83}, {"content": "R", "score": 0.41})),
        ([(0.9, Plain(T))], ({"content": T, "score": 0.9},)),
        ((T, 0.5), ({"content": T, "score": 0.5},)),
        ([[T, 0.5]], ({"content": T, "score": 0.5},)),
        ([NodeWithScore(Node(T, "n1", {"f": "a.pdf"}), 0.7), NodeWithScore(Node("x", "n2"))],
         ({"id": "n1", "content": T, "score": 0.7, "metadata": {"f": "a.pdf"}}, {"id": "n2", "content": "x"})),
        ([NodeWithScore(NewNode("n1", MediaResource(T)), 0.7)], ({"id": "n1", "content": T, "score": 0.7},)),
        ([HaystackDocument("h1", T, {"p": 1}, 0.5)], ({"id": "h1", "content": T, "score": 0.5, "metadata": {"p": 1}},)),
        ([Slotted(T)], ({"content": T},)),
        ([Pair(T, 0.5)], ({"content": T, "score": 0.5},)),
        ((d for d in [T, "Rome."]), ({"content": T}, {"content": "Rome."})),
        (collections.deque([T]), ({"content": T},)),
        ({"a": T}.values(), ({"content": T},)),
        ([[T], ["Rome."]], ({"content": T}, {"content": "Rome."})),
        ([{"content": [{"type": "text", "text": T}, "and more"]}], ({"content": f"{T}\nand more"},)),
        ([Plain(None, {"title": "scan"})], ({"content": "", "metadata": {"title": "scan"}},)),
        ([{"id": 42, "content": T, "score": "0.5"}], ({"id": "42", "content": T, "score": 0.5},)),
        ([{"id": "d1", "score": 0.5}], ({"id": "d1", "content": "", "score": 0.5},)),
        ([{"text": T, "source": "a.pdf", "embedding": [0.1] * 3}], ({"content": T, "metadata": {"source": "a.pdf"}},)),
        ({"documents": [{"text": T}], "answer": "x"}, ({"content": T},)),
        ({"text": "the answer", "source_documents": [Plain(T)]}, ({"content": T},)),
        ([{"document": {"text": T, "id": "d1"}, "relevance_score": 0.9}], ({"id": "d1", "content": T, "score": 0.9},)),
        ([{"document.content": T, "document.id": "d1", "document.score": 1}],
         ({"id": "d1", "content": T, "score": 1.0},)),
        (f'[{{"content": "{T}"}}]', ({"content": T},)),
        (f'[1] {T}', ({"content": f"[1] {T}"},)),
        ([f'{{"row": "{T}"}}'], ({"content": f'{{"row": "{T}"}}'},)),
        ([{"content": T, "score": float("nan"), "id": "", "metadata": None}], ({"content": T},)),
        ([{"content": T, "metadata": '{"p": 1}'}], ({"content": T, "metadata": {"p": 1}},)),
        ([{"content": 7, "score": True}], ({"content": "7"},)),
        ([{"content": "half \ud83d emoji"}], ({"content": "half \ufffd emoji"},)),
    ],
)  # fmt: skip
def test_every_form(given: Any, documents: Any) -> None:
    """Text found, ids and scores where they are, nothing invented."""
    assert read_documents(given) == documents


def test_metadata_that_is_no_json_becomes_plain() -> None:
    """Objects are named, sets are lists, NaN is text."""
    (document,) = read_documents([Plain(T, {"oid": object(), "tags": {1}, "nan": float("nan")})]) or ()
    assert document["metadata"] == {"oid": "<builtins.object>", "tags": [1], "nan": "nan"}


@pytest.mark.parametrize("bad", [None, "", "  ", 5, object(), b"bytes", print, {}, {"a": 1.5}.keys, Plain(None)])
def test_what_is_no_document_is_skipped_with_one_warning(bad: Any, caplog: pytest.LogCaptureFixture) -> None:
    """However many there are."""
    with caplog.at_level(logging.WARNING, "spangrade"):
        assert read_documents([T, bad, bad, {"text": T}]) == ({"content": T}, {"content": T})
        read_documents([bad])
    assert len(caplog.records) == 1


@pytest.mark.parametrize("value", [5, object(), [None], [1, 2, 3], "", b"x", True, open])
def test_a_value_in_which_nothing_can_be_read_is_not_an_empty_search(value: Any) -> None:
    """Found nothing is a finding; this is none."""
    assert read_documents(value) is None


def test_an_iterator_is_read_once_and_not_beyond_the_bound() -> None:
    """An endless one too."""
    endless = itertools.count()
    documents = read_documents(f"passage {n}" for n in endless)
    assert documents is not None
    assert len(documents) == MAX_DOCUMENTS
    assert next(endless) == MAX_DOCUMENTS
    assert documents[-1]["metadata"][CUT] == {"given": MAX_DOCUMENTS, "kept": MAX_DOCUMENTS, "stopped": True}


def test_an_iterator_that_raises_gives_what_came_before() -> None:
    """Never an exception into the application."""

    def broken() -> Iterator[str]:
        yield T
        raise RuntimeError("the database is gone")

    assert read_documents(broken()) == ({"content": T},)


def test_an_object_that_resists_costs_only_itself() -> None:
    """Its getattr, its float and its iterator raise."""

    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __float__(self) -> float:
            raise RuntimeError("float")

        def __iter__(self) -> Iterator[Any]:
            raise RuntimeError("iter")

    assert read_documents([Hostile(), T, (T, Hostile())])[0] == {"content": T}  # type: ignore[index]


def test_the_objects_given_are_left_as_they_were() -> None:
    """And what was read does not follow later changes."""
    given = [{"content": T, "metadata": {"p": [1]}}]
    documents = read_documents(given)
    given[0]["metadata"]["p"].append(2)  # type: ignore[index]
    assert documents == ({"content": T, "metadata": {"p": [1]}},)


def test_a_list_that_holds_itself_ends() -> None:
    """Depth is bounded."""
    ring: list[Any] = [T]
    ring.append(ring)
    documents = read_documents(ring)
    assert documents is not None
    assert 1 <= len(documents) <= 10


def test_many_documents_are_cut_by_whole_ones_and_say_so() -> None:
    """300 of 20 kB: 1 MiB of text is kept, in order."""
    documents = read_documents([{"content": f"{n:03}" + "x" * 19_997, "metadata": {"n": n}} for n in range(300)])
    assert documents is not None
    assert 45 <= len(documents) <= 53
    assert all(len(d["content"]) == 20_000 for d in documents)
    assert [d["metadata"]["n"] for d in documents] == list(range(len(documents)))
    assert documents[-1]["metadata"][CUT] == {"given": 300, "kept": len(documents)}


def test_a_very_long_document_is_cut_in_its_middle() -> None:
    """With the mark in the text."""
    ((document),) = read_documents(["a" * 10 + "x" * 500_000 + "z" * 10]) or ()
    assert len(document["content"]) < MAX_DOCUMENT_CHARS + 100
    assert document["content"].startswith("a" * 10)
    assert document["content"].endswith("z" * 10)
    assert "characters cut" in document["content"]


def test_huge_metadata_cannot_push_the_text_out() -> None:
    """The first document is always there."""
    (document,) = read_documents([{"content": T, "metadata": {"blob": "x" * 3_000_000}}]) or ()
    assert document["content"] == T
