"""Threads of ours start with nothing of the application's around them, and a fork's child waits for none of its parent's."""

import contextvars
import os
import threading
from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")


def unbound(work: Callable[[], Made]) -> Made:
    """Run ``work``, which starts threads, in an empty context.

    Other SDKs (Sentry's by default, OpenTelemetry's instrumentation of threads, Python itself where threads inherit the
    context) give a new thread the request that is going on where it starts. Ours would then belong to that request for
    life: what judges and exporters send would be traced as its work.
    """
    return contextvars.Context().run(work)


class ProcessLock:
    """A lock of this process: in a fork's child, one that nobody holds. A thread that held the parent's is not there to let go."""

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    def __enter__(self) -> None:
        self._mine().acquire()

    def __exit__(self, *_: object) -> None:
        self._mine().release()

    def _mine(self) -> threading.Lock:
        pid = os.getpid()
        found = self._locks.get(pid)
        return self._locks.setdefault(pid, threading.Lock()) if found is None else found
