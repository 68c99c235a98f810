"""`groundedness`: the probability that the documents bear out what the answer says.

What it measures: each sentence of the answer is held against the documents. Its evidence is at most four of their
sentences that together cover its words best, a word being covered as well as its nearest word there is near: by the
cosine of the vectors that a small language model (all-MiniLM-L6-v2) gives both in their sentences. So a paraphrase is
covered, and a word used in another sense is not. A logistic regression then weighs six numbers: the words covered,
the neighbouring pairs of words found, the worst covered name and rare word, numbers that the evidence does not have,
and whether it says otherwise (denies it, or has another number or name in the same place); see
`spangrade.metrics.builtin.support`. More support never lowers the score. Half of the whole is the mean over the
sentences by the weight of their words, half is the weakest sentence alone; the explanation quotes it, what its
evidence does not have, and the nearest passage with its document. The order of documents and repetitions do not
matter, and documents about something else hardly: ten more of them moved the score by .02 in the mean of 500 answers,
and the AUROC by at most .01.

What it does not: reason. What follows from the documents without standing there (a sum, a date from an age) scores
low; true words in a false relation score high ("Pierre Curie won the Nobel Prize in Chemistry in 1911" passes where
that is said of Marie). It does not judge whether the documents are right, or the answer helpful. Questions, prefaces
("I'm not sure, but", "based on the documents,") and a few words of the speaker's own self are left out where there is
more, and an answer that only declines is *skipped*. It was made for English prose. It is not a cosine similarity of
texts: that hardly sees a negation (see `spangrade.metrics.builtin.relevance`).

How good it is (`make bench-metrics`; intervals by a bootstrap over dialogues and articles): the AUROC is .806 (95 %
.769 to .840) on q2, 600 dialogue replies of which 300 are grounded, and .849 (.809 to .885) on WiCE dev, 1,043 claims
of which 342 are, out of fold; fitted on the other set alone it is .806 and .827. Length alone has .523 and .587, the
MiniLM cosine .703 and .675, `overlap` .747 and .751. The features were chosen by looking at such figures of these two
sets, so expect a little less elsewhere. As a probability it is off by .06 on both (expected calibration error): too
high on q2, where half is grounded, too low on WiCE, where a third is. So trust the order more than the number.

Threshold 0.45, out of fold, "positive" being an answer that passes. On q2: true positive rate .897 (95 % .857 to
.930), n = 300; false positive rate .433 (95 % .371 to .497), n = 300; kappa .463. On WiCE dev: true positive rate
.529 (95 % .441 to .615), n = 342; false positive rate .097 (95 % .062 to .133), n = 701; kappa .465 (GPT-4 with a
long prompt has .493 on 300 such pairs). A sentence copied from a document always passes; with a *not* in it 2 in 100
pass, with another number 1, with another name 21; a sentence of another document never.

Source: word cover as in BERTScore (Zhang et al. 2020), pairs as in ROUGE (Lin 2004), both turned round to precision;
the set-up of TRUE (Honovich et al. 2022). Fitted on q2 (Honovich et al. 2021) and the development set of WiCE (Kamoi
et al. 2023) by ``python -m tests.benchmarks.fit_groundedness``; the weights are in ``groundedness.json``.

Cost: about 10 ms of processor time for each sentence, of answer or document, that was not seen before, 0.5 to 2 ms in
all where every one was, and half a second or more for loading the model with the first: on a slow machine that score
comes after its span has left, by the way of late scores. Most of it is outside of Python's lock; for
whole traffic let the agent score, or give a copy ``process=True``. Bounds: 24 sentences of an answer, 200,000
characters of documents, 16 to 48 of their sentences (those that share most words with the answer); what was left out
is in the metadata. Needs the extra ``local``; without it the result is *skipped* with the reason. A search that found
nothing (``context["searched"]`` and no documents) gives 0; without a search it is *skipped*.
"""

