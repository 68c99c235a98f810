"""`citations`: markers in every style, and what they point to."""

from collections.abc import Callable
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.citations import citations
from spangrade.model.sample import Sample
from spangrade.model.score import Graded, Skip

DOCUMENTS = [
    {"id": "doc-1", "content": "A refund takes five working days."},
    {
        "id": "doc-2",
        "content": "Gift cards cannot be refunded.",
        "metadata": {"url": "https://acme.com/gift/", "title": "Gift cards"},
    },
    {"content": "Parcels arrive within three working days.", "metadata": {"source": "docs/shipping.pdf"}},
]
ONE = "A refund takes five working days"
TWO = "Gift cards cannot be refunded"
Scores = dict[str, Graded]


@pytest.fixture
def cite() -> Callable[..., Scores]:
    def make(output: Any, documents: Any = DOCUMENTS, **options: Any) -> Scores:
        verdict: Any = citations(**options).evaluate(Sample(output=output, documents=documents))
        return {score.name.removeprefix("citations."): score for score in verdict.scores}

    return make


@pytest.mark.parametrize(
    "answer",
    [
        f"{ONE} [1]. {TWO} [2].",
        f"{ONE}. [1] {TWO}. [2]",
        f"{ONE}.[1] {TWO}.[2]",
        f"[1] {ONE}. [2] {TWO}.",
        f"[1] {ONE}\n[2] {TWO}",
        f"- {ONE} [^1]\n- {TWO} [^2]",
        f"{ONE} [doc-1]. {TWO} [DOC-2].",
        f"{ONE}【1】. {TWO}【2】.",
        f"{ONE}【3:0†source】. {TWO}【3:1†gift】.",
        f"{ONE} (1). {TWO} (2).",
        f"{ONE}.¹ {TWO}.²",
        f"{ONE} [1, 3]. {TWO} [2-3].",
        f"{ONE} [Source 1]. {TWO} [gift cards].",
        f"{ONE} [1]. {TWO} (https://www.acme.com/gift).",
        {"text": f"{ONE} [1].", "more": f"{TWO} [2]."},
    ],
)
def test_every_style_points_to_its_documents(cite: Any, answer: Any) -> None:
    scores = cite(answer)
    assert {name: (score.value, score.passed) for name, score in scores.items()} == {
        "valid": (1, True),
        "coverage": (1, True),
        "support": (1, True),
    }


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (f"{ONE} [7].", "[7]"),
        (f"{ONE} [0].", "[0]"),
        (f"{ONE} [1, 9].", "[9]"),
        (f"{ONE} [doc-9].", "[doc-9]"),
        (f"{ONE} [handbook.pdf].", "[handbook.pdf]"),
        (f"{ONE}【9】.", "【9】"),
        (f"{ONE}【4:7†source】.", "【4:7†source】"),
        (f"{ONE}.⁹", "⁹"),
        (f"{ONE} https://acme.com/other", "https://acme.com/other"),
        (f"{ONE} https://acme.com.evil.example/gift", "https://acme.com.evil.example/gift"),
    ],
)
def test_an_invented_source_is_named_and_fails(cite: Any, answer: str, label: str) -> None:
    score = cite(answer)["valid"]
    assert score.passed is False
    assert (score.explanation or "").endswith(f"to none: {label} (passes at 1)")


@pytest.mark.parametrize(
    "answer",
    [
        f"{ONE} [sic] [optional] [x] [Name].",
        f"{ONE}, see `list[0]` and:\n```\na[9] = b[8]\n```",
        f"{ONE}, as [here](https://docs.example) it says.".replace("https://docs.example", "page"),
        f"{ONE}, in the year (2023), (a) and (b).",
        f"{ONE} on 25 m² and x² of it.",
    ],
)
def test_what_only_looks_like_a_marker_is_none(cite: Any, answer: str) -> None:
    scores = cite(answer)
    assert "valid" not in scores
    assert "support" not in scores
    assert scores["coverage"].passed is False


