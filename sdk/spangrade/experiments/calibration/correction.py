"""From the pass rate that a judge sees to the one that people would: the judge's error rates, and what corrects by them.

    corrected = (observed + tnr - 1) / (tpr + tnr - 1)

W. J. Rogan and B. Gladen, Estimating prevalence from the results of a screening test, American Journal of Epidemiology 107,
1978. The interval, which counts that the error rates are estimates too: Z. Lang and J. Reiczigel, Confidence limits for
prevalence of disease adjusted for estimated sensitivity and specificity, Preventive Veterinary Medicine 113, 2014.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from spangrade.errors import ConfigError
from spangrade.experiments.defaults import CONFIDENCE


@dataclass(frozen=True, slots=True)
class Corrected:
    """A pass rate as people would see it, with its interval; all from 0 to 1."""

    value: float
    low: float
    high: float
    confidence: float = CONFIDENCE


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """A judge's error rates at one threshold, and the numbers of items that they rest on.

    ``true_positive_rate``: of what people pass, the share that the judge passes; ``true_negative_rate``: of what people fail,
    the share that it fails. They hold for traffic like the labelled items; the share of passes there may be another.
    """

    threshold: float
    true_positive_rate: float
    true_negative_rate: float
    passed_items: int
    failed_items: int
    held_out: bool = False

    @property
    def informs(self) -> bool:
        """Whether the judge does better than a coin, so that anything can be corrected."""
        return self.true_positive_rate + self.true_negative_rate > 1

    def corrected(self, observed: float, n: int, confidence: float = CONFIDENCE) -> Corrected:
        """The pass rate behind the one that the judge observed.

        Args:
            observed: the share that the judge passed, 0 to 1; with unequal sampling the weighted share.
            n: how many samples it rests on (with weights: the effective number, (sum w)² / sum w²).
            confidence: of the interval.

        Both the value and the ends are cut to 0 to 1.

        Raises:
            ConfigError: the judge is no better than a coin, ``observed`` is no rate, or ``n`` no count.
        """
        if not 0 <= observed <= 1:
            raise ConfigError(f"the observed pass rate {observed!r} is not from 0 to 1")
        if n < 1:
            raise ConfigError(f"the pass rate is over {n!r} samples; at least 1")
        if not 0 < confidence < 1:
            raise ConfigError(f"the confidence {confidence!r} is not between 0 and 1")
        if not self.informs:
            raise ConfigError(
                f"the judge passes {self.true_positive_rate:.0%} of what people pass and {1 - self.true_negative_rate:.0%} of what "
                "they fail: from such verdicts no pass rate can be told"
            )
        tpr, tnr = self.true_positive_rate, self.true_negative_rate
        value = (observed + tnr - 1) / (tpr + tnr - 1)
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        passed, failed, seen = self.passed_items + 2, self.failed_items + 2, n + z * z
        tpr, tnr = (tpr * self.passed_items + 1) / passed, (tnr * self.failed_items + 1) / failed
        p = (observed * n + z * z / 2) / seen
        gain = tpr + tnr - 1
        if gain <= 0:  # so few labelled items of one kind that nothing is ruled out
            return Corrected(_cut(value), 0.0, 1.0, confidence)
        middle = (p + tnr - 1) / gain
        of_tpr, of_tnr = tpr * (1 - tpr) / passed, tnr * (1 - tnr) / failed
        shift = 2 * z * z * (middle * of_tpr - (1 - middle) * of_tnr)
        half = z * math.sqrt(p * (1 - p) / seen + middle**2 * of_tpr + (1 - middle) ** 2 * of_tnr) / gain
        value = _cut(value)
        low, high = _cut(middle + shift - half), _cut(middle + shift + half)
        return Corrected(value, min(low, value), max(high, value), confidence)

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "ErrorRates":
        """What `to_plain` gave; KeyError, TypeError or ValueError where it is not that."""
        found = cls(
            threshold=float(plain["threshold"]),
            true_positive_rate=float(plain["true_positive_rate"]),
            true_negative_rate=float(plain["true_negative_rate"]),
            passed_items=int(plain["passed_items"]),
            failed_items=int(plain["failed_items"]),
            held_out=bool(plain.get("held_out", False)),
        )
        if not (0 <= found.true_positive_rate <= 1 and 0 <= found.true_negative_rate <= 1):
            raise ValueError("a rate is not from 0 to 1")
        return found

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "threshold": self.threshold,
            "true_positive_rate": self.true_positive_rate,
            "true_negative_rate": self.true_negative_rate,
            "passed_items": self.passed_items,
            "failed_items": self.failed_items,
            "held_out": self.held_out,
        }


def _cut(value: float) -> float:
    return min(1.0, max(0.0, value))
