"""Coroutines for callers that cannot await: run to their end on one event loop of ours, on a thread of its own.

The caller may itself be inside a running loop (a notebook, a web handler): that loop is neither used nor patched; it waits,
as it does for any call that blocks. One loop serves all callers for as long as the process lives, so that an async client
which a metric keeps stays bound to a loop that is open. A loop whose thread does not come to a new coroutine within
`ANSWER_S` is busy with a metric that blocks (perhaps one that waits for this very coroutine): the next one takes its place.
"""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from spangrade._threads import unbound

T = TypeVar("T")
ANSWER_S: Final = 1.0


def run(make: Callable[[], Coroutine[Any, Any, T]], answer_s: float = ANSWER_S) -> T:
    """The result of the coroutine that ``make`` gives, run in a copy of the caller's context; its exception is raised here.

    When waiting is interrupted (Ctrl-C), the coroutine is cancelled.
    """
    while True:
        loop = _shared.loop()
        flight = _Flight(make)
        if threading.current_thread() is not loop.thread and flight.start(loop, answer_s):
            result: T = flight.result()
            return result
        _shared.leave(loop)  # its thread is ours to block, or hangs


class _Loop:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._serve, name="spangrade-metrics-loop", daemon=True)
        unbound(self.thread.start)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


class _Shared:
    """The loop for the next coroutine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: _Loop | None = None

    def loop(self) -> _Loop:
        with self._lock:
            if self._loop is None or not self._loop.thread.is_alive():  # dead in a forked child
                self._loop = _Loop()
            return self._loop

    def leave(self, loop: _Loop) -> None:
        with self._lock:
            if self._loop is loop:
                self._loop = None

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        # Not collected: closing it would touch what the parent uses.
        _the_parents.append(self._loop)
        self._loop = None


_the_parents: list[_Loop | None] = []
_shared: Final = _Shared()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.after_fork)


class _Flight:
    """One coroutine on a loop. Whoever first takes it from ``waiting`` decides whether it is run there."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._make = make
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._began = threading.Event()
        self._ended = threading.Event()
        self._withdrawn = False
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._value: Any = None
        self._fault: BaseException | None = None

    def start(self, loop: _Loop, answer_s: float) -> bool:
        """False when the loop does not come to it in time; it will not be run there then."""
        self._loop = loop.loop
        try:
            loop.loop.call_soon_threadsafe(self._begin)
            self._began.wait(answer_s)
        except RuntimeError:  # somebody has closed the loop
            return False
        except BaseException:
            if not self._withdraw():
                loop.loop.call_soon_threadsafe(self._cancel)
            raise
        return not self._withdraw()

    def _withdraw(self) -> bool:
        with self._lock:
            self._withdrawn = not self._began.is_set()
            return self._withdrawn

    def _begin(self) -> None:
        with self._lock:
            if self._withdrawn:
                return
            self._began.set()
        assert self._loop is not None
        self._task = self._loop.create_task(self._fly(), context=self._context)

    async def _fly(self) -> None:
        # Nothing is raised into the loop: a SystemExit there would end it for all.
        try:
            self._value = await self._make()
        except BaseException as fault:  # noqa: BLE001 - raised again where the caller waits
            self._fault = fault
        finally:
            self._ended.set()

    def result(self) -> Any:
        try:
            self._ended.wait()
        except BaseException:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._cancel)
            raise
        if self._fault is not None:
            try:
                raise self._fault
            finally:
                self._fault = None  # no ring of frames
        return self._value

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
