"""`CompositeMetric`: the structure of a tree, what it gives, and what its aggregate is made of."""

import asyncio
import copy
import statistics
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import spangrade as sg
from spangrade.metrics.catalog import resolve
from spangrade.model.evaluator import Verdict
from spangrade.model.score import Skip


class Number(sg.BaseMetric[Any]):
    """Gives what it is told to, or raises it."""

    def __init__(self, result_key: str, gives: Any = 1.0, **options: Any) -> None:
        super().__init__(result_key=result_key, **options)
        self.gives = gives

    def evaluate(self, text: str) -> dict[str, Any]:
        if isinstance(self.gives, BaseException):
            raise self.gives
        return self.result(self.gives)


class Later(Number):
    async def evaluate(self, text: str) -> dict[str, Any]:
        await asyncio.sleep(0)
        if isinstance(self.gives, BaseException):
            raise self.gives
        return self.result(self.gives)


def tree(*children: Any, **options: Any) -> sg.CompositeMetric:
    return sg.CompositeMetric("q", children, **options)


def grade(metric: Any, **sample: Any) -> Verdict:
    found = resolve(metric).evaluate(sg.Sample(**{"output": "x", **sample}))
    verdict: Verdict = asyncio.run(found) if asyncio.iscoroutine(found) else found
    return verdict


# --- structure ---------------------------------------------------------------------------------------------------------


def test_add_and_remove_go_by_identity_even_where_all_are_equal() -> None:
    class Same(Number):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    first, second, third = Same("a"), Same("b"), Same("c")
    both = tree(first, second)
    assert second in both
    assert third not in both
    with pytest.raises(ValueError, match="no child"):
        both.remove(third)
    both.remove(second)
    assert [child is first for child in both.children] == [True]
    assert second.parent is None
    both.add(second)
    assert (both.weight_of(second), both.holds(second)) == (1.0, True)


def test_two_instances_of_one_class_stand_side_by_side() -> None:
    assert tree(Number("a", 1), Number("b", 2)).evaluate("x") == {"a": 1, "b": 2}


def test_a_metric_has_one_parent_at_most() -> None:
    leaf = Number("a")
    one, other = tree(leaf), sg.CompositeMetric("other")
    assert leaf.parent is one
    with pytest.raises(ValueError, match=r"is in <metric 'q'>; a metric has one parent at most: remove it there first"):
        other.add(leaf)
    with pytest.raises(ValueError, match="is in <metric 'q'> already"):
        one.add(leaf)
    one.remove(leaf)
    other.add(leaf)
    assert (leaf.parent, one.children) == (other, ())


def test_there_are_no_cycles() -> None:
    inner = sg.CompositeMetric("inner", [Number("a")])
    middle = sg.CompositeMetric("middle", [inner])
    outer = sg.CompositeMetric("outer", [middle])
    for above, below in ((outer, outer), (outer, inner), (middle, inner), (outer, middle)):
        with pytest.raises(ValueError, match="a tree cannot hold itself"):
            below.add(above)
    assert [node.name for node in outer.walk()] == ["outer", "middle", "inner", "Number"]


@pytest.mark.parametrize("deep", [False, True])
def test_two_leaves_of_one_result_key_are_refused_when_the_tree_is_put_together(deep: bool) -> None:
    outer = tree(Number("a"), sg.CompositeMetric("in", [Number("b")]))
    clash = Number("b") if not deep else sg.CompositeMetric("in2", [sg.CompositeMetric("in3", [Number("b")])])
    with pytest.raises(
        ValueError, match=r"would have the key 'b': q/in/b and q/.*b; give one of them another result_key"
    ):
        outer.add(clash)
    inner = outer.find("in")
    assert isinstance(inner, sg.CompositeMetric)
    with pytest.raises(ValueError, match="would have the key 'a'"):
        inner.add(Number("a"))
    assert (len(outer.leaves()), clash.parent) == (2, None)
    outer.remove(inner)
    outer.add(clash)  # its name is free again