def test_a_cited_document_that_says_something_else_does_not_support(cite: Any) -> None:
    scores = cite(f"{ONE} [2]. Elephants sing in the moonlight [1].")
    assert scores["valid"].passed is True
    assert scores["support"].passed is False
    assert "cites document" in (scores["support"].explanation or "")


def test_sentences_without_a_citation_are_counted_and_the_first_is_quoted(cite: Any) -> None:
    score = cite(f"# Refunds and cards\n{ONE} [1]. {TWO}. Is there anything else you want to know? Yes.")["coverage"]
    assert (score.value, score.passed) == (0.5, True)
    assert f"“{TWO}.”" in (score.explanation or "")


@pytest.mark.parametrize("heading", ["Sources:", "## References", "**Quellen**", "参考文献："])
def test_a_list_of_sources_at_the_end_is_no_sentence(cite: Any, heading: str) -> None:
    scores = cite(
        f"{ONE} [1].\n\n{heading}\n[1] The refund handbook of the year 2024\n[9] Something else entirely, long enough"
    )
    assert scores["coverage"].value == 1
    assert scores["valid"].passed is False  # it lists what nobody retrieved


def test_ids_come_before_positions(cite: Any) -> None:
    documents = [{"id": "2", "content": TWO}, {"id": "1", "content": ONE}]
    assert cite(f"{ONE} [1]. {TWO} [2].", documents)["support"].value == 1


def test_numbers_may_begin_with_0(cite: Any) -> None:
    assert cite(f"{ONE} [0].", first=0)["support"].value == 1
    assert cite(f"{ONE} [3].", first=0)["valid"].passed is False


def test_documents_may_be_plain_text(cite: Any) -> None:
    assert cite(f"{ONE} [1].", [ONE])["support"].value == 1
    assert cite(f"{ONE} [2].", [ONE])["valid"].passed is False


def test_styles_can_be_chosen(cite: Any) -> None:
    answer = f"{ONE} (1) [7]."
    assert cite(answer)["valid"].passed is False
    assert cite(answer, styles=["parentheses"])["valid"].passed is True
    assert cite(f"{ONE} https://x.example/a", styles="url")["valid"].passed is False


def test_pass_marks_can_be_chosen(cite: Any) -> None:
    answer = f"{ONE} [1] [9]. {TWO}."
    assert cite(answer)["valid"].passed is False
    scores = cite(answer, min_valid=0.5, min_coverage=0.6)
    assert (scores["valid"].passed, scores["coverage"].passed) == (True, False)


@pytest.mark.parametrize(
    ("answer", "documents", "reason"),
    [
        (ONE, [], "documents missing"),
        ("", DOCUMENTS, "output missing"),
        ("I'm sorry, I can't help with that.", DOCUMENTS, "the answer refuses"),
        ("Yes.", DOCUMENTS, "no sentence that needs a citation"),
    ],
)
def test_there_is_no_score_where_there_is_nothing_to_cite(cite: Any, answer: str, documents: Any, reason: str) -> None:
    with pytest.raises(Skip, match=reason):
        cite(answer, documents)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"styles": "footnotes"}, "styles holds 'footnotes'"),
        ({"styles": []}, "styles is empty"),
        ({"first": 2}, "first 2 is not 0 or 1"),
        ({"min_valid": 2}, "min_valid 2 is not a number from 0 to 1"),
    ],
)
def test_options_that_cannot_work_are_refused(options: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        citations(**options)


@pytest.mark.parametrize(
    "unit", ["[", "[1,", "[1]", "【", "(", "a (1", "http://", "¹", "¹,", ". ", "[a", "1. ", "[1-9999]"]
)
def test_hostile_repetition_ends(unit: str) -> None:
    try:
        citations().evaluate(Sample(output=unit * (20_000 // len(unit)), documents=DOCUMENTS))
    except Skip:
        pass
