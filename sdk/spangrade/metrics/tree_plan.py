"""What evaluating a tree comes to: its leaves in order, then its aggregates from within; and whether that can be done."""

from dataclasses import dataclass
from typing import Any

from spangrade.errors import ConfigError
from spangrade.metrics.aggregate import name_of
from spangrade.metrics.base import BaseMetric, identity, rule_of
from spangrade.metrics.checks import check_timeout
from spangrade.metrics.leaf import EvaluatorLeaf, LeafRunner, is_async
from spangrade.metrics.local import DEFAULT_TIMEOUT_S
from spangrade.metrics.tree import Tree
from spangrade.model.score import Rule


@dataclass(frozen=True, slots=True)
class Leaf:
    """A metric, what runs it, and where it stands: ``tree/branch/leaf``. ``limits``: what it and the trees around it say of
    its time."""

    metric: BaseMetric[Any]
    path: str
    run: LeafRunner
    limits: tuple[Any, ...]

    @property
    def timeout(self) -> float:
        """Seconds after which it is given up: the least that was said, by a metric more than the default. `ConfigError` for what
        is no number of seconds."""
        own, *around = self.limits
        said = [limit for limit in (None if own == DEFAULT_TIMEOUT_S else own, *around) if limit is not None]
        return min((check_timeout(limit, f"metric {self.metric.name!r}") for limit in said), default=DEFAULT_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class Part:
    """A number that an aggregate is made of: whose ``key``, and how much it weighs (more than 0)."""

    key: str
    weight: float
    path: str


@dataclass(frozen=True, slots=True)
class Whole:
    """An aggregate: the number under ``key``, made of ``parts`` (those with a weight of 0 left out)."""

    key: str
    path: str
    how: Any
    ignores_missing: bool
    parts: tuple[Part, ...]
    rule: Rule


@dataclass(frozen=True, slots=True)
class Plan:
    """A tree, as it is evaluated."""

    root: Tree
    leaves: tuple[Leaf, ...]
    wholes: tuple[Whole, ...]  # inner ones first

    @property
    def is_async(self) -> bool:
        """Whether one of the leaves is."""
        return any(is_async(leaf.metric) for leaf in self.leaves)

    def parts(self) -> tuple[tuple[str, float], ...]:
        """The path and time limit of each leaf, in order; behind them, where there are aggregates, one for all these."""
        leaves = [(leaf.path, leaf.timeout) for leaf in self.leaves]
        slowest = max((limit for _, limit in leaves), default=DEFAULT_TIMEOUT_S)
        return (*leaves, *((whole.path, slowest) for whole in self.wholes[-1:]))


def plan_of(root: Any) -> Plan:
    """The plan of a tree.

    Raises:
        ConfigError: two results would have one key; a metric for which less is better, and one for which more is, would be
            aggregated.
    """
    leaves: list[Leaf] = []
    wholes: list[Whole] = []
    _visit(root, root.result_key, (), leaves, wholes)
    seen: dict[str, str] = {}
    for key, path in [(leaf.metric.result_key, leaf.path) for leaf in leaves] + [(w.key, w.path) for w in wholes]:
        if key in seen:
            raise ConfigError(
                f"two results of tree {root.name!r} would have the key {key!r}: {seen[key]} and {path}; give one of them "
                "another result_key"
            )
        seen[key] = path
    return Plan(root, tuple(leaves), tuple(wholes))


def _visit(tree: Any, path: str, around: tuple[Any, ...], leaves: list[Leaf], wholes: list[Whole]) -> list[Part]:
    """Note the leaves and aggregates of a tree; returns what it gives to the aggregate above it."""
    parts: list[Part] = []
    limits = (tree.timeout, *around)
    for child in tree.children:
        weight, at = tree.weight_of(child), f"{path}/{child.result_key}"
        if isinstance(child, Tree):
            given = _visit(child, at, limits, leaves, wholes)
        else:
            leaves.append(Leaf(child, at, LeafRunner(child), (child.timeout, *limits)))
            given = [Part(child.result_key, 1.0, at)]
        if tree.aggregate is not None and weight and given:
            _check_direction(tree, child, at)
        parts += [Part(part.key, part.weight * weight, part.path) for part in given if part.weight * weight > 0]
    if tree.aggregate is None:
        return parts
    wholes.append(
        Whole(tree.result_key, path, tree.aggregate, tree.on_missing == "ignore", tuple(parts), rule_of(tree))
    )
    return [Part(tree.result_key, 1.0, path)]


def _check_direction(tree: Tree, child: BaseMetric[Any], path: str) -> None:
    if isinstance(child, Tree) and getattr(child, "aggregate", None) is None:
        for inner in child.children:
            _check_direction(tree, inner, f"{path}/{inner.result_key}")
        return
    if child.verdict and tree.verdict and child.lower_is_better is not tree.lower_is_better:
        less, more = (path, f"tree {tree.name!r}") if child.lower_is_better else (f"tree {tree.name!r}", path)
        raise ConfigError(
            f"less is better for {less} and more is better for {more}, so one number of both says nothing; turn the "
            f"metric's value round, or leave it out of the aggregate: add(metric, weight=0)"
        )


def check_complete(plan: Plan) -> None:
    """What must be there before a tree is used in a pipeline.

    Raises:
        ConfigError: it has no leaf; an aggregate has nothing to be made of; a leaf has another target.
    """
    root = plan.root
    if not plan.leaves:
        raise ConfigError(f"tree {root.name!r} has no metric in it; add one")
    for whole in plan.wholes:
        if not whole.parts:
            raise ConfigError(f"tree {root.name!r}: the aggregate of {whole.path} has nothing with a weight above 0")
    for leaf in plan.leaves:
        if leaf.metric.target not in (root.target, "root"):
            raise ConfigError(
                f"tree {root.name!r}: {leaf.path} has the target {leaf.metric.target!r} and the tree {root.target!r}; a tree is "
                "evaluated on one target"
            )


def spec_of(node: BaseMetric[Any]) -> dict[str, Any]:
    """All that identifies a metric or tree, for its hash. Thresholds are no part of it."""
    if isinstance(node, EvaluatorLeaf):
        return {"name": node.name, "hash": node.evaluator.info.config_hash}
    if not isinstance(node, Tree):
        return {"name": node.name, "result_key": node.result_key, **identity(node)}
    tree: Any = node
    found = {"name": node.name, "result_key": node.result_key, **identity(node)}
    found["children"] = [{**spec_of(child), "weight": tree.weight_of(child)} for child in node.children]
    if tree.aggregate is not None:
        found |= {"aggregate": name_of(tree.aggregate), "on_missing": tree.on_missing}
    return found
