"""Trees in the pipeline: a leaf that hangs costs its own score, never those beside it."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import spangrade as sg
from spangrade.metrics.catalog import resolve
from spangrade.metrics.options import with_options
from spangrade.model.outcome import Outcome, ScoreRecord

from .conftest import Harness, call_span

LIMIT = 2.0


class Hanging(sg.BaseMetric[float]):
    """Hangs, while it is told to; notes every time that it begins, and on which thread."""

    def __init__(self, result_key: str = "hangs", **options: Any) -> None:
        super().__init__(result_key=result_key, timeout=LIMIT, **options)
        self.began = threading.Semaphore(0)
        self.release = threading.Event()
        self.threads: list[int] = []

    def evaluate(self, text: str) -> dict[str, float]:
        self.threads.append(threading.get_ident())
        self.began.release()
        self.release.wait()
        return self.result(0.75)


class Counting(sg.BaseMetric[float]):
    """Gives a number; notes every time that it ran."""

    def __init__(self, result_key: str, **options: Any) -> None:
        super().__init__(result_key=result_key, **options)
        self.threads: list[int] = []

    def evaluate(self, text: str) -> dict[str, float]:
        self.threads.append(threading.get_ident())
        return self.result(0.5)


class Later(sg.BaseMetric[float]):
    async def evaluate(self, text: str) -> dict[str, float]:
        await asyncio.sleep(0)
        return self.result(0.25)


def until(h: Harness, there: Callable[[], bool], step: float = 0.1) -> None:
    """Let time pass until something is so."""
    limit = time.monotonic() + 30
    while not there():
        assert time.monotonic() < limit, "it never came"
        h.clock.advance(step)
        h.pipeline.tick()
        time.sleep(0)


def ended(h: Harness, tree: sg.CompositeMetric, n: int = 1) -> Callable[[], bool]:
    return lambda: h.counts(tree.name).met >= n and not h.counts(tree.name).pending


def by_name(records: list[ScoreRecord]) -> dict[str, Any]:
    """Each score's value, or the kind of its error."""
    return {r.graded.name: r.error_type or r.graded.value for r in records}


def test_a_leaf_that_hangs_is_a_timeout_of_its_own_and_every_other_leafs_score_arrives(harness: Any) -> None:
    before, hangs, after = Counting("before"), Hanging(), Counting("after")
    tree = sg.CompositeMetric("q", [before, sg.CompositeMetric("in", [hangs, after])])
    h = harness(resolve(tree))
    h.send(call_span())
    until(h, ended(h, tree))
    assert by_name(h.sink.records) == {"q.before": 0.5, "q.after": 0.5, "q.hangs": "timeout"}
    (late,) = [r for r in h.sink.records if r.error_type]
    assert (late.graded.path, late.graded.explanation) == ("q/in/hangs", "gave no result within 2 s")
    assert h.counts("q").of(Outcome.SCORED) == 1
    assert len(before.threads) == len(after.threads) == 1, "each leaf runs once"
    assert before.threads == hangs.threads != after.threads
    hangs.release.set()


def test_what_a_leaf_gives_after_its_time_is_not_taken_and_its_thread_runs_no_other_leaf(harness: Any) -> None:
    hangs, after, then = Hanging(), Hanging("after"), Counting("then")
    tree = sg.CompositeMetric("q", [hangs, after, then])
    h = harness(resolve(tree))
    h.send(call_span())
    until(h, lambda: after.began.acquire(blocking=False))
    (thread,) = [t for t in threading.enumerate() if t.ident == hangs.threads[0]]
    hangs.release.set()  # it comes back while the next leaf is at work
    thread.join(10)
    assert not thread.is_alive()
    assert (len(after.threads), then.threads) == (1, [])
    after.release.set()
    until(h, ended(h, tree))
    assert by_name(h.sink.records) == {"q.hangs": "timeout", "q.after": 0.75, "q.then": 0.5}


def test_a_leaf_that_hangs_again_and_again_is_paused_and_the_tree_goes_on(harness: Any) -> None:
    hangs, good = Hanging(), Counting("good")
    tree = sg.CompositeMetric("q", [hangs, good])
    h = harness(resolve(tree))
    for n in range(1, 4):
        h.send(call_span(n))
        until(h, ended(h, tree, n))
    h.sink.records.clear()
    h.send(call_span(4))
    until(h, ended(h, tree, 4), step=0.0)
    assert by_name(h.sink.records) == {"q.good": 0.5, "q.hangs": "paused"}
    assert len(hangs.threads) == 3
    assert h.counts("q").of(Outcome.SCORED) == 4
    hangs.release.set()
    h.clock.advance(61)
    h.sink.records.clear()
    h.send(call_span(5))
    until(h, ended(h, tree, 5))
    assert by_name(h.sink.records) == {"q.good": 0.5, "q.hangs": 0.75}


def test_leaves_that_are_slow_together_but_each_in_its_time_are_not_given_up(harness: Any) -> None:
    leaves = [Hanging("a"), Hanging("b"), Hanging("c")]
    tree = sg.CompositeMetric("q", leaves, timeout=LIMIT)
    h = harness(resolve(tree))
    h.send(call_span())
    for leaf in leaves:
        until(h, lambda leaf=leaf: leaf.began.acquire(blocking=False), step=0.0)
        h.pipeline.tick()  # sees the leaf at work
        h.clock.advance(LIMIT * 0.75)
        h.pipeline.tick()
        leaf.release.set()
    until(h, ended(h, tree), step=0.0)
    assert by_name(h.sink.records) == {"q.a": 0.75, "q.b": 0.75, "q.c": 0.75}


