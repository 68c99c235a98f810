"""Whatever a user names as evaluators → what runs offline, and what is recorded of it."""

from collections.abc import Iterator, Sequence
from typing import Any

from spangrade.errors import ConfigError
from spangrade.experiments.records import EvaluatorRecord
from spangrade.judges.judge import LlmJudge
from spangrade.metrics.catalog import resolve
from spangrade.model.evaluator import Evaluator, EvaluatorInfo
from spangrade.model.policy import Placed
from spangrade.model.sample import Sample
from spangrade.scoring.processes import check_can_run
from spangrade.scoring.seats import is_remote


def evaluators_of(given: Any, timeout: float | None = None) -> list[Evaluator]:
    """Evaluators in order: functions, metrics, names, import paths, judges (live or not; with ``sg.live`` around them the
    policy is left off). One alone need not be in a list. ``timeout``: seconds, in place of each one's own.

    Raises:
        ConfigError: one that cannot work, a judge without a model, or two of the same name and config.
    """
    several = given is None or isinstance(given, (list, tuple, set, frozenset, Iterator))  # a tree can be iterated, too
    found: list[Evaluator] = []
    seen: set[str] = set()
    for one in (given or ()) if several else (given,):
        evaluator = _evaluator(one)
        if evaluator.info.key in seen:
            raise ConfigError(
                f"two evaluators are named {evaluator.info.name!r} with the same config; rename one, or drop it"
            )
        seen.add(evaluator.info.key)
        if timeout is not None:
            evaluator = _limited(evaluator, timeout)
        if is_remote(Placed(evaluator)):
            check_can_run(evaluator)
        found.append(evaluator)
    return found


def _evaluator(given: Any) -> Evaluator:
    if isinstance(given, Placed):
        given = given.evaluator
    found = given if isinstance(given, LlmJudge) else resolve(given)
    if isinstance(found, LlmJudge):
        return found.with_pinned_model()  # one model for the whole run, whatever the environment says meanwhile
    return found


def record_of(evaluator: Evaluator) -> EvaluatorRecord:
    """What results say of it."""
    model = evaluator.resolved_model() if isinstance(evaluator, LlmJudge) else None
    source = getattr(evaluator, "source_hash", None)
    return EvaluatorRecord.of(evaluator.info, source if isinstance(source, str) else None, model)


def changed_source(now: Sequence[EvaluatorRecord], before: Sequence[EvaluatorRecord]) -> list[str]:
    """Names of those whose code changed while name, version and config did not: their scores look comparable and are not."""
    then = {record.key: record.source_hash for record in before}
    return [
        record.name
        for record in now
        if record.source_hash and then.get(record.key) and then[record.key] != record.source_hash
    ]


def _limited(evaluator: Evaluator, timeout: float) -> Evaluator:
    return evaluator.with_timeout(timeout) if isinstance(evaluator, LlmJudge) else _Limited(evaluator, timeout)


class _Limited:
    """An evaluator with another time limit."""

    def __init__(self, evaluator: Evaluator, timeout: float) -> None:
        self._evaluator = evaluator
        self.timeout = timeout

    @property
    def info(self) -> EvaluatorInfo:
        """See `Evaluator`."""
        return self._evaluator.info

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """See `PartedEvaluator`."""
        return tuple((name, self.timeout) for name, _ in getattr(self._evaluator, "parts", ()))

    @property
    def is_async(self) -> bool:
        """See `Evaluator`."""
        return self._evaluator.is_async

    def evaluate(self, sample: Sample) -> Any:
        """See `Evaluator`."""
        return self._evaluator.evaluate(sample)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # before it is complete (a worker process unpickles it), and what is nobody's business
            raise AttributeError(name)
        return getattr(self._evaluator, name)
