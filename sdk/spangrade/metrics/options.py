"""A metric that is told something else than it says itself: another threshold, version, name, ... as a file may say it."""

import copy
import inspect
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from spangrade.errors import ConfigError
from spangrade.metrics.base import BaseMetric
from spangrade.metrics.checks import check_requires, check_threshold, check_timeout
from spangrade.metrics.local import LocalMetric
from spangrade.model.evaluator import Evaluator, EvaluatorInfo, Failure, Verdict, check_name, check_target, hash_config
from spangrade.model.sample import Sample
from spangrade.model.score import FAIL, PASS, Graded, Rule, Skip

Named = TypeVar("Named", Graded, Failure)


def with_options(metric: BaseMetric[Any] | Evaluator, options: Mapping[str, Any]) -> BaseMetric[Any] | Evaluator:
    """A copy with ``options`` in place of the metric's own; the metric itself where there are none.

    A measurement (``verdict=False``) that is told a threshold passes or fails by it, unless it is told ``verdict`` too.

    Args:
        options: of threshold, lower_is_better, verdict, version, requires, target, timeout, process, and ``result_key``, which for a
            metric that is no class's is its name.

    Raises:
        ConfigError: an option that cannot work.
    """
    if not options:
        return metric
    if "threshold" in options:
        options = {"verdict": True, **options}
    if isinstance(metric, BaseMetric):
        told = copy.copy(metric)
        for option, value in options.items():
            setattr(told, option, value)
        check_name(told.result_key, f"metric {metric.name!r}: its result_key as a")
        return told
    if isinstance(metric, LocalMetric):
        changed = {
            ("name" if option == "result_key" else option): v for option, v in options.items() if option != "version"
        }
        if "version" in options:
            changed["config"] = {**metric.config, "version": options["version"]}
        return replace(metric, **changed)
    kind = getattr(metric, "kind", "numeric")  # a functional metric's
    unused = [option for option in ("threshold", "lower_is_better") if option in options]
    if unused and kind in ("discrete", "ranking"):
        gives = "a category" if kind == "discrete" else "a list"
        raise ConfigError(
            f"metric {metric.info.name!r} gives {gives}, which {unused[0]} does not apply to; leave it out (a category "
            "passes or fails by its name: pass, fail, True, False)"
        )
    return ToldEvaluator(metric, options)


class ToldEvaluator:
    """Any evaluator, with another name, rule, or identity. Its numbers are passed or failed anew, except where it said ``fail``
    against its own rule."""

    parts: tuple[tuple[str, float], ...] = ()  # it is told as a whole, and runs as one

    def __init__(self, evaluator: Evaluator, options: Mapping[str, Any]) -> None:
        old = evaluator.info
        self._evaluator = evaluator
        self._old_name = old.name
        what = f"metric {old.name!r}"
        version = options.get("version", old.version)
        config_hash = old.config_hash
        if "version" in options or "target" in options:
            config_hash = hash_config(
                {"of": old.config_hash, "version": version, "target": options.get("target", old.target)}
            )
        self.info: EvaluatorInfo = replace(
            old,
            name=check_name(options.get("result_key", old.name), "metric"),
            version=None if version is None else str(version),
            config_hash=config_hash,
            requires=check_requires(options.get("requires", old.requires), what),
            threshold=check_threshold(options.get("threshold", old.threshold), what),
            lower_is_better=options.get("lower_is_better", old.lower_is_better),
            verdict=options.get("verdict", old.verdict),
            target=check_target(options.get("target", old.target), what),
        )
        self._old_rule = Rule(old.threshold, old.lower_is_better, old.verdict)
        self._rule = Rule(self.info.threshold, self.info.lower_is_better, self.info.verdict)
        self.timeout = check_timeout(options.get("timeout", evaluator.timeout), what)
        self.process = options.get("process", getattr(evaluator, "process", False))
        self.is_async = evaluator.is_async
        self.__doc__ = evaluator.__doc__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._evaluator, name)

    def evaluate(self, sample: Sample) -> Verdict | Awaitable[Verdict]:
        """See `Evaluator`."""
        missing = sample.missing(self.info.requires)
        if missing:
            raise Skip(f"{', '.join(missing)} missing")
        returned = self._evaluator.evaluate(sample)
        return self._later(returned) if inspect.isawaitable(returned) else self._told(returned)

    async def _later(self, returned: Awaitable[Verdict]) -> Verdict:
        return self._told(await returned)

    def _told(self, verdict: Verdict) -> Verdict:
        scores = tuple(self._regraded(self._renamed(graded)) for graded in verdict.scores)
        return replace(verdict, scores=scores, failures=tuple(self._renamed(failure) for failure in verdict.failures))

    def _renamed(self, one: Named) -> Named:
        return replace(one, name=self.info.name + one.name.removeprefix(self._old_name))

    def _regraded(self, graded: Graded) -> Graded:
        if graded.rule is not None:  # a tree's metric has its own
            return graded
        if not self._rule.verdict:
            return replace(graded, passed=None, label=None if graded.label in (PASS, FAIL) else graded.label)
        if graded.value is None or (graded.label == FAIL and self._old_rule.passed(graded.value)):
            return graded
        passed = self._rule.passed(graded.value)
        label = graded.label
        if label in (None, PASS, FAIL):
            label = None if passed is None else (PASS if passed else FAIL)
        return replace(graded, passed=passed, label=label)
