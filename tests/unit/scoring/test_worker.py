"""Lanes: what hangs or raises costs itself, never the others."""

import threading
from typing import Any

from spangrade.scoring.worker import SLOW_S, Lane, Turn
from spangrade.testing import FakeClock


class Step:
    """A step that runs a function and says how it ended."""

    def __init__(self, turn: Turn, fn: Any = lambda: "ok") -> None:
        self.turn = turn
        self.fn = fn
        self.ended = threading.Event()
        self.how: Any = None

    def run(self) -> Any:
        return self.fn()

    def done(self, result: Any, fault: BaseException | None, duration_s: float) -> None:
        self.how = ("fault", type(fault)) if fault is not None else ("result", result)
        self.ended.set()

    def gave_up(self, why: str, duration_s: float) -> None:
        self.how = ("gave_up", why)
        self.ended.set()


def lane(clock: FakeClock, threads: int = 2, max_queue: int = 100) -> Lane:
    return Lane("test", threads, max_queue, clock, lambda: None)


def turn(name: str = "m", timeout: float = 5.0, limit: int = 2) -> Turn:
    return Turn(name, timeout, limit)


def test_results_faults_and_sys_exit_come_back_as_such() -> None:
    one = lane(FakeClock())
    t = turn()

    def exits() -> None:
        raise SystemExit(3)

    steps = [Step(t), Step(t, lambda: 1 / 0), Step(t, exits), Step(t)]
    assert one.submit(list(steps))
    assert all(s.ended.wait(5) for s in steps)
    assert [s.how for s in steps] == [
        ("result", "ok"),
        ("fault", ZeroDivisionError),
        ("fault", SystemExit),
        ("result", "ok"),
    ]
    one.close()


def test_a_hanging_evaluator_is_given_up_and_the_others_go_on() -> None:
    clock, release = FakeClock(), threading.Event()
    one = lane(clock)
    bad, good = turn("bad"), turn("good")
    started = threading.Semaphore(0)

    def hang() -> None:
        started.release()
        release.wait()

    hanging = [Step(bad, hang) for _ in range(6)]
    fine = [Step(good) for _ in range(20)]
    one.submit([*hanging, *fine])
    for _ in range(2):  # the limit: two threads at once for one evaluator
        assert started.acquire(timeout=5)
    clock.advance(SLOW_S * 2)
    one.check(clock.monotonic())  # stand-ins
    assert all(s.ended.wait(5) for s in fine)
    assert not any(s.ended.is_set() for s in hanging)
    clock.advance(5)
    one.check(clock.monotonic())
    assert [s.how for s in hanging if s.ended.is_set()] == [("gave_up", "timeout")] * 2
    for _ in range(2):
        assert started.acquire(timeout=5)
    clock.advance(5)
    one.check(clock.monotonic())
    assert all(s.ended.wait(5) for s in hanging)
    # Three time-outs in a row pause the evaluator, so what still waits ends as paused.
    assert [s.how for s in hanging].count(("gave_up", "timeout")) == 4
    assert [s.how for s in hanging].count(("gave_up", "paused")) == 2
    again = Step(bad)
    one.submit([again])
    assert again.ended.wait(5)
    assert again.how == ("gave_up", "paused")
    release.set()
    one.close()


def test_a_late_result_of_a_given_up_step_is_not_counted_again() -> None:
    clock, release, started = FakeClock(), threading.Event(), threading.Event()
    one = lane(clock)

    def hang() -> str:
        started.set()
        release.wait()
        return "too late"

    step = Step(turn(), hang)
    one.submit([step])
    assert started.wait(5)
    clock.advance(6)
    one.check(clock.monotonic())
    assert step.how == ("gave_up", "timeout")
    release.set()
    probe = Step(turn("other"))
    one.submit([probe])
    assert probe.ended.wait(5)
    assert step.how == ("gave_up", "timeout")
    one.close()


def test_a_full_lane_takes_all_of_a_sample_or_nothing() -> None:
    clock, release, started = FakeClock(), threading.Event(), threading.Event()
    one = lane(clock, threads=1, max_queue=3)
    t = turn(limit=1)

    def block() -> None:
        started.set()
        release.wait()

    one.submit([Step(t, block)])
    assert started.wait(5)
    assert one.submit([Step(t), Step(t)])
    assert not one.submit([Step(t), Step(t)])
    assert one.submit([Step(t)])
    release.set()
    one.close()


def test_close_gives_up_what_is_queued_and_what_runs() -> None:
    clock, release, started = FakeClock(), threading.Event(), threading.Event()
    one = lane(clock, threads=1)
    t = turn(limit=1)

    def block() -> None:
        started.set()
        release.wait()

    steps = [Step(t, block), Step(t), Step(turn("other"))]
    one.submit(list(steps))
    assert started.wait(5)
    one.close()
    assert [s.how for s in steps] == [("gave_up", "shutdown")] * 3
    assert not one.submit([Step(t)])
    release.set()


def test_no_span_of_the_application_is_current_inside_an_evaluator() -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    one = lane(FakeClock())
    step = Step(turn(), lambda: trace.get_current_span().get_span_context().is_valid)
    with TracerProvider().get_tracer("app").start_as_current_span("request"):
        one.submit([step])
        assert step.ended.wait(5)
    assert step.how == ("result", False)
    one.close()
