"""A fork while another thread holds a lock of ours: the child, in which that thread is not, goes on all the same."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

import spangrade as sg
from spangrade.judges.cache import Cache
from spangrade.judges.grading import Grading
from spangrade.model.sample import FrozenDict


def cached() -> tuple[Any, Callable[[], object]]:
    cache = Cache(10)
    return cache._lock, lambda: cache.put("key", Grading(1.0, "", FrozenDict()))


def functional() -> tuple[Any, Callable[[], object]]:
    @sg.numeric_metric
    def share(output: str) -> float:
        return 1.0

    return share._inputs._lock, lambda: share._inputs.hint("output")


@pytest.mark.parametrize("make", [cached, functional])
def test_a_child_forked_while_a_lock_is_held_uses_what_it_guards(make: Callable[[], tuple[Any, Any]]) -> None:
    lock, use = make()
    with lock:
        pid = os.fork()
        if pid == 0:
            signal.alarm(10)
            use()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
