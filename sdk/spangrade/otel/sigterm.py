"""SIGTERM where nobody handles it: orchestrators end processes that way, and Python would run no exit hook.

A handler is set only while SIGTERM still has its default action, and is taken away again in a forked child until that
traces a call of its own. It returns at once: the application goes on while the exit hook does its work (bounded), and
then the process ends by SIGTERM, as it would have. A second SIGTERM ends it at once. An application that sets a handler
of its own replaces ours.
"""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType


class TermHook:
    """``work(then)`` before the process ends by SIGTERM, where that would have ended it without a word: it is to return at
    once, call ``then`` when it is done, and return False when it cannot."""

    def __init__(self, work: Callable[[Callable[[], None]], bool]) -> None:
        self._work = work

    def arm(self) -> None:
        """Handle SIGTERM, if its action is the default one and this is the main thread (no other may set handlers)."""
        self._swap(signal.SIG_DFL, self._handle)

    def disarm(self) -> None:
        """The default action again, if the handler is ours."""
        self._swap(self._handle, signal.SIG_DFL)

    def _swap(self, before: object, after: "signal.Handlers | Callable[[int, FrameType | None], None]") -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        try:
            if signal.getsignal(signal.SIGTERM) == before:
                signal.signal(signal.SIGTERM, after)
        except (ValueError, OSError):  # a subinterpreter, or a platform that knows no such signal
            pass

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)

        def end() -> None:
            os.kill(os.getpid(), number)

        if not self._work(end):
            end()
