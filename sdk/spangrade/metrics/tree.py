"""The structure of a tree of metrics: who is under whom. By identity throughout; a metric's ``__eq__`` is never asked."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from spangrade.metrics.aggregate import check_weight
from spangrade.metrics.base import BaseMetric, check_made


class Tree(BaseMetric[Any]):
    """Children in order, each with a weight; one parent at most; no cycles."""

    _children: list[BaseMetric[Any]]
    _weights: list[float | None]  # None: none was said

    @property
    def children(self) -> tuple[BaseMetric[Any], ...]:
        """The metrics and trees right under this one, in order."""
        return tuple(self._children)

    def weight_of(self, child: Any) -> float:
        """The weight of a child (by identity) in the aggregate.

        Raises:
            ValueError: it is no child of this tree.
        """
        weight = self._weights[self._index(child)]
        return 1.0 if weight is None else weight

    def add(self, child: Any, *, weight: float | None = None) -> BaseMetric[Any]:
        """Put a metric, or a tree with all that is in it, under this one. Returns what stands there: ``child``, or, where it is
        no class metric, the leaf made of it.

        Raises:
            ValueError: it is in a tree already, it is this tree or holds it, two leaves would share one result key, or its
                number cannot be aggregated with the others'. Nothing has changed then.
            TypeError: it is no metric.
        """
        node = child if isinstance(child, BaseMetric) else self._leaf_of(child)
        check_made(node)
        if any(above is node for above in self._lineage()):
            raise ValueError(f"{node!r} is {self!r}, or holds it: a tree cannot hold itself")
        parent = node.parent
        if parent is self:
            raise ValueError(f"{node!r} is in {self!r} already")
        if parent is not None:
            raise ValueError(f"{node!r} is in {parent!r}; a metric has one parent at most: remove it there first")
        said = None if weight is None else check_weight(weight, f"{self!r}, {node!r}")
        self._children.append(node)
        self._weights.append(said)
        node._parent = self
        try:
            self._check(self._root())
        except ValueError:
            self._take_out(len(self._children) - 1)
            raise
        return node

    def remove(self, child: Any) -> None:
        """Take a child out, by identity; it may then be added elsewhere.

        Raises:
            ValueError: it is no child of this tree.
        """
        self._take_out(self._index(child))

    def _take_out(self, index: int) -> None:
        node = self._children.pop(index)
        del self._weights[index]
        node._parent = None

    def walk(self) -> list[BaseMetric[Any]]:
        """This tree and all that is in it: each before what is under it, children in order."""
        found: list[BaseMetric[Any]] = []
        todo: list[BaseMetric[Any]] = [self]
        while todo:
            node = todo.pop()
            found.append(node)
            if isinstance(node, Tree):
                todo.extend(reversed(node._children))
        return found

    def leaves(self) -> list[BaseMetric[Any]]:
        """The metrics in the tree that are no trees, in the order in which they run."""
        return [node for node in self.walk() if not isinstance(node, Tree)]

    def find(self, wanted: str | Callable[[BaseMetric[Any]], bool]) -> BaseMetric[Any] | None:
        """The first in `walk` with that ``result_key``, else with that ``name``, or of which the function is true; else None."""
        nodes = self.walk()
        if callable(wanted):
            return next((node for node in nodes if wanted(node)), None)
        by_key = next((node for node in nodes if node.result_key == wanted), None)
        return by_key if by_key is not None else next((node for node in nodes if node.name == wanted), None)

    def holds(self, child: BaseMetric[Any]) -> bool:
        """Whether ``child``, by identity, is right under this tree."""
        return any(node is child for node in self._children)

    def __contains__(self, metric: object) -> bool:
        """Whether ``metric``, by identity, is anywhere in this tree."""
        return any(stands_for(node, metric) for node in self.walk() if node is not self)

    def _index(self, child: Any) -> int:
        for i, node in enumerate(self._children):
            if stands_for(node, child):
                return i
        raise ValueError(f"{child!r} is no child of {self!r}")

    def _lineage(self) -> list["Tree"]:
        """This tree, the one that it is in, and so on."""
        found = [self]
        while (parent := found[-1].parent) is not None:
            found.append(parent)
        return found

    def _root(self) -> "Tree":
        return self._lineage()[-1]

    @abstractmethod
    def _leaf_of(self, given: Any) -> BaseMetric[Any]:
        """A leaf made of what is no class metric; TypeError for what is no metric at all."""

    @abstractmethod
    def _check(self, root: "Tree") -> None:
        """ValueError for a tree that cannot be evaluated as one."""


def stands_for(node: BaseMetric[Any], given: Any) -> bool:
    """Whether ``given`` is what was put where ``node`` is."""
    return node is given or (given is not None and getattr(node, "evaluator", None) is given)  # an `EvaluatorLeaf`'s