def test_an_aggregate_fails_where_a_leaf_hung_and_says_why(harness: Any) -> None:
    hangs = Hanging()
    strict = sg.CompositeMetric("strict", [hangs, Counting("a")], aggregate="mean")
    lenient_hangs = Hanging()
    lenient = sg.CompositeMetric("lenient", [lenient_hangs, Counting("a")], aggregate="mean", on_missing="ignore")
    h = harness(resolve(strict), resolve(lenient))
    h.send(call_span())
    until(h, lambda: ended(h, strict)() and ended(h, lenient)())
    found = by_name(h.sink.records)
    assert (found["strict"], found["lenient"]) == ("incomplete", 0.5)
    hangs.release.set()
    lenient_hangs.release.set()


def test_an_aggregate_that_hangs_costs_no_leafs_score(harness: Any) -> None:
    release = threading.Event()

    def hangs(values: list[float]) -> float:
        release.wait()
        return 1.0

    tree = sg.CompositeMetric("q", [Counting("a"), Counting("b")], aggregate=hangs, timeout=LIMIT)
    h = harness(resolve(tree))
    h.send(call_span())
    until(h, ended(h, tree))
    assert by_name(h.sink.records) == {"q.a": 0.5, "q.b": 0.5, "q": "timeout"}
    release.set()


def test_async_leaves_beside_one_that_hangs_run_on_the_loop_all_the_same(harness: Any) -> None:
    hangs, good = Hanging(), Counting("good")
    tree = sg.CompositeMetric("q", [Later(), hangs, good])
    h = harness(resolve(tree))
    h.send(call_span())
    until(h, ended(h, tree))
    assert by_name(h.sink.records) == {"q.Later": 0.25, "q.hangs": "timeout", "q.good": 0.5}
    hangs.release.set()


def test_an_async_leaf_that_blocks_its_loop_costs_no_score_of_the_others_that_are_there(harness: Any) -> None:
    release = threading.Event()

    class Blocks(sg.BaseMetric[float]):
        async def evaluate(self, text: str) -> dict[str, float]:
            release.wait()
            return self.result(1.0)

    tree = sg.CompositeMetric("q", [Counting("a"), Blocks(), Counting("b")], timeout=LIMIT, aggregate="max")
    h = harness(resolve(tree))
    h.send(call_span())
    until(h, ended(h, tree))
    assert by_name(h.sink.records) == {"q.a": 0.5, "q.b": 0.5, "q.Blocks": "timeout", "q": "incomplete"}
    release.set()


def test_a_tree_of_which_every_leaf_hangs_is_a_timeout_and_then_dropped_as_paused(harness: Any) -> None:
    leaves = [Hanging("a"), Hanging("b")]
    tree = sg.CompositeMetric("q", leaves, aggregate="mean")
    h = harness(resolve(tree))
    for n in range(1, 5):
        h.send(call_span(n))
        until(h, ended(h, tree, n))
    counts = h.counts("q")
    assert (counts.of(Outcome.TIMEOUT), counts.of(Outcome.DROPPED)) == (3, 1)
    for leaf in leaves:
        leaf.release.set()


def test_a_leaf_may_take_no_longer_than_the_trees_around_it_say() -> None:
    tree = sg.CompositeMetric(
        "q",
        [Counting("a"), Counting("b", timeout=1), sg.CompositeMetric("in", [Counting("c", timeout=9)], timeout=6)],
        timeout=7,
    )
    evaluator: Any = resolve(tree)
    assert dict(evaluator.parts) == {"q/a": 7, "q/b": 1, "q/in/c": 6}
    assert evaluator.timeout == 7


@pytest.mark.parametrize("closing", ["shutdown", "full"])
def test_a_tree_whose_leaf_hangs_is_accounted_for_whatever_happens_meanwhile(harness: Any, closing: str) -> None:
    hangs, good = Hanging(), Counting("good")
    tree = sg.CompositeMetric("q", [hangs, good])
    h = harness(resolve(tree), max_steps=1)
    h.send(call_span())
    until(h, lambda: hangs.began.acquire(blocking=False), step=0.0)
    if closing == "shutdown":
        h.pipeline.shutdown(0)
        assert h.counts("q").of(Outcome.DROPPED) == 1
    else:  # what was accepted once is not dropped for want of room
        until(h, ended(h, tree))
        assert by_name(h.sink.records) == {"q.hangs": "timeout", "q.good": 0.5}
    assert h.counts("q").pending == 0
    hangs.release.set()


def test_a_leaf_that_hangs_costs_its_own_score_offline_too() -> None:
    hangs, good = Hanging(), Counting("good")
    tree = sg.CompositeMetric("q", [Counting("first"), hangs, good])
    results = sg.evaluate([{"input": "a"}], lambda item: "an answer", [tree], evaluator_timeout=0.05, progress=False)
    (row,) = results.items
    found = {score.name: score.value if score.outcome is Outcome.SCORED else score.outcome for score in row.scores}
    assert found == {"q.first": 0.5, "q.good": 0.5, "q.hangs": Outcome.TIMEOUT}
    hangs.release.set()


def test_a_tree_that_is_told_options_as_an_evaluator_runs_as_a_whole_by_these_options(harness: Any) -> None:
    told = with_options(resolve(sg.CompositeMetric("q", [Counting("a")], aggregate="mean")), {"threshold": 0.6})
    h = harness(told)
    h.send(call_span())
    until(h, lambda: h.counts("q").met and not h.counts("q").pending, step=0.0)
    assert {r.graded.name: r.graded.passed for r in h.sink.records}["q"] is False
