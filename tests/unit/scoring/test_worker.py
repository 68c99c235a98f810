"""Lanes: what hangs or raises costs itself, never the others."""

import sys
import threading
from types import FrameType

from spangrade.scoring.worker import MAX_LEFT_BEHIND, SLOW_S, Lane, Turn
from spangrade.testing import FakeClock

from .conftest import Step


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


def test_evaluators_of_threads_that_were_left_behind_run_again_when_these_have_come_back() -> None:
    clock, release = FakeClock(), threading.Event()
    one = lane(clock)
    turns = [turn(f"slow {n}") for n in range(MAX_LEFT_BEHIND)]
    for t in turns:
        started = threading.Event()
        one.submit([Step(t, lambda started=started: started.set() or release.wait())])
        assert started.wait(5)
        clock.advance(6)
        one.check(clock.monotonic())
    crowded, other = Step(turns[0]), Step(turn("other"))
    one.submit([crowded, other])
    assert crowded.ended.wait(5)
    assert other.ended.wait(5)
    assert (crowded.how, other.how) == (("gave_up", "paused"), ("result", "ok"))
    threads = [slot.thread for slot in one._slots if slot.left_behind is not None]
    release.set()
    for thread in threads:
        assert thread is not None
        thread.join(5)
    again = [Step(t) for t in turns]
    one.submit(list(again))
    assert all(step.ended.wait(5) for step in again)
    assert {step.how for step in again} == {("result", "ok")}
    one.close()


def test_close_gives_up_what_waits_for_its_turn_too() -> None:
    release, started = threading.Event(), threading.Event()
    one = lane(FakeClock(), threads=2)
    busy = turn("busy", limit=1)
    steps = [Step(busy, lambda: started.set() or release.wait()), Step(busy), Step(busy)]
    one.submit(list(steps))
    assert started.wait(5)
    probe = Step(turn("other"))
    one.submit([probe])
    assert probe.ended.wait(5)  # behind the others: by now these wait
    one.close()
    assert {step.how for step in steps} == {("gave_up", "shutdown")}
    release.set()


def test_what_a_step_costs_does_not_grow_with_the_number_of_threads() -> None:
    release, one = threading.Event(), Lane("test", 64, 100, FakeClock(), lambda: None, slow_s=float("inf"))
    waits = turn("waits", limit=64)

    def calls_of_a_step() -> int:
        """Of functions, by who submits it and by the thread that runs it, until that one looks for another step."""
        calls: list[str] = []

        def note(frame: FrameType, event: str, _arg: object) -> None:
            if event == "call":
                calls.append(frame.f_code.co_qualname)

        step = Step(turn("quick"), lambda: sys.setprofile(note))
        sys.setprofile(note)
        one.submit([step])
        sys.setprofile(None)
        assert step.ended.wait(5)
        looks = Step(turn("looks"), lambda: sys.setprofile(None))
        one.submit([looks])
        assert looks.ended.wait(5)
        return len(calls)

    few = calls_of_a_step()
    started = threading.Semaphore(0)
    for _ in range(50):
        one.submit([Step(waits, lambda: started.release() or release.wait())])
    for _ in range(50):
        assert started.acquire(timeout=5)
    many = calls_of_a_step()
    release.set()
    one.close()
    assert many < few + 25
