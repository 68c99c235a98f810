"""`language_match`: whether the answer is in the language of the question.

What it measures: the share of the answer (by letters, in pieces of a few sentences) that is in the question's language, or in
``expected``; 1 when all of it is. Passes at 0.8, so a foreign quotation does no harm and an answer that changes its language does. The
explanation names the languages. Code, addresses, numbers and JSON keys are left out.

What it does not: the quality of the language. It is skipped, with the reason, where it cannot know: fewer than 12 letters on either
side (3 signs of Chinese, Japanese or Korean), a language that the model is not sure of (probability below 0.6; so short and mixed texts and
lists of names), and a question that asks for a translation or names a language. Norwegian's two forms count as one, as do Serbian, Croatian and
Bosnian, Malay and Indonesian, and the Chinese languages.

Needs ``pip install "spangrade[local]"`` (py3langid, 4.5 MB, no download; about 0.1 ms a text, and 1 s
or more to load with the first one, whose score may so come after its span has left, by the way of late scores).

Source: py3langid (a fork of langid.py, Lui and Baldwin 2012); thresholds are our choice.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.languages import identify, normal
from spangrade.metrics.builtin.options import several, share
from spangrade.metrics.builtin.text import prose
from spangrade.metrics.builtin.words import sentences
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample, is_empty
from spangrade.model.score import Score, Skip

MAX_CHARS: Final = 20_000
_PIECE: Final = 60  # letters that are enough to tell a language, in most cases
_MAX_PIECES: Final = 8
_NO_PROSE: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]{1,300}`|https?://\S{1,2000}|\bwww\.\S{1,2000}|(?<!\S)\S{1,64}@\S{1,255}|<[^<>\n]{1,300}>|\[\d{1,3}(?:, ?\d{1,3}){0,9}\]"
    r"|(?<!\S)[^\s/\\_]{0,200}[/\\_]\S{0,500}|\b\w{1,100}\([^()\n]{0,200}\)",
    re.DOTALL,
)
_DENSE: Final = re.compile(
    r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)  # a sign says as much as four letters
_ASKS: Final = re.compile(
    r"\btranslat|\bübersetz|\btradu[cizt]|\bvertaal|\bprzetłumacz|\bперев[её]д|\bпереклад|翻译|翻譯|訳して|翻訳|번역|ترجم"
    r"|\b(?:in|into|to|auf|ins|en|em|in het|po|по) (?:english|french|german|spanish|italian|portuguese|dutch|polish|russian|chinese|mandarin"
    r"|japanese|korean|arabic|hindi|turkish|swedish|danish|norwegian|finnish|greek|latin|englisch|deutsch|französisch|spanisch|italienisch"
    r"|inglés|francés|alemán|español|anglais|allemand|espagnol|français|inglês|inglese|tedesco|engels|duits|angielsku|английск\w+|русск\w+)\b"
    r"|用(?:英|中|日|法|德|西班牙|韩|俄)(?:语|文)|英語で|日本語で|영어로|한국어로",
    re.IGNORECASE,
)


def language_match(
    *,
    expected: str | Sequence[str] | None = None,
    threshold: float = 0.8,
    min_letters: int = 12,
    min_confidence: float = 0.6,
    name: str = "language_match",
    target: str = "root",
) -> LocalMetric:
    """A metric of the share of the answer that is in the right language.

    Args:
        expected: the language that it must be in, or several, as ISO 639 codes (``"de"``); or where the Sample says it, as
            ``"metadata.language"`` or ``"context.locale"``. Default: the question's.
        threshold: the share from which it passes.
        min_letters: fewer than these on either side: skipped.
        min_confidence: a probability below this: skipped.
        name: of the score.
        target: what is scored, as in `LocalMetric`.

    Raises:
        ConfigError: a language that is no code, or a share that is none.
    """
    what = f"metric {name!r}"
    share(what, "threshold", threshold)
    share(what, "min_confidence", min_confidence)
    if isinstance(min_letters, bool) or not isinstance(min_letters, int) or min_letters < 1:
        raise ConfigError(f"{what}: min_letters {min_letters!r} is not a whole number, 1 or more")
    given = several(what, "expected", expected) if expected is not None else ()
    for code in given:
        if not code.startswith(("metadata.", "context.")) and not re.fullmatch(
            r"[A-Za-z]{2,3}(?:[-_]\w{2,8})*", code.strip()
        ):
            raise ConfigError(
                f"{what}: expected {code!r} is no language code such as 'de', nor a place such as 'metadata.language'"
            )
    if expected is not None and not given:
        raise ConfigError(f"{what}: expected is empty; leave it out for the question's language")

    def rule(sample: Sample) -> Score:
        if is_empty(sample.output):
            raise Skip("output missing")
        wanted, why = _wanted(sample, given, min_letters, min_confidence)
        pieces = list(_pieces(prose(sample.output, MAX_CHARS)))
        if sum(letters for _, letters in pieces) < min_letters:
            raise Skip("the answer has too few letters to tell its language")
        if len(pieces) > _MAX_PIECES:  # spread over the whole answer
            pieces = [pieces[number * len(pieces) // _MAX_PIECES] for number in range(_MAX_PIECES)]
        found: dict[str, int] = {}
        unsure = 0
        for piece, letters in pieces:
            language, probability = identify(piece)
            if probability >= min_confidence:
                found[language] = found.get(language, 0) + letters
            else:
                unsure += letters
        sure = sum(found.values())
        if not sure or unsure > sure:
            raise Skip("the language of the answer cannot be told: it is mixed, or no prose")
        right = sum(letters for language, letters in found.items() if language in wanted) / sure
        listed = ", ".join(
            f"{code} {count / sure:.0%}" for code, count in sorted(found.items(), key=lambda item: -item[1])[:4]
        )
        return Score(right, explanation=f"answer: {listed}; {why}: {', '.join(sorted(wanted))}")

    config: dict[str, Any] = {
        "version": 1,
        "min_letters": min_letters,
        "min_confidence": min_confidence,
        "expected": list(given),
    }
    return LocalMetric(rule, name, threshold, config, (), target, timeout=30.0)


def _wanted(
    sample: Sample, given: Sequence[str], min_letters: int, min_confidence: float
) -> tuple[frozenset[str], str]:
    """The languages that are right, and why."""
    codes = []
    for code in given:
        if code.startswith(("metadata.", "context.")):
            held, _, key = code.partition(".")
            value = getattr(sample, held).get(key)
            if not isinstance(value, str) or not re.match(r"[A-Za-z]{2,3}(?![A-Za-z])", value.strip()):
                raise Skip(f"{code} names no language")
            codes.append(normal(value))
        else:
            codes.append(normal(code))
    if codes:
        return frozenset(codes), "expected"
    if is_empty(sample.input):
        raise Skip("input missing")
    question = prose(sample.input, MAX_CHARS)
    if _ASKS.search(question[:2_000]):
        raise Skip("the question asks for a translation or names a language")
    text, letters = _readable(question)
    if letters < min_letters:
        raise Skip("the question has too few letters to tell its language")
    language, probability = identify(text)
    if probability < min_confidence:
        raise Skip(f"the language of the question cannot be told ({language} with {probability:.2f})")
    return frozenset((language,)), "question"


def _readable(text: str) -> tuple[str, int]:
    """The prose in a text, and how many letters it has."""
    text = _NO_PROSE.sub(" ", text)
    return text, sum(map(str.isalpha, text)) + 3 * len(_DENSE.findall(text))


def _pieces(text: str) -> Iterator[tuple[str, int]]:
    """A few sentences at a time, each with its letters; a short rest goes with the piece before it."""
    pieces: list[tuple[str, int]] = []
    held, count = "", 0
    for sentence in sentences(_NO_PROSE.sub(" ", text)):
        letters = sum(map(str.isalpha, sentence)) + 3 * len(_DENSE.findall(sentence))
        held, count = f"{held} {sentence}" if held else sentence, count + letters
        if count >= _PIECE:
            pieces.append((held, count))
            held, count = "", 0
    if count and pieces and count < _PIECE // 2:
        before, letters = pieces.pop()
        held, count = f"{before} {held}", letters + count
    if count:
        pieces.append((held, count))
    yield from pieces
