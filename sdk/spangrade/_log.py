"""Our own log lines: structlog on top of the standard logger ``spangrade``, silent until the application listens.

structlog's global configuration is left alone (unconfigured it prints to the host's stdout, configured it is the
host's), so the processors are given here and the result goes to ``logging`` as one plain line.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import structlog

_std = logging.getLogger("spangrade")
_std.addHandler(logging.NullHandler())

log: Any = structlog.wrap_logger(
    _std,
    processors=[
        structlog.stdlib.filter_by_level,
        structlog.processors.KeyValueRenderer(key_order=["event"]),
    ],
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=True,
)

_MAX_KEYS = 1024
EVERY_S: Final = 60.0
_said: set[str] = set()
_lock = threading.RLock()


def once(key: str, event: str, *, level: str = "warning", **fields: Any) -> None:
    """Log ``event`` the first time ``key`` is met in this process, and never again.

    The memory of what was said is bounded; past the bound new keys are not logged at all, since a log flood harms the
    host more than a missing line.
    """
    with _lock:
        if key in _said or len(_said) >= _MAX_KEYS:
            return
        _said.add(key)
    getattr(log, level)(event, **fields)


class Seldom:
    """What may be said again, but not all the time."""

    def __init__(self, every_s: float = EVERY_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._said: dict[
            str, tuple[float, int]
        ] = {}  # no lock, which a forked child could inherit: a line more is no harm

    def due(self, key: str) -> int | None:
        """None when ``key`` was due less than ``every_s`` seconds ago; else how often it was not since then."""
        now = self._clock()
        when, held_back = self._said.get(key, (None, 0))
        if when is not None and now - when < self._every_s:
            self._said[key] = (when, held_back + 1)
            return None
        self._said[key] = (now, 0)
        return held_back

    def forget(self) -> None:
        """All is due."""
        self._said.clear()


_seldom: Final = Seldom()


def seldom(key: str, event: str, **fields: Any) -> None:
    """Warn of ``event``, at most once a minute for a ``key`` (of which there are few); ``held_back`` says how many such
    lines there would have been since the last one."""
    held_back = _seldom.due(key)
    if held_back is not None:
        log.warning(event, **fields, **({"held_back": held_back} if held_back else {}))


def _after_fork() -> None:
    # The thread that held the lock does not exist in the child.
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def forget_said() -> None:
    """For tests: what was said once may be said again."""
    with _lock:
        _said.clear()
    _seldom.forget()
