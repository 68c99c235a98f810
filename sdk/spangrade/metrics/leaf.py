"""One metric of a tree, or one by itself, run on one sample: its results by name, as they are and as scores."""

import inspect
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spangrade._values import bounded, type_name
from spangrade.errors import ConfigError
from spangrade.metrics.base import BaseMetric, argument_for, rule_of
from spangrade.model.evaluator import Evaluator, Failure, Verdict
from spangrade.model.returned import ScoreReader
from spangrade.model.sample import Sample
from spangrade.model.score import MAX_EXPLANATION, Graded, ReturnError, Rule, Score, Skip


@dataclass(slots=True)
class LeafRun:
    """What a metric gave: ``raw`` as it returned it, ``scores`` and ``failures`` named by key alone. ``skipped``: why it has
    nothing to say, where it said so."""

    raw: dict[str, Any] = field(default_factory=dict)
    scores: list[Graded] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: str = ""


class EvaluatorLeaf(BaseMetric[Any]):
    """Any other metric (a function's, a functional one) as a leaf of a tree. Its result key is its name."""

    def __init__(self, evaluator: Evaluator) -> None:
        info = evaluator.info
        if info.kind != "code":
            raise ConfigError(
                f"{info.name!r} is a judge, which costs money on every call that it sees; place it beside the metrics: "
                "judges=[sg.live(judge, rate=...)]"
            )
        self.name = self.result_key = info.name
        super().__init__()
        self.evaluator = evaluator
        self.threshold, self.lower_is_better, self.verdict = info.threshold, info.lower_is_better, info.verdict
        self.requires, self.target, self.version = info.requires, info.target, info.version
        self.timeout = evaluator.timeout

    def evaluate(self, sample: Sample, /) -> Any:
        """The values by name: the scores' value, label, or structured value."""
        found = run_leaf(self, sample)
        return found.raw if isinstance(found, LeafRun) else _raw_later(found)


async def _raw_later(found: Awaitable[LeafRun]) -> dict[str, Any]:
    return (await found).raw


def is_async(metric: BaseMetric[Any]) -> bool:
    """Whether `run_leaf` is known to return an awaitable."""
    if isinstance(metric, EvaluatorLeaf):
        return metric.evaluator.is_async
    return metric._signature is not None and metric._signature.is_async


def run_leaf(metric: BaseMetric[Any], given: Any) -> LeafRun | Awaitable[LeafRun]:
    """Run one metric on a `Sample` or a text. What it raises is raised, `Skip` too."""
    if isinstance(metric, EvaluatorLeaf):
        returned = metric.evaluator.evaluate(given if isinstance(given, Sample) else Sample(output=given))
        return _verdict_later(returned) if inspect.isawaitable(returned) else _of_verdict(returned)
    if isinstance(given, Sample) and metric.requires:
        missing = given.missing([metric.requires] if isinstance(metric.requires, str) else metric.requires)
        if missing:
            raise Skip(f"{', '.join(missing)} missing")
    returned = metric.evaluate(argument_for(metric, given))
    return _later(metric, returned) if inspect.isawaitable(returned) else read_results(metric, returned)


async def _later(metric: BaseMetric[Any], returned: Any) -> LeafRun:
    while inspect.isawaitable(returned):  # a coroutine may return another
        returned = await returned
    return read_results(metric, returned)


async def _verdict_later(returned: Any) -> LeafRun:
    return _of_verdict(await returned)


def _of_verdict(verdict: Verdict) -> LeafRun:
    raw = {
        g.name: g.structured if g.structured is not None else g.label if g.value is None else g.value
        for g in verdict.scores
    }
    return LeafRun(raw, list(verdict.scores), list(verdict.failures))


def read_results(metric: BaseMetric[Any], returned: Any) -> LeafRun:
    """What `evaluate` returned, read. A value of the wrong type is a failure beside the others.

    Raises:
        ReturnError: it is no dict of results by name.
    """
    if not isinstance(returned, Mapping):
        raise ReturnError(f"evaluate returned {type_name(returned)}, not a dict of results; return self.result(value)")
    if not returned:
        raise ReturnError("evaluate returned an empty dict; return self.result(None) to skip")
    found, rule = LeafRun(raw={}), rule_of(metric)
    for key, value in returned.items():
        if not isinstance(key, str) or not key:
            raise ReturnError(
                f"evaluate returned a dict with a key of type {type_name(key)}; its keys name the results, as text"
            )
        if value is None:
            found.raw[key] = None
            continue
        try:
            graded = _graded(metric, key, value, rule)
        except Skip:
            continue
        except ReturnError as fault:
            found.failures.append(Failure(key, type(fault).__name__, str(fault)))
            continue
        found.raw[key] = value
        found.scores.append(graded)
    if not found.scores and not found.failures:
        found.skipped = "returned None"
    return found


def _graded(metric: BaseMetric[Any], key: str, value: Any, rule: Rule) -> Graded:
    shape = metric._shape
    said = shape.wrong(value, key) if shape is not None else ""
    if said:
        raise ReturnError(f"evaluate returned what is not of the class's type: {said}")
    if isinstance(value, tuple):
        value = list(value)
    score = Score(label=value) if isinstance(value, str) else Score(value)
    return ScoreReader(key, rule)(score).scores[0]


def failure_of(name: str, fault: BaseException) -> Failure:
    """What an exception means for the score ``name``."""
    try:
        said = str(fault)
    except Exception:  # noqa: BLE001 - str() of a user's exception is user code
        said = "(its message could not be read)"
    return Failure(name, type(fault).__name__, bounded(said, MAX_EXPLANATION))
