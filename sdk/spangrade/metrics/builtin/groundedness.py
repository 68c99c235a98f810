"""`groundedness`: the probability that the documents bear out what the answer says.

DOCSTRING_PLACEHOLDER
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
