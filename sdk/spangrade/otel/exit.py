"""The end of the process: `shutdown` runs by itself, bounded, and quietly.

Python 3.12 starts no thread any more when exit hooks run, and what has to be bounded (other people's exporters keep to no
limit) needs one. So one thread is started beforehand; at exit it does the work while the exit waits for it, but not
longer than the budget.
"""

import atexit
import os
import threading
from collections.abc import Callable

from spangrade import _guard
from spangrade._threads import unbound
from spangrade.otel.engine import bounded


class _Waiting:
    """The thread of one process, and how it is told. Not shared with a child: a thread is not, nor what it holds.

    Bare locks, not events: a signal handler may interrupt whoever is telling it, and do the same.
    """

    def __init__(self, work: Callable[[], None], budget_s: float, flush: Callable[[], object]) -> None:
        self.pid = os.getpid()
        self.cancelled = False
        self._flush = flush
        self._flush_wanted = self._ending = False
        self.over = False
        self.then: Callable[[], None] | None = None
        self._work = work
        self._budget = budget_s
        self._wanted, self._done = threading.Lock(), threading.Lock()
        self._wanted.acquire()
        self._done.acquire()
        self.thread = threading.Thread(target=self._wait, name="spangrade-exit", daemon=True)

    def start(self) -> bool:
        try:
            unbound(self.thread.start)
        except RuntimeError:  # already at the end
            return False
        return True

    def lives(self) -> bool:
        # The process id first: after a fork that no hook was told of, the parent's thread seems to be alive.
        return self.pid == os.getpid() and self.thread.is_alive()

    def tell(self, *, only_flush: bool = False) -> None:
        if only_flush:
            self._flush_wanted = True
        else:
            self._ending = True
        try:
            self._wanted.release()
        except RuntimeError:  # it has been told already
            pass

    def wait(self, timeout: float) -> None:
        if self._done.acquire(timeout=timeout):
            self._done.release()

    def _wait(self) -> None:
        self._wanted.acquire()
        while not self._ending:  # it was told to flush; once more while it did so, perhaps
            if self._flush_wanted:
                self._flush_wanted = False
                with _guard.guard("exit.flush"):
                    self._flush()
            self._wanted.acquire()
        if not self.cancelled:
            if self.then is None:
                self._do()
            else:  # nobody waits for the end of this thread, so it must not hang itself
                bounded(self._do, self._budget)
            self._done.release()
        self.over = True  # before `then` is looked at: who sets it after that does it himself
        if self.then is not None:
            self.then()

    def _do(self) -> None:
        with _guard.guard("exit"):
            self._work()


class ExitHook:
    """``work`` at exit, on a thread that was started by `arm`. One per process; `arm` again after `disarm` or a fork.
    ``flush``: see `flush_behind`."""

    def __init__(self, work: Callable[[], None], budget_s: float, flush: Callable[[], object] = lambda: None) -> None:
        self._work = work
        self._flush = flush
        self._budget = budget_s
        self._registered = False
        self._waiting: _Waiting | None = None

    def arm(self) -> None:
        """Register the hook (once, and after the provider's own, since hooks run in reverse order); start the thread."""
        if not self._registered:
            self._registered = True
            atexit.register(self.run)
        if self._waiting is None or not self._waiting.lives():
            waiting = _Waiting(self._work, self._budget, self._flush)
            if waiting.start():  # else the work runs on the exiting thread
                self._waiting = waiting

    def disarm(self) -> None:
        """End the thread; nothing is left to do at exit. The work may say so itself: who wants it a second time, by a signal
        in the middle of the exit, still waits for its end."""
        waiting = self._waiting
        if waiting is None or waiting.thread is threading.current_thread():
            return
        self._waiting = None
        if waiting.lives():
            waiting.cancelled = True
            waiting.tell()

    def run(self) -> None:
        """Do the work now, within the budget: at exit, or where somebody else knows that the process ends."""
        try:
            waiting = self._waiting
            if waiting is not None and waiting.lives():
                waiting.tell()
                waiting.wait(self._budget)
            else:  # a forked child that did nothing of ours, or no thread could be started
                with _guard.guard("exit"):
                    self._work()
        except KeyboardInterrupt:  # whoever does not want to wait need not, and gets no traceback of ours for it
            pass

    def run_behind(self, then: Callable[[], None]) -> bool:
        """Have the work done on its thread, and ``then`` called; returns at once, so a signal handler may call it. False
        when there is no such thread."""
        waiting = self._waiting
        if waiting is None or not waiting.lives():
            return False
        waiting.then = then
        waiting.tell()
        if waiting.over:
            then()
        return True

    def flush_behind(self) -> None:
        """Have ``flush`` called on that thread, which then goes on waiting for the end; returns at once."""
        waiting = self._waiting
        if waiting is not None and waiting.lives():
            waiting.tell(only_flush=True)
