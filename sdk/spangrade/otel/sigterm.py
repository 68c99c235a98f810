"""SIGTERM where nobody handles it: orchestrators end processes that way, and Python would run no exit hook.

A handler is set only while SIGTERM still has its default action, and is taken away again in a forked child until that
traces a call of its own. It returns at once: the application goes on while the exit hook does its work (bounded), and
then the process ends by SIGTERM, as it would have. A second SIGTERM ends it at once. An application that sets a handler
of its own replaces ours.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

from spangrade import _guard

_IN_ANY_CASE_S: Final = 6.0  # more than the work may take


class TermHook:
    """``work(then)`` before the process ends by SIGTERM, where that would have ended it without a word: it is to return at
    once, call ``then`` when it is done, and return False when it cannot.

    The first process of a container has no default action: it lives on until it is killed, some seconds later. There
    nothing ends, and ``flush`` is called, which is to return at once as well.
    """

    def __init__(self, work: Callable[[Callable[[], None]], bool], flush: Callable[[], None]) -> None:
        self._work = work
        self._flush = flush

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
        if os.getpid() == 1:
            self._flush()
            return
        signal.signal(number, signal.SIG_DFL)

        def end() -> None:
            os.kill(os.getpid(), number)

        if not self._work(end):
            end()
        else:
            _in_any_case(end)


def _in_any_case(end: Callable[[], None]) -> None:
    """Under gevent the thread that does the work is a greenlet, and may never get its turn; a real thread sees to the end."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is None or not monkey.is_module_patched("threading"):
        return
    sleep = monkey.get_original("time", "sleep")

    def wait() -> None:
        sleep(_IN_ANY_CASE_S)
        end()

    with _guard.guard("sigterm"):
        monkey.get_original("_thread", "start_new_thread")(wait, ())
