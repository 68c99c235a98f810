"""`overlap`: lexical support, per sentence."""

from collections.abc import Callable
from typing import Any

import pytest

from spangrade.metrics.catalog import resolve
from spangrade.model.sample import Sample
from spangrade.model.score import Graded, Skip

Grade = Callable[..., Graded]


@pytest.mark.parametrize(
    "documents",
    [
        ["It takes five working days"],
        [{"content": "It takes five working days"}],
        [{"page_content": "It takes five working days"}],
        [{"text": "It takes"}, "five working days"],
        "It takes five working days",
        {"content": "It takes five working days"},
        [{"content": ["It takes", "five working days"]}],
    ],
)
def test_documents_may_be_text_dicts_or_one_of_them(grade: Grade, documents: Any) -> None:
    assert grade("overlap", output="five working days", documents=documents).value >= 0.85


@pytest.mark.parametrize(
    ("answer", "source", "at_least"),
    [
        ("退款需要五个工作日。", "退款通常需要五个工作日。", 0.8),
        ("返金には五営業日かかります。", "返金には五営業日かかります。ギフトカードは返金できません。", 0.95),
        ("การคืนเงินใช้เวลาห้าวัน", "การคืนเงินใช้เวลาห้าวันทำการ", 0.95),
        ("धनवापसी में पाँच दिन लगते हैं।", "धनवापसी में पाँच दिन लगते हैं।", 0.95),
        ("It costs 1,000 dollars.", "The price is 1000 dollars, it costs that.", 0.7),
        ('{"days": "five working days"}', "five working days", 1.0),
        ({"days": "five working days", "sure": None}, "five working days", 1.0),
    ],
)
def test_support_is_seen_in_every_script_and_form(grade: Grade, answer: Any, source: str, at_least: float) -> None:
    score = grade("overlap", output=answer, documents=[source])
    assert score.value is not None
    assert at_least <= score.value <= 1


def test_an_unsupported_answer_in_a_script_without_spaces_scores_low(grade: Grade) -> None:
    assert (grade("overlap", output="大象在月光下唱歌。", documents=["退款需要五个工作日。"]).value or 0) < 0.2


def test_a_changed_number_is_the_word_that_no_document_has(grade: Grade) -> None:
    score = grade("overlap", output="The refund takes 7 days.", documents=["The refund takes 5 days."])
    assert score.explanation is not None
    assert score.explanation.endswith("in no document: 7")


def test_the_weakest_sentence_is_quoted_whole_with_its_abbreviation(grade: Grade) -> None:
    answer = "The refund takes five days. Dr. Who approves it on Mars."
    score = grade("overlap", output=answer, documents=["The refund takes five days."])
    assert "“Dr. Who approves it on Mars.”" in (score.explanation or "")


def test_the_value_is_weighted_by_words(grade: Grade) -> None:
    """Six words of which all stand there with their pairs, two of which none does: 6 of 8."""
    answer = "Parcels arrive within three working days. Drones bring them."
    score = grade("overlap", output=answer, documents=["Parcels arrive within three working days."])
    assert score.value == pytest.approx(0.75, abs=0.04)


@pytest.mark.parametrize("documents", [[], [""], [{"content": ""}], [{"id": "d1", "score": 1.0}], [{}], [None], [7]])
def test_without_text_in_the_documents_there_is_no_score(grade: Grade, documents: Any) -> None:
    with pytest.raises(Skip):
        grade("overlap", output="five days of rain", documents=documents)


def test_it_says_the_same_whatever_the_order_of_documents() -> None:
    metric = resolve("overlap")
    documents = [{"content": f"text {word} more"} for word in ("alpha", "beta", "gamma")]
    answer = "alpha text. gamma beta."
    one = metric.evaluate(Sample(output=answer, documents=documents))
    assert one == metric.evaluate(Sample(output=answer, documents=documents[::-1]))


def test_citation_markers_are_no_words_of_the_answer(grade: Grade) -> None:
    documents = ["The refund takes five days."]
    plain = grade("overlap", output="The refund takes five days.", documents=documents)
    assert grade("overlap", output="The refund takes five days [1, 2]【3:0†source】.", documents=documents) == plain
