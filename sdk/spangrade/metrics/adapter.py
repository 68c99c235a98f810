"""Class metrics and trees as the pipeline's `Evaluator`: identity, and results by name → a `Verdict`."""

import inspect
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, TypeVar

from spangrade.metrics.base import BaseMetric, described, identity, wire_name
from spangrade.metrics.composite import CompositeMetric
from spangrade.metrics.leaf import EvaluatorLeaf, LeafRun, LeafRunner, is_async
from spangrade.metrics.source import source_hash
from spangrade.metrics.tree_pass import TreePass
from spangrade.metrics.tree_plan import check_complete, plan_of, spec_of
from spangrade.metrics.tree_run import TreeRun
from spangrade.model.evaluator import Evaluator, EvaluatorInfo, Failure, Verdict, hash_config
from spangrade.model.sample import Sample
from spangrade.model.score import Graded, Skip

Given = TypeVar("Given", Graded, Failure)


class ClassEvaluator:
    """A class metric in the pipeline. Its score is called like it; of several, each ``name.key``.

    Args:
        metric: an instance; changes to it afterwards are not seen.

    Raises:
        ConfigError: an option of it cannot work.
    """

    def __init__(self, metric: BaseMetric[Any]) -> None:
        self.metric = metric
        self.process = metric.process
        self._key = metric.result_key
        config = identity(metric)
        if metric.result_key != metric.name:
            config["result_key"] = metric.result_key
        self.info: EvaluatorInfo
        self.info, self.timeout = described(metric, wire_name(metric), config)
        self.is_async = is_async(metric)
        self.source_hash = source_of(metric)
        self.__doc__ = type(metric).__doc__
        self._run = LeafRunner(metric, self._name)

    def evaluate(self, sample: Sample) -> Verdict | Awaitable[Verdict]:
        """The verdict on one sample; an awaitable of it, of an async metric.

        Raises:
            Skip: a required field is empty, or every result is None.
            ReturnError: the metric returned no dict of results.
        """
        returned = self._run.returned(sample)
        number = self._run.one_number(returned)
        if number is not None:
            return number
        if inspect.isawaitable(returned):
            return self._later(returned)
        return _verdict(self._run.read(returned))

    def __reduce__(self) -> tuple[Any, ...]:
        return evaluator_of, (self.metric,)

    async def _later(self, returned: Any) -> Verdict:
        return _verdict(await self._run.later(returned))

    def _name(self, key: str) -> str:
        return self.info.name if key == self._key else f"{self.info.name}.{key}"


def _verdict(found: LeafRun) -> Verdict:
    if not found.scores and not found.failures:
        raise Skip(found.skipped or "every result was skipped")
    return Verdict(tuple(found.scores), failures=tuple(found.failures))


class TreeEvaluator:
    """A tree in the pipeline: every leaf's score is called ``tree.key`` and says its path, the tree's aggregate is called like
    the tree. An evaluator in parts (see `spangrade.model.parts`): each leaf has its own time.

    Args:
        tree: changes to it afterwards are not seen.

    Raises:
        ConfigError: the tree is empty or cannot be evaluated, or an option of a metric in it cannot work.
    """

    def __init__(self, tree: CompositeMetric) -> None:
        self.tree = tree
        self.process = tree.process
        self._plan = plan_of(tree)
        self._path = tree.result_key
        self._whole = None if tree.aggregate is None else tree.result_key  # the key of its one number
        check_complete(self._plan)
        self.info: EvaluatorInfo
        self.info, _ = described(tree, wire_name(tree), {"tree": spec_of(tree)})
        self.is_async = self._plan.is_async
        leaves = [leaf.metric for leaf in self._plan.leaves]
        for leaf in leaves:
            described(leaf, leaf.name)
        self.parts = self._plan.parts()
        slowest = max(limit for _, limit in self.parts)
        self.timeout = slowest + (1.0 if self.is_async else 0.0)  # the loop's, whose leaves keep their own times
        sources = [source_of(leaf) for leaf in leaves]
        self.source_hash = None if None in sources else hash_config({"leaves": sources})
        self.__doc__ = type(tree).__doc__

    def evaluate(self, sample: Sample) -> Verdict | Awaitable[Verdict]:
        """The verdict of the whole tree on one sample; an awaitable of it, if a leaf is async.

        Raises:
            Skip: a field that the tree requires is empty, or every leaf was skipped.
        """
        missing = sample.missing(self.info.requires)
        if missing:
            raise Skip(f"{', '.join(missing)} missing")
        return self.begin(sample).run()  # type: ignore[no-any-return]

    def begin(self, sample: Sample) -> TreePass[Verdict]:
        """The same in parts; nothing has run yet."""
        return TreePass(self._plan, sample, self._verdict, self._name)

    def __reduce__(self) -> tuple[Any, ...]:
        return evaluator_of, (self.tree,)

    def _verdict(self, found: TreeRun) -> Verdict:
        if not found.scores and not found.failures:
            reasons = list(dict.fromkeys(found.skipped.values()))
            raise Skip(reasons[0] if len(reasons) == 1 else "every metric of the tree was skipped")
        return Verdict(
            tuple(self._own(graded) for graded in found.scores),
            failures=tuple(self._own(failure) for failure in found.failures),
        )

    def _name(self, key: str) -> str:
        return self.info.name if key == self._whole else f"{self.info.name}.{key}"

    def _own(self, one: Given) -> Given:
        # The tree's own threshold and direction are the evaluator's; each leaf has its own.
        return replace(one, rule=None) if one.path == self._path else one


def evaluator_of(metric: BaseMetric[Any]) -> Evaluator:
    """The pipeline's evaluator of a class metric or tree."""
    return TreeEvaluator(metric) if isinstance(metric, CompositeMetric) else ClassEvaluator(metric)


def source_of(leaf: BaseMetric[Any]) -> str | None:
    """See `spangrade.metrics.source`; of a leaf made of another metric, that one's."""
    if isinstance(leaf, EvaluatorLeaf):
        found = getattr(leaf.evaluator, "source_hash", None)
        return found if isinstance(found, str) else None
    return source_hash(leaf.evaluate)
