"""Our own log lines: structlog on top of the standard logger ``spangrade``, silent until the application listens.

structlog's global configuration is left alone (unconfigured it prints to the host's stdout, configured it is the
host's), so the processors are given here and the result goes to ``logging`` as one plain line.
"""

import logging
import os
import threading
from typing import Any

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
