"""`claims`: what a sentence says, as words, names, numbers and denials."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangrade.metrics.builtin.claims import MAX_PIECE, pieces, read, without_preface


def stems(text: str) -> list[str]:
    return [word.stem for word in read(text).words]


def names(text: str) -> set[str]:
    return {text[word.start : word.end] for word in read(text).words if word.name}


def test_words_stand_where_they_say_and_stop_words_are_left_out() -> None:
    text = "The refunds of Müller's shop took 1,000 days"
    assert stems(text) == ["refund", "müller", "shop", "took", "1000", "day"]
    assert [text[word.start : word.end] for word in read(text).words][1] == "Müller's"


def test_contractions_of_stop_words_are_stop_words_and_possessives_are_not() -> None:
    assert stems("It's what they're told; we don't, can't, won't, isn't") == ["told"]
    assert stems("the shop's bell") == ["shop", "bell"]


def test_a_name_is_a_capital_within_a_sentence_and_not_in_a_headline() -> None:
    assert names("Yesterday Anna Meier went to Paris") == {"Anna", "Meier", "Paris"}
    assert names("THE SHOP IN PARIS IS OPEN") == set()
    assert names("Seven Ways To Bake Bread") == set()


def test_numbers_are_compared_by_value_and_number_words_from_two_on() -> None:
    assert read("one of 1,200 or 1.50, three of twenty, 07").numbers == {"1200", "1.5", "3", "20", "7"}
    assert stems("three of 3")[0] == stems("three of 3")[1]


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("Refunds are not possible here.", {"possible", "here"}),
        ("It isn't possible, and parcels arrive.", {"possible"}),
        ("it isn ' t possible", {"possible"}),
        ("We never ship abroad", {"ship", "abroad"}),
        ("It is not only cheap but good", set()),
        ("Parcels arrive without delay", {"delay"}),
        ("Refunds are possible", set()),
    ],
)
def test_a_denial_reaches_two_words_within_its_clause(text: str, denied: set[str]) -> None:
    assert read(text).denied == denied


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("I'm not sure, but they were founded in 1971.", "they were founded in 1971."),
        ("i ' m not sure , but i do know that it is in munich .", "it is in munich ."),
        ("Yes, I know that Munich is in Bavaria.", "Munich is in Bavaria."),
        ("Based on the provided documents, Munich is in Bavaria.", "Munich is in Bavaria."),
        ("According to the context, I know that it rains.", "it rains."),
        ("No refunds are given.", "No refunds are given."),
        ("No, refunds are given.", "refunds are given."),
        ("Parcels are slow, but they arrive.", "Parcels are slow, but they arrive."),
        ("I know that.", "I know that."),
        ("", ""),
    ],
)
def test_what_the_speaker_says_of_himself_before_a_claim_is_cut_off(text: str, rest: str) -> None:
    assert without_preface(text) == rest


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("Parcels arrive on Monday.", True),
        ("Do parcels arrive on Monday?", False),
        ("I love it.", False),
        ("I can confirm that order 4411 shipped on Monday with the morning post.", True),
    ],
)
def test_a_question_and_a_few_words_of_oneself_claim_nothing(text: str, claims: bool) -> None:
    assert read(text).claims is claims


def test_sentences_end_in_text_without_capitals_and_in_tokenized_text_too() -> None:
    assert list(pieces("it is red. it has doors.")) == ["it is red.", "it has doors."]
    assert list(pieces("They love it . he ' s there")) == ["They love it .", "he ' s there"]
    assert list(pieces("Dr. Smith came. He left.")) == ["Dr. Smith came.", "He left."]


def test_citation_marks_are_no_numbers_of_the_text() -> None:
    (sentence,) = pieces("Parcels [1] arrive in 3 days [2, 3].")
    assert sentence == "Parcels arrive in 3 days."


@given(st.text(max_size=200))
def test_any_text_is_read_and_every_word_stands_in_it(text: str) -> None:
    for piece in pieces(text):
        assert len(piece) <= MAX_PIECE
    claim = read(text)
    assert all(0 <= word.start < word.end <= len(text) for word in claim.words)
    assert without_preface(text) in text


@given(st.integers(MAX_PIECE, 5 * MAX_PIECE), st.integers(1, 2 * MAX_PIECE))
def test_text_without_full_stops_comes_in_pieces_that_the_model_can_read(length: int, word: int) -> None:
    text = " ".join(["x" * word] * (length // word + 1))
    found = list(pieces(text))
    assert all(0 < len(piece) <= MAX_PIECE for piece in found)