import functools
import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

from spangrade.metrics.builtin.embedding import TIMEOUT_S
from spangrade.metrics.builtin.evidence import Examined, document_name, examine
from spangrade.metrics.builtin.support import FEATURES, Support
from spangrade.metrics.builtin.text import quoted
from spangrade.metrics.local import metric
from spangrade.model.sample import Sample
from spangrade.model.score import Score, Skip

THRESHOLD: Final = 0.45
_WEAKEST: Final = 0.5  # the weakest sentence's part of the whole; the other half is the mean over all
_DECIDES: Final = 4.0  # a sentence of less weight (two or three words) is never the weakest: "Yes, they are great."


@metric(name="groundedness", threshold=THRESHOLD, version=1, requires=("output",), timeout=TIMEOUT_S)
def groundedness(sample: Sample) -> Score:
    """Probability that the documents bear out the answer, 0 to 1. See the module's docstring."""
    if not sample.documents:
        if sample.context.get("searched"):
            return Score(0.0, explanation="the search found no document, so nothing bears the answer out")
        raise Skip("documents missing")
    examined = examine(sample.output, sample.documents)
    logits = [logit(one.features) for one in examined.supports]
    parts = shares([one.weight for one in examined.supports], logits)
    value = _probability(sum(part * one for part, one in zip(parts, logits, strict=True)))
    weakest = weakest_of([one.weight for one in examined.supports], logits)
    metadata: dict[str, Any] = {"sentences": len(logits), "weakest": round(_probability(logits[weakest]), 3)}
    place = examined.documents[examined.supports[weakest].evidence[0]]
    metadata["document"] = document_name(sample.documents[place], place)
    if examined.left_out:
        metadata["left_out"] = examined.left_out
    return Score(
        round(value, 4), explanation=_why(examined, weakest, logits[weakest], metadata["document"]), metadata=metadata
    )


def shares(weights: Sequence[float], logits: Sequence[float]) -> list[float]:
    """What each sentence counts in the whole, summing to 1: half by its weight, half to the weakest alone."""
    total = sum(weights)
    parts = [(1 - _WEAKEST) * weight / total for weight in weights]
    parts[weakest_of(weights, logits)] += _WEAKEST
    return parts


def weakest_of(weights: Sequence[float], logits: Sequence[float]) -> int:
    """The sentence with the least support among those of some weight."""
    least = min(_DECIDES, max(weights))
    return min((i for i, weight in enumerate(weights) if weight >= least), key=lambda i: logits[i])


def logit(features: Sequence[float]) -> float:
    """One sentence's log-odds of being borne out."""
    model = _model()
    return float(model["intercept"]) + sum(
        float(model["weights"][name]) * value for name, value in zip(FEATURES, features, strict=True)
    )


@functools.lru_cache(maxsize=1)
def _model() -> Mapping[str, Any]:
    """The fitted numbers: ``groundedness.json``, written by ``python -m tests.benchmarks.fit_groundedness --write``."""
    text = resources.files(__package__).joinpath("groundedness.json").read_text(encoding="utf-8")
    model: dict[str, Any] = json.loads(text)
    return model


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-max(min(log_odds, 60.0), -60.0)))


def _why(examined: Examined, weakest: int, log_odds: float, document: str) -> str:
    support: Support = examined.supports[weakest]
    claim, passage = examined.claims[weakest], examined.passages[support.evidence[0]]
    why = f"weakest sentence ({_probability(log_odds):.2f}): {quoted(claim.text)}"
    if support.uncovered:
        more = f" and {len(support.uncovered) - 8} more" if len(support.uncovered) > 8 else ""
        why += f"; not in its evidence: {', '.join(word[:40] for word in support.uncovered[:8])}{more}"
    if support.features[-1]:
        why += "; the evidence says otherwise (a denial, a number or a name)"
    return f"{why}; nearest passage (document {document}): {quoted(passage.text)}"
