"""Does the judge say the same when it is asked again, or when what it reads stands in another order?"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spangrade.experiments.calibration.agreement import Weights, cohen_kappa, pairwise_kappas
from spangrade.experiments.calibration.judging import Grade
from spangrade.experiments.stats import Interval, rate_interval


@dataclass(frozen=True, slots=True)
class Order:
    """The same items in two orders.

    Attributes:
        what: ``documents`` or ``examples``.
        n: items graded in both orders.
        flips: the share of them whose verdict (pass or fail) differs, with its interval.
        kappa: between the orders, on scores (quadratic weights on 1-5).
        kappa_given, kappa_reversed, kappa_both: with people's labels, in either order and in both together.
        errors: gradings in the other order that failed, by kind.
    """

    what: str
    n: int
    flips: float | None
    flips_interval: Interval | None
    kappa: float | None
    kappa_given: float | None
    kappa_reversed: float | None
    kappa_both: float | None
    errors: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Retest:
    """The same items asked again.

    Attributes:
        n: items graded at least twice.
        repeats: how often each was asked.
        flips: the share of them whose verdicts are not all the same, with its interval.
        kappas: between each two repeats, on scores (quadratic weights on 1-5); None where it is not defined.
        spread: the mean over items of the standard deviation of their scores.
    """

    n: int
    repeats: int
    flips: float | None
    flips_interval: Interval | None
    kappas: tuple[float | None, ...]
    spread: float | None


def order_stability(
    what: str,
    given: Sequence[Grade],
    turned: Sequence[Grade],
    human: Mapping[str, float],
    units: Mapping[str, Hashable],
    weights: Weights,
    human_weights: Weights,
    errors: Mapping[str, int],
    how: Mapping[str, Any],
) -> Order:
    """``weights``: of the judge's scores. ``human``: by item id, what is compared with the score where ``human_weights`` are
    quadratic, and with the verdict (1 or 0) where there are none."""
    before, after = ({grade.item_id: grade for grade in grades if grade.repeat == 0} for grades in (given, turned))
    both = [item_id for item_id in before if item_id in after]
    flipped = [float(before[i].passed != after[i].passed) for i in both]
    said = {side: [_compared(grades[i], human_weights) for i in both] for side, grades in (("a", before), ("b", after))}
    people = [human[i] for i in both]
    return Order(
        what=what,
        n=len(both),
        flips=sum(flipped) / len(both) if both else None,
        flips_interval=rate_interval(flipped, [units[i] for i in both], **how) if both else None,
        kappa=cohen_kappa([before[i].score for i in both], [after[i].score for i in both], weights),
        kappa_given=cohen_kappa(said["a"], people, human_weights),
        kappa_reversed=cohen_kappa(said["b"], people, human_weights),
        kappa_both=cohen_kappa(said["a"] + said["b"], people * 2, human_weights),
        errors=dict(errors),
    )


def retest_stability(
    grades: Sequence[Grade], repeats: int, units: Mapping[str, Hashable], weights: Weights, how: Mapping[str, Any]
) -> Retest:
    """What ``repeats`` gradings of the same items have in common."""
    by_item: dict[str, dict[int, Grade]] = {}
    for grade in grades:
        by_item.setdefault(grade.item_id, {})[grade.repeat] = grade
    again = {item_id: found for item_id, found in by_item.items() if len(found) > 1}
    flipped = [float(len({grade.passed for grade in found.values()}) > 1) for found in again.values()]
    table = [
        [found[repeat].score if repeat in found else None for found in by_item.values()] for repeat in range(repeats)
    ]
    spreads = [_deviation([grade.score for grade in found.values()]) for found in again.values()]
    return Retest(
        n=len(again),
        repeats=repeats,
        flips=sum(flipped) / len(again) if again else None,
        flips_interval=rate_interval(flipped, [units[i] for i in again], **how) if again else None,
        kappas=tuple(kappa for kappa, _ in pairwise_kappas(table, weights).values()),
        spread=sum(spreads) / len(spreads) if spreads else None,
    )


def _compared(grade: Grade, weights: Weights) -> float:
    return grade.score if weights == "quadratic" else float(grade.passed)


def _deviation(scores: Sequence[float]) -> float:
    mean = sum(scores) / len(scores)
    return float((sum((score - mean) ** 2 for score in scores) / (len(scores) - 1)) ** 0.5)
