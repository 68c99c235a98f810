"""One thread that does the store's work in order, so that the pipeline's threads only hand it over.

A redact hook is the application's code: a pattern that meets the wrong text can take minutes, and the pipeline's timer,
which lets spans go in time, must not wait for it. What waits is bounded; past the bound work is refused, not queued.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from spangrade._guard import guard

Work = Callable[[], None]
_END: Final = object()


class Intake:
    """Runs what it is given, one after the other, on a daemon thread that starts with the first.

    Args:
        room: how much may wait, in the unit of `put`'s ``cost``.
        where: the guard's name for faults of the work.
    """

    def __init__(self, room: int, where: str) -> None:
        self._room, self._where = room, where
        self._lock = threading.Lock()
        self._queue: SimpleQueue[tuple[Work, int] | object] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._waiting = 0
        self._closed = False

    def put(self, work: Work, cost: int, *, spare: int = 0) -> bool:
        """Hand over; never blocks. False: refused, because ``cost`` does not fit, or nothing is taken any more.

        ``spare``: so much more room is there for this piece, because it completes what was taken before.

        A single piece that is larger than all room is taken when nothing else waits.
        """
        with self._lock:
            if self._closed or (self._waiting and self._waiting + cost > self._room + spare):
                return False
            if self._thread is None and not self._start():
                return False
            self._waiting += cost
            self._queue.put((work, cost))
        return True

    def flush(self, timeout: float) -> bool:
        """Wait until everything handed over before is done; False when ``timeout`` seconds were not enough."""
        done = threading.Event()
        with self._lock:
            if self._thread is None:
                return True
            self._queue.put((done.set, 0))
        return done.wait(timeout)

    def close(self, timeout: float) -> bool:
        """Take nothing more, do what waits, end the thread. Safe to call twice, and without a start."""
        with self._lock:
            self._closed, thread = True, self._thread
            self._queue.put(_END)
        if thread is None:
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _start(self) -> bool:
        thread = threading.Thread(target=self._run, name="spangrade-store", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down
            return False
        self._thread = thread
        return True

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            if not isinstance(item, tuple):
                return
            work, cost = item
            with guard(self._where):
                work()
            with self._lock:
                self._waiting -= cost
