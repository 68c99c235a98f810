"""Evaluators that change while the pipeline runs: from the next sample on, and every pair is still accounted for."""

import threading
from typing import Any

from spangrade import semconv as s
from spangrade.judges.live import live
from spangrade.metrics.local import LocalMetric
from spangrade.model.outcome import Outcome
from spangrade.model.policy import Placed
from spangrade.model.sample import Sample
from spangrade.testing import ScriptedJudgeClient

from .conftest import PASSING, call_span, judge


def test_a_judge_placed_while_the_pipeline_runs_grades_from_the_next_sample_on(harness: Any) -> None:
    h = harness(LocalMetric(lambda sample: 1, name="fine"))
    h.send(call_span(1))
    assert h.pipeline.drain(5, judges=True)
    added = live(judge(ScriptedJudgeClient(PASSING)), rate=1.0)
    h.pipeline.place([*h.pipeline.placed, added])
    h.send(call_span(2))
    assert h.pipeline.drain(5, judges=True)
    assert (h.counts("fine").of(Outcome.SCORED), h.counts("helpful").of(Outcome.SCORED)) == (2, 1)


def test_a_target_that_nobody_looked_at_before_is_looked_at(harness: Any) -> None:
    h = harness()
    assert h.pipeline.targets == frozenset()
    h.pipeline.place([live(judge(ScriptedJudgeClient(PASSING)), rate=1.0, target="tool")])
    h.send(call_span(1, **{s.OI_KIND: "TOOL"}))
    assert h.pipeline.drain(5, judges=True)
    assert h.counts("helpful").of(Outcome.SCORED) == 1
    h.pipeline.place([])
    h.send(call_span(2, **{s.OI_KIND: "TOOL"}))
    assert h.pipeline.drain(5, judges=True)
    assert (h.pipeline.targets, h.counts("helpful").met) == (frozenset(), 1)


def test_a_pair_that_has_begun_ends_under_the_version_that_it_began_with(harness: Any) -> None:
    entered, go_on = threading.Event(), threading.Event()

    class Slow(ScriptedJudgeClient):
        def complete(self, request: Any) -> Any:
            entered.set()
            assert go_on.wait(30)
            return super().complete(request)

    old, new = judge(Slow(PASSING)).with_version("1"), judge(ScriptedJudgeClient(PASSING), threshold=0.7)
    h = harness(live(old, rate=1.0), judge_threads=2)
    h.send(call_span(1))
    assert entered.wait(30)
    h.pipeline.place([live(new.with_version("2"), rate=1.0)])
    h.send(call_span(2))
    go_on.set()
    assert h.pipeline.drain(30, judges=True)
    assert {r.span.span_id: r.evaluator.version for r in h.sink.records} == {1: "1", 2: "2"}
    counts = h.counts("helpful")
    assert (counts.met, counts.of(Outcome.SCORED), counts.pending) == (2, 2, 0)


def test_what_stays_keeps_its_state(harness: Any) -> None:
    """A ceiling on calls would otherwise begin anew with every change of something else."""
    kept = live(judge(ScriptedJudgeClient(PASSING)), rate=1.0, budget={"calls_per_hour": 1})
    h = harness(kept)
    h.send(call_span(1))
    assert h.pipeline.drain(5, judges=True)
    h.pipeline.place([kept, Placed(LocalMetric(lambda sample: 1, name="fine"))])
    h.send(call_span(2))
    assert h.pipeline.drain(5, judges=True)
    counts = h.counts("helpful")
    assert (counts.of(Outcome.SCORED), counts.of(Outcome.OVER_BUDGET)) == (1, 1)


def test_evaluators_that_change_under_load_leave_no_pair_unaccounted(harness: Any) -> None:
    metrics = [Placed(LocalMetric(lambda sample: 1, name=name)) for name in ("a", "b")]
    h = harness(*metrics)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            h.pipeline.place(metrics[:1])
            h.pipeline.place([metrics[1]])
            h.pipeline.place(metrics)

    changer = threading.Thread(target=change)
    changer.start()
    tickets = [h.send(call_span(n)) for n in range(1, 400)]
    assert h.pipeline.drain(30, judges=True)
    stop.set()
    changer.join(30)
    assert [h.sink.waiting[ticket] for ticket in tickets] == [0] * len(tickets)
    for name in "ab":
        counts = h.counts(name)
        assert counts.pending == 0
        assert counts.met == counts.of(Outcome.SCORED) > 0


def test_a_child_process_grades_with_what_was_placed_last(harness: Any) -> None:
    h = harness(LocalMetric(lambda sample: 1, name="first"))
    seen: list[Sample] = []
    h.pipeline.place([Placed(LocalMetric(lambda sample: seen.append(sample) or 1, name="second"))])
    h.pipeline._fresh_state()  # what a fork does
    h.send(call_span(1))
    assert h.pipeline.drain(5, judges=True)
    assert (h.counts("first").met, h.counts("second").met, len(seen)) == (0, 1, 1)


def test_a_pause_a_new_version_or_another_rate_renews_no_ceiling_on_calls(harness: Any) -> None:
    def placed(hourly: int, **options: Any) -> Placed:
        made = judge(ScriptedJudgeClient(PASSING), **options)
        return live(made, rate=1.0, budget={"calls_per_hour": hourly, "calls_per_day": 3})

    h = harness(placed(1))
    sent = 0

    def send() -> tuple[int, int]:
        nonlocal sent
        sent += 1
        h.send(call_span(sent))
        assert h.pipeline.drain(5, judges=True)
        found = [one for one in h.pipeline.ledger.snapshot().values() if one.name == "helpful"]
        return sum(c.of(Outcome.SCORED) for c in found), sum(c.of(Outcome.OVER_BUDGET) for c in found)

    assert send() == (1, 0)
    h.pipeline.place([])
    h.pipeline.place([placed(1)])
    assert send() == (1, 1)
    h.pipeline.place([placed(2, threshold=0.9)])
    assert send() == (2, 1)
    assert send() == (2, 2)
    h.pipeline.place([placed(9)])
    assert send() == (3, 2)
    assert send() == (3, 3)  # the day's