def test_an_aggregate_has_a_result_key_too() -> None:
    with pytest.raises(ValueError, match="would have the key 'q': q/q and q"):
        tree(Number("q"), aggregate="mean")
    assert tree(Number("q")).evaluate("") == {"q": 1.0}
    assert tree(Number("q"), aggregate="mean", result_key="whole").evaluate("") == {"q": 1.0, "whole": 1.0}


def test_walk_leaves_and_find() -> None:
    a, b, c = Number("a"), Number("b"), Number("c")
    inner = sg.CompositeMetric("in", [b, c])
    outer = tree(a, inner)
    assert [id(node) for node in outer.walk()] == [id(node) for node in (outer, a, inner, b, c)]
    assert [id(node) for node in outer.leaves()] == [id(node) for node in (a, b, c)]
    assert outer.find("c") is c
    assert outer.find("in") is inner
    assert outer.find("Number") is a  # by name, where no key is that
    assert outer.find("nothing") is None
    assert outer.find(lambda node: node.result_key > "b") is outer
    assert outer.children == (a, inner)


def test_a_copy_of_a_leaf_is_in_no_tree() -> None:
    leaf = Number("a")
    tree(leaf)
    assert copy.copy(leaf).parent is None
    assert copy.deepcopy(tree(Number("b"), Number("c"))).evaluate("") == {"b": 1.0, "c": 1.0}


def test_names_and_keys_of_a_tree() -> None:
    class Safety(sg.CompositeMetric):
        """A tree of its own."""

        def __init__(self) -> None:
            super().__init__(children=[Number("a")])

    assert (Safety().name, Safety().result_key) == ("Safety", "Safety")
    assert sg.CompositeMetric([Number("a")]).evaluate("") == {"a": 1.0}
    assert sg.CompositeMetric("n", result_key="k").result_key == "k"
    assert resolve(Safety).info.name == "Safety"
    with pytest.raises(TypeError, match="first argument is its name"):
        sg.CompositeMetric(Number("a"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="put what it computes into a metric of the tree"):
        type("Own", (sg.CompositeMetric,), {"evaluate": lambda self, text: {}})


def test_what_is_no_metric_is_refused() -> None:
    for children in ("overlap", Number("a")):
        with pytest.raises(TypeError, match="children is a list of metrics; write"):
            sg.CompositeMetric("q", children)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="weights is a dict"):
        tree(Number("a"), weights=[1])
    for thing in (3, None, object()):
        with pytest.raises(TypeError, match="is no metric"):
            tree(thing)
    with pytest.raises(sg.ConfigError, match="'j' is a judge"):
        tree(sg.LlmJudge(name="j", criteria="c", model="m"))
    with pytest.raises(sg.ConfigError, match="no metric 'overlp'; did you mean 'overlap'"):
        tree("overlp")


# --- evaluation --------------------------------------------------------------------------------------------------------


def test_every_leaf_runs_on_the_same_text_and_the_results_merge() -> None:
    seen: list[Any] = []

    class Sees(Number):
        def evaluate(self, text: str) -> dict[str, Any]:
            seen.append(text)
            return self.result(len(text))

    class SeesAll(Number):
        def evaluate(self, sample: sg.Sample) -> dict[str, Any]:
            return self.result([sample.output, sample.expected])

    outer = tree(Sees("a"), sg.CompositeMetric("in", [Sees("b"), SeesAll("c")]))
    assert outer.evaluate("abc") == {"a": 3, "b": 3, "c": ["abc", None]}
    assert outer.evaluate(sg.Sample(output="ab", expected="e")) == {"a": 2, "b": 2, "c": ["ab", "e"]}
    assert seen == ["abc", "abc", "ab", "ab"]


def test_raw_values_stay_what_they_were() -> None:
    merged = tree(Number("a", True), Number("b", "text"), Number("c", {"d": [1]}), Number("e", None)).evaluate("")
    assert merged == {"a": True, "b": "text", "c": {"d": [1]}, "e": None}
    assert isinstance(merged, dict)


