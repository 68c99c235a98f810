"""`Score`, and how anything a metric may return becomes scores."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spangrade._values import bounded, snapshot, type_name
from spangrade.model.sample import FrozenDict, freeze

PASS: Final = "pass"
FAIL: Final = "fail"
SKIPPED: Final = "skipped"
ERROR: Final = "error"

MAX_EXPLANATION: Final = 8_192
MAX_LABEL: Final = 256
MAX_SCORES: Final = 64


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
        object.__setattr__(self, "metadata", freeze(self.metadata or {}))


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


def read_scores(
    name: str, returned: Any, *, threshold: float | None, lower_is_better: bool, verdict: bool
) -> list[Graded]:
    """What a metric named ``name`` returned, as scores.

    number, bool (1 or 0), numpy scalar, Decimal → value; str → label; `Score`; ``(value, explanation)``;
    ``{"score"|"value"|"label": ..., "explanation"|"reason": ...}``; a dict of name to any of these → several scores,
    named ``metric.key``.

    Raises:
        Skip: for None, or a `Score` labelled ``skipped``.
        ReturnError: for NaN, infinities, empty text or dict, a `Score` labelled ``error``, and other types.
    """
    rule = Rule(threshold, lower_is_better, verdict)
    if isinstance(returned, Mapping) and not _is_one_score(returned):
        if not returned:
            raise ReturnError("returned an empty dict; return None to skip")
        if len(returned) > MAX_SCORES:
            raise ReturnError(f"returned {len(returned)} scores; at most {MAX_SCORES} are kept apart")
        several = []
        for key, item in returned.items():
            try:
                several.append(_one(f"{name}.{key}", item, rule))
            except Skip:
                continue
        if not several:
            raise Skip("every score in the returned dict was skipped")
        return several
    return [_one(name, returned, rule)]


_SCORE_KEYS: Final = frozenset({"score", "value", "label", "explanation", "reason", "metadata"})


def _is_one_score(returned: Mapping[Any, Any]) -> bool:
    keys = set(returned)
    return bool(keys) and keys <= _SCORE_KEYS and bool(keys & {"score", "value", "label"})


def _one(name: str, returned: Any, rule: Rule) -> Graded:
    if returned is None:
        raise Skip("returned None")
    if isinstance(returned, Mapping) and _is_one_score(returned):
        returned = Score(
            returned.get("score", returned.get("value")),
            returned.get("label"),
            returned.get("explanation", returned.get("reason")),
            returned.get("metadata") or {},
        )
    elif isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], (str, type(None))):
        returned = Score(returned[0], explanation=returned[1])
    elif isinstance(returned, str):
        returned = Score(label=returned)
    elif not isinstance(returned, Score):
        returned = Score(returned)
    return _from_score(name, returned, rule)


def _from_score(name: str, score: Score, rule: Rule) -> Graded:
    label, explanation = score.label, score.explanation
    if isinstance(score.value, str):  # a string value is a label
        label = label or score.value
        score = Score(None, label, explanation, score.metadata)
    if label is not None:
        label = bounded(str(label).strip(), MAX_LABEL)
    explanation = bounded(str(explanation), MAX_EXPLANATION) if explanation is not None else None
    if label == SKIPPED:
        raise Skip(explanation or "labelled skipped")
    if label == ERROR:
        raise ReturnError(explanation or "labelled error")
    structured, value = None, None
    if isinstance(score.value, (list, Mapping)):
        structured = snapshot(score.value)
    elif score.value is not None:
        value = number(score.value)
    if value is None and structured is None and not label:
        raise ReturnError("returned neither a value nor a label; return None to skip")
    passed = rule.passed(value)
    if label == FAIL and rule.verdict:
        passed = False
    elif label == PASS and value is None and rule.verdict:
        passed = True
    if label in (None, PASS, FAIL):  # the label on the wire is the verdict; `pass` never overrides the threshold
        label = label if passed is None else (PASS if passed else FAIL)
    return Graded(name, value, label, passed, explanation, structured, score.metadata)


def number(value: Any) -> float:
    """A finite float of a bool, int, float, Decimal, or a scalar that says so itself (numpy); else `ReturnError`."""
    if isinstance(value, (str, bytes, list, dict, set, tuple, complex)) or not hasattr(value, "__float__"):
        raise ReturnError(
            f"returned {type_name(value)}; a metric returns a number, a bool, a label (str), a Score, "
            "(value, explanation), a dict of these, or None to skip"
        )
    try:
        result = float(value)
    except Exception as fault:
        raise ReturnError(f"returned {type_name(value)}, which is no number: {type(fault).__name__}") from fault
    if not math.isfinite(result):
        raise ReturnError(f"returned {result}; a score is a finite number (return None to skip)")
    return result
