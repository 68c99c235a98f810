"""The end of the process: `shutdown` runs by itself, bounded, and quietly.

Python 3.12 starts no thread any more when exit hooks run, and what has to be bounded (the SDK's own flush and shutdown keep
to no limit) needs one. So one thread is started beforehand; at exit it does the work while the exit waits for it, but
not longer than the budget.
"""

import atexit
import threading
from collections.abc import Callable

from spangrade import _guard


class ExitHook:
    """``work`` at exit, on a thread that was started by `arm`. One per process; `arm` again after `disarm` or a fork."""

    def __init__(self, work: Callable[[], None], budget_s: float) -> None:
        self._work = work
        self._budget = budget_s
        self._registered = False
        self._thread: threading.Thread | None = None
        self._wanted = threading.Event()
        self._done = threading.Event()
        self._at_exit = False

    def arm(self) -> None:
        """Register the hook (once, and after the provider's own, since hooks run in reverse order); start the thread."""
        if not self._registered:
            self._registered = True
            atexit.register(self._exit)
        if self._thread is None or not self._thread.is_alive():
            self._wanted, self._done = threading.Event(), threading.Event()
            thread = threading.Thread(target=self._wait, name="spangrade-exit", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # already at the end: the work then runs on the exiting thread
                return
            self._thread = thread

    def disarm(self) -> None:
        """End the thread; nothing is left to do at exit."""
        self._thread = None
        self._wanted.set()

    def _wait(self) -> None:
        wanted, done = self._wanted, self._done
        wanted.wait()
        if self._at_exit:
            with _guard.guard("exit"):
                self._work()
            done.set()

    def _exit(self) -> None:
        self._at_exit = True
        thread = self._thread
        if thread is not None and thread.is_alive():
            self._wanted.set()
            self._done.wait(self._budget)
        else:  # a forked child, or no thread could be started
            with _guard.guard("exit"):
                self._work()
