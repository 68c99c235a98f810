"""Our threads live as long as the process, whatever foreign code raises on them."""

import asyncio
import threading
from typing import Any

import pytest

from spangrade.metrics.local import LocalMetric
from spangrade.model.outcome import Outcome
from spangrade.scoring.shield import own_thread, shield
from spangrade.scoring.timer import Timer
from spangrade.scoring.worker import Lane, Turn
from spangrade.testing import CollectingSink, FakeClock

from .conftest import Step, call_span


class Away(BaseException):
    """As gevent's Timeout is: no Exception."""


class Unaskable(BaseException):
    """No Exception either, and whoever looks at it meets another fault."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class RaisingSink(CollectingSink):
    """Raises ``fault`` from one of its methods, the first ``times`` times."""

    def __init__(self, method: str, fault: BaseException, times: int = 1) -> None:
        super().__init__()
        self.method, self.fault, self.times = method, fault, times

    def _maybe(self, method: str) -> None:
        with self.lock:
            hit = method == self.method and self.times > 0
            self.times -= hit
        if hit:
            raise self.fault

    def settle(self, ticket: Any) -> None:
        super().settle(ticket)
        self._maybe("settle")

    def scores(self, *args: Any) -> None:
        self._maybe("scores")
        super().scores(*args)

    def taken(self, *args: Any) -> None:
        self._maybe("taken")
        super().taken(*args)

    def expire(self, now: float) -> float | None:
        self._maybe("expire")
        return super().expire(now)


@pytest.mark.parametrize("fault", [SystemExit(1), asyncio.CancelledError(), Away(), KeyError("x")])
@pytest.mark.parametrize("method", ["settle", "scores", "taken", "expire"])
def test_a_sink_that_raises_anything_ends_no_thread_and_leaves_no_pair_pending(
    harness: Any, swallowed_faults: list[Any], method: str, fault: BaseException
) -> None:
    h = harness(LocalMetric(lambda sample: 1, name="m"), sink=RaisingSink(method, fault, times=4))
    for n in range(1, 21):
        h.send(call_span(n))
        assert h.pipeline.drain(5, judges=True)
    counts = h.counts("m")
    assert counts.of(Outcome.SCORED) == counts.met == 20
    assert h.pipeline._jobs.room.used == 0
    assert all(type(raised) is type(fault) for _, raised in swallowed_faults)
    assert method == "expire" or len(swallowed_faults) == 4
    swallowed_faults.clear()


def test_a_part_of_the_tick_that_fails_does_not_keep_the_others_from_their_deadlines(
    harness: Any, swallowed_faults: list[Any]
) -> None:
    gate, started = threading.Event(), threading.Event()

    def hangs(sample: Any) -> float:
        started.set()
        gate.wait()
        return 1.0

    h = harness(LocalMetric(hangs, timeout=2.0), sink=RaisingSink("expire", KeyError("always"), times=10**6))
    h.send(call_span())
    assert started.wait(5)
    h.clock.advance(3)
    h.pipeline.tick()
    assert h.counts("hangs").of(Outcome.TIMEOUT) == 1
    gate.set()
    h.pipeline.shutdown(1)
    swallowed_faults.clear()


def test_a_timer_thread_that_is_gone_is_replaced_by_the_next_offer(harness: Any) -> None:
    h = harness(LocalMetric(lambda sample: 1, name="m"))
    h.send(call_span(1))
    assert h.pipeline.drain(5, judges=True)
    timer = h.pipeline._timer
    timer.stop(5)  # as a thread ends that somebody kills
    assert not timer._thread.is_alive()
    h.send(call_span(2))
    assert h.pipeline.drain(5, judges=True)
    assert h.counts("m").of(Outcome.SCORED) == 2


def gone() -> threading.Thread:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    return thread


def test_a_lane_whose_threads_are_gone_starts_others_and_gives_up_what_they_were_on() -> None:
    clock, gate, started = FakeClock(), threading.Event(), threading.Event()
    lane = Lane("test", 1, 100, clock, lambda: None)
    turn = Turn("m", 60.0, 1)
    hung = Step(turn, lambda: started.set() or gate.wait())
    lane.submit([hung])
    assert started.wait(5)
    for slot in lane._slots:
        slot.thread = gone()
    lane.check(clock.monotonic())
    assert hung.how == ("gave_up", "interrupted")
    after = Step(turn)
    assert lane.submit([after])
    assert after.ended.wait(5)
    assert after.how == ("result", "ok")
    gate.set()
    lane.close()


def test_a_callback_that_raises_anything_does_not_end_the_lanes_thread(swallowed_faults: list[Any]) -> None:
    lane = Lane("test", 1, 100, FakeClock(), lambda: None)
    turn = Turn("m", 5.0, 1)

    class Leaves(Step):
        def done(self, result: Any, fault: BaseException | None, duration_s: float) -> None:
            raise SystemExit(1)

    names: list[int] = []
    first = Leaves(turn, lambda: names.append(threading.get_ident()))
    second = Step(turn, lambda: names.append(threading.get_ident()))
    lane.submit([first])
    lane.submit([second])
    assert second.ended.wait(5)
    assert names[0] == names[1]
    assert [type(fault) for _, fault in swallowed_faults] == [SystemExit]
    swallowed_faults.clear()
    lane.close()


def test_what_a_fault_answers_when_asked_changes_nothing(swallowed_faults: list[Any]) -> None:
    passed: list[type[BaseException]] = []
    try:
        with shield("here"):
            raise Unaskable
    except BaseException as fault:
        passed.append(type(fault))
    lived = threading.Event()

    def ours() -> None:
        with own_thread():
            with shield("there"):
                raise Unaskable
            lived.set()

    thread = threading.Thread(target=ours)
    thread.start()
    thread.join()
    assert passed == [Unaskable]
    assert lived.is_set()
    assert [(where, type(fault)) for where, fault in swallowed_faults] == [("there", Unaskable)]
    swallowed_faults.clear()


def test_on_the_applications_thread_its_own_interrupts_pass(swallowed_faults: list[Any]) -> None:
    with pytest.raises(KeyboardInterrupt), shield("here"):
        raise KeyboardInterrupt
    with shield("here"):
        raise ValueError("ours")

    def ours() -> None:
        with own_thread(), shield("there"):
            raise Away

    thread = threading.Thread(target=ours)
    thread.start()
    thread.join()
    assert [where for where, _ in swallowed_faults] == ["here", "there"]
    swallowed_faults.clear()


def test_a_lane_that_gets_busy_again_and_again_costs_no_tick_each_time() -> None:
    ticks, done = [], threading.Event()
    timer = Timer(lambda item: done.set(), lambda: ticks.append(1) or float("inf"), lambda: None, FakeClock())
    for _ in range(200):
        timer.wake()
    timer.put("last")
    timer.ensure()
    assert done.wait(5)
    assert len(ticks) <= 1
    timer.stop(5)
