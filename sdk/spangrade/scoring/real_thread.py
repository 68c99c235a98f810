"""A thread of the operating system, also where gevent has put greenlets in the place of threads.

asyncio keeps the running loop by thread: a loop that ran in a greenlet would be in the way of every ``asyncio.run`` that
the application does in another one.
"""

import _thread
import sys
from collections.abc import Callable
from typing import Any


class RealThread:
    """Runs ``target`` once. Does not hold up the exit."""

    def __init__(self, target: Callable[[], None]) -> None:
        self._target = target
        self._lives = False
        self._running = _thread.allocate_lock()

    def start(self) -> None:
        """Raises RuntimeError when no thread can be started any more."""
        monkey: Any = sys.modules.get("gevent.monkey")
        begin = _thread.start_new_thread if monkey is None else monkey.get_original("_thread", "start_new_thread")
        self._lives = True
        self._running.acquire()
        try:
            begin(self._run, ())
        except RuntimeError:
            self._lives = False
            self._running.release()
            raise

    def is_alive(self) -> bool:
        """From `start` to the end of ``target``."""
        return self._lives

    def join(self, timeout: float) -> None:
        """Wait for the end of ``target``, at most ``timeout`` seconds."""
        if self._running.acquire(timeout=timeout):
            self._running.release()

    def _run(self) -> None:
        try:
            self._target()
        finally:
            self._lives = False
            self._running.release()
