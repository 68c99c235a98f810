"""The kind of a span, from a few of its attributes: asked on the application's thread for every span that ends.

The marks of all dialects are joined once, at import. A span that is no call costs one pass over its keys in C (no value
is looked at, nothing is parsed), however many dialects there are; that is also what is cheapest on the SDK's own
attribute container, where a lookup that misses costs half a microsecond.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade.samples import evaluators
from spangrade.samples.dialects import DIALECTS
from spangrade.samples.dialects.base import EVALUATOR, NOT_A_CALL, KindMark
from spangrade.samples.flat import MANY


def _joined() -> dict[str, tuple[KindMark, ...]]:
    marks: dict[str, tuple[KindMark, ...]] = {}
    for table in (*(dialect.kind_marks for dialect in DIALECTS), evaluators.MARKS):
        for key, mark in table.items():
            marks[key] = (*marks.get(key, ()), mark)
    return marks


_MARKS: Final = _joined()
_ORDER: Final = {key: position for position, key in enumerate(_MARKS)}
_KEYS: Final = frozenset(_MARKS)
_WORD: Final = slice(256)
#: Beginnings of flattened lists: a span with more attributes than its limit has lost the oldest, its kind among them (C054).
_LISTS: Final[Mapping[str, str]] = {
    "retrieval.documents.": "retriever",
    "reranker.output_documents.": "reranker",
    "llm.input_messages.": "llm",
    "llm.output_messages.": "llm",
    "gen_ai.prompt.": "llm",
    "gen_ai.completion.": "llm",
}
_BEGINNINGS: Final = tuple(_LISTS)


def quick_kind(attributes: Mapping[str, Any]) -> str | None:
    """llm, agent, chain, retriever, reranker, embedding, tool, guardrail or evaluator; None for a span that is no call.

    A named kind is believed before a fallback for unknown names, and that before the mere presence of content.
    Evaluator traffic is told here only as far as attributes name it; `extract` also looks at the system text.
    """
    hits = _KEYS.intersection(attributes)
    if not hits:
        return None if len(attributes) < MANY else _flattened(attributes)
    named = fallback = present = refused = None
    for key in hits if len(hits) == 1 else sorted(hits, key=_ORDER.__getitem__):
        value = attributes.get(key)
        # No mark is longer, and this runs on the application's thread. An enum of texts is one, too (TruLens).
        word = str.strip(str.__getitem__(value, _WORD)).lower() if isinstance(value, str) else None
        for mark in _MARKS[key]:
            kind = None if word is None else _named(mark, word)
            if kind is not None:
                if kind == EVALUATOR:
                    return kind
                if kind == NOT_A_CALL:
                    refused = kind
                named = named or kind
            elif word:
                fallback = fallback or mark.default
            if present is None or (present == "chain" and mark.present):
                present = mark.present
    return None if refused else named or fallback or present


def _flattened(attributes: Mapping[str, Any]) -> str | None:
    for key in attributes:
        if isinstance(key, str) and key.startswith(_BEGINNINGS):
            for beginning, kind in _LISTS.items():
                if key.startswith(beginning) and key[len(beginning) : len(beginning) + 1].isdigit():
                    return kind
    return None


def _named(mark: KindMark, word: str) -> str | None:
    kind = mark.values.get(word)
    if kind is None:
        for beginning, meant in mark.prefixes:
            if word.startswith(beginning):
                return meant
        for ending, meant in mark.suffixes:
            if word.endswith(ending):
                return meant
    return kind
