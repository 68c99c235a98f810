"""An event loop that may have to share its thread with another one.

Under gevent and eventlet a thread is a greenlet, and all greenlets are one thread to asyncio, which keeps the running loop
by thread: as long as ours waited in such a one, the application could run no loop of its own, and the other way round. So
whenever ours waits, which is when greenlets change, the thread is left as the others had it. (A thread outside of gevent
is no way out: its locks, which all of us use, do not stand two threads.)
"""

import asyncio
import selectors
import sys
from typing import Any, Final, cast

_State = tuple[asyncio.AbstractEventLoop | None, tuple[Any, Any]]
_NOBODY: Final[_State] = (None, (None, None))


def _change(to: _State) -> _State:
    """The running loop of this thread and its hooks for asynchronous generators; returns what they were."""
    before = (asyncio._get_running_loop(), (*sys.get_asyncgen_hooks(),))
    asyncio._set_running_loop(to[0])
    sys.set_asyncgen_hooks(*to[1])
    return cast("_State", before)


class Guest:
    """The selector of such a loop. Its loop runs between `arrive` and `leave`."""

    def __init__(self) -> None:
        self._inner = selectors.DefaultSelector()  # which gevent puts its own in the place of
        self._others = _NOBODY

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As any selector's; meanwhile the thread is the others'."""
        ours = _change(self._others)
        try:
            return self._inner.select(timeout)
        finally:
            self._others = _change(ours)

    def arrive(self) -> None:
        """The loop is about to run."""
        self._others = _change(_NOBODY)

    def leave(self) -> None:
        """It has run."""
        _change(self._others)


def new_loop() -> tuple[asyncio.AbstractEventLoop, Guest | None]:
    """A loop for a thread of ours; not of the application's policy, which may know one that blocks all greenlets. On Windows
    the default one, which has no selector."""
    if sys.platform == "win32":
        return asyncio.new_event_loop(), None
    guest = Guest()
    return asyncio.SelectorEventLoop(cast("selectors.BaseSelector", guest)), guest
