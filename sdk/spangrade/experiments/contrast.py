"""One score over one set of items: pairs, delta, interval, and what they show."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance
from typing import Final

from spangrade.experiments.comparison import Pair, ScoreComparison, Side, Verdict
from spangrade.experiments.pairing import ItemScore
from spangrade.experiments.power import smallest_difference
from spangrade.experiments.significance import sign_flip_p
from spangrade.experiments.stats import mean_interval, need_numpy
from spangrade.model.sample import FrozenDict

#: Shares of items without a score that differ by less are not remarked on.
_LOSS_APART: Final = 0.01


@dataclass(frozen=True, slots=True)
class Method:
    """How intervals and p values are made."""

    confidence: float
    resamples: int
    seed: int
    clusters: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One score of one side: each item's, by id, and what its numbers are."""

    items: Mapping[str, ItemScore]

    @property
    def has_values(self) -> bool:
        """Whether any item has a number."""
        return any(score.values for score in self.items.values())

    @property
    def has_verdicts(self) -> bool:
        """Whether any item has a verdict."""
        return any(score.verdicts for score in self.items.values())

    def among(self, ids: Sequence[str]) -> "Series":
        """The same for some items only."""
        return Series({item_id: self.items[item_id] for item_id in ids})


def contrast(row: ScoreComparison, a: Series, b: Series, method: Method) -> ScoreComparison:
    """``row`` with its numbers: both sides, delta, interval, p value, and the smallest difference that would show."""
    by_value = a.has_values or b.has_values
    if not by_value and not (a.has_verdicts and b.has_verdicts):
        return _labels(row, a, b)
    row = replace(row, measure="value" if by_value else "pass rate")
    pairs = []
    for item_id in sorted(a.items):
        first, second = number(a.items[item_id], row.measure), number(b.items[item_id], row.measure)
        if first is not None and second is not None:
            pairs.append(Pair(item_id, first, second))
    paired = [pair.item_id for pair in pairs]
    row = replace(
        row,
        pairs=tuple(pairs),
        a=side(a, row.measure, paired),
        b=side(b, row.measure, paired),
        cautions=row.cautions + _lost(a, b, row),
    )
    if not pairs:
        return replace(row, status="no pairs", reason="no item has a number on both sides")
    np = need_numpy()
    differences = np.array([pair.delta for pair in pairs])
    groups = None if method.clusters is None else [method.clusters[item_id] for item_id in paired]
    return replace(
        row,
        delta=float(differences.mean()),
        interval=mean_interval(
            differences, groups, confidence=method.confidence, resamples=method.resamples, seed=method.seed
        ),
        p_value=sign_flip_p(differences, groups, resamples=method.resamples, seed=method.seed),
        smallest_difference=smallest_difference(differences, groups, alpha=1 - method.confidence),
    )


def shown(row: ScoreComparison, confidence: float) -> ScoreComparison:
    """``row`` with what it shows.

    A difference is shown when the interval leaves 0 out and the test agrees (in slices by the adjusted p value): with few pairs
    that differ an interval alone claims too much.
    """
    if row.status != "compared" or row.interval is None or row.delta is None:
        return row
    alpha = 1 - confidence + 1e-12
    p = row.p_value if row.p_adjusted is None else row.p_adjusted
    outside = not row.interval.holds(0.0)
    if outside and p is not None and p <= alpha:
        return replace(row, shows=_direction(row))
    cautions = row.cautions
    if outside and row.p_value is not None:
        if row.p_value > alpha:
            cautions += (
                f"the interval leaves 0 out, but the exact test does not agree (p = {row.p_value:.2g}): too few pairs differ",
            )
        else:
            cautions += (f"p = {row.p_value:.2g} by itself, {p:.2g} among all slices (Holm)",)
    return replace(row, shows="no difference shown", cautions=cautions)


def number(score: ItemScore, measure: str) -> float | None:
    """The item's number: its mean value, or its share of passes."""
    return score.value if measure == "value" else score.rate


def side(series: Series, measure: str, over: Sequence[str] | None = None) -> Side:
    """One side, its means over the items ``over`` or over all that have a number."""
    numbers = {item_id: number(score, measure) for item_id, score in series.items.items()}
    having = [item_id for item_id, value in numbers.items() if value is not None]
    counted = having if over is None else over
    values = [value for item_id in counted if (value := numbers[item_id]) is not None]
    rates = [rate for item_id in counted if (rate := series.items[item_id].rate) is not None]
    labels = Counter(label for score in series.items.values() for label in score.labels)
    lost = Counter(_reason(series.items[item_id]) for item_id, value in numbers.items() if value is None)
    return Side(
        mean=fmean(values) if values else None,
        pass_rate=fmean(rates) if rates else None,
        items=len(having),
        lost=FrozenDict(lost),
        lost_runs=sum(len(series.items[item_id].lost) for item_id in having),
        repeat_sd=_repeat_sd([series.items[item_id] for item_id in having], measure),
        labels=FrozenDict(sorted(labels.items())),
    )


def _repeat_sd(scores: Sequence[ItemScore], measure: str) -> float | None:
    runs = [score.values if measure == "value" else score.verdicts for score in scores]
    spread = [(variance(values), len(values) - 1) for values in runs if len(values) > 1]
    if not spread:
        return None
    return math.sqrt(sum(v * df for v, df in spread) / sum(df for _, df in spread))


def _reason(score: ItemScore) -> str:
    """Why an item has no number: of several reasons the gravest."""
    for reason in ("error", "timeout", "not run", "skipped", "not given"):
        if reason in score.lost:
            return reason
    return score.lost[0] if score.lost else "no number"


def _lost(a: Series, b: Series, row: ScoreComparison) -> tuple[str, ...]:
    n = len(a.items)
    lost_a = sum(number(score, row.measure) is None for score in a.items.values())
    lost_b = sum(number(score, row.measure) is None for score in b.items.values())
    said = []
    if n and lost_a != lost_b and abs(lost_a - lost_b) >= _LOSS_APART * n:
        said.append(
            f"of {n} items {lost_a} have no score in a and {lost_b} in b: the pairs that remain are a selection"
        )
    runs_a, runs_b = (
        sum(len(s.lost) for s in side.items.values() if number(s, row.measure) is not None) for side in (a, b)
    )
    if runs_a or runs_b:
        said.append(f"{runs_a} repeats in a and {runs_b} in b gave no number; their items are the mean of the others")
    return tuple(said)


def _labels(row: ScoreComparison, a: Series, b: Series) -> ScoreComparison:
    first, second = side(a, "value"), side(b, "value")
    if not first.labels and not second.labels:
        return replace(row, status="no pairs", reason="no item has a number on either side", a=first, b=second)
    both = [i for i in a.items if a.items[i].labels and b.items[i].labels]
    changed = sum(sorted(a.items[i].labels) != sorted(b.items[i].labels) for i in both)
    reason = f"categories without a number; {changed} of {len(both)} items have another in b"
    return replace(row, status="labels only", reason=reason, a=first, b=second)


def _direction(row: ScoreComparison) -> Verdict:
    up = (row.delta or 0.0) > 0
    if not row.verdict:
        return "higher" if up else "lower"
    return "better" if up is not (row.lower_is_better and row.measure == "value") else "worse"
