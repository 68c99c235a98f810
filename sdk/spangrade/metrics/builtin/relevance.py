"""`context_relevance` and `answer_relevance`: how near in subject two texts are, by the cosine of their MiniLM vectors.

What they measure: whether the documents, or the answer, are about what was asked. `context_relevance` holds the
question against each retrieved document (its best part of about 770 characters counts) and gives the mean over the
documents; each document's own score is in the metadata, so a retriever's good and bad finds can be told apart.
`answer_relevance` holds it against the answer (its best part counts). 1 is the same text, about 0 another subject;
below 0 is given as 0.

What they do not: cosine similarity is not groundedness, nor truth, nor helpfulness. It hardly sees a negation:
"Refunds are possible within 30 days." and "Refunds are not possible within 30 days." have a cosine of 0.93, the first
and the same with 90 days one of 0.87, while the true paraphrase "Money back can be had for a month." has one of 0.61
with it. An answer that repeats the question scores highest. How high a good document scores depends on the kind of
question, so compare like with like: one application over time, or two retrievers on the same questions.

Both are measurements, neither pass nor fail: no labelled set that we have backs a threshold. What was measured (`make
bench-metrics`, 95 % intervals): a question of the dialogues in q2 is nearer to its own knowledge than to another
dialogue's with an AUROC of .919 (.900 to .936, n = 560). Of two answers to one instruction, the nearer is the one
that people preferred in .470 of the pairs (.370 to .560, n = 100; LLMBar Natural), in .337 (.207 to .478, n = 46) of
those made to mislead: `answer_relevance` tells an answer about something else, not the better one of two.

Bounds: the first 4,096 characters of the question, 20,000 of the answer, 32 parts of documents (each document's
first, then each one's second, and so on); what was left out is said in the metadata. English: other languages score,
but nobody measured how well. Needs the extra ``local``; without it the result is *skipped*, with the reason.

Source: all-MiniLM-L6-v2, a sentence encoder trained on pairs of texts that belong together (Reimers and Gurevych
2019; Wang et al. 2020).
"""

import itertools
from collections.abc import Sequence
from typing import Any, Final

from spangrade.metrics.builtin.claims import MAX_PIECE, pieces
from spangrade.metrics.builtin.embedding import MAX_CHARS, TIMEOUT_S, embed
from spangrade.metrics.builtin.evidence import document_name
from spangrade.metrics.builtin.text import document_texts, prose, quoted
from spangrade.metrics.local import metric
from spangrade.model.sample import Sample
from spangrade.model.score import Score, Skip

MAX_ANSWER_CHARS: Final = 20_000
MAX_DOCUMENT_CHARS: Final = 200_000
MAX_PARTS: Final = 32


@metric(name="context_relevance", version=1, verdict=False, requires=("input", "documents"), timeout=TIMEOUT_S)
def context_relevance(sample: Sample) -> Score:
    """Mean over the documents of their nearness in subject to the question, 0 to 1. See the module's docstring."""
    question = _question(sample)
    texts = document_texts(sample.documents)
    parts: list[list[str]] = []
    left = MAX_DOCUMENT_CHARS
    for text in texts:
        parts.append(_parts(text[: max(left, 0)]))
        left -= len(text)
    total = sum(map(len, parts))
    kept = _fairly(parts, MAX_PARTS)
    if not kept:
        raise Skip("the documents have no text")
    near = _nearness(question, [part for _, part in kept])
    scores: dict[int, float] = {}
    for (place, _), value in zip(kept, near, strict=True):
        scores[place] = max(value, scores.get(place, 0.0))
    listed: list[dict[str, Any]] = [
        {"document": document_name(sample.documents[place], place), "score": round(value, 4)}
        for place, value in sorted(scores.items())
    ]
    metadata: dict[str, Any] = {"documents": listed}
    if total > len(kept) or left < 0:
        metadata["left_out"] = {"parts": {"given": total, "scored": len(kept)}}
    if len(scores) < len(texts):
        metadata["without_text"] = len(texts) - len(scores)
    best = max(listed, key=lambda one: one["score"])
    worst = min(listed, key=lambda one: one["score"])
    return Score(
        round(sum(scores.values()) / len(scores), 4),
        explanation=f"{len(scores)} documents: nearest {best['document']} ({best['score']:.2f}), "
        f"farthest {worst['document']} ({worst['score']:.2f})",
        metadata=metadata,
    )


@metric(name="answer_relevance", version=1, verdict=False, requires=("input", "output"), timeout=TIMEOUT_S)
def answer_relevance(sample: Sample) -> Score:
    """Nearness in subject of the answer to the question, 0 to 1. See the module's docstring."""
    question = _question(sample)
    parts = _parts(prose(sample.output, MAX_ANSWER_CHARS))
    if not parts:
        raise Skip("the answer has no words to look for")
    near = _nearness(question, parts)
    best = max(range(len(parts)), key=near.__getitem__)
    why = f"nearest part of {len(parts)}: {quoted(parts[best])}" if len(parts) > 1 else None
    return Score(round(near[best], 4), explanation=why)


def _question(sample: Sample) -> str:
    question = prose(sample.input, MAX_CHARS)
    if not any(character.isalnum() for character in question):
        raise Skip("the question has no words to look for")
    return question


def _nearness(question: str, parts: Sequence[str]) -> list[float]:
    """The cosine of each part with the question, 0 to 1."""
    asked, *answers = embed([question, *parts])
    return [min(max(float(one.vector @ asked.vector), 0.0), 1.0) for one in answers]


def _parts(text: str) -> list[str]:
    """Neighbouring sentences, as many as the model reads at once."""
    parts, part = [], ""
    for piece in pieces(text):
        if part and len(part) + len(piece) >= MAX_PIECE:
            parts.append(part)
            part = ""
        part = f"{part} {piece}" if part else piece
    return [*parts, part] if part else parts


def _fairly(parts: Sequence[Sequence[str]], most: int) -> list[tuple[int, str]]:
    """At most ``most`` parts, with their document's place: every document's first, then every one's second, ..."""
    rounds = itertools.zip_longest(*([(place, part) for part in own] for place, own in enumerate(parts)))
    found = (one for each in rounds for one in each if one is not None)
    return list(itertools.islice(found, most))
