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
        name: the score's.
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
    """A `ScoreSummary` for each score name, in the evaluators' order; an evaluator that never came to a score, or whose
    scores have other names than its own (``metric.key``), has a line of its own only where something of it failed."""
    by_name: dict[str, list[ScoreResult]] = {}
    for item in items:
        for score in item.scores:
            by_name.setdefault(score.name, []).append(score)
    order: list[tuple[str, str]] = []
    for evaluator in evaluators:
        names = [name for name, scores in by_name.items() if scores[0].evaluator == evaluator.key]
        order.extend((name, evaluator.key) for name in names or [evaluator.name])
    not_run = sum(item.error is not None for item in items)
    return {name: _line(name, key, by_name.get(name, []), not_run) for name, key in order}


def _line(name: str, evaluator: str, scores: Sequence[ScoreResult], not_run: int) -> ScoreSummary:
    scored = [score for score in scores if score.outcome is Outcome.SCORED]
    verdicts = [score for score in scored if score.passed is not None]
    return ScoreSummary(
        name=name,
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
