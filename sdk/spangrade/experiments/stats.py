"""Intervals for means: what a mean over items says of the items that were not asked.

Arrays in, plain numbers out. The unit is the item, or with clusters the group of items that stand or fall together: a
resample draws whole units. Repeats of one item are averaged before they come here.

All of it is seeded and depends on the values only, not on their order: the same results give the same figures.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

from spangrade.errors import ConfigError
from spangrade.experiments.defaults import CONFIDENCE, RESAMPLES, SEED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

#: Fewer units than this, and an interval is given as unreliable: in our simulations (tests/unit/experiments) a 95 % interval
#: over 8 to 12 units covered the truth as seldom as 57 to 91 % of the time when the differences were few or skewed.
FEW_UNITS: Final = 20
#: The same where hardly any unit differs from the others, however many there are.
FEW_DIFFERENT: Final = 6

_CELLS: Final = 250_000  # numbers drawn at a time: bounds the memory of a resample (about 5 MB)
_FEW_KINDS: Final = 8  # at most one kind of unit to so many units, for kinds to be drawn in place of units
_MOST_DRAWS: Final = 50_000_000  # past this (5,000 items at 10,000 resamples) resamples are fewer, and say so
_LEAST_RESAMPLES: Final = 1_000
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a mean.

    Attributes:
        low: its lower end, None where there are too few units for any.
        high: its upper end.
        units: items, or clusters of items.
        confidence: how often such an interval holds the truth, 0 to 1.
        method: ``expanded percentile bootstrap`` or ``Wilson``.
        resamples: how many were drawn; 0 for Wilson.
        caution: why the interval should not be relied on; None when there is no reason.
    """

    low: float | None
    high: float | None
    units: int
    confidence: float = CONFIDENCE
    method: str = "expanded percentile bootstrap"
    resamples: int = 0
    caution: str | None = None

    def holds(self, value: float) -> bool:
        """Whether ``value`` lies in it; an interval without ends holds everything."""
        if self.low is None or self.high is None:
            return True
        return self.low <= value <= self.high

    def __neg__(self) -> "Interval":
        """The interval of the mean of the negated values."""
        low = None if self.high is None else _plain(-self.high)
        high = None if self.low is None else _plain(-self.low)
        return Interval(low, high, self.units, self.confidence, self.method, self.resamples, self.caution)


def need_numpy() -> Any:
    """The numpy module, or a sentence that says where it comes from."""
    try:
        import numpy
    except ImportError as missing:
        raise ConfigError('intervals need numpy: pip install "spangrade[experiments]"') from missing
    return numpy


def mean_interval(
    values: "ArrayLike",
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """The interval of the mean of ``values``; for differences of pairs, the paired interval.

    The expanded percentile bootstrap: the percentiles of resampled means, taken further out so that the interval has the width
    of a t interval, since a plain percentile interval is too narrow by sqrt((n-1)/n) and by a normal quantile in place of a t
    quantile (T. Hesterberg, What Teachers Should Know About the Bootstrap, The American Statistician 69, 2015, section 4). With
    clusters whole clusters are drawn and the mean is that over all drawn items (a ratio; Cameron and Miller, A Practitioner's
    Guide to Cluster-Robust Inference, Journal of Human Resources 50, 2015), with the clusters as the units of the widening.

    Args:
        values: one per item, finite, shape (n,).
        clusters: the group of each item, as long as ``values``; None: every item is its own.
        confidence: between 0 and 1, default 0.95.
        resamples: default 10,000; above 5,000 units fewer are drawn, and the result says how many.
        seed: of the generator; recorded by whoever keeps the interval.
    """
    np = need_numpy()
    x = _checked(np, values)
    sums, sizes = unit_sums(x, clusters)
    units = len(sums)
    if units < 2:
        what = "no items" if units == 0 else "one item" if len(x) == 1 else "one cluster"
        return Interval(None, None, units, confidence, caution=f"{what}: nothing is known of the spread")
    mean = float(sums.sum() / sizes.sum())
    if all_equal(x):
        return Interval(mean, mean, units, confidence, caution="all values are equal: resampling sees no spread")
    sign = canonical_sign(sums, sizes)
    turned = sums if sign == 0 else sign * sums
    order = np.lexsort((sizes, turned))
    drawn = _resampled_means(np, turned[order], sizes[order], resamples, seed)
    tail = _NORMAL.cdf(-math.sqrt(units / (units - 1)) * t_quantile((1 + confidence) / 2, units - 1))
    low, high = np.quantile(drawn, [tail, 1 - tail])
    if sign == 0:
        low, high = (low - high) / 2, (high - low) / 2
    elif sign < 0:
        low, high = -high, -low
    return Interval(
        _plain(low),
        _plain(high),
        units,
        confidence,
        resamples=len(drawn),
        caution=_caution(np, sums / sizes, "items" if clusters is None else "clusters"),
    )


def rate_interval(
    values: "ArrayLike",
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """The interval of a pass rate.

    Where each item is 0 or 1 and counts for itself: Wilson's score interval (E. B. Wilson, JASA 22, 1927), which is right for
    small n and does not collapse when all pass. Otherwise (clusters, or rates over repeats) `mean_interval`.
    """
    np = need_numpy()
    x = _checked(np, values)
    n = len(x)
    alone = clusters is None or len(set(clusters)) == n
    if n == 0 or not alone or not np.isin(x, (0.0, 1.0)).all():
        return mean_interval(x, clusters, confidence=confidence, resamples=resamples, seed=seed)
    z = _NORMAL.inv_cdf((1 + confidence) / 2)
    rate = float(x.mean())
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return Interval(max(0.0, middle - half), min(1.0, middle + half), n, confidence, "Wilson")


def unit_sums(values: "Floats", clusters: Sequence[Hashable] | None) -> "tuple[Floats, Floats]":
    """The sum and the size of each unit: of each cluster, or of each item for itself."""
    np = need_numpy()
    if clusters is None:
        return values, np.ones(len(values))
    if len(clusters) != len(values):
        raise ValueError(f"{len(clusters)} cluster names for {len(values)} values")
    numbers: dict[Hashable, int] = {}
    which = np.array([numbers.setdefault(name, len(numbers)) for name in clusters], dtype=np.intp)
    return (
        np.bincount(which, weights=values, minlength=len(numbers)),
        np.bincount(which, minlength=len(numbers)).astype(float),
    )


def standard_error(values: "Floats", clusters: Sequence[Hashable] | None = None) -> float | None:
    """The standard error of the mean, clustered where asked; None with fewer than two units.

    sqrt(G/(G-1) * sum over units of (sum of the unit's deviations)^2) / n, with G units and n values: s/sqrt(n) when every item
    is its own unit (E. Miller, Adding Error Bars to Evals, arXiv:2411.00640, equation 4, with the small-sample factor).
    """
    sums, sizes = unit_sums(values, clusters)
    units = len(sums)
    if units < 2:
        return None
    deviations = sums - sizes * (sums.sum() / sizes.sum())
    return math.sqrt(units / (units - 1) * float((deviations**2).sum())) / float(sizes.sum())


def all_equal(values: "Floats") -> bool:
    """Whether nothing but rounding tells the values apart."""
    np = need_numpy()
    return not len(values) or bool(np.ptp(values) <= 1e-12 * np.abs(values).max())


def t_quantile(p: float, df: int) -> float:
    """The quantile of Student's t: closed forms at 1 and 2 degrees of freedom, else the expansion of Abramowitz and Stegun 26.7.5
    (within 0.13 % of the truth at 3 degrees for p up to 0.975, 0.01 % from 5)."""
    if df == 1:
        return math.tan(math.pi * (p - 0.5))
    if df == 2:
        return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))
    x = _NORMAL.inv_cdf(p)
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92_160,
    )
    return x + sum(term / float(df) ** power for power, term in enumerate(terms, 1))


