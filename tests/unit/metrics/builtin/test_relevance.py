"""`context_relevance` and `answer_relevance`: nearness in subject, document by document, and what cosine does not see."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.metrics.builtin.local_model import graded, needs_model

from spangrade.metrics.builtin import relevance
from spangrade.metrics.builtin.relevance import MAX_PARTS, answer_relevance, context_relevance
from spangrade.metrics.catalog import resolve
from spangrade.model.sample import Sample
from spangrade.model.score import Skip

QUESTION = "How long does the delivery of a parcel take?"
GOOD = {"id": "shipping", "content": "Parcels are delivered within three working days."}
BAD = {"id": "moon", "content": "The moon is made of basalt."}

pytestmark = needs_model


def test_each_document_has_its_own_score_and_the_value_is_their_mean() -> None:
    score = graded(context_relevance, input=QUESTION, documents=[BAD, GOOD])
    moon, shipping = score.metadata["documents"]
    assert (moon["document"], shipping["document"]) == ("moon", "shipping")
    assert shipping["score"] > 0.5 > 0.2 > moon["score"]
    assert score.value == pytest.approx((moon["score"] + shipping["score"]) / 2, abs=1e-3)
    assert "nearest shipping" in score.explanation
    assert "farthest moon" in score.explanation


def test_they_are_measurements_without_pass_or_fail() -> None:
    assert graded(context_relevance, input=QUESTION, documents=[GOOD]).passed is None
    assert graded(answer_relevance, input=QUESTION, output="Three days.").passed is None


def test_an_answer_to_the_question_is_nearer_than_one_about_something_else() -> None:
    to_it = graded(answer_relevance, input=QUESTION, output=GOOD["content"]).value
    beside_it = graded(answer_relevance, input=QUESTION, output=BAD["content"]).value
    assert to_it > 0.5 > 0.2 > beside_it


def test_the_best_part_of_a_long_document_or_answer_counts() -> None:
    filler = "The novel describes a storm at sea and an old lighthouse. " * 60
    long = {"content": f"{filler}{GOOD['content']} {filler}"}
    assert (
        graded(context_relevance, input=QUESTION, documents=[long]).value
        > graded(context_relevance, input=QUESTION, documents=[{"content": filler}]).value + 0.05
    )
    answer = graded(answer_relevance, input=QUESTION, output=f"{GOOD['content']}\n{filler}")
    assert answer.explanation.startswith("nearest part of ")


def test_a_negation_is_hardly_seen_as_the_docstring_says() -> None:
    yes, no = "Refunds are possible within 30 days.", "Refunds are not possible within 30 days."
    cosine = graded(answer_relevance, input=yes, output=no).value
    assert cosine > 0.9
    assert f"have a cosine of {cosine:.2f}," in " ".join((relevance.__doc__ or "").split())
    assert "PLACEHOLDER" not in (relevance.__doc__ or "")


def test_every_document_is_looked_at_before_any_ones_second_part() -> None:
    long = [{"id": str(i), "content": f"{i}{'x' * 150} " * 10} for i in range(MAX_PARTS - 4)]
    score = graded(context_relevance, input=QUESTION, documents=long)
    assert len(score.metadata["documents"]) == MAX_PARTS - 4
    assert score.metadata["left_out"]["parts"]["scored"] == MAX_PARTS
    more = [{"id": str(i), "content": f"Document {i}."} for i in range(MAX_PARTS + 9)]
    assert graded(context_relevance, input=QUESTION, documents=more).metadata["left_out"]["parts"] == {
        "given": MAX_PARTS + 9,
        "scored": MAX_PARTS,
    }


def test_what_is_missing_is_said() -> None:
    for sample, why in [
        (Sample(documents=[GOOD]), "input missing"),
        (Sample(input=QUESTION), "documents missing"),
        (Sample(input="???", documents=[GOOD]), "the question has no words"),
        (Sample(input=QUESTION, documents=[{"content": "--"}]), "the documents have no text"),
    ]:
        with pytest.raises(Skip, match=why):
            context_relevance.evaluate(sample)
    with pytest.raises(Skip, match="output missing"):
        answer_relevance.evaluate(Sample(input=QUESTION))
    score = graded(context_relevance, input=QUESTION, documents=[GOOD, {"id": "empty", "content": ""}])
    assert score.metadata["without_text"] == 1


@settings(max_examples=40)
@given(st.text(max_size=60), st.lists(st.text(max_size=60), min_size=1, max_size=4))
def test_any_question_and_documents_give_a_number_or_a_skip(question: str, texts: list[str]) -> None:
    for metric, fields in (
        (context_relevance, {"documents": [{"content": text} for text in texts]}),
        (answer_relevance, {"output": texts[0]}),
    ):
        values: dict[str, Any] = dict(fields)
        try:
            score = graded(metric, input=question, **values)
        except Skip:
            continue
        assert 0 <= score.value <= 1
        json.dumps(score.metadata)


def test_they_are_found_by_name() -> None:
    assert [resolve(name).info.verdict for name in ("context_relevance", "answer_relevance")] == [False, False]
