"""The one thread that takes what the application offers off a queue, and watches all deadlines. It runs no user code."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty
from typing import Any, Final

from spangrade import _guard
from spangrade._threads import unbound
from spangrade.scoring.clock import Clock
from spangrade.scoring.shield import own_thread, shield

LOOK_S: Final = 0.05  # a lane that became busy is looked at after this
REST_S: Final = 0.005  # how long items gather while they come often
OFTEN_S: Final = 0.025  # they do, if the last one came within this
MAX_WAIT_S: Final = 60.0  # a deadline far away is no reason to ask a lock for a time-out that it cannot take


class _Stop:
    pass


class _Wake:
    pass


class Timer:
    """Gives every item to ``take``, and calls ``tick`` when it is due; ``tick`` returns when it is due next.

    Nothing that they raise ends the thread, and if something does, the next item starts another.

    While items come often, the thread looks for them instead of waiting for the next: to wake a thread that waits is a
    system call of whoever puts the item, which is the application's thread, and takes longer than all the rest of it.
    And between two items it lets other threads have the interpreter, so that a burst of them holds up nobody's event loop.
    """

    def __init__(
        self, take: Callable[[Any], None], tick: Callable[[], float], began: Callable[[], None], clock: Clock
    ) -> None:
        self._take = take
        self._tick = tick
        self._began = began
        self._clock = clock
        # Looked up now: in C its waiting blocks all greenlets, and gevent puts one in its place that does not.
        self._queue_kind = queue.SimpleQueue
        self._queue: queue.SimpleQueue[Any] = self._queue_kind()
        self.put: Callable[[Any], None] = self._queue.put  # queues an item for ``take``
        self.waiting: Callable[[], int] = self._queue.qsize  # how many items are queued
        self.alive = False  # the thread runs; looked at for every span
        self.closed = False  # its owner wants no more items
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self._next_tick = float("inf")
        self._hurry = threading.Event()
        self._often_until = 0.0  # by the real clock, whatever scoring has

    @property
    def started(self) -> bool:
        """Whether anything was ever put."""
        return self._thread is not None

    @property
    def fits(self) -> bool:
        """False when threads have been replaced by greenlets since it was made, and it has not begun."""
        return self._queue_kind is queue.SimpleQueue or self._thread is not None

    def ensure(self) -> bool:
        """Start the thread if there is none that lives; False when none can be started (the interpreter is closing)."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            return True
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return True
            thread = threading.Thread(target=self._run, name="spangrade-timer", daemon=True)
            self.alive = True
            try:
                unbound(thread.start)
            except RuntimeError:
                self.alive = False
                return False
            self._thread = thread
            self._began()
        return True

    def put_now(self, item: Any) -> None:
        """Queue an item that somebody waits for."""
        self._queue.put(item)
        self._hurry.set()

    def wake(self) -> None:
        """Something is busy that has a deadline: tick soon."""
        self._queue.put(_Wake)

    def tick_by(self, when: float) -> None:
        """A deadline that ``tick`` has not seen yet. Called on the timer's thread."""
        self._next_tick = min(self._next_tick, when)

    def _run(self) -> None:
        try:
            with own_thread():
                while True:
                    try:
                        if not self._once():
                            return
                    except BaseException as fault:  # noqa: BLE001 - this thread lives as long as the process
                        _guard.swallowed("timer", fault)
        finally:
            self.alive = False

    def _once(self) -> bool:
        item: Any = None
        try:
            item = self._next()
        except Empty:
            pass
        if item is _Stop:
            return False
        if item is _Wake:
            self.tick_by(self._clock.monotonic() + LOOK_S)
        elif item is not None:
            self._often_until = time.monotonic() + OFTEN_S
            with shield("timer.take"):
                self._take(item)
            time.sleep(0)
        if self._clock.monotonic() >= self._next_tick:
            self._next_tick = float("inf")
            upcoming = self._clock.monotonic() + LOOK_S  # should the tick fail
            with shield("timer.tick"):
                upcoming = self._tick()
            self.tick_by(upcoming)
        return True

    def _next(self) -> Any:
        """The next item. Raises Empty when none has come until the next tick."""
        if (
            time.monotonic() >= self._often_until or self._queue_kind.__module__ != "_queue"
        ):  # greenlets wake at no cost
            return self._queue.get(timeout=self._until_tick())
        try:
            return self._queue.get_nowait()
        except Empty:
            left = self._until_tick()
            if self._hurry.wait(REST_S if left is None else min(REST_S, left)):
                self._hurry.clear()
            return self._queue.get_nowait()

    def _until_tick(self) -> float | None:
        if self._next_tick == float("inf"):
            return None
        return min(max(0.0, self._next_tick - self._clock.monotonic()), MAX_WAIT_S)

    def stop(self, timeout: float) -> None:
        """End the thread once it has taken what is queued, and wait for that up to ``timeout`` seconds."""
        self.put_now(_Stop)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def leftovers(self) -> Iterator[Any]:
        """Items that nobody took."""
        while True:
            try:
                item = self._queue.get_nowait()
            except Empty:
                return
            if item is not _Stop and item is not _Wake:
                yield item
