"""What an answer claims: its sentences, with their words, names, numbers and whether they deny something. No model."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spangrade.metrics.builtin.words import STOPWORDS, sentences, stem

MAX_PIECE: Final = 768  # about what the model reads at once

_SPANS: Final = re.compile(
    r"\d+(?:[.,:/\-]\d+)*"
    r"|[\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e01-\u0e2e\u1780-\u17b3]"  # scripts without spaces: characters
    r"|[^\W_](?:[^\W_]|[\u0300-\u036f])*(?:['’](?:[^\W_]|[\u0300-\u036f])+)*"
)
_LOWER_END: Final = re.compile(r"(?<=[.!?])\s+")  # in text without capitals the next sentence begins with none either
_SPACED_END: Final = re.compile(r"(?<=\s[.!?])\s+")  # tokenized text: `them . they`
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_TEENS: Final = """
    two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
"""
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBER_WORDS: Final = {word: str(number) for number, word in enumerate(_TEENS.split(), start=2)} | {
    word: str(10 * number) for number, word in enumerate(_TENS.split(), start=2)
}
_DENIAL: Final = re.compile(
    r"\b(?:not(?!\s+(?:only|just|necessarily\s+limited))|no|non|never|none|nobody|nothing|neither|nor|without|cannot|unable)\b"
    r"|n\s?['’]\s?t\b|\b(?:is|are|was|were|do|does|did|ca|wo|has|have|had)nt\b",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(r"[,;:.!?()]|\b(?:and|but|however|although|though|while)\b", re.IGNORECASE)
_DENIED_WORDS: Final = 2
_SPEAKER: Final = re.compile(r"\b(?:i|my|me|mine)\b", re.IGNORECASE)
_SPEAKER_WORDS: Final = 6
_CITATION: Final = re.compile(r"\s?\[\^?\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\]")  # [1], [2, 3], [^4]: no numbers of the text
_CONTRACTED: Final = re.compile(r"n't$|'(?:s|re|ve|ll|d|m)$")
_CONTRACTS: Final = STOPWORDS | {"ca", "wo", "sha", "ai", "does", "let", "here", "must", "need", "might", "ought"}
# `I'm not sure, but`, `yes, I do know that`, `based on the documents,`: what stands before the claim begins.
_PREFACE: Final = re.compile(
    r"^\W*(?:(?:yes|yeah|no|well|oh|so|ok|okay|sorry)\s?[,.!;:]\s*)*"  # with a comma: `No refunds` denies
    r"(?:(?:based on|according to|as (?:stated|mentioned|described) in|per)\s+(?:the|your|these)\s+(?:\w+\s+)?"
    r"(?:documents?|documentation|context|passages?|sources?|information|texts?|articles?)\b[^,.]{0,40},\s*)?"
    r"(?:i\b[^.!?]{0,100}?\bbut\b\W*)?(?:i\s(?:do\s|did\s|also\s)?(?:know|knew|think|believe|heard|read|guess)\b(?:\s+that\b)?\s*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Word:
    """One content word of a text: its stem, where it stands, whether it is written like a name."""

    stem: str
    start: int
    end: int
    name: bool

    @property
    def is_number(self) -> bool:
        """Whether it begins with a digit; number words from *two* on do."""
        return self.stem[:1].isdigit()


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """One sentence, or one piece of a document, read.

    Attributes:
        text: as it was written.
        words: its content words (no stop words), in order.
        numbers: the numbers in it, as digits; number words from *two* on count.
        denied: words that *not*, *no*, *never* or the like stands before, at most two within its clause.
        pairs: its neighbouring words.
    """

    text: str
    words: tuple[Word, ...]
    numbers: frozenset[str]
    denied: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    @property
    def claims(self) -> bool:
        """Whether a document could hold it: a question claims nothing, nor do a few words of the speaker's own self."""
        if self.text.rstrip().endswith(("?", "？")):
            return False
        return not (len(self.words) < _SPEAKER_WORDS and _SPEAKER.search(self.text))


def pieces(text: str) -> Iterator[str]:
    """Sentences, also of text that is written without capitals or with spaces before its full stops.

    Citation marks (``[1]``) are no part of them. One of more than `MAX_PIECE` characters (a table, text without full stops) comes in several pieces, cut at spaces.
    """
    text = _CITATION.sub("", text)
    parts = (_LOWER_END if text == text.lower() else _SPACED_END).split(text)
    for part in parts:
        for sentence in sentences(part):
            yield from _short(sentence)


def _short(sentence: str) -> Iterator[str]:
    if len(sentence) <= MAX_PIECE:
        yield sentence
        return
    line = ""
    for word in sentence.split():
        if line and len(line) + len(word) >= MAX_PIECE:
            yield line
            line = ""
        line = f"{line} {word[:MAX_PIECE]}" if line else word[:MAX_PIECE]
    if line:
        yield line


def read(text: str) -> Claim:
    """A sentence's words, names and numbers."""
    spans = [(found.group(), found.start(), found.end()) for found in _SPANS.finditer(text)]
    capitals = sum(raw[0].isupper() for raw, _, _ in spans)
    headline = capitals > 0.7 * len(spans)  # TEXT LIKE THIS and Text Like This say nothing of names
    words = []
    for position, (raw, start, end) in enumerate(spans):
        word = raw.casefold().replace("’", "'")
        if _says_nothing(word):
            continue
        key = _NUMBER_WORDS.get(word) or stem(_THOUSANDS.sub("", word))  # three meets 3, and 1,000 meets 1000
        words.append(Word(key, start, end, bool(position and raw[0].isupper() and not headline)))
    stems = [word.stem for word in words]
    numbers = {_number(found) for found in _NUMBER.findall(_THOUSANDS.sub("", text))}
    numbers |= {_NUMBER_WORDS[raw.lower()] for raw, _, _ in spans if raw.lower() in _NUMBER_WORDS}
    return Claim(
        text=text,
        words=tuple(words),
        numbers=frozenset(numbers),
        denied=frozenset(_denied(text, words)),
        pairs=frozenset(itertools.pairwise(stems)),
    )


def _says_nothing(word: str) -> bool:
    """A stop word, a contraction of one (*it's*, *don't*), a single letter."""
    if "'" in word:
        stump = _CONTRACTED.sub("", word)
        return stump != word and stump in _CONTRACTS
    return word in STOPWORDS or (len(word) == 1 and word.isascii() and word.isalpha())


def without_preface(sentence: str) -> str:
    """The sentence from where it claims something: without *I'm not sure, but*, *I know that* and *based on the
    documents,*. All of it if nothing is left."""
    rest = sentence[_PREFACE.match(sentence).end() :]  # type: ignore[union-attr]  # it matches an empty text too
    return rest if any(character.isalnum() for character in rest) else sentence


def _denied(text: str, words: Sequence[Word]) -> Iterator[str]:
    for denial in _DENIAL.finditer(text):
        boundary = _CLAUSE_END.search(text, denial.end())
        end = boundary.start() if boundary else len(text)
        after = (word.stem for word in words if denial.end() <= word.start < end)
        yield from itertools.islice(after, _DENIED_WORDS)


def _number(digits: str) -> str:
    """``1.50`` and ``1.5`` are one number, ``01`` and ``1`` too."""
    whole = digits.lstrip("0") or "0"
    return whole.rstrip("0").rstrip(".") if digits.count(".") == 1 and "," not in digits else whole
