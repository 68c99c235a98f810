"""One metric of a tree, or one by itself, run on one sample: its results by name, as they are and as scores."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spangrade._values import bounded, type_name
from spangrade.errors import ConfigError
from spangrade.metrics.base import BaseMetric, argument_for, rule_of
from spangrade.model.evaluator import Evaluator, Failure, Verdict
from spangrade.model.returned import ScoreReader
from spangrade.model.sample import Sample
from spangrade.model.score import MAX_EXPLANATION, MAX_SCORES, Graded, ReturnError, Score, Skip

_NUMBERS: Final = frozenset((float, int, bool))


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
        found = LeafRunner(self)(sample)
        return found.raw if isinstance(found, LeafRun) else _raw_later(found)


async def _raw_later(found: Awaitable[LeafRun]) -> dict[str, Any]:
    return (await found).raw


def is_async(metric: BaseMetric[Any]) -> bool:
    """Whether a `LeafRunner` is known to return an awaitable."""
    if isinstance(metric, EvaluatorLeaf):
        return metric.evaluator.is_async
    return metric._signature is not None and metric._signature.is_async


class LeafRunner:
    """Runs one metric, on a `Sample` or a text, and reads what it returns; made once, used for every sample.

    Args:
        metric: changes to its options afterwards are not seen.
        named: a result's key → its score's name; default the key itself.
    """

    def __init__(self, metric: BaseMetric[Any], named: Callable[[str], str] = str) -> None:
        self.metric = metric
        self.rule = rule_of(metric)
        self._named = named
        self._requires = (metric.requires,) if isinstance(metric.requires, str) else tuple(metric.requires)
        self._wrong = None if metric._shape is None else metric._shape.wrong
        self._evaluator = metric.evaluator if isinstance(metric, EvaluatorLeaf) else None
        self._readers: dict[str, ScoreReader] = {}

    def __call__(self, given: Any) -> LeafRun | Awaitable[LeafRun]:
        """What it gave. What it raises is raised, `Skip` too."""
        if self._evaluator is not None:
            verdict = self._evaluator.evaluate(given if isinstance(given, Sample) else Sample(output=given))
            return _verdict_later(verdict) if inspect.isawaitable(verdict) else _of_verdict(verdict)
        returned = self.returned(given)
        if type(returned) is not dict and inspect.isawaitable(returned):
            return self.later(returned)
        return self.read(returned)

    def returned(self, given: Any) -> Any:
        """What `evaluate` returns."""
        if self._requires and isinstance(given, Sample):
            missing = given.missing(self._requires)
            if missing:
                raise Skip(f"{', '.join(missing)} missing")
        return self.metric.evaluate(argument_for(self.metric, given))

    async def later(self, returned: Any) -> LeafRun:
        """`read`, of what is awaited."""
        while inspect.isawaitable(returned):  # a coroutine may return another
            returned = await returned
        return self.read(returned)

    def one_number(self, returned: Any) -> Verdict | None:
        """The verdict where nothing but one number was returned, under the metric's own key, as most do: the short way."""
        if type(returned) is dict and len(returned) == 1:
            ((key, value),) = returned.items()
            plain = type(value) in _NUMBERS and key == self.metric.result_key
            if plain and (self._wrong is None or not self._wrong(value, key)):
                return self._reader(key).number(value)
        return None

    def read(self, returned: Any) -> LeafRun:
        """What `evaluate` returned, read. A value of the wrong type is a failure beside the others.

        Raises:
            ReturnError: it is no dict of results by name.
        """
        if not isinstance(returned, Mapping):
            raise ReturnError(
                f"evaluate returned {type_name(returned)}, not a dict of results; return self.result(value)"
            )
        if not returned:
            raise ReturnError("evaluate returned an empty dict; return self.result(None) to skip")
        if len(returned) > MAX_SCORES:
            raise ReturnError(f"evaluate returned {len(returned)} results; at most {MAX_SCORES} are kept apart")
        found = LeafRun()
        for key, value in returned.items():
            if not isinstance(key, str) or not key:
                raise ReturnError(
                    f"evaluate returned a dict with a key of type {type_name(key)}; its keys name the results, as text"
                )
            if value is None:
                found.raw[key] = None
                continue
            try:
                graded = self._graded(key, value)
            except Skip:
                continue
            except ReturnError as fault:
                found.failures.append(Failure(self._named(key), type(fault).__name__, str(fault)))
                continue
            found.raw[key] = value
            found.scores.append(graded)
        if not found.scores and not found.failures:
            found.skipped = "returned None"
        return found

    def _graded(self, key: str, value: Any) -> Graded:
        said = self._wrong(value, key) if self._wrong is not None else ""
        if said:
            raise ReturnError(f"evaluate returned what is not of the class's type: {said}")
        reader = self._reader(key)
        if type(value) in _NUMBERS:
            return reader.number(value).scores[0]
        if isinstance(value, tuple):
            value = list(value)
        return reader(Score(label=value) if isinstance(value, str) else Score(value)).scores[0]

    def _reader(self, key: str) -> ScoreReader:
        reader = self._readers.get(key)
        if reader is None:
            reader = ScoreReader(self._named(key), self.rule)
            if len(self._readers) < MAX_SCORES:  # keys are the metric's to make up
                self._readers[key] = reader
        return reader


async def _verdict_later(returned: Any) -> LeafRun:
    return _of_verdict(await returned)


def _of_verdict(verdict: Verdict) -> LeafRun:
    raw = {
        g.name: g.structured if g.structured is not None else g.label if g.value is None else g.value
        for g in verdict.scores
    }
    return LeafRun(raw, list(verdict.scores), list(verdict.failures))


def failure_of(name: str, fault: BaseException) -> Failure:
    """What an exception means for the score ``name``."""
    try:
        said = str(fault)
    except Exception:  # noqa: BLE001 - str() of a user's exception is user code
        said = "(its message could not be read)"
    return Failure(name, type(fault).__name__, bounded(said, MAX_EXPLANATION))
