"""Words and sentences, in every script, in time that grows with the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangrade.metrics.builtin.words import content_words, count_words, sentence_spans, sentences, stem, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Refund takes 5 days.", ["the", "refund", "takes", "5", "days"]),
        ("1,000.50 USD, 1.5 and 09:30 on 2024-01-31", ["1000.50", "usd", "1.5", "and", "09:30", "on", "2024-01-31"]),
        ("1,5 stays; 12,34 stays", ["1,5", "stays", "12,34", "stays"]),
        ("5kg is 5 kg", ["5", "kg", "is", "5", "kg"]),
        ("don't and don’t", ["don't", "and", "don't"]),
        ("state-of-the-art snake_case", ["state", "of", "the", "art", "snake", "case"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("café cafe\u0301", ["café", "café"]),
        ("１２３ ﬁsh", ["123", "fish"]),
        ("日本語", ["日本", "本語"]),
        ("日", ["日"]),
        ("GPTは速い", ["gpt", "は速", "速い"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("שָׁלוֹם", ["שָׁלוֹם"]),
        ("👩‍💻 🙂", []),
        ("", []),
    ],
)
def test_words_of_scripts_numbers_and_signs(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_thai_is_compared_by_pairs_of_characters() -> None:
    assert set(words("ภาษาไทย")) < set(words("เรียนภาษาไทยทุกวัน"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith paid. He left.", ["Dr. Smith paid.", "He left."]),
        ("See No. 5 and p. 7 there. Then go.", ["See No. 5 and p. 7 there.", "Then go."]),
        ("The answer is no. It costs more.", ["The answer is no.", "It costs more."]),
        ("It costs 1.5 euros. Fine.", ["It costs 1.5 euros.", "Fine."]),
        ("J. R. Doe wrote it. e.g. this too. Done!", ["J. R. Doe wrote it. e.g. this too.", "Done!"]),
        ("Buy tea, milk, etc. Then go.", ["Buy tea, milk, etc.", "Then go."]),
        ("第一句。第二句！第三句", ["第一句。", "第二句！", "第三句"]),
        ("यह एक है। यह दो है।", ["यह एक है।", "यह दो है।"]),
        ("هل هذا؟ نعم.", ["هل هذا؟", "نعم."]),
        ("1. First\n2. Second\n- third\n* fourth", ["First", "Second", "third", "fourth"]),
        ('He said "stop." Then left… And so on', ['He said "stop."', "Then left…", "And so on"]),
        ("Really?! Yes.", ["Really?!", "Yes."]),
        ("...\n---\n\n", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert list(sentences(text)) == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("one two", 2),
        ("state-of-the-art, really", 2),
        ("don't 1,000.50", 2),
        ("日本語 text", 4),
        ("", 0),
        ("नमस्ते दुनिया", 2),
        ("…", 0),
    ],
)
def test_words_are_counted_as_a_reader_counts(text: str, count: int) -> None:
    assert count_words(text) == count


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("refunds", "refund"),
        ("policies", "policy"),
        ("acme's", "acme"),
        ("glass", "glass"),
        ("is", "is"),
        ("gas", "gas"),
    ],
)
def test_the_stem_takes_plurals_and_possessives_only(word: str, expected: str) -> None:
    assert stem(word) == expected


@given(st.text(alphabet=st.characters(codec=None)))
def test_sentences_together_are_the_whole_text_and_nothing_raises(text: str) -> None:
    spans = list(sentence_spans(text))
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(isinstance(word, str) and word for word in content_words(text))
    assert count_words(text) >= 0


@pytest.mark.parametrize("unit", [".", "?!", '."', "a.", "1. ", "…", "。", "[", "-", "' ", "\n ", "1,000,", "日", "_"])
def test_hostile_repetition_takes_time_that_grows_with_the_text(unit: str) -> None:
    """A quadratic search would take a minute for each of these; the test has no limit of its own, the metric has."""
    text = unit * (100_000 // len(unit))
    list(sentences(text))
    words(text)
    count_words(text)