def test_one_leaf_that_raises_does_not_lose_the_others() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    faults = [ZeroDivisionError("by zero"), SystemExit(3), Unprintable()]
    outer = tree(Number("a"), *[Number(f"bad{i}", fault) for i, fault in enumerate(faults)], Number("z"))
    merged: Any = outer.evaluate("")
    assert merged == {"a": 1.0, "z": 1.0}
    assert [(f.name, f.kind, f.path) for f in merged.failures] == [
        ("bad0", "ZeroDivisionError", "q/bad0"),
        ("bad1", "SystemExit", "q/bad1"),
        ("bad2", "Unprintable", "q/bad2"),
    ]
    verdict = grade(outer)
    assert [g.name for g in verdict.scores] == ["q.a", "q.z"]
    assert [f.name for f in verdict.failures] == ["q.bad0", "q.bad1", "q.bad2"]


def test_leaves_that_all_fail_are_an_error_and_that_are_all_skipped_a_skip() -> None:
    verdict = grade(tree(Number("a", ValueError("no"))))
    assert (verdict.scores, len(verdict.failures)) == ((), 1)
    with pytest.raises(Skip):
        grade(tree(Number("a", None), Number("b", None), aggregate="mean"))
    with pytest.raises(Skip, match="documents missing"):
        grade(tree(Number("a", requires=("documents",))))


def test_keys_that_clash_only_when_it_runs_cost_the_second() -> None:
    class Two(Number):
        def evaluate(self, text: str) -> dict[str, Any]:
            return {**self.result(1), "extra": self.gives}

    merged: Any = tree(Two("a", 1), Two("b", 2)).evaluate("")
    assert merged == {"a": 1, "b": 1, "extra": 1}
    (failure,) = merged.failures
    assert (failure.name, failure.kind, failure.path) == ("b.extra", "duplicate_key", "q/b")


def test_async_leaves_run_together_and_the_others_beforehand() -> None:
    order: list[str] = []
    met = asyncio.Event()

    class Meets(Number):
        async def evaluate(self, text: str) -> dict[str, Any]:
            order.append(self.result_key)
            await met.wait()
            return self.result(1)

    class Sets(Number):
        async def evaluate(self, text: str) -> dict[str, Any]:
            order.append(self.result_key)
            met.set()
            return self.result(2)

    class Plain(Number):
        def evaluate(self, text: str) -> dict[str, Any]:
            order.append(self.result_key)
            return self.result(3)

    outer = tree(Meets("waits"), Sets("sets"), Plain("plain"), Later("bad", ValueError("no")))
    later = outer.evaluate("")
    assert isinstance(later, Awaitable)
    assert order == ["plain"]

    async def wait() -> Any:
        return await later

    merged = asyncio.run(wait())
    assert merged == {"waits": 1, "sets": 2, "plain": 3}
    assert [f.name for f in merged.failures] == ["bad"]
    assert list(merged) == ["waits", "sets", "plain"]
    assert resolve(outer).is_async


def test_an_async_leaf_that_hangs_costs_its_own_time_and_not_the_others_scores() -> None:
    class Hangs(Number):
        async def evaluate(self, text: str) -> dict[str, Any]:
            await asyncio.Event().wait()
            return self.result(1)

    class Says(Number):
        async def evaluate(self, text: str) -> dict[str, Any]:
            raise TimeoutError("its own")

    verdict = grade(tree(Hangs("hangs", timeout=0.01), Later("good"), Says("says")))
    assert [g.name for g in verdict.scores] == ["q.good"]
    assert {f.name: f.kind for f in verdict.failures} == {"q.hangs": "timeout", "q.says": "TimeoutError"}


def test_a_tree_that_is_given_up_cancels_its_leaves() -> None:
    cancelled: list[str] = []
    started = asyncio.Event()

    class Hangs(Number):
        async def evaluate(self, text: str) -> dict[str, Any]:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(self.result_key)
            return {}

    async def main() -> None:
        found = tree(Hangs("a"), Hangs("b")).evaluate("")
        assert isinstance(found, Awaitable)
        task = asyncio.ensure_future(found)
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert sorted(cancelled) == ["a", "b"]


