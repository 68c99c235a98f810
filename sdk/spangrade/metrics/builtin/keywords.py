"""`keywords`: words and phrases that an answer must have, or must not have.

What it measures: 1 when every word of ``all_of`` is there, at least one of ``any_of``, and none of ``none_of``; else 0, with
what is missing or should not be there. Case, composed or decomposed accents, and the kind and amount of white space inside a
phrase make no difference. Whole words only by default: ``cat`` is not in ``concatenate``, ``C++`` and ``.NET`` are words; in
Chinese, Japanese and Thai, which have no spaces, a word is found anywhere. Inflected forms are other words.

What it does not: meaning. "We do not offer refunds" has the keyword *refunds*.

Source: none; it is a rule. No threshold: 0 fails, 1 passes.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.options import field_name, several
from spangrade.metrics.builtin.text import as_text
from spangrade.metrics.builtin.words import MARKS, SPACELESS
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample, is_empty
from spangrade.model.score import Score, Skip

_WORDLIKE: Final = re.compile(rf"[\w{MARKS}]")


class _Keyword:
    """One word or phrase, found in folded text."""

    __slots__ = ("folded", "given", "pattern")

    def __init__(self, given: str, *, case_sensitive: bool, whole_words: bool) -> None:
        self.given = given
        self.folded = folded(given.strip(), case_sensitive)
        phrase = r"\s+".join(re.escape(part) for part in self.folded.split())
        if whole_words:
            phrase = f"{_edge(self.folded[0], before=True)}{phrase}{_edge(self.folded[-1], before=False)}"
        self.pattern = re.compile(phrase)

    def is_in(self, text: str) -> bool:
        first = self.folded.split(None, 1)[0]
        return first in text and self.pattern.search(text) is not None


def _edge(character: str, *, before: bool) -> str:
    """No word may go on across this edge of a keyword; beside a sign, or in a script without spaces, anything may stand."""
    if not _WORDLIKE.match(character) or SPACELESS.match(character):
        return ""
    return rf"(?<![\w{MARKS}])" if before else rf"(?![\w{MARKS}])"


def folded(text: str, case_sensitive: bool) -> str:
    """Text in which only what counts makes a difference."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace("’", "'")
    return text if case_sensitive else text.casefold()


def keywords(
    all_of: Sequence[str] = (),
    any_of: Sequence[str] = (),
    none_of: Sequence[str] = (),
    *,
    case_sensitive: bool = False,
    whole_words: bool = True,
    field: str = "output",
    name: str = "keywords",
    target: str = "root",
) -> LocalMetric:
    """A metric that is 1 when ``field`` (default: the answer) has the words it must have and none of those it must not.

    Args:
        all_of, any_of, none_of: words or phrases; one text stands for a list of one.
        case_sensitive: whether *Acme* differs from *ACME*.
        whole_words: False also finds them inside other words.
        field: the Sample's field to look at; of a structured value its texts and numbers.
        name: of the score; give each rule its own.
        target: what is scored, as in `LocalMetric`.

    Raises:
        ConfigError: no word at all, an empty one, or an unknown field.
    """
    what = f"metric {name!r}"
    given = {"all_of": all_of, "any_of": any_of, "none_of": none_of}
    words = {option: several(what, option, value) for option, value in given.items()}
    if not any(words.values()):
        raise ConfigError(f"{what}: give at least one word in all_of, any_of or none_of")
    field_name(what, field)
    rules = {
        option: [_Keyword(word, case_sensitive=case_sensitive, whole_words=whole_words) for word in held]
        for option, held in words.items()
    }

    def rule(sample: Sample) -> Score:
        value = getattr(sample, field)
        if is_empty(value):
            raise Skip(f"{field} missing")
        text = folded(as_text(value), case_sensitive)
        missing = [word.given for word in rules["all_of"] if not word.is_in(text)]
        unwanted = [word.given for word in rules["none_of"] if word.is_in(text)]
        some = not rules["any_of"] or any(word.is_in(text) for word in rules["any_of"])
        faults = []
        if missing:
            faults.append(f"missing: {_listed(missing)}")
        if not some:
            faults.append(f"none of: {_listed(words['any_of'])}")
        if unwanted:
            faults.append(f"should not be there: {_listed(unwanted)}")
        return Score(0, explanation="; ".join(faults)) if faults else Score(1, explanation="all keyword rules hold")

    config = {**words, "case_sensitive": case_sensitive, "whole_words": whole_words, "field": field, "version": 1}
    return LocalMetric(rule, name, None, config, (field,), target)


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - 10} more" if len(words) > 10 else ""
    return ", ".join(word[:60] for word in words[:10]) + more
