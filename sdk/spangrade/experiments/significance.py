"""Could the pairs have fallen like this if nothing differed? The sign-flip test, exact where it can be."""

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

from spangrade.experiments.defaults import RESAMPLES, SEED
from spangrade.experiments.stats import need_numpy, unit_sums

if TYPE_CHECKING:
    from spangrade.experiments.stats import Floats

_EXACT_UNITS: Final = 13  # 2**13 patterns are looked at one and all
_CELLS: Final = 250_000


def sign_flip_p(
    differences: "Floats",
    clusters: Sequence[Hashable] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> float | None:
    """The two-sided p value of the paired differences: if a and b were exchangeable, how often would their mean be as far from 0?

    Each unit's difference could as well have had the other sign (R. A. Fisher, The Design of Experiments, 1935, section 21). For
    outcomes of 0 and 1 this is the exact McNemar test, the binomial on the discordant pairs, at any n; else all sign patterns
    are looked at up to 13 units that differ; else ``resamples`` random patterns, with (k+1)/(resamples+1), which is never 0
    (Phipson and Smyth, Statistical Applications in Genetics and Molecular Biology 9, 2010).

    Returns:
        1.0 when nothing differs, None without any pair.
    """
    np = need_numpy()
    sums, _ = unit_sums(differences, clusters)
    if not len(sums):
        return None
    size = float(np.abs(sums).max())
    moved = np.sort(np.abs(sums[np.abs(sums) > 1e-12 * size])) if size else sums[:0]
    if not len(moved):
        return 1.0
    if np.ptp(moved) <= 1e-12 * size:
        return binomial_p(int((sums > 1e-12 * size).sum()), len(moved))
    bar = abs(float(sums.sum())) - 1e-9 * size
    if len(moved) <= _EXACT_UNITS:
        bits = (np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))) & 1
        return float((np.abs((2.0 * bits - 1.0) @ moved) >= bar).mean())
    hits = _random_hits(np, moved, bar, resamples, seed)
    return (hits + 1) / (resamples + 1)


def binomial_p(hits: int, n: int) -> float:
    """The two-sided exact p value of ``hits`` heads in ``n`` throws of a fair coin (the sign test, and McNemar's exact test)."""
    if n == 0:
        return 1.0
    fewer = min(hits, n - hits)
    term = -n * math.log(2)  # log of C(n, 0) / 2^n: factorials overflow, logarithms do not
    total = 0.0
    for k in range(fewer + 1):
        total += math.exp(term)
        term += math.log((n - k) / (k + 1))
    return min(1.0, 2 * total)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p values adjusted for being many: whichever is at most alpha now, the chance of any false one among them is at most alpha
    (S. Holm, Scandinavian Journal of Statistics 6, 1979). None stays None and does not count."""
    ranked = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(ranked):
        highest = max(highest, min(1.0, p * (len(ranked) - rank)))
        adjusted[index] = highest
    return adjusted


def _random_hits(np: Any, moved: "Floats", bar: float, resamples: int, seed: int) -> int:
    rng = np.random.default_rng(seed)
    # Eight signs at a time: a random octet looks up the sum of its eight units.
    octets = -(-len(moved) // 8)
    eights = np.concatenate((moved, np.zeros(octets * 8 - len(moved)))).reshape(octets, 8)
    signs = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) - 1.0
    table = (signs @ eights.T).T.ravel()
    offsets = np.arange(octets, dtype=np.intp) * 256
    hits = 0
    step = max(1, _CELLS // octets)
    for start in range(0, resamples, step):
        drawn = rng.integers(0, 256, (min(step, resamples - start), octets), dtype=np.uint8)
        hits += int((np.abs(table[drawn + offsets].sum(axis=1)) >= bar).sum())
    return hits