def test_many_threads_may_evaluate_one_tree() -> None:
    class Echo(Number):
        def evaluate(self, text: str) -> dict[str, Any]:
            return self.result(text)

    outer = tree(Echo("a"), sg.CompositeMetric("in", [Echo("b")]))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(outer.evaluate, [str(i) for i in range(200)]))
    assert found == [{"a": str(i), "b": str(i)} for i in range(200)]


# --- other metrics as leaves -------------------------------------------------------------------------------------------


def test_functions_functional_metrics_and_built_ins_stand_in_a_tree_by_their_names() -> None:
    @sg.metric(threshold=10, lower_is_better=True)
    def length(output: str) -> int:
        return len(output)

    @sg.numeric_metric(allowed_values=(0, 5))
    def stars(output: str) -> float:
        return 4

    def shouting(output: str) -> bool:
        return output.isupper()

    @sg.metric
    def several(output: str) -> dict[str, Any]:
        return {"x": 1, "y": "label"}

    @sg.metric
    async def later(output: str) -> float:
        return 0.5

    outer = tree(length, stars, shouting, several, "json_valid")
    assert outer.evaluate("abc") == {
        "length": 3.0, "stars": 4.0, "shouting": 0.0, "several.x": 1.0, "several.y": "label", "json_valid": 0.0,
    }  # fmt: skip
    assert length in outer
    with pytest.raises(ValueError, match="would have the key 'length'"):
        outer.add(length)
    scores = {g.name: g for g in grade(outer, output="x" * 11).scores}
    assert (scores["q.length"].passed, scores["q.length"].path) == (False, "q/length")
    assert scores["q.length"].rule is not None
    assert (scores["q.length"].rule.threshold, scores["q.length"].rule.lower_is_better) == (10, True)
    outer.remove(length)
    assert length not in outer
    sg.CompositeMetric("other", [length])  # a function may be in many trees
    assert [g.value for g in grade(tree(later)).scores] == [0.5]
    assert tree("overlap").leaves()[0].name == "overlap"


# --- weights and the aggregate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "value"),
    [
        ("mean", (2 * 0.2 + 1 * 0.8) / 3),
        ("min", 0.2),
        ("max", 0.8),
        (sum, 1.0),
        (statistics.median, 0.5),
        (lambda values, weights: sum(v * w for v, w in zip(values, weights, strict=True)), 1.2),
    ],
)
def test_an_aggregate_is_one_more_score_under_the_trees_own_key(how: Any, value: float) -> None:
    outer = tree(Number("a", 0.2), Number("b", 0.8), weights={"a": 2}, aggregate=how)
    merged = outer.evaluate("")
    assert merged == {"a": 0.2, "b": 0.8, "q": pytest.approx(value)}
    last = grade(outer).scores[-1]
    assert (last.name, last.path, last.rule) == ("q", "q", None)
    assert last.explanation is not None
    assert last.explanation.endswith("of a 0.2 x2, b 0.8")


def test_weights_are_said_by_key_name_metric_or_when_added_and_mean_a_mean() -> None:
    a, b = Number("a", 1), Number("b", 0)
    assert tree(a, b, weights={"a": 3}).evaluate("")["q"] == 0.75  # type: ignore[index]
    assert tree(Number("a", 1), c := Number("c", 0), weights={c: 3}).evaluate("")["q"] == 0.25  # type: ignore[index]
    outer = tree()
    outer.add(Number("a", 1), weight=3)
    outer.add(Number("Number", 0))
    assert outer.aggregate == "mean"
    assert outer.evaluate("") == {"a": 1, "Number": 0, "q": 0.75}
    assert "q" not in tree(Number("a")).evaluate("")  # type: ignore[operator]
    for wrong in ({"x": 1}, {"Number": 1}, {Number("z"): 1}):
        with pytest.raises(sg.ConfigError, match=r"weights: .* children; .*|weights: .* no child; .* 'a', 'b'"):
            tree(Number("a"), Number("b"), weights=wrong)
    for weight in (-1, "2", True, float("nan"), float("inf"), None):
        with pytest.raises(sg.ConfigError, match="is not a number, 0 or more"):
            tree(Number("a"), weights={"a": weight})
    with pytest.raises(sg.ConfigError, match="aggregate 'avg' is not one of mean, min, max"):
        tree(aggregate="avg")
    with pytest.raises(sg.ConfigError, match="on_missing 'skip' is not one of fail, ignore"):
        tree(on_missing="skip")


