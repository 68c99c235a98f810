"""`Score`, what a metric says, and `Graded`, that as it is sent; `spangrade.model.returned` makes one of the other."""

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spangrade._values import type_name
from spangrade.model.sample import FrozenDict, freeze

PASS: Final = "pass"
FAIL: Final = "fail"
SKIPPED: Final = "skipped"
ERROR: Final = "error"

MAX_EXPLANATION: Final = 8_192
MAX_LABEL: Final = 256
MAX_SCORES: Final = 64
WHAT_IS_RIGHT: Final = (
    "a metric returns a number, a bool, a label (str), a Score, (value, explanation), a dict of these, or None to skip"
)

_NOTHING: Final = FrozenDict()


@dataclass(frozen=True)
class Score:
    """What an evaluator says of one sample.

    Attributes:
        value: a number (finite), or None. A list or dict is sent as JSON.
        label: a category; or ``fail``, ``skipped`` or ``error`` to override the threshold rule (``pass`` does not).
        explanation: why, in words. Cut past 8,192 characters when it is sent.
        metadata: anything more, sent as JSON.
    """

    value: Any = None
    label: str | None = None
    explanation: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", freeze(self.metadata) if self.metadata else _NOTHING)


@dataclass(frozen=True, slots=True)
class Rule:
    """How a value becomes pass or fail."""

    threshold: float | None
    lower_is_better: bool
    verdict: bool

    def passed(self, value: float | None) -> bool | None:
        """Without a threshold 0 fails and anything else passes; ``lower_is_better`` turns both round."""
        if not self.verdict or value is None:
            return None
        if self.threshold is None:
            return (value == 0) if self.lower_is_better else (value != 0)
        return value <= self.threshold if self.lower_is_better else value >= self.threshold


@dataclass(frozen=True, slots=True)
class Graded:
    """One score, read: ``passed`` is None where the evaluator gives no verdict.

    ``path`` says which leaf of a tree gave it, ``tree/branch/leaf``; ``rule`` is then the leaf's own, where the evaluator's
    threshold and direction are the tree's.
    """

    name: str
    value: float | None = None
    label: str | None = None
    passed: bool | None = None
    explanation: str | None = None
    structured: Any = None  # a list or dict value, plain JSON
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict)
    path: str | None = None
    rule: Rule | None = None


class ReturnError(ValueError):
    """A metric returned something that is no score; the message says what, and what would be right."""


class Skip(Exception):
    """The evaluator has nothing to say of this sample; the message says why."""


def number(value: Any) -> float:
    """A finite float of a bool, int, float, Decimal, or a scalar that says so itself (numpy); else `ReturnError`."""
    if type(value) is float and math.isfinite(value):
        return value
    if inspect.iscoroutine(value):
        value.close()  # or Python says on standard error that nobody awaited it
        raise ReturnError(f"returned a coroutine inside another value; await it first ({WHAT_IS_RIGHT})")
    if isinstance(value, (str, bytes, list, dict, set, tuple, complex)) or not hasattr(value, "__float__"):
        raise ReturnError(f"returned {type_name(value)}; {WHAT_IS_RIGHT}")
    try:
        # numpy warns where float() is asked of an array, even of one element; torch has no __float__ of its shape either.
        result = float(value.item() if getattr(value, "ndim", 0) else value)
    except Exception as fault:
        raise ReturnError(f"returned {type_name(value)}, which is no number: {type(fault).__name__}") from fault
    if not math.isfinite(result):
        raise ReturnError(f"returned {result}; a score is a finite number (return None to skip)")
    return result
