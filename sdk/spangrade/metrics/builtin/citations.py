"""`citations`: whether the answer's citations point to documents, where it cites none, and whether the cited ones say it.

What it measures, as three scores:

- ``citations.valid``: the share of markers that point to a document that was retrieved, by position (from 1), id, address, title or file
  name. Passes at 1: an invented source is a fault however many right ones stand beside it. Skipped when there is no marker.
- ``citations.coverage``: the share of sentences with at least one valid marker, in the sentence or right behind it. Headings, questions,
  very short sentences and a list of sources at the end are left out. Passes at 0.5.
- ``citations.support``: lexical support (as in `overlap`) of the cited sentences in the very documents they cite, weighted by words.
  Passes at 0.3. Skipped when no sentence cites a document.

Markers: ``[1]``, ``[1, 3-5]``, ``[^1]``, ``[doc-3]``, ``【1】``, ``【4:0†source】``, ``word (1)``, superscripts, and links where a document has
an address. By default all forms are read but ``(1)``, which is read only where nothing else was found and only for numbers that a document
has. Code is left out, and so are ``[text](link)`` brackets.

What it does not: whether a claim needed a citation, and meaning (see `overlap`). An answer that refuses cites nothing and is skipped, and
an answer without documents has no score.

Source: citation precision and recall as in ALCE (Gao et al. 2023), with lexical support where ALCE asks a model.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.citation_markers import STYLES, Library, Marker, markers
from spangrade.metrics.builtin.options import several, share
from spangrade.metrics.builtin.overlap import Source
from spangrade.metrics.builtin.refusal import find_refusal
from spangrade.metrics.builtin.text import document_texts, prose, quoted
from spangrade.metrics.builtin.words import content_words, sentence_spans, unbulleted
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample
from spangrade.model.score import FAIL, Score, Skip

MAX_CHARS: Final = 20_000
_MIN_WORDS: Final = 3  # content words below which a sentence needs no citation
_BEFORE_SIGN: Final = re.compile(r" ([.,;:!?。，；：！？)])")
_SOURCES: Final = frozenset(
    {"sources", "source", "references", "reference", "citations", "bibliography", "quellen", "quelle", "fuentes", "références", "referenze",
     "fonti", "bronnen", "źródła", "источники", "参考文献", "参考资料", "来源", "出典", "참고문헌"}
)  # fmt: skip


def citations(
    *,
    styles: str | Sequence[str] = "auto",
    first: int = 1,
    min_valid: float = 1.0,
    min_coverage: float = 0.5,
    min_support: float = 0.3,
    name: str = "citations",
    target: str = "root",
) -> LocalMetric:
    """A metric of three scores: valid, coverage and support of the answer's citations; see the module's docstring.

    Args:
        styles: ``auto``, or which markers count: brackets, lenticular, parentheses, superscript, url.
        first: the number of the first document, 1 or 0.
        min_valid, min_coverage, min_support: the pass marks, 0 to 1.
        name: of the scores.
        target: what is scored, as in `LocalMetric`.

    Raises:
        ConfigError: an unknown style, or a pass mark that is no share.
    """
    what = f"metric {name!r}"
    chosen = () if styles == "auto" else several(what, "styles", styles)
    for style in chosen:
        if style not in STYLES:
            raise ConfigError(f"{what}: styles holds {style!r}, which is not one of auto, {', '.join(STYLES)}")
    if styles != "auto" and not chosen:
        raise ConfigError(f"{what}: styles is empty; leave it out to read every form")
    if first not in (0, 1) or isinstance(first, bool):
        raise ConfigError(f"{what}: first {first!r} is not 0 or 1")
    marks = {"valid": min_valid, "coverage": min_coverage, "support": min_support}
    for option, mark in marks.items():
        share(what, f"min_{option}", mark)

    def rule(sample: Sample) -> dict[str, Score | None]:
        documents = sample.documents if isinstance(sample.documents, (list, tuple)) else [sample.documents]
        texts = document_texts(sample.documents)
        text = prose(sample.output)[:MAX_CHARS]
        library = Library(documents, texts, first)
        found = _found(text, library, chosen)
        if not found and find_refusal(text):
            raise Skip("the answer refuses, and cites nothing")
        sentences = list(_sentences(text, found))
        if not found and not sentences:
            raise Skip("the answer has no sentence that needs a citation")
        scores = {"valid": _valid(found), "coverage": _coverage(sentences), "support": _support(sentences, texts)}
        return {key: _judged(score, marks[key]) for key, score in scores.items()}

    config: dict[str, Any] = {"version": 1, "styles": list(chosen) or "auto", "first": first}
    return LocalMetric(rule, name, None, {**config, "pass_marks": marks}, ("output", "documents"), target)


def _found(text: str, library: Library, chosen: Sequence[str]) -> list[Marker]:
    if chosen:
        return markers(text, library, chosen)
    styles = ["brackets", "lenticular", "superscript", *(["url"] if library.urls else [])]
    return markers(text, library, styles) or markers(text, library, ["parentheses"])


class _Sentence:
    """A sentence that should cite, and what it cites."""

    __slots__ = ("cited", "text")

    def __init__(self, text: str, cited: list[int]) -> None:
        self.text = text
        self.cited = cited


def _sentences(text: str, found: Sequence[Marker]) -> list[_Sentence]:
    """The sentences that need a citation, with the documents that they cite."""
    kept: list[_Sentence] = []
    upcoming = list(reversed(found))
    for start, end in sentence_spans(_with_markers_blank(text, found)):
        mine: list[Marker] = []
        while upcoming and upcoming[-1].start < end:
            mine.append(upcoming.pop())
        words = unbulleted(_without(text, start, end, mine))
        if words.strip("#*_:-：. ").casefold() in _SOURCES:
            break
        sentence = _Sentence(words, [marker.document for marker in mine if marker.document is not None])
        count = len(content_words(words))
        heading = text[start:end].lstrip().startswith("#") or words.rstrip("\"'”’ *_")[-1:] in ("?", "？", ":", "：")
        if (count >= _MIN_WORDS and not heading) or (count and sentence.cited):
            kept.append(sentence)
    return kept


def _with_markers_blank(text: str, found: Sequence[Marker]) -> str:
    """The text in which a marker behind a full stop belongs to the sentence before it ("Five days. [1] Gift cards ..."), unless
    the line begins with a marker and so puts them in front."""
    parts, at = [], 0
    in_front = False
    for marker in found:
        if marker.start < at:
            continue  # several numbers in one bracket
        line = text.rfind("\n", 0, marker.start) + 1
        if not text[max(line, at) : marker.start].strip() and line >= at:
            in_front = True
        elif line >= at:
            in_front = False
        blank = " " if not in_front else "_"
        parts += [text[at : marker.start], blank * (marker.end - marker.start)]
        at = marker.end
    return "".join([*parts, text[at:]])


def _without(text: str, start: int, end: int, mine: Sequence[Marker]) -> str:
    """A sentence's text without its markers: their numbers are no words of the answer."""
    parts, at = [], start
    for marker in mine:
        if marker.start >= at:
            parts.append(text[at : marker.start])
        at = max(at, marker.end)
    return _BEFORE_SIGN.sub(r"\1", " ".join(" ".join([*parts, text[at:end]]).split()))


