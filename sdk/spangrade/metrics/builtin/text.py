"""Words and sentences, the way the lexical metrics count them. No model, no network."""

import re
from collections.abc import Iterator
from typing import Any, Final

_WORD: Final = re.compile(r"[^\W_]+(?:['’.,:/-][^\W_]+)*")
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？])\s+|\n+")
# Words that say nothing of the subject: they are in every answer and every document (English; other languages lose a
# little sharpness, no more).
STOPWORDS: Final = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "may",
        "more",
        "most",
        "my",
        "no",
        "not",
        "of",
        "on",
        "or",
        "our",
        "she",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "will",
        "with",
        "would",
        "you",
        "your",
        "yes",
        "also",
        "any",
        "all",
        "about",
        "after",
        "before",
        "between",
        "only",
        "over",
        "under",
        "up",
        "down",
        "out",
        "please",
    ]
)


def words(text: str) -> list[str]:
    """Lower-case words and numbers in order, stop words included; a number keeps its points (``1.5``, ``09:30``)."""
    return [match.group().casefold() for match in _WORD.finditer(text)]


def content_words(text: str) -> list[str]:
    """`words` without the stop words, plural and possessive endings cut off."""
    return [stem(word) for word in words(text) if word not in STOPWORDS]


def stem(word: str) -> str:
    """A very light stem: ``refunds`` and ``refund's`` meet ``refund``; nothing cleverer, so nothing is conflated."""
    word = word.removesuffix("'s").removesuffix("’s")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def sentences(text: str) -> Iterator[str]:
    """Sentences with at least one word in them."""
    for part in _SENTENCE.split(text):
        if _WORD.search(part):
            yield part.strip()


def as_text(value: Any) -> str:
    """Text of an output that may be parsed JSON: its strings and numbers, joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(as_text(item) for item in value.values())
    if isinstance(value, list):
        return "\n".join(as_text(item) for item in value)
    return "" if value is None else str(value)
