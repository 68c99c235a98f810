"""Whatever is added and removed, in whatever order: a tree stays a tree."""

from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

import spangrade as sg


class Leaf(sg.BaseMetric[int]):
    """All are equal, so that only identity tells them apart."""

    def evaluate(self, text: str) -> dict[str, int]:
        return self.result(1)

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def below(node: Any) -> list[Any]:
    """A tree in pre-order, told by its children alone."""
    found = [node]
    for child in getattr(node, "children", ()):
        found += below(child)
    return found


class Trees(RuleBasedStateMachine):
    """Leaves and trees, some with an aggregate and weights, put together and taken apart."""

    nodes = Bundle("nodes")
    trees = Bundle("trees")

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Any] = []

    @rule(target=nodes, key=st.sampled_from("abcdef"))
    def leaf(self, key: str) -> Any:
        self.all.append(Leaf(result_key=key))
        return self.all[-1]

    @rule(target=trees, key=st.sampled_from("abcxyz"), aggregate=st.sampled_from([None, "mean"]))
    def tree(self, key: str, aggregate: Any) -> Any:
        self.all.append(sg.CompositeMetric(key, aggregate=aggregate))
        return self.all[-1]

    @rule(parent=trees, child=st.one_of(nodes, trees), weight=st.sampled_from([None, 0, 2.5]))
    def add(self, parent: Any, child: Any, weight: Any) -> None:
        before, was = [id(node) for node in below(parent)], child.parent
        allowed = (
            was is None
            and not any(node is parent for node in below(child))
            and self.keys_fit(self.root(parent), child, parent, weight)
        )
        if allowed:
            assert parent.add(child, weight=weight) is child
            assert child.parent is parent
            return
        with pytest.raises(ValueError, match=r"already|one parent|hold itself|would have the key"):
            parent.add(child, weight=weight)
        assert [id(node) for node in below(parent)] == before
        assert child.parent is was

    @rule(parent=trees, child=st.one_of(nodes, trees))
    def remove(self, parent: Any, child: Any) -> None:
        if any(node is child for node in parent.children):
            parent.remove(child)
            assert child.parent is None
        else:
            with pytest.raises(ValueError, match="is no child"):
                parent.remove(child)

    def root(self, node: Any) -> Any:
        while node.parent is not None:
            node = node.parent
        return node

    def keys(self, nodes: list[Any], weighted: Any = None) -> list[str]:
        """The result keys; ``weighted``: a tree that has a weight by now, and so an aggregate."""
        leaves = [node.result_key for node in nodes if isinstance(node, Leaf)]
        return leaves + [
            n.result_key for n in nodes if not isinstance(n, Leaf) and (n.aggregate is not None or n is weighted)
        ]

    def keys_fit(self, root: Any, child: Any, parent: Any, weight: Any) -> bool:
        keys = self.keys(below(root) + below(child), parent if weight is not None else None)
        return len(keys) == len(set(keys))

    @invariant()
    def one_parent_that_holds_it(self) -> None:
        for node in self.all:
            holders = [tree for tree in self.all for child in getattr(tree, "children", ()) if child is node]
            assert len(holders) <= 1
            assert node.parent is (holders[0] if holders else None)

    @invariant()
    def no_cycles_and_walk_is_pre_order(self) -> None:
        for node in self.all:
            if isinstance(node, Leaf):
                continue
            nodes = below(node)  # ends, so there is no cycle
            assert [id(n) for n in node.walk()] == [id(n) for n in nodes]
            assert len({id(n) for n in nodes}) == len(nodes)
            assert [id(n) for n in node.leaves()] == [id(n) for n in nodes if isinstance(n, Leaf)]

    @invariant()
    def keys_are_unique_and_all_are_in_the_result(self) -> None:
        for node in self.all:
            if isinstance(node, Leaf) or node.parent is not None:
                continue
            leaves = [leaf.result_key for leaf in node.leaves()]
            assert len(leaves) == len(set(leaves))
            merged = node.evaluate("")
            assert set(leaves) <= set(merged)
            # An aggregate over an empty subtree is refused when it runs: there is nothing to make a number of.
            assert {failure.kind for failure in merged.failures} <= {"incomplete"}


Trees.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestTrees = Trees.TestCase


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0, 1e3)), min_size=1, max_size=12))
@example([(1.5, 5e-324)])  # a product would be 2 times the least number that there is
def test_a_mean_lies_between_the_least_and_the_greatest_and_is_the_weighted_one(
    parts: list[tuple[float, float]],
) -> None:
    class Number(sg.BaseMetric[float]):
        value = 0.0

        def evaluate(self, text: str) -> dict[str, float]:
            return self.result(self.value)

    tree = sg.CompositeMetric("mean", aggregate="mean")
    for i, (value, weight) in enumerate(parts):
        leaf = Number(result_key=f"k{i}")
        leaf.value = value
        tree.add(leaf, weight=weight)
    counted = [(value, weight) for value, weight in parts if weight > 0]
    found: Any = tree.evaluate("")
    assert not found.failures
    if not counted:
        assert "mean" not in found
        return
    low, high = min(v for v, _ in counted), max(v for v, _ in counted)
    assert low - 1e-6 <= found["mean"] <= high + 1e-6
    exact = sum(Fraction(v) * Fraction(w) for v, w in counted) / sum(Fraction(w) for _, w in counted)
    assert found["mean"] == pytest.approx(float(exact), rel=1e-9, abs=1e-6)
