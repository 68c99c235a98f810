"""The thread that waits for the end of a process, and may be told to flush before."""

import threading

import pytest

from spangrade.otel.exit import ExitHook


@pytest.mark.parametrize("more", [1, 2, 5])
def test_a_flush_that_is_asked_for_again_meanwhile_is_not_taken_for_the_end(more: int) -> None:
    flushing, go, ended = threading.Semaphore(0), threading.Semaphore(0), threading.Event()

    def flush() -> None:
        flushing.release()
        assert go.acquire(timeout=10)

    hook = ExitHook(ended.set, 10.0, flush)
    hook.arm()
    hook.flush_behind()
    assert flushing.acquire(timeout=10)
    for _ in range(more):  # the first of these is heard, the rest are the same
        hook.flush_behind()
    go.release()
    assert flushing.acquire(timeout=10)
    go.release()
    hook.flush_behind()
    assert flushing.acquire(timeout=10)
    assert not ended.is_set()
    go.release()
    hook.run()
    assert ended.is_set()


def test_an_end_that_comes_in_the_middle_of_a_flush_comes_after_it() -> None:
    order: list[str] = []
    flushing, go = threading.Event(), threading.Event()

    def flush() -> None:
        flushing.set()
        go.wait(10)
        order.append("flush")

    hook = ExitHook(lambda: order.append("end"), 10.0, flush)
    hook.arm()
    hook.flush_behind()
    assert flushing.wait(10)
    done = threading.Event()
    assert hook.run_behind(done.set)
    go.set()
    assert done.wait(10)
    assert order == ["flush", "end"]


def test_a_signal_between_hearing_and_forgetting_one_is_not_taken_for_the_end() -> None:
    """The word is there twice, and what it said once: as a handler leaves it that comes between two steps of the thread."""
    flushed, ended = threading.Semaphore(0), threading.Event()
    hook = ExitHook(ended.set, 10.0, flushed.release)
    hook.arm()
    waiting = hook._waiting
    assert waiting is not None
    waiting._wanted.release()
    hook.flush_behind()
    assert flushed.acquire(timeout=10)
    assert not ended.is_set()
    hook.run()
    assert ended.is_set()
