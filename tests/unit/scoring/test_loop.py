"""Async evaluators: bounded, timed, and none of them can take the loop from the others."""

import asyncio
import gc
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from spangrade.metrics.local import LocalMetric, metric
from spangrade.model.outcome import Outcome
from spangrade.scoring.loop import ANSWER_S, LoopLane
from spangrade.scoring.worker import MAX_LEFT_BEHIND, Lane, Turn
from spangrade.testing import FakeClock

from .conftest import Step, call_span


class Async:
    """A lane with a loop, and time by hand."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.woken = threading.Semaphore(0)
        self.loop = LoopLane(self.clock, self.woken.release)
        self.lane = Lane("test", 2, 1000, self.clock, lambda: None, loop=self.loop)
        self.gate = threading.Event()

    def step(self, turn: Turn, fn: Any) -> Step:
        step = Step(turn, fn)
        assert self.lane.submit([step])
        return step

    def blocker(self, turn: Turn) -> tuple[Step, threading.Event]:
        """A step whose coroutine blocks the loop; the event says that it does."""
        started = threading.Event()

        async def blocks() -> str:
            started.set()
            self.gate.wait()
            return "too late"

        return self.step(turn, blocks), started

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.loop.check(self.clock.monotonic())


@pytest.fixture
def one() -> Iterator[Async]:
    made = Async()
    yield made
    made.gate.set()
    made.lane.close()
    made.loop.close()


async def fine() -> str:
    return "ok"


def turn(name: str = "m", timeout: float = 5.0, **options: Any) -> Turn:
    return Turn(name, timeout, 2, **options)


def test_a_coroutine_that_blocks_ends_as_timeout_once_and_the_others_go_on_elsewhere(one: Async) -> None:
    bad = turn("bad")
    blocking, started = one.blocker(bad)
    assert started.wait(5)
    behind = one.step(turn("good"), fine)
    one.later(5)
    assert blocking.how == ("gave_up", "timeout")
    one.later(ANSWER_S)
    assert behind.ended.wait(5)
    assert behind.how == ("result", "ok")
    after = one.step(turn("good"), fine)
    assert after.ended.wait(5)
    while one.woken.acquire(blocking=False):
        pass
    one.gate.set()
    assert one.woken.acquire(timeout=5)  # the loop that was left behind answers: it ends, and its result is too late
    one.later(0)
    assert blocking.how == ("gave_up", "timeout")
    assert bad.strikes == 1
    assert len(one.loop._loops) == 1


def test_the_evaluator_on_the_loop_is_blamed_and_not_those_it_held_up(one: Async) -> None:
    bad, good = turn("bad", timeout=60.0), turn("good")
    waits, going = threading.Event(), asyncio.Event

    async def waiting() -> None:
        waits.set()
        await going().wait()

    held_up = one.step(good, waiting)
    assert waits.wait(5)
    _, started = one.blocker(bad)
    assert started.wait(5)
    one.later(5)
    assert held_up.how == ("gave_up", "timeout")
    one.later(ANSWER_S)
    assert (bad.strikes, good.strikes) == (1, 0)


def test_an_evaluator_that_blocks_again_and_again_is_paused(one: Async) -> None:
    bad = turn("bad")
    for _ in range(3):
        _, started = one.blocker(bad)
        assert started.wait(5)
        one.later(5)
        one.later(ANSWER_S)
    again = one.step(bad, fine)
    assert again.ended.wait(5)
    assert again.how == ("gave_up", "paused")
    other = one.step(turn("good"), fine)
    assert other.ended.wait(5)
    assert other.how == ("result", "ok")


def test_so_many_loops_are_left_behind_and_no_more_until_one_comes_back(one: Async) -> None:
    for n in range(MAX_LEFT_BEHIND):
        _, started = one.blocker(turn(f"bad {n}"))
        assert started.wait(5)
        one.later(5)
        one.later(ANSWER_S)
    refused = one.step(turn("good"), fine)
    assert refused.ended.wait(5)
    assert refused.how == ("gave_up", "paused")
    while one.woken.acquire(blocking=False):
        pass
    one.gate.set()
    for _ in range(MAX_LEFT_BEHIND):
        assert one.woken.acquire(timeout=5)
    again = one.step(turn("good"), fine)
    assert again.ended.wait(5)
    assert again.how == ("result", "ok")


def test_an_await_that_never_ends_is_a_timeout_on_a_loop_that_stays(one: Async) -> None:
    cancelled, waits = threading.Event(), threading.Event()

    async def never() -> None:
        waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    slow = turn()
    step = one.step(slow, never)
    assert waits.wait(5)
    loop = one.loop._loops[0]
    one.later(5)
    assert step.how == ("gave_up", "timeout")
    assert cancelled.wait(5)
    after = one.step(slow, fine)
    assert after.ended.wait(5)
    assert one.loop._loops == [loop]


def test_sys_exit_in_a_coroutine_or_in_a_task_of_its_own_is_its_error_and_the_loop_goes_on(
    one: Async, swallowed_faults: list[Any]
) -> None:
    async def exits() -> None:
        sys.exit(3)

    async def in_a_task() -> None:
        await asyncio.create_task(exits())

    steps = [one.step(turn(), exits), one.step(turn(), in_a_task), one.step(turn(), fine)]
    assert all(step.ended.wait(5) for step in steps)
    assert [step.how for step in steps] == [("fault", SystemExit), ("fault", SystemExit), ("result", "ok")]
    assert len(one.loop._loops) == 1
    assert all(isinstance(fault, SystemExit) for _, fault in swallowed_faults)  # the task's, through the loop itself
    swallowed_faults.clear()


def test_so_many_steps_of_one_evaluator_are_under_way_and_the_others_wait_their_turn(one: Async) -> None:
    limited, going, most = turn(loop_limit=3), [0], [0]
    full, go_on = threading.Semaphore(0), asyncio.Event()

    async def counted() -> None:
        going[0] += 1
        most[0] = max(most[0], going[0])
        full.release()
        await go_on.wait()
        going[0] -= 1

    steps = [one.step(limited, counted) for _ in range(10)]
    for _ in range(3):
        assert full.acquire(timeout=5)
    other = one.step(turn("other"), fine)
    assert other.ended.wait(5)
    assert not any(step.ended.is_set() for step in steps)
    one.loop._loops[0].call(go_on.set)
    assert all(step.ended.wait(5) for step in steps)
    assert most == [3]
    assert limited.aloft == limited.running == 0


def test_a_time_out_that_the_metric_raises_itself_is_its_error_and_not_ours(harness: Any) -> None:
    async def fails(output: str) -> float:
        raise TimeoutError("my own client's")

    h = harness(metric(fails))
    h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    (record,) = h.sink.records
    assert record.error_type == "TimeoutError"
    assert record.graded.explanation == "my own client's"
    assert h.counts("fails").of(Outcome.ERROR) == 1


def test_shutdown_counts_what_is_on_the_loop_and_prints_nothing(
    harness: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    waits = threading.Semaphore(0)

    async def slow(sample: Any) -> float:
        waits.release()
        await asyncio.Event().wait()
        return 1.0

    async def never_begun(sample: Any) -> float:
        return 1.0

    h = harness(LocalMetric(slow, timeout=60), LocalMetric(never_begun, timeout=60))
    h.send(call_span(1))
    h.send(call_span(2))
    for _ in range(2):
        assert waits.acquire(timeout=5)
    threads = [loop._thread for loop in h.pipeline._jobs._loop._loops]
    assert not h.pipeline.shutdown(0.05)
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
    gc.collect()
    assert h.counts("slow").outcomes == {(Outcome.DROPPED, "shutdown"): 2}
    assert h.counts("never_begun").pending == 0
    assert capfd.readouterr() == ("", "")


def test_a_task_that_a_metric_leaves_behind_says_nothing(one: Async, caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise ValueError("nobody asks")

    async def leaves_one() -> None:
        await asyncio.wait([asyncio.create_task(fails())])

    for _ in range(2):  # the second is there when nothing holds the first any more
        step = one.step(turn(), leaves_one)
        assert step.ended.wait(5)
    gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio"] == []
