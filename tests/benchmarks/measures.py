"""What `bench-metrics` measures: AUROC, kappa, rates and calibration, with intervals by a bootstrap over clusters."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = Any


def auroc(scores: Array, labels: Array) -> float:
    """Probability that a positive scores higher than a negative, ties half (Mann and Whitney 1947)."""
    scores, labels = np.asarray(scores, dtype=float), np.asarray(labels, dtype=bool)
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positives = int(labels.sum())
    negatives = len(labels) - positives
    if not positives or not negatives:
        return float("nan")
    return float((ranks[labels].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def kappa(decisions: Array, labels: Array) -> float:
    """Cohen's kappa of two yes-or-no raters."""
    decisions, labels = np.asarray(decisions, dtype=bool), np.asarray(labels, dtype=bool)
    agreed = float((decisions == labels).mean())
    chance = decisions.mean() * labels.mean() + (1 - decisions.mean()) * (1 - labels.mean())
    return float((agreed - chance) / (1 - chance)) if chance < 1 else float("nan")


def true_positive_rate(decisions: Array, labels: Array) -> float:
    """The share of the grounded that passes."""
    return float(np.asarray(decisions, dtype=bool)[np.asarray(labels, dtype=bool)].mean())


def false_positive_rate(decisions: Array, labels: Array) -> float:
    """The share of the not grounded that passes."""
    return float(np.asarray(decisions, dtype=bool)[~np.asarray(labels, dtype=bool)].mean())


def calibration_error(probabilities: Array, labels: Array, bins: int = 10) -> float:
    """Expected calibration error: mean distance of confidence and frequency over bins of equal size, by their weight."""
    probabilities, labels = np.asarray(probabilities, dtype=float), np.asarray(labels, dtype=float)
    order = np.argsort(probabilities, kind="stable")
    return float(
        sum(len(p) * abs(probabilities[p].mean() - labels[p].mean()) for p in np.array_split(order, bins) if len(p))
        / len(labels)
    )


def interval(
    measure: Callable[[Array, Array], float],
    scores: Array,
    labels: Array,
    clusters: Sequence[str],
    draws: int = 1_000,
    seed: int = 5,
) -> tuple[float, float]:
    """95 % percentile interval of ``measure``, drawing whole clusters with replacement."""
    scores, labels = np.asarray(scores), np.asarray(labels)
    _, member = np.unique(np.asarray(clusters), return_inverse=True)
    groups = [np.flatnonzero(member == i) for i in range(member.max() + 1)]
    random = np.random.default_rng(seed)
    values = []
    for _ in range(draws):
        rows = np.concatenate([groups[i] for i in random.integers(len(groups), size=len(groups))])
        values.append(measure(scores[rows], labels[rows]))
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def folds(clusters: Sequence[str], count: int, seed: int) -> Array:
    """The fold of each row; a cluster is in one fold only."""
    names = sorted(set(clusters))
    of = dict(zip(np.random.default_rng(seed).permutation(len(names)), range(len(names)), strict=True))
    place = {name: of[i] % count for i, name in enumerate(names)}
    return np.array([place[name] for name in clusters])
