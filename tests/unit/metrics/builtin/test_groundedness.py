"""`groundedness`: what raises and what lowers it, on the real model; its bounds, its words, its shipped numbers."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.metrics.builtin.local_model import graded, needs_model

from spangrade.metrics.builtin import groundedness as module
from spangrade.metrics.builtin.evidence import MAX_CLAIMS, MAX_PASSAGES
from spangrade.metrics.builtin.groundedness import THRESHOLD, groundedness, logit, shares, weakest_of
from spangrade.metrics.builtin.support import FEATURES
from spangrade.metrics.catalog import resolve
from spangrade.model.sample import Sample
from spangrade.model.score import Skip

DOCUMENTS = [
    {
        "id": "shipping",
        "content": "Parcels within Germany arrive within three working days. Express parcels arrive the next morning. "
        "Orders above 50 euros are delivered free of charge.",
    },
    {
        "id": "returns",
        "content": "Goods can be returned within 30 days of delivery. The refund is paid by the bank of Anna Meier. "
        "Gift cards cannot be refunded.",
    },
    {"id": "shop", "content": "The shop in Hamburg is open on weekdays from 9 to 18 o'clock."},
]
COPY = "Goods can be returned within 30 days of delivery."
PARAPHRASES = [
    "You may send goods back up to 30 days after they were delivered.",
    "Express packages get there the following morning.",
    "Delivery costs nothing for orders over 50 euros.",
]
FOREIGN = ["The moon is made of basalt and orbits the earth.", "Quarterly profits of the carmaker fell sharply."]
NOISE = [
    {"id": f"noise{i}", "content": f"Chapter {i} of the novel describes a storm at sea and a lighthouse."}
    for i in range(12)
]

pytestmark = needs_model


def value(output: Any, documents: Any = DOCUMENTS) -> float:
    return float(graded(groundedness, output=output, documents=documents).value)


def test_a_copied_sentence_passes_and_sentences_about_something_else_fail() -> None:
    assert value(COPY) > 0.8
    for sentence in FOREIGN:
        score = graded(groundedness, output=sentence, documents=DOCUMENTS)
        assert score.value < 0.1
        assert score.passed is False
    assert graded(groundedness, output=COPY, documents=DOCUMENTS).label == "pass"


def test_a_paraphrase_scores_between_a_copy_and_another_subject() -> None:
    for sentence in PARAPHRASES:
        assert max(map(value, FOREIGN)) < value(sentence) < 0.99 * value(COPY) + 0.01
    assert sum(value(sentence) for sentence in PARAPHRASES) / len(PARAPHRASES) > 5 * max(map(value, FOREIGN))


@pytest.mark.parametrize(
    ("true", "false"),
    [
        (COPY, "Goods cannot be returned within 30 days of delivery."),
        ("Goods can be returned.", "No goods can be returned."),
        (COPY, "Goods can not be returned within 30 days of delivery."),
        ("Gift cards cannot be refunded.", "Gift cards can be refunded."),
        (COPY, "Goods can be returned within 90 days of delivery."),
        (
            "Parcels within Germany arrive within three working days.",
            "Parcels within Germany arrive within five working days.",
        ),
        ("The refund is paid by the bank of Anna Meier.", "The refund is paid by the bank of Peter Schulz."),
        ("The shop in Hamburg is open on weekdays.", "The shop in Lisbon is open on weekdays."),
    ],
)
def test_a_denial_a_changed_number_or_a_changed_name_lowers_the_score_by_much(true: str, false: str) -> None:
    assert value(true) - value(false) > 0.15


def test_the_order_of_documents_and_repeated_documents_do_not_matter() -> None:
    for output in (COPY, *PARAPHRASES, *FOREIGN):
        once = value(output)
        assert value(output, DOCUMENTS[::-1]) == once
        assert value(output, DOCUMENTS * 3) == once


def test_documents_that_have_nothing_to_do_with_it_hardly_matter() -> None:
    for output in (COPY, *PARAPHRASES, *FOREIGN):
        assert value(output, [*NOISE, *DOCUMENTS]) == pytest.approx(value(output), abs=0.05)


@pytest.mark.parametrize(
    "change", [str.upper, str.lower, lambda text: f"  {text}\n\n", lambda text: text.replace(" ", "   ")]
)
def test_case_and_white_space_hardly_matter(change: Any) -> None:
    assert value(change(COPY)) == pytest.approx(value(COPY), abs=0.05)


def test_one_unsupported_sentence_among_supported_ones_lowers_the_whole_and_is_quoted() -> None:
    good = f"{COPY} Express parcels arrive the next morning."
    score = graded(groundedness, output=f"{good} {FOREIGN[0]}", documents=DOCUMENTS)
    assert score.value < value(good) - 0.3
    assert score.explanation.startswith(f"weakest sentence ({score.metadata['weakest']:.2f}): “{FOREIGN[0]}”")
    assert "basalt" in score.explanation
    assert "nearest passage (document " in score.explanation
    assert score.metadata["sentences"] == 3


def test_the_explanation_names_the_document_that_bears_it_out_by_id_or_place() -> None:
    score = graded(groundedness, output=COPY, documents=DOCUMENTS)
    assert score.metadata["document"] == "returns"
    assert "nearest passage (document returns): “Goods can be returned" in score.explanation
    plain = [{"content": "Nothing of the kind."}, {"content": COPY}]
    assert graded(groundedness, output=COPY, documents=plain).metadata["document"] == "#2"
    denied = graded(groundedness, output="Goods cannot be returned within 30 days.", documents=DOCUMENTS)
    assert "the evidence says otherwise" in denied.explanation


def test_questions_and_pleasantries_beside_a_claim_do_not_count() -> None:
    chatty = f"I love that you ask! {COPY} Can I help you with anything else?"
    assert value(chatty) == pytest.approx(value(COPY), abs=0.02)


@pytest.mark.parametrize(
    "refusal",
    [
        "I could not find any information about this in the documents.",
        "I don't know.",
        "The provided context does not contain information about delivery times.",
    ],
)
def test_an_answer_that_only_declines_is_skipped_and_beside_a_claim_it_does_not_count(refusal: str) -> None:
    with pytest.raises(Skip, match="the answer declines and claims nothing"):
        groundedness.evaluate(Sample(output=refusal, documents=DOCUMENTS))
    assert value(f"{refusal} {COPY}") == value(COPY)
    assert value(f"{refusal} {FOREIGN[0]}") == value(FOREIGN[0])


@pytest.mark.parametrize(
    "marked", [f"{COPY[:-1]} [1].", f"{COPY} [2, 3]", f"{COPY}[^4]", f"Based on the documents, {COPY}"]
)
def test_citation_marks_and_prefaces_are_no_part_of_the_claim(marked: str) -> None:
    assert value(marked) == pytest.approx(value(COPY), abs=0.02)


def test_length_does_not_carry_the_score() -> None:
    everything = " ".join(document["content"] for document in DOCUMENTS)
    assert value(everything) > 0.8
    assert value(" ".join(FOREIGN * 4)) < 0.1


def test_a_long_answer_and_long_documents_are_read_within_bounds_that_are_said() -> None:
    answer = " ".join(f"Rule {i} says that item {i} costs {i} euros." for i in range(60))
    documents = [{"content": " ".join(f"Rule {i} says that item {i} costs {i} euros." for i in range(60, 400))}]
    score = graded(groundedness, output=answer, documents=documents)
    left_out = score.metadata["left_out"]
    assert left_out["sentences"] == {"given": 60, "scored": MAX_CLAIMS}
    assert left_out["passages"] == {"given": 340, "scored": MAX_PASSAGES}
    huge = graded(groundedness, output=COPY, documents=[{"content": COPY}, {"content": "x y z. " * 40_000}])
    assert huge.metadata["left_out"]["document_chars"]["read"] == 200_000
    assert huge.value > 0.8


def test_the_passage_that_matters_is_found_in_a_long_document() -> None:
    filler = " ".join(f"Paragraph {i} speaks of harvests, tides and old maps." for i in range(200))
    assert value(COPY, [{"content": f"{filler} {COPY} {filler}"}]) == pytest.approx(value(COPY), abs=0.02)


def test_searched_and_found_nothing_is_zero_and_never_searched_is_skipped() -> None:
    score = graded(groundedness, output=COPY, documents=[], context={"searched": True})
    assert (score.value, score.passed) == (0.0, False)
    assert "found no document" in score.explanation
    with pytest.raises(Skip, match="documents missing"):
        groundedness.evaluate(Sample(output=COPY))
    with pytest.raises(Skip, match="output missing"):
        groundedness.evaluate(Sample(output=" ", documents=DOCUMENTS))
    with pytest.raises(Skip, match="the documents have no text"):
        groundedness.evaluate(Sample(output=COPY, documents=[{"id": "1", "content": ""}]))
    with pytest.raises(Skip, match="the answer has no words"):
        groundedness.evaluate(Sample(output="?!", documents=DOCUMENTS))


def test_documents_may_be_plain_text_or_in_another_tools_spelling() -> None:
    assert value(COPY, [COPY]) == value(COPY, [{"page_content": COPY}]) == value(COPY, [{"content": COPY}]) > 0.8
    assert graded(groundedness, output=COPY, documents=["Another text.", COPY]).metadata["document"] == "#2"


def test_an_answer_in_json_is_read_by_its_values() -> None:
    as_text = json.dumps({"answer": COPY, "sure": True})
    assert value({"answer": COPY}) == value(COPY)
    assert value(as_text) > 0.7


_ODD = st.one_of(
    st.text(max_size=80),
    st.none(),
    st.integers(),
    st.dictionaries(st.text(max_size=5), st.text(max_size=40), max_size=3),
)


@settings(max_examples=60)
@given(
    st.one_of(
        st.text(min_size=1, max_size=120), st.dictionaries(st.text(max_size=5), st.text(max_size=40), max_size=3)
    ),
    st.lists(st.fixed_dictionaries({"content": _ODD}, optional={"id": _ODD}), min_size=1, max_size=4),
)
def test_any_answer_and_documents_give_a_probability_or_a_skip(output: Any, documents: list[dict[str, Any]]) -> None:
    try:
        score = graded(groundedness, output=output, documents=documents)
    except Skip:
        return
    assert 0 <= score.value <= 1
    json.dumps(score.metadata)


@given(st.lists(st.tuples(st.floats(0.1, 40), st.floats(-9, 9)), min_size=1, max_size=9), st.data())
def test_shares_sum_to_one_and_a_better_sentence_never_lowers_the_whole(
    rows: list[tuple[float, float]], data: st.DataObject
) -> None:
    weights, logits = [w for w, _ in rows], [z for _, z in rows]
    parts = shares(weights, logits)
    assert sum(parts) == pytest.approx(1)
    assert min(parts) >= 0
    better = list(logits)
    better[data.draw(st.integers(0, len(rows) - 1))] += data.draw(st.floats(0, 5))
    whole = sum(p * z for p, z in zip(parts, logits, strict=True))
    assert sum(p * z for p, z in zip(shares(weights, better), better, strict=True)) >= whole - 1e-9
    assert parts[weakest_of(weights, logits)] >= 0.5


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6), st.integers(0, 5), st.floats(0, 1))
def test_more_support_never_lowers_and_more_mismatch_never_raises(
    features: list[float], which: int, step: float
) -> None:
    up = list(features)
    up[which] += step
    if list(FEATURES.values())[which]:
        assert logit(up) >= logit(features)
    else:
        assert logit(up) <= logit(features)


def test_covering_the_words_better_never_lowers_even_where_the_evidence_says_otherwise() -> None:
    weights = module._model()["weights"]
    assert (
        weights["words"] + 2 * weights["conflict"] > 0
    )  # the conflict counts by the square of how well words are covered


def test_the_shipped_numbers_are_those_of_the_features_and_the_docstring_states_the_threshold_and_its_rates() -> None:
    model = module._model()
    assert list(model["weights"]) == list(FEATURES)
    assert groundedness.info.threshold == THRESHOLD
    text = " ".join((module.__doc__ or "").split())
    assert f"Threshold {THRESHOLD}" in text
    assert re.search(r"true positive rate \.\d+ \(95 % \.\d+ to \.\d+\).*false positive rate \.\d+ \(", text, re.DOTALL)
    assert "PLACEHOLDER" not in text


def test_all_work_is_done_on_the_thread_that_asked() -> None:
    program = """
import threading, time
from spangrade.metrics.builtin.groundedness import groundedness
from spangrade.model.sample import Sample

text = " ".join(f"Clause {i} of the long contract governs the delivery of part {i} to the yard in Bremen." for i in range(40))
sample = Sample(output=text, documents=[{"content": text}])
groundedness.evaluate(sample)  # loads the model, fills what is remembered
whole, here = time.process_time(), time.thread_time()
for _ in range(10):
    groundedness.evaluate(sample)
here, whole = time.thread_time() - here, time.process_time() - whole
assert whole < 1.2 * here + 0.02, (whole, here)  # processor time of other threads
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_is_found_by_name_and_leaves_time_for_loading_the_model() -> None:
    found = resolve("groundedness")
    assert found.info.name == "groundedness"
    assert found.timeout >= 20
