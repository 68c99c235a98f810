"""Coroutines for callers that cannot await: run to their end on an event loop of ours, on a thread of its own.

The caller may itself be inside a running loop (a notebook, a web handler): that loop is neither used nor patched; it waits,
as it does for any call that blocks. One loop serves all callers for as long as the process lives, so that an async client
which a metric keeps stays bound to a loop that is open. Only while that loop is blocked another takes its place: where the
caller is a coroutine on it, or when it does not come to a new coroutine within `ANSWER_S` (a metric blocks it, perhaps one
that waits for this very coroutine).
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
    mine = _loops.of_this_thread()
    _loops.block(mine, 1)  # nothing else can run there while this waits
    try:
        while True:
            loop = _loops.free()
            flight = _Flight(make, loop)
            try:
                if flight.over(answer_s):
                    result: T = flight.result()
                    return result
            except BaseException:  # its own, or an interruption anywhere on the way
                flight.cancel()
                raise
            _loops.hangs(loop)
    finally:
        _loops.block(mine, -1)


class _Loop:
    """A loop and its thread. ``blocked``: how many reasons there are not to give it anything now."""

    def __init__(self) -> None:
        self.blocked = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._serve, name="spangrade-metrics-loop", daemon=True)
        unbound(self.thread.start)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                self.loop.run_forever()
            except BaseException:  # noqa: BLE001, S110 - a SystemExit in a task: whoever awaits that has it too
                pass
            if self.loop.is_closed():
                return

    def call(self, what: Callable[..., object], *args: Any) -> bool:
        """False when somebody has closed the loop."""
        try:
            self.loop.call_soon_threadsafe(what, *args)
        except RuntimeError:
            return False
        return True


class _Loops:
    """As many as are blocked at once, and one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[_Loop] = []

    def free(self) -> _Loop:
        """The first loop that is not blocked."""
        found = self._first()
        if found is None:
            with self._lock:
                found = self._first()  # another thread may have made one
                if found is None:
                    found = _Loop()
                    self._all = [*(loop for loop in self._all if loop.thread.is_alive()), found]
        return found

    def _first(self) -> _Loop | None:
        for loop in self._all:
            if not loop.blocked and loop.thread.is_alive():
                return loop
        return None

    def of_this_thread(self) -> _Loop | None:
        """The loop whose thread this is."""
        here = threading.get_ident()
        for loop in self._all:
            if loop.thread.ident == here:
                return loop
        return None

    def hangs(self, loop: _Loop) -> None:
        """It does not answer: it is given nothing until it does."""
        self.block(loop, 1)
        loop.call(self.block, loop, -1)

    def block(self, loop: _Loop | None, by: int) -> None:
        """One reason more, or less, to give it nothing."""
        if loop is not None:
            with self._lock:
                loop.blocked += by

    def after_fork(self) -> None:
        """In a forked child: none of the threads is there. The loops are kept: to close them would touch what the parent
        uses."""
        self._lock = threading.Lock()
        _the_parents.extend(self._all)
        self._all = []


_the_parents: list[_Loop] = []
_loops: Final = _Loops()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_loops.after_fork)


class _Flight:
    """One coroutine on a loop.

    Its end is a lock that the loop opens: to wait at one takes a fraction of what an `Event` does.
    """

    __slots__ = ("_context", "_ended", "_fault", "_left", "_loop", "_make", "_task", "_value")

    def __init__(self, make: Callable[[], Coroutine[Any, Any, Any]], loop: _Loop) -> None:
        self._make = make
        self._loop = loop
        self._context = contextvars.copy_context()
        self._ended = threading.Lock()
        self._ended.acquire()
        self._left = threading.Lock()  # who takes it decides: the loop, to run it; or the caller, to take it elsewhere
        self._task: asyncio.Task[None] | None = None
        self._value: Any = None
        self._fault: BaseException | None = None

    def over(self, answer_s: float) -> bool:
        """Wait until it is; False when the loop does not come to it in time, and then never will."""
        if not self._loop.call(self._begin):
            return False
        if self._ended.acquire(timeout=answer_s):
            return True
        if self._left.acquire(blocking=False):
            return False
        return self._ended.acquire()

    def cancel(self) -> None:
        """End it, if it has not ended."""
        if not self._left.acquire(blocking=False):
            self._loop.call(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        if self._left.acquire(blocking=False):
            self._task = self._loop.loop.create_task(self._fly(), context=self._context)

    async def _fly(self) -> None:
        # Nothing is raised into the loop: a SystemExit there would end it for all.
        try:
            self._value = await self._make()
        except BaseException as fault:  # noqa: BLE001 - raised again where the caller waits
            self._fault = fault
        finally:
            self._ended.release()

    def result(self) -> Any:
        """What the coroutine returned, or raised."""
        if self._fault is not None:
            try:
                raise self._fault
            finally:
                self._fault = None  # no ring of frames
        return self._value
