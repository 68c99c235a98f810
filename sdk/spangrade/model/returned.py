"""What a metric returned → a `Verdict`: one score or several, and those of several that failed.

| returned | becomes |
|---|---|
| number, bool (1 or 0), Decimal, a scalar or one-element array that says its number (numpy, torch) | value |
| text, an Enum of texts | label; ``pass`` and ``fail`` are the verdict too |
| `Score` | as it says |
| `MetricResult` | its value, explained by its reason; without a value an error, for that reason |
| ``(value, explanation)`` | value or label, explained; a value of None: skipped, for that reason |
| ``{"score" or "value" or "label": ..., "explanation" or "reason": ..., "metadata": ...}`` | the same, by name |
| list, or a dict inside one of those above or below | structured value, sent as JSON |
| a dict of name to any of these | several scores, named ``metric.name`` |
| None | skipped; in a dict of names, that one only |
| NaN, infinite, empty text or dict, a text that reads as a number, any other type | error; in a dict of names, that one only |

A number may be any finite one: where it must lie between two bounds, `numeric_metric` says so and keeps to it.
"""

import enum
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from spangrade._values import bounded, snapshot, type_name
from spangrade.model.evaluator import Failure, Verdict
from spangrade.model.result import MetricResult
from spangrade.model.sample import FrozenDict
from spangrade.model.score import (
    ERROR,
    FAIL,
    MAX_EXPLANATION,
    MAX_LABEL,
    MAX_SCORES,
    PASS,
    SKIPPED,
    Graded,
    ReturnError,
    Rule,
    Score,
    Skip,
    number,
)

_NUMBERS: Final = frozenset((float, int, bool))
_SCORE_KEYS: Final = frozenset({"score", "value", "label", "explanation", "reason", "metadata"})


class ScoreReader:
    """Reads what the metric ``name`` returns. Call it with that, or, where that is a float, int or bool, ``number``: most
    metrics return nothing else, so there is a short way for it.

    Args:
        name: the metric's; several scores are named ``name.key``.
        rule: how a value becomes pass or fail.
    """

    __slots__ = ("_kept", "_labels", "_name", "_passed", "_rule")

    def __init__(self, name: str, rule: Rule) -> None:
        self._name = name
        self._rule = rule
        self._passed = rule.passed
        self._labels: dict[str, Verdict] = {}
        self._kept: dict[float, Verdict] = {}

    def __call__(self, returned: Any) -> Verdict:
        """The verdict.

        Raises:
            Skip: for None, or a `Score` labelled ``skipped``; of several, when all are.
            ReturnError: for what is no score. Of several, each that is none is a `Failure` beside the others.
        """
        kind = type(returned)
        if kind is float or kind is bool or kind is int:
            return self.number(returned)
        if kind is str:
            return self._labels.get(returned) or self._label(returned)
        if kind is Score:
            value, why = returned.value, returned.explanation
            if returned.label is None and type(value) in _NUMBERS and (why is None or _is_short(why)):
                return self._explained(value, why, returned.metadata)
            return _verdict((self._from_score(self._name, returned),), ())
        if kind is tuple and len(returned) == 2 and type(returned[0]) in _NUMBERS and _is_short(returned[1]):
            return self._explained(returned[0], returned[1], _NOTHING)
        if isinstance(returned, Mapping) and not _is_one_score(returned):
            return self._several(returned)
        return _verdict((self._one(self._name, returned),), ())

    def number(self, returned: float) -> Verdict:
        """The verdict on a float, int or bool. Raises `ReturnError` for one that is not finite."""
        found = self._kept.get(returned)
        if found is not None:
            return found
        found = self._explained(returned, None, _NOTHING)
        if len(self._kept) < _KEPT:
            self._kept[returned] = found
        return found

    def _explained(self, given: float, why: str | None, metadata: Mapping[str, Any]) -> Verdict:
        """The short way for a float, int or bool, and text that is sent as it is."""
        try:
            value = float(given)
        except OverflowError:
            value = number(given)  # which says so
        if not -math.inf < value < math.inf:
            value = number(value)
        return _of_number(self._name, value, self._passed(value), why, metadata)

    def _label(self, returned: str) -> Verdict:
        found = _verdict((self._one(self._name, returned),), ())
        if len(returned) <= MAX_LABEL and len(self._labels) < _KEPT:
            self._labels[returned] = found
        return found

    def _several(self, returned: Mapping[Any, Any]) -> Verdict:
        if not returned:
            raise ReturnError("returned an empty dict; return None to skip")
        if len(returned) > MAX_SCORES:
            raise ReturnError(f"returned {len(returned)} scores; at most {MAX_SCORES} are kept apart")
        scores: list[Graded] = []
        failures: list[Failure] = []
        names: set[str] = set()
        for key, item in returned.items():
            name = f"{self._name}.{_key(key)}"
            if name in names:
                raise ReturnError(f"returned two scores named {name!r}; the keys of a dict name its scores, as texts")
            names.add(name)
            try:
                scores.append(self._one(name, item))
            except Skip:
                continue
            except ReturnError as fault:
                failures.append(Failure(name, type(fault).__name__, str(fault)))
        if not scores and not failures:
            raise Skip("every score in the returned dict was skipped")
        return _verdict(tuple(scores), tuple(failures))

    def _one(self, name: str, returned: Any) -> Graded:
        if isinstance(returned, enum.Enum):
            returned = returned.value
        if returned is None:
            raise Skip("returned None")
        if isinstance(returned, MetricResult):
            if returned.value is None:
                raise ReturnError(returned.reason or "returned no value and no reason")
            returned = Score(returned.value, explanation=returned.reason)
        elif isinstance(returned, Mapping) and _is_one_score(returned):
            returned = Score(
                returned.get("score", returned.get("value")),
                returned.get("label"),
                returned.get("explanation", returned.get("reason")),
                returned.get("metadata") or {},
            )
        elif isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], (str, type(None))):
            if returned[0] is None:
                raise Skip(returned[1] or "returned None")
            returned = Score(returned[0], explanation=returned[1])
        elif not isinstance(returned, Score):
            returned = Score(returned)
        return self._from_score(name, returned)

    def _from_score(self, name: str, score: Score) -> Graded:
        given, label, explanation = score.value, score.label, score.explanation
        if isinstance(given, enum.Enum):
            given = given.value
        if isinstance(given, str):  # a string value is a label
            label, given = label or _category(given), None
        if label is not None:
            label = bounded(_plain(label).strip(), MAX_LABEL)
        explanation = bounded(_plain(explanation), MAX_EXPLANATION) if explanation is not None else None
        if label == SKIPPED:
            raise Skip(explanation or "labelled skipped")
        if label == ERROR:
            raise ReturnError(explanation or "labelled error")
        structured, value = None, None
        if isinstance(given, (list, Mapping)):
            structured = snapshot(given)
        elif given is not None:
            value = number(given)
        if value is None and structured is None and not label:
            raise ReturnError("returned neither a value nor a label; return None to skip")
        passed = self._passed(value)
        if label == FAIL and self._rule.verdict:
            passed = False
        elif label == PASS and value is None and self._rule.verdict:
            passed = True
        if label in (None, PASS, FAIL):  # the label on the wire is the verdict; `pass` never overrides the threshold
            label = label if passed is None else (PASS if passed else FAIL)
        return Graded(name, value, label, passed, explanation, structured, score.metadata)