def test_a_weight_of_zero_leaves_a_metric_out_of_the_aggregate() -> None:
    outer = tree(Number("a", 0.5), Number("label", "text"), Number("bad", ValueError()), aggregate="min")
    failure = grade(outer).failures[-1]
    assert (failure.name, failure.kind) == ("q", "incomplete")
    assert "label (no number), bad (failed)" in failure.message
    outer = sg.CompositeMetric("q", [Number("a", 0.5)], aggregate="min")
    outer.add(Number("label", "text"), weight=0)
    assert outer.evaluate("") == {"a": 0.5, "label": "text", "q": 0.5}


@pytest.mark.parametrize("gives", [ValueError("no"), None, float("nan")])
def test_an_aggregate_over_missing_parts_fails_unless_that_is_meant(gives: Any) -> None:
    parts = [Number("a", 1.0), Number("b", gives)]
    merged: Any = tree(*parts, aggregate="mean").evaluate("")
    assert "q" not in merged
    assert merged.failures[-1].name == "q"
    for part in parts:
        part.parent.remove(part)  # type: ignore[union-attr]
    verdict = grade(tree(*parts, aggregate="mean", on_missing="ignore"))
    assert verdict.scores[-1].value == 1.0
    assert "; without b (" in str(verdict.scores[-1].explanation)


def test_a_subtrees_aggregate_counts_once_and_without_one_its_children_count_as_the_trees_own() -> None:
    inner = sg.CompositeMetric("in", [Number("b", 0.0), Number("c", 1.0)], aggregate="min")
    assert tree(Number("a", 1.0), inner, aggregate="mean").evaluate("") == {
        "a": 1.0, "b": 0.0, "c": 1.0, "in": 0.0, "q": 0.5,
    }  # fmt: skip
    group = sg.CompositeMetric("in", [Number("b", 0.0), Number("c", 1.0)])
    outer = sg.CompositeMetric("q", [Number("a", 1.0)])
    outer.add(group, weight=2)
    assert outer.evaluate("") == {"a": 1.0, "b": 0.0, "c": 1.0, "q": pytest.approx((1 + 0 + 2) / 5)}
    paths = {g.name: g.path for g in grade(outer).scores}
    assert paths == {"q.a": "q/a", "q.b": "q/in/b", "q.c": "q/in/c", "q": "q"}


def test_an_aggregate_function_that_fails_is_a_failure_of_its_own() -> None:
    for how, said in (
        (lambda values: "x", "returned str"),
        (lambda values: 1 / 0, "division"),
        (lambda v: float("inf"), "inf"),
    ):
        merged: Any = tree(Number("a"), aggregate=how).evaluate("")
        assert merged == {"a": 1.0}
        (failure,) = merged.failures
        assert failure.name == "q"
        assert said in failure.message


def test_numbers_of_opposite_directions_are_not_aggregated() -> None:
    low = Number("low", lower_is_better=True)
    with pytest.raises(ValueError, match="less is better for q/low and more is better for tree 'q'"):
        tree(Number("high"), low, aggregate="mean")
    assert low.parent is None or low.parent.name == "q"
    outer = tree(Number("high"), aggregate="mean")
    outer.add(Number("low", lower_is_better=True), weight=0)
    outer.add(Number("measure", lower_is_better=True, verdict=False))
    tree(Number("a", lower_is_better=True), Number("b", lower_is_better=True), aggregate="max", lower_is_better=True)


