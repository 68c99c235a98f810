"""An answer's claims and the documents' passages, brought together within bounds.

Bounds, because a metric must end: of an answer the first `MAX_CLAIMS` sentences are read; of the documents
`MAX_DOCUMENT_CHARS` characters, as sentences of which those with the most of the answer's words are looked at: 16 for an answer of one
sentence and two for each further one, at most `MAX_PASSAGES` (words that few passages have count for more). On WiCE, 17
passages in the middle, looking at 16 in place of all moves the AUROC by less than .003. What was left out is said in
the score's metadata.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spangrade.metrics.builtin.claims import Claim, pieces, read, without_preface
from spangrade.metrics.builtin.embedding import embed
from spangrade.metrics.builtin.refusal import find_refusal
from spangrade.metrics.builtin.support import Passages, Support, read_once, support
from spangrade.metrics.builtin.text import document_texts, prose, quoted
from spangrade.model.score import Skip

MAX_ANSWER_CHARS: Final = 20_000
MAX_DOCUMENT_CHARS: Final = 200_000
MAX_CLAIMS: Final = 24
MAX_PASSAGES: Final = 48  # of an answer with very many sentences; of one with a single sentence `_PASSAGES` + `_MORE`
_PASSAGES: Final = 14
_MORE: Final = 2  # for each sentence


@dataclass(frozen=True, slots=True)
class Examined:
    """Claims with their support, the passages they were held against, and what was left out."""

    claims: tuple[Claim, ...]
    supports: tuple[Support, ...]
    passages: tuple[Claim, ...]
    documents: tuple[int, ...]  # for each passage the index of its document
    left_out: dict[str, Any]


def examine(output: Any, documents: Sequence[Any]) -> Examined:
    """An answer's claims against the documents.

    Sentences that decline ("I could not find it") are left out, and those that claim nothing (questions, a few words of
    the speaker's own self) where others are there.

    Raises:
        Skip: the answer only declines, the answer or the documents have no words, or the local model is not installed.
    """
    embed(())  # says at once that the model is missing, before anything is read for nothing
    left_out: dict[str, Any] = {}
    claims = _claims(prose(output, MAX_ANSWER_CHARS), left_out)
    if not claims:
        raise Skip("the answer has no words to look for")
    places = _passages(document_texts(documents), claims, left_out)
    held = Passages.of(list(places), embed([passage.text for passage in places]))
    if not held.read:
        raise Skip("the documents have no text")
    found = [support(claim, one, held) for claim, one in zip(claims, embed([c.text for c in claims]), strict=True)]
    kept = [(claim, one) for claim, one in zip(claims, found, strict=True) if one is not None]
    if not kept:
        raise Skip("the answer has no words to look for")
    return Examined(
        claims=tuple(claim for claim, _ in kept),
        supports=tuple(one for _, one in kept),
        passages=held.read,
        documents=tuple(places[passage] for passage in held.read),
        left_out=left_out,
    )


def _claims(answer: str, left_out: dict[str, Any]) -> list[Claim]:
    several = [claim for claim in map(read, map(without_preface, pieces(answer))) if claim.words]
    said = [claim for claim in several if find_refusal(claim.text) is None]
    if several and not said:
        raise Skip(f"the answer declines and claims nothing: {quoted(several[0].text)}")
    claims = [claim for claim in said if claim.claims] or said
    if len(claims) > MAX_CLAIMS:
        left_out["sentences"] = {"given": len(claims), "scored": MAX_CLAIMS}
    return claims[:MAX_CLAIMS]


def _passages(texts: Sequence[str], claims: Sequence[Claim], left_out: dict[str, Any]) -> dict[Claim, int]:
    """Each passage once, with the place of the first document that has it; those that share most with the claims."""
    where: dict[str, int] = {}
    left = MAX_DOCUMENT_CHARS
    for index, text in enumerate(texts):
        for piece in pieces(text[: max(left, 0)]):
            where.setdefault(piece, index)
        left -= len(text)
    if left < 0:
        left_out["document_chars"] = {"given": sum(map(len, texts)), "read": MAX_DOCUMENT_CHARS}
    found = [read_once(text) for text in where]
    most = min(_PASSAGES + _MORE * len(claims), MAX_PASSAGES)
    if len(found) > most:
        left_out["passages"] = {"given": len(found), "scored": most}
        found = _most_alike(found, claims, most)
    found.sort(key=lambda passage: passage.text)  # so that the documents' order cannot matter, not even for ties
    return {passage: where[passage.text] for passage in found}


def _most_alike(passages: list[Claim], claims: Sequence[Claim], most: int) -> list[Claim]:
    """The ``most`` that share most with the claims; each claim in turn names its next best."""
    stems = [frozenset(word.stem for word in passage.words) for passage in passages]
    count = Counter(stem for held in stems for stem in held)
    asked = [frozenset(word.stem for word in claim.words) for claim in claims]
    wanted = {stem: math.log((1 + len(passages)) / count[stem]) for held in asked for stem in held if stem in count}
    rankings = []
    for held in asked:
        score = [math.fsum(wanted[stem] for stem in held & own) for own in stems]
        rankings.append(sorted(range(len(passages)), key=lambda i: (-score[i], passages[i].text)))
    kept: dict[int, None] = {}
    for round_ in zip(*rankings, strict=True):
        for index in round_:
            if len(kept) < most:
                kept[index] = None
    return [passages[i] for i in kept]


def document_name(document: Mapping[str, Any], place: int) -> str:
    """The document's id, or its place counted from 1."""
    given = document.get("id") if isinstance(document, Mapping) else None
    return str(given) if given not in (None, "") else f"#{place + 1}"
