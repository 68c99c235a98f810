"""How far graders agree beyond chance: Cohen's kappa for two, Krippendorff's alpha for several with labels missing.

Exact, in plain Python; `bootstrap` has the same kappas over resamples.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any, Final, Literal

Weights = Literal["quadratic"] | None
Level = Literal["nominal", "ordinal", "interval"]
LEVELS: Final = ("nominal", "ordinal", "interval")


def cohen_kappa(a: Sequence[Any], b: Sequence[Any], weights: Weights = None) -> float | None:
    """Cohen's kappa of two graders over the same items, shape (n,) each.

    1 - (disagreement seen) / (disagreement by chance, given how often each grader uses each grade). Without weights any two
    different grades disagree alike (J. Cohen, Educational and Psychological Measurement 20, 1960). ``quadratic``: as the square
    of their distance (J. Cohen, Psychological Bulletin 70, 1968); grades are then numbers.

    Returns:
        -1 to 1; None without items, and where both gave one and the same grade to all: chance cannot disagree, so that
        agreement says nothing.

    Raises:
        ValueError: the graders have not graded the same number of items.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} grades of one grader and {len(b)} of the other; kappa takes pairs")
    n = len(a)
    if n == 0:
        return None
    apart = _squared if weights == "quadratic" else _differ
    seen = sum(apart(x, y) for x, y in zip(a, b, strict=True)) / n
    counts_a, counts_b = Counter(a), Counter(b)
    chance = sum(m * k * apart(x, y) for x, m in counts_a.items() for y, k in counts_b.items()) / (n * n)
    return None if chance == 0 else 1 - seen / chance


def pairwise_kappas(
    graders: Sequence[Sequence[Any]], weights: Weights = None
) -> dict[tuple[int, int], tuple[float | None, int]]:
    """Kappa and the number of shared items of each two graders; None among a grader's grades is a missing one."""
    found = {}
    for i, j in combinations(range(len(graders)), 2):
        both = [(x, y) for x, y in zip(graders[i], graders[j], strict=True) if x is not None and y is not None]
        found[i, j] = (cohen_kappa([x for x, _ in both], [y for _, y in both], weights), len(both))
    return found


def krippendorff_alpha(graders: Sequence[Sequence[Any]], level: Level = "nominal") -> float | None:
    """Krippendorff's alpha of any number of graders; each grader's grades over the same items, None where one is missing.

    1 - D_observed / D_expected over the coincidences of all grades of items that have two or more (K. Krippendorff, Computing
    Krippendorff's Alpha-Reliability, 2011, https://repository.upenn.edu/asc_papers/43; Content Analysis, 4th ed., chapter 12).
    ``nominal``: grades are the same or not; ``ordinal``: their distance is in ranks as often as used; ``interval``: in numbers.

    Returns:
        at most 1; None where no item has two grades, or all grades are one and the same.

    Raises:
        ValueError: the graders have not the same items, or the level is none of the three.
    """
    if level not in LEVELS:
        raise ValueError(f"level {level!r} is not one of {', '.join(LEVELS)}")
    if len({len(grades) for grades in graders}) > 1:
        raise ValueError("the graders have different numbers of items; put None where a grade is missing")
    units = [[grade for grade in unit if grade is not None] for unit in zip(*graders, strict=True)]
    weight: dict[tuple[Any, Any], float] = {}
    for unit in units:
        if len(unit) < 2:
            continue
        counts = Counter(unit)
        for x, m in counts.items():
            for y, k in counts.items():
                pairs = m * (k - 1) if x == y else m * k
                weight[x, y] = weight.get((x, y), 0.0) + pairs / (len(unit) - 1)
    totals: dict[Any, float] = {}
    for (x, _), share in weight.items():
        totals[x] = totals.get(x, 0.0) + share
    n = sum(totals.values())
    distance = _distances(totals, level)
    chance = sum(totals[x] * totals[y] * distance[x, y] for x in totals for y in totals)
    if n < 2 or chance == 0:
        return None
    seen = sum(share * distance[pair] for pair, share in weight.items())
    return 1 - (n - 1) * seen / chance


def majority(grades: Sequence[Hashable]) -> Hashable | None:
    """The grade that most gave; None where two are as frequent, or there is none."""
    ranked = Counter(grades).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def _distances(totals: dict[Any, float], level: Level) -> dict[tuple[Any, Any], float]:
    if level == "nominal":
        return {(x, y): float(x != y) for x in totals for y in totals}
    if level == "interval":
        return {(x, y): float((x - y) ** 2) for x in totals for y in totals}
    ordered = sorted(totals)
    found = {}
    for i, x in enumerate(ordered):
        for j, y in enumerate(ordered):
            low, high = min(i, j), max(i, j)
            between = sum(totals[grade] for grade in ordered[low : high + 1])
            found[x, y] = (between - (totals[x] + totals[y]) / 2) ** 2
    return found


def _differ(x: Any, y: Any) -> float:
    return float(x != y)


def _squared(x: Any, y: Any) -> float:
    return float((x - y) ** 2)