def test_a_trees_threshold_is_for_its_aggregate_and_each_leaf_keeps_its_own() -> None:
    outer = tree(Number("a", 0.4, threshold=0.3), Number("b", 0.2), aggregate="mean", threshold=0.5)
    found = {g.name: (g.passed, None if g.rule is None else g.rule.threshold) for g in grade(outer).scores}
    assert found == {"q.a": (True, 0.3), "q.b": (True, None), "q": (False, None)}
    assert resolve(outer).info.threshold == 0.5


# --- in the pipeline ---------------------------------------------------------------------------------------------------


def test_the_hash_is_of_the_whole_tree() -> None:
    def of(*children: Any, **options: Any) -> str:
        return resolve(tree(*children, **options)).info.config_hash

    same = of(Number("a"), sg.CompositeMetric("in", [Number("b")]))
    assert same == of(Number("a"), sg.CompositeMetric("in", [Number("b")]))
    others = [
        of(Number("a"), sg.CompositeMetric("in", [Number("c")])),
        of(Number("a"), sg.CompositeMetric("in2", [Number("b")])),
        of(sg.CompositeMetric("in", [Number("b")]), Number("a")),
        of(Number("a", version=2), sg.CompositeMetric("in", [Number("b")])),
        of(Number("a"), sg.CompositeMetric("in", [Number("b")]), aggregate="mean"),
        of(Number("a"), sg.CompositeMetric("in", [Number("b")]), aggregate="max"),
        of(Number("a"), sg.CompositeMetric("in", [Number("b")]), aggregate="mean", weights={"a": 2}),
        of(Number("a"), sg.CompositeMetric("in", [Number("b")]), aggregate="mean", on_missing="ignore"),
        of(Number("a"), sg.CompositeMetric("in", ["overlap"])),
    ]
    assert len({same, *others}) == len(others) + 1
    assert of(Number("a", threshold=3), sg.CompositeMetric("in", [Number("b")])) == same


def test_a_tree_that_cannot_work_is_refused_before_it_runs() -> None:
    with pytest.raises(sg.ConfigError, match="tree 'q' has no metric in it"):
        resolve(tree(sg.CompositeMetric("in")))
    with pytest.raises(sg.ConfigError, match="the aggregate of q has nothing with a weight above 0"):
        resolve(tree(Number("a"), aggregate="mean", weights={"a": 0}))
    with pytest.raises(sg.ConfigError, match="q/a has the target 'tool' and the tree 'root'"):
        resolve(tree(Number("a", target="tool")))
    leaf = Number("a")
    leaf.threshold = "x"  # type: ignore[assignment]
    with pytest.raises(sg.ConfigError, match="threshold 'x'"):
        resolve(tree(leaf))


def test_what_is_changed_after_a_tree_was_given_is_not_seen() -> None:
    outer = tree(Number("a"))
    evaluator: Any = resolve(outer)
    outer.add(Number("b"))
    assert [g.name for g in evaluator.evaluate(sg.Sample(output="x")).scores] == ["q.a"]


def test_the_time_limit_is_that_of_the_slowest_leaf() -> None:
    assert resolve(tree(Number("a", timeout=2), Number("b", timeout=9))).timeout == 9
    assert resolve(tree(Later("a", timeout=2))).timeout == 3
    assert resolve(tree(Number("a"), timeout=30)).timeout == 30


def test_a_subclass_may_take_a_configuration() -> None:
    from pydantic import BaseModel

    class Config(BaseModel):
        keys: list[str] = ["a"]

    class Many(sg.CompositeMetric):
        config_schema = Config

        def __init__(self, config: Any = None) -> None:
            super().__init__(config=config)
            for key in self.config.keys:
                self.add(Number(key))

    assert Many().evaluate("") == {"a": 1.0}
    assert Many.from_config({"keys": ["x", "y"]}).evaluate("") == {"x": 1.0, "y": 1.0}
    assert resolve(Many({"keys": ["x"]})).info.config_hash != resolve(Many()).info.config_hash
    with pytest.raises(sg.ConfigError, match="there is no parameter 'kyes'"):
        Many({"kyes": []})
