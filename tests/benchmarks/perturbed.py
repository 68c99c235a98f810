"""Sentences of the labelled sets' own documents, copied and then falsified in one place: what a support score must order.

A copy is grounded; the same with *not* in it, with another number, with another name, or a sentence of quite another document, is not.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

from spangrade.metrics.builtin.claims import pieces
from tests.benchmarks.labelled import Labelled

_AUXILIARY = re.compile(r"\b(?:is|was|are|were|has|had|have|can|could|will|would|may|must|does|did)\b(?!\s+not)")
_SPOKEN = re.compile(r"\bI\b|\?$")  # says nothing that a document could hold
_NUMBER = re.compile(r"\b\d+\b")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")


def _order(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def perturbed(rows: list[Labelled], each: int = 1) -> Iterator[Labelled]:
    """For ``each`` documents of every cluster, one of their sentences: copied, falsified in every way that it allows, and foreign."""
    by_cluster: dict[str, list[Labelled]] = {}
    for row in rows:
        by_cluster.setdefault(row.cluster, []).append(row)
    chosen: list[tuple[Labelled, str]] = []
    for cluster in sorted(by_cluster):
        for row in sorted(by_cluster[cluster], key=lambda r: _order(r.output))[:each]:
            usable = [
                s for s in pieces(row.documents[0]["content"]) if 8 <= len(s.split()) <= 40 and not _SPOKEN.search(s)
            ]
            if usable:
                chosen.append((row, min(usable, key=_order)))
    names = [name for _, sentence in chosen for name in _NAME.findall(sentence)]
    for index, (row, sentence) in enumerate(chosen):
        _, foreign = chosen[(index + 1) % len(chosen)]
        other = next((name for name in names[index:] + names[:index] if name not in str(row.documents)), None)
        made = {
            "copy": sentence,
            "denied": _AUXILIARY.sub(lambda m: f"{m.group()} not", sentence, count=1),
            "number": _NUMBER.sub(lambda m: str(int(m.group()) + 3), sentence, count=1),
            "name": _NAME.sub(other, sentence, count=1) if other else sentence,
            "foreign": foreign,
        }
        for kind, text in made.items():
            if kind == "copy" or text != sentence:
                yield replace(row, output=text, grounded=kind == "copy", label=kind)
