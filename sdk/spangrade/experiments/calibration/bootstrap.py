"""Intervals for figures that are no means: kappa, rates, a chosen threshold. Whole items, or clusters of them, are drawn again.

Each unit is a row of sums (counts of cells, or sums of products), a resample is the sum of its rows, and the statistic is a
function of such sums: so ten thousand resamples are one product of matrices.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

from spangrade.experiments.calibration.agreement import Weights
from spangrade.experiments.defaults import CONFIDENCE, RESAMPLES, SEED
from spangrade.experiments.stats import FEW_UNITS, Interval, need_numpy, t_quantile

if TYPE_CHECKING:
    from spangrade.experiments.stats import Floats

METHOD: Final = "expanded percentile bootstrap"
_UNDEFINED: Final = 0.05  # of the resamples: past this the interval says so
_CELLS: Final = 2_000_000  # numbers drawn at a time
_NORMAL: Final = NormalDist()


def summed(rows: Sequence[Sequence[float]], units: Sequence[Hashable]) -> "Floats":
    """The rows of each unit added up, shape (units, columns); ``units`` names the unit of each row."""
    np = need_numpy()
    numbers: dict[Hashable, int] = {}
    which = [numbers.setdefault(unit, len(numbers)) for unit in units]
    x = np.asarray(rows, dtype=np.float64)
    total = np.zeros((len(numbers), x.shape[1] if x.ndim == 2 else 0))
    np.add.at(total, which, x)
    return total  # type: ignore[no-any-return]


def bootstrap(
    units: "Floats",
    statistic: "Callable[[Floats], Floats]",
    *,
    among: "Floats | None" = None,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """The interval of ``statistic``, a function from sums of shape (resamples, columns) to figures of shape (resamples,).

    The expanded percentile bootstrap of `mean_interval`: percentiles taken further out, since plain ones are too narrow where
    units are few. A resample whose figure is not defined (one category only) is left out, and many of them are said.

    Args:
        units: one row of sums for each unit, shape (units, columns).
        among: where a figure is one of few values (a threshold): its interval's ends are of these.
        confidence, resamples, seed: as of `mean_interval`.
    """
    np = need_numpy()
    n = len(units)
    if n < 2:
        return Interval(None, None, n, confidence, METHOD, caution=f"{n} of them: nothing is known of the spread")
    kinds, counts = np.unique(units, axis=0, return_counts=True)  # alike units are drawn as one count: the same, sooner
    rng = np.random.default_rng(seed)
    found = []
    step = max(1, _CELLS // len(kinds))
    for start in range(0, resamples, step):
        drawn = rng.multinomial(n, counts / n, min(step, resamples - start))
        found.append(statistic(drawn @ kinds))
    figures = np.concatenate(found)
    defined = figures[np.isfinite(figures)]
    if not len(defined):
        return Interval(None, None, n, confidence, METHOD, resamples, "the figure is not defined in any resample")
    tail = _NORMAL.cdf(-math.sqrt(n / (n - 1)) * t_quantile((1 + confidence) / 2, n - 1))
    low, high = np.quantile(defined, [tail, 1 - tail], method="linear" if among is None else "nearest")
    caution = None
    if len(defined) < (1 - _UNDEFINED) * len(figures):
        caution = f"the figure is not defined in {1 - len(defined) / len(figures):.0%} of the resamples"
    elif len(kinds) > 1 and among is None and low == high:
        caution = "all resamples are equal: resampling sees no spread"
    elif n < FEW_UNITS:
        caution = f"only {n} items: the truth may lie outside more often than the interval says"
    return Interval(float(low) + 0.0, float(high) + 0.0, n, confidence, METHOD, len(defined), caution)


def kappa_interval(
    a: Sequence[Any], b: Sequence[Any], units: Sequence[Hashable], weights: Weights = None, **how: Any
) -> Interval:
    """The interval of `cohen_kappa` over pairs of grades; ``units`` names the item, or cluster, of each pair."""
    if not a:
        return Interval(None, None, 0, method=METHOD, caution="no items: nothing is known of the spread")
    if weights == "quadratic":
        return bootstrap(
            summed([(1, x, y, x * x, y * y, x * y) for x, y in zip(a, b, strict=True)], units), _weighted, **how
        )
    grades = sorted({*a, *b})
    place = {grade: i for i, grade in enumerate(grades)}
    rows = []
    for x, y in zip(a, b, strict=True):
        row = [0.0] * len(grades) ** 2
        row[place[x] * len(grades) + place[y]] = 1.0
        rows.append(row)
    return bootstrap(summed(rows, units), lambda sums: _plain(sums, len(grades)), **how)


def _plain(sums: "Floats", k: int) -> "Floats":
    """Kappa of confusion counts, shape (resamples, k * k)."""
    np = need_numpy()
    cells = sums.reshape(len(sums), k, k)
    n = cells.sum(axis=(1, 2))
    seen = np.trace(cells, axis1=1, axis2=2) / n
    chance = (cells.sum(axis=2) * cells.sum(axis=1)).sum(axis=1) / n**2
    return _ratio(seen - chance, 1 - chance)


def _weighted(sums: "Floats") -> "Floats":
    """Quadratic kappa of the sums of 1, x, y, x², y², xy: expected squares of differences need no table."""
    n, x, y, xx, yy, xy = sums.T
    return 1 - _ratio((xx + yy - 2 * xy) / n, (xx + yy) / n - 2 * x * y / n**2)


def _ratio(part: "Floats", whole: "Floats") -> "Floats":
    """NaN where the whole is nothing but rounding."""
    np = need_numpy()
    defined = np.abs(whole) > 1e-12
    return np.where(defined, part / np.where(defined, whole, 1.0), np.nan)  # type: ignore[no-any-return]
