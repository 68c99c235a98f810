"""A forked child starts afresh: nothing that its parent was doing holds it up, and nothing of it is counted again."""

import json
import os
import signal
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.judges.live import live
from spangrade.metrics.local import LocalMetric
from spangrade.model.outcome import Outcome
from spangrade.model.sample import Sample
from spangrade.scoring.pipeline import Pipeline
from spangrade.testing import CollectingSink, ScriptedJudgeClient

from .conftest import PASSING, Harness, call_span, judge, offer

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


def in_child(work: Callable[[], Any]) -> Any:
    """What ``work`` returns in a forked child (as JSON); None when it raised, or hung for 20 s."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of a fork with threads: that is what is tested
        pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(20)
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else None


def test_the_parents_running_steps_neither_block_the_childs_evaluators_nor_count_there(harness: Any) -> None:
    parent, gate, started = os.getpid(), threading.Event(), threading.Semaphore(0)

    def slow(sample: Sample) -> float:
        if os.getpid() == parent:
            started.release()
            gate.wait()
        return 1.0

    h = harness(LocalMetric(slow, timeout=60))
    for n in range(1, 6):
        h.send(call_span(n))
    for _ in range(2):
        assert started.acquire(timeout=5)

    def child() -> list[Any]:
        h.send(call_span(9))
        drained = h.pipeline.drain(10, judges=True)
        counts = h.counts("slow")
        return [drained, counts.met, counts.pending, counts.of(Outcome.SCORED)]

    assert in_child(child) == [True, 1, 0, 1]
    gate.set()
    assert h.pipeline.drain(5, judges=True)
    assert h.counts("slow").of(Outcome.SCORED) == 5


def test_locks_that_were_held_at_the_fork_do_not_hang_the_child(harness: Any) -> None:
    client = ScriptedJudgeClient(PASSING)
    placed = live(judge(client), rate=1.0, max_per_minute=1e9, budget={"calls_per_hour": 100})
    h = harness(LocalMetric(lambda sample: 1, name="m"), placed)
    h.send(call_span(1))
    assert h.pipeline.drain(5, judges=True)
    held, let_go = threading.Event(), threading.Event()
    jobs = h.pipeline._jobs
    seat = jobs._seats[1]

    def hold() -> None:
        with (
            h.pipeline.ledger._lock,
            seat.budget._lock,
            seat.selector._lock,
            jobs._metrics._cond,
            jobs._loop._lock,
            jobs.room._lock,
            jobs.open._cond,
            h.pipeline._timer._lock,
        ):
            held.set()
            let_go.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(5)

    def child() -> list[Any]:
        h.send(call_span(2))
        drained = h.pipeline.drain(10, judges=True)
        ended = h.pipeline.shutdown(5)
        return [drained, ended, h.counts("m").of(Outcome.SCORED), h.counts("helpful").of(Outcome.SCORED)]

    assert in_child(child) == [True, True, 1, 1]
    let_go.set()
    holder.join()


@pytest.mark.parametrize("first", ["offer", "root_ended", "drain", "shutdown", "check_fork", "after_fork"])
def test_the_first_call_in_a_child_tells_the_host_once_and_the_parent_never(first: str) -> None:
    told: list[int] = []
    sink = CollectingSink()
    pipeline: Pipeline

    def on_fork() -> None:
        told.append(os.getpid())
        pipeline.after_fork()  # a host that resets everything of its own, the pipeline included

    h = Harness(LocalMetric(lambda sample: 1, name="m"), sink=sink, on_fork=on_fork)
    pipeline = h.pipeline
    pipeline.after_fork()
    h.send(call_span(1))
    assert pipeline.drain(5, judges=True)
    assert told == []

    def child() -> list[Any]:
        calls: dict[str, Callable[[], Any]] = {
            "offer": lambda: pipeline.offer(offer(call_span(2))[0]),
            "root_ended": lambda: pipeline.root_ended(1, 1),
            "drain": lambda: pipeline.drain(1, judges=True),
            "shutdown": lambda: pipeline.shutdown(1),
            "check_fork": pipeline.check_fork,
            "after_fork": pipeline.after_fork,
        }
        calls[first]()
        pipeline.after_fork()
        pipeline.check_fork()
        met = h.counts("m").met
        return [len(told), told == [os.getpid()], met <= 1]

    assert in_child(child) == [1, True, True]
    assert pipeline.drain(5, judges=True)
    assert h.counts("m").of(Outcome.SCORED) == 1
    pipeline.shutdown(1)


def test_a_child_of_a_child_starts_afresh_too(harness: Any) -> None:
    h = harness(LocalMetric(lambda sample: 1, name="m"))

    def one_more() -> list[int]:
        h.send(call_span(1))
        assert h.pipeline.drain(5, judges=True)
        return [h.counts("m").met]

    one_more()
    assert in_child(lambda: one_more() + in_child(one_more)) == [1, 1]
