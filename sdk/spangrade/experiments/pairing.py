"""What each item came to on one side of a comparison, score by score."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from spangrade._values import dumps, settled
from spangrade.experiments.records import EvaluatorRecord, ItemResult, ScoreResult
from spangrade.model.outcome import Outcome

if TYPE_CHECKING:
    from spangrade.experiments.results import Results


@dataclass(frozen=True, slots=True)
class ItemScore:
    """One score of one item, over its repeats.

    Attributes:
        values: a number for each run that has one.
        verdicts: 1.0 for each run that passed, 0.0 for each that failed.
        labels: a category for each run that has one.
        lost: for each run without a score, why: ``error``, ``timeout``, ``skipped``, ``not run`` (the task failed) or
            ``not given`` (the evaluator gave other scores but not this one).
        value: the mean of ``values``.
        rate: the share of ``verdicts`` that are a pass.
    """

    values: tuple[float, ...] = ()
    verdicts: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    value: float | None = None
    rate: float | None = None


class SideScores:
    """One side's results, by item and by score."""

    def __init__(self, results: "Results") -> None:
        self._evaluators = {record.key: record for record in results.evaluators}
        self.runs: dict[str, list[ItemResult]] = {}
        self._scores: dict[tuple[str, str], dict[str, list[ScoreResult]]] = {}
        for item in results.items:
            self.runs.setdefault(item.item_id, []).append(item)
            for score in item.scores:
                by_item = self._scores.setdefault((score.name, score.evaluator), {})
                by_item.setdefault(item.item_id, []).append(score)

    def item(self, item_id: str) -> ItemResult:
        """The item's first run: its dataset fields are those of every run."""
        return self.runs[item_id][0]

    def record(self, key: str, name: str | None = None) -> EvaluatorRecord:
        """Who stands behind an evaluator's key; with the threshold and direction of its score ``name``, where that has its own."""
        found = self._evaluators.get(key) or EvaluatorRecord(name=key.partition("@")[0])
        if name is None:
            return found
        return found.ruled(next((score.rule for score in self.given(name, key) if score.rule is not None), None))

    def names(self) -> dict[str, list[str]]:
        """The evaluators' keys behind each score name, in the evaluators' order.

        An evaluator that gives several scores (``metric.key``) fails under its own name: that is no score beside them.
        """
        found: dict[str, list[str]] = {}
        for key in dict.fromkeys([*self._evaluators, *(key for _, key in self._scores)]):
            own = self.record(key).name
            names = [name for name, of in self._scores if of == key]
            several = [name for name in names if name != own or self._has_scores(name, key)]
            for name in several or [own]:
                found.setdefault(name, []).append(key)
        return found

    def given(self, name: str, key: str) -> Iterable[ScoreResult]:
        """Every score of that name by that evaluator, failed ones too."""
        return (score for some in self._scores.get((name, key), {}).values() for score in some)

    def score(self, name: str, key: str, item_id: str) -> ItemScore:
        """What the item came to."""
        scores = self._scores.get((name, key), {}).get(item_id, ())
        good = [score for score in scores if score.outcome is Outcome.SCORED]
        lost = [str(score.outcome) for score in scores if score.outcome is not Outcome.SCORED]
        runs = self.runs[item_id]
        if len(runs) != 1 or not scores:
            seen = {score.repeat for score in scores}
            lost += [self._why(run, key) for run in runs if run.repeat not in seen]
        values = tuple([score.value for score in good if score.value is not None])
        verdicts = tuple([float(score.passed) for score in good if score.passed is not None])
        labels = tuple([score.label for score in good if score.label is not None])
        return ItemScore(values, verdicts, labels, tuple(lost), _mean(values), _mean(verdicts))

    def _why(self, run: ItemResult, key: str) -> str:
        if run.error is not None:
            return "not run"
        own = self.record(key).name
        failures = [s for s in self._scores.get((own, key), {}).get(run.item_id, ()) if s.repeat == run.repeat]
        return str(failures[0].outcome) if failures and failures[0].outcome is not Outcome.SCORED else "not given"

    def _has_scores(self, name: str, key: str) -> bool:
        return any(score.outcome is Outcome.SCORED for score in self.given(name, key))


def _mean(values: tuple[float, ...]) -> float | None:
    return (values[0] if len(values) == 1 else fmean(values)) if values else None


def content(item: ItemResult) -> str:
    """What was asked and expected, as text that is the same for the same question."""
    return canonical([item.input, item.expected])


def canonical(value: Any) -> str:
    """A value as JSON with sorted keys; the same before it was saved and after it was loaded."""
    return json.dumps(json.loads(dumps(settled(value))), sort_keys=True, ensure_ascii=False)