def _is_short(why: Any) -> bool:
    """Whether it is a text that needs neither to be cut nor mended."""
    return type(why) is str and len(why) <= MAX_EXPLANATION and why.isascii()


def _is_one_score(returned: Mapping[Any, Any]) -> bool:
    keys = set(returned)
    return bool(keys) and keys <= _SCORE_KEYS and bool(keys & {"score", "value", "label"})


def _category(text: str) -> str:
    """``text`` as a label. One that reads as a number is a number that somebody forgot to convert: as a label it would be
    neither compared with a threshold nor averaged, and nobody would notice."""
    try:
        float(text)
    except ValueError:
        return text
    raise ReturnError(
        f"returned the text {bounded(text, 40)!r}, which reads as a number; return the number itself, or "
        "Score(label=...) if it is the name of a category"
    )


def _key(key: Any) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if not isinstance(key, (str, int)):
        raise ReturnError(f"returned a dict with a key of type {type_name(key)}; its keys name the scores, as texts")
    return bounded(_plain(key), MAX_LABEL)


def _plain(text: Any) -> str:
    # Of a text's subclass (an Enum of texts) the text, and not what its class prints.
    return str.__str__(text) if isinstance(text, str) else str(text)


# --- made without asking ------------------------------------------------------------------------------------------------
# The constructor of a frozen dataclass goes through `object.__setattr__` for every field, which is half of what a metric
# that returns a number costs beside its function. These fill the same slots directly.

_NOTHING: Final = FrozenDict()
_new: Final = object.__new__


def _setters(of: type) -> tuple[Callable[[Any, Any], None], ...]:
    return tuple(of.__dict__[name].__set__ for name in of.__dataclass_fields__)  # type: ignore[attr-defined]


_KEPT: Final = 4  # verdicts of one metric: many say 0 or 1, or one of a few categories, again and again
(
    _set_name,
    _set_value,
    _set_label,
    _set_passed,
    _set_explanation,
    _set_structured,
    _set_metadata,
    _set_path,
    _set_rule,
) = _setters(Graded)
_set_scores, _set_details, _set_failures = _setters(Verdict)


def _verdict(scores: tuple[Graded, ...], failures: tuple[Failure, ...]) -> Verdict:
    made = _new(Verdict)
    _set_scores(made, scores)
    _set_details(made, _NOTHING)
    _set_failures(made, failures)
    return made


def _of_number(
    name: str, value: float, passed: bool | None, explanation: str | None, metadata: Mapping[str, Any]
) -> Verdict:
    graded = _new(Graded)
    _set_name(graded, name)
    _set_value(graded, value)
    _set_label(graded, None if passed is None else PASS if passed else FAIL)
    _set_passed(graded, passed)
    _set_explanation(graded, explanation)
    _set_structured(graded, None)
    _set_metadata(graded, metadata)
    _set_path(graded, None)
    _set_rule(graded, None)
    made = _new(Verdict)
    _set_scores(made, (graded,))
    _set_details(made, _NOTHING)
    _set_failures(made, ())
    return made
