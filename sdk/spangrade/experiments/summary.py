"""Results in one line for each score name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from spangrade.experiments.records import EvaluatorRecord, ItemResult, ScoreResult
from spangrade.model.outcome import Outcome


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """One score name over all items and repeats.

    Attributes:
        name: the score's; ``name@confighash`` for another evaluator's score of the same name.
        score: the score's own name.
        evaluator: `EvaluatorRecord.key` of who gave it.
        n: scored (item, repeat) pairs.
        items: distinct items among them.
        mean: of the values: first over each item's repeats, then over the items, so that an item counts once however
            many of its runs failed. None where no value is a number.
        passed, failed: verdicts.
        pass_rate: share of verdicts that are a pass, averaged in the same way; None without verdicts.
        skipped, errors, timeouts: pairs that gave no score.
        not_run: runs whose task failed, so that nothing could be scored.
    """

    name: str
    score: str
    evaluator: str
    n: int = 0
    items: int = 0
    mean: float | None = None
    passed: int = 0
    failed: int = 0
    pass_rate: float | None = None
    skipped: int = 0
    errors: int = 0
    timeouts: int = 0
    not_run: int = 0


def summarise(items: Sequence[ItemResult], evaluators: Iterable[EvaluatorRecord]) -> dict[str, ScoreSummary]:
    """A `ScoreSummary` for each score name, in the evaluators' order. Where an evaluator that gives several (``metric.key``)
    failed as a whole, each of them did; one that never came to any score has a line under its own name."""
    given: dict[str, dict[str, list[ScoreResult]]] = {}  # by evaluator and name
    for item in items:
        for score in item.scores:
            given.setdefault(score.evaluator, {}).setdefault(score.name, []).append(score)
    not_run = sum(item.error is not None for item in items)
    lines: dict[str, ScoreSummary] = {}
    for evaluator in evaluators:
        mine = given.get(evaluator.key, {})
        several = {name: scores for name, scores in mine.items() if name != evaluator.name or _any_scored(scores)}
        # Where it gives several scores and came to none, none of them is there.
        whole = [] if evaluator.name in several else mine.get(evaluator.name, [])
        for name, scores in (several or {evaluator.name: []}).items():
            label = name if name not in lines else f"{name}@{evaluator.config_hash}"
            lines[label] = _line(label, name, evaluator.key, [*scores, *whole], not_run)
    return lines


def _any_scored(scores: Iterable[ScoreResult]) -> bool:
    return any(score.outcome is Outcome.SCORED for score in scores)


def _line(label: str, name: str, evaluator: str, scores: Sequence[ScoreResult], not_run: int) -> ScoreSummary:
    scored = [score for score in scores if score.outcome is Outcome.SCORED]
    verdicts = [score for score in scored if score.passed is not None]
    return ScoreSummary(
        name=label,
        score=name,
        evaluator=evaluator,
        n=len(scored),
        items=len({score.item_id for score in scored}),
        mean=item_mean((score.item_id, score.value) for score in scored),
        passed=sum(score.passed is True for score in verdicts),
        failed=sum(score.passed is False for score in verdicts),
        pass_rate=item_mean((score.item_id, float(bool(score.passed))) for score in verdicts),
        skipped=sum(score.outcome is Outcome.SKIPPED for score in scores),
        errors=sum(score.outcome is Outcome.ERROR for score in scores),
        timeouts=sum(score.outcome is Outcome.TIMEOUT for score in scores),
        not_run=not_run,
    )


def item_mean(values: Iterable[tuple[str, float | None]]) -> float | None:
    """The mean over items of each item's mean, given as (item id, value); None without a value."""
    by_item: dict[str, list[float]] = {}
    for item_id, value in values:
        if value is not None:
            by_item.setdefault(item_id, []).append(value)
    return fmean(fmean(some) for some in by_item.values()) if by_item else None
