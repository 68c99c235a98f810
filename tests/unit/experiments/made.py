"""Results made by hand, as small as a test needs them."""

from typing import Any

from spangrade.experiments.records import EvaluatorRecord, ItemResult, RunRecord, ScoreResult, TaskError
from spangrade.experiments.results import Results
from spangrade.model.outcome import Outcome


def scored(
    item_id: str, value: float | None, passed: bool | None = None, *, name: str = "m", repeat: int = 0, **more: Any
) -> ScoreResult:
    return ScoreResult(item_id, repeat, name, more.pop("evaluator", name), Outcome.SCORED, value, passed=passed, **more)


def failed(item_id: str, outcome: Outcome = Outcome.ERROR, *, name: str = "m", repeat: int = 0) -> ScoreResult:
    return ScoreResult(item_id, repeat, name, name, outcome, reason="boom", error_type="ValueError")


def item(*scores: ScoreResult, item_id: str = "", **more: Any) -> ItemResult:
    repeat = scores[0].repeat if scores else more.pop("repeat", 0)
    return ItemResult(scores[0].item_id if scores else item_id, repeat, scores=scores, **more)


def results(
    *items: ItemResult, evaluators: tuple[EvaluatorRecord, ...] = (EvaluatorRecord("m"),), **run: Any
) -> Results:
    return Results(items, evaluators, RunRecord(**run))


BOOM = TaskError("ValueError", "boom")