def _valid(found: Sequence[Marker]) -> Score | None:
    if not found:
        return None
    bad = list(dict.fromkeys(marker.label for marker in found if marker.document is None))
    right = sum(marker.document is not None for marker in found)
    why = f"{right} of {len(found)} markers point to a document"
    if bad:
        why += f"; to none: {', '.join(bad[:8])}" + (f" and {len(bad) - 8} more" if len(bad) > 8 else "")
    return Score(right / len(found), explanation=why)


def _coverage(sentences: Sequence[_Sentence]) -> Score | None:
    if not sentences:
        return None
    bare = [sentence for sentence in sentences if not sentence.cited]
    why = f"{len(sentences) - len(bare)} of {len(sentences)} sentences cite a document"
    if bare:
        why += f"; the first without: {quoted(bare[0].text)}"
    return Score((len(sentences) - len(bare)) / len(sentences), explanation=why)


def _support(sentences: Sequence[_Sentence], texts: Sequence[str]) -> Score | None:
    sources: dict[tuple[int, ...], Source] = {}
    total, weighted = 0, 0.0
    weakest: tuple[float, _Sentence] | None = None
    for sentence in sentences:
        cited = tuple(sorted({number for number in sentence.cited if texts[number].strip()}))
        if not cited:
            continue
        if cited not in sources:
            sources[cited] = Source([texts[number] for number in cited])
        found = sources[cited].support(sentence.text)
        if found is None:
            continue
        total += found[1]
        weighted += found[0] * found[1]
        if weakest is None or found[0] < weakest[0]:
            weakest = found[0], sentence
    if weakest is None:
        return None
    numbers = ", ".join(str(number + 1) for number in dict.fromkeys(weakest[1].cited[:5]))
    return Score(
        min(weighted / total, 1.0),
        explanation=f"weakest ({weakest[0]:.2f}): {quoted(weakest[1].text)} cites document {numbers}",
    )


def _judged(score: Score | None, mark: float) -> Score | None:
    if score is None or score.value >= mark:
        return score
    return Score(score.value, FAIL, f"{score.explanation} (passes at {mark:g})")