def canonical_sign(sums: "Floats", sizes: "Floats") -> float:
    """1 or -1, chosen so that values and their negatives are resampled alike: then compare(a, b) mirrors compare(b, a).

    0 where the values are their own mirror image, and so must be their interval.
    """
    np = need_numpy()
    for key in (sums, sums * sizes):
        ordered = np.sort(key)
        sides = ordered + ordered[::-1]  # from the outside in: which side reaches further
        further = sides[sides != 0]
        if len(further):
            return 1.0 if further[0] > 0 else -1.0
    return 0.0


def _resampled_means(np: Any, sums: "Floats", sizes: "Floats", resamples: int, seed: int) -> "Floats":
    units = len(sums)
    rng = np.random.default_rng(seed)
    # Units that are alike (most are, where a score is 0 or 1) are drawn as one count: the same distribution, at once.
    first = np.concatenate(([True], (np.diff(sums) != 0) | (np.diff(sizes) != 0)))
    alike = np.diff(np.append(np.flatnonzero(first), units))
    if len(alike) * _FEW_KINDS <= units:
        drawn = rng.multinomial(units, alike / units, resamples)
        return (drawn @ sums[first]) / (drawn @ sizes[first])  # type: ignore[no-any-return]
    count = max(min(resamples, _MOST_DRAWS // units), min(resamples, _LEAST_RESAMPLES))
    kind = np.uint16 if units <= 2**16 else np.uint32
    even = bool((sizes == sizes[0]).all())
    means = np.empty(count)
    step = max(1, _CELLS // units)
    for start in range(0, count, step):
        drawn = rng.integers(0, units, (min(step, count - start), units), dtype=kind)
        total = sums[drawn].sum(axis=1)
        size = sizes[0] * units if even else sizes[drawn].sum(axis=1)
        means[start : start + len(drawn)] = total / size
    return means  # type: ignore[no-any-return]


def _caution(np: Any, means: "Floats", units: str) -> str | None:
    if len(means) < FEW_UNITS:
        return f"only {len(means)} {units}: the truth may lie outside more often than the interval says"
    rounded = np.round(means / np.abs(means).max(), 12)
    apart = len(means) - int(np.unique(rounded, return_counts=True)[1].max())
    if apart < FEW_DIFFERENT:
        return f"only {apart} of {len(means)} {units} differ from the rest: the truth may lie outside more often than the interval says"
    return None


def _checked(np: Any, values: "ArrayLike") -> "Floats":
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1:
        raise ValueError(f"values of shape {x.shape}; one number per item")
    if not np.isfinite(x).all():
        raise ValueError("a value is not finite; a failed item has no number and must be left out and counted")
    return x  # type: ignore[no-any-return]


def _plain(value: Any) -> float:
    return float(value) + 0.0  # -0.0 reads as a sign that is none
