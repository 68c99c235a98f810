"""The one place where our own faults stop, so that none reaches the application (promise 1).

A fault is logged once per place and kind, counted, and shown to the test suite, whose autouse fixture raises it again.
"""

import threading
from collections.abc import Callable
from types import TracebackType

from spangrade._log import once

_lock = threading.Lock()
_count = 0
_observers: list[Callable[[str, BaseException], None]] = []


def swallowed(where: str, fault: BaseException) -> None:
    """Record a fault of ours that was stopped at ``where``."""
    global _count
    with _lock:
        _count += 1
        observers = tuple(_observers)
    once(
        f"guard:{where}:{type(fault).__name__}",
        "spangrade had a fault of its own; the application is not affected",
        level="error",
        where=where,
        error=type(fault).__name__,
        detail=str(fault)[:200],
    )
    for observer in observers:
        observer(where, fault)


def count() -> int:
    """How many faults of ours were stopped in this process."""
    return _count


def observe(observer: Callable[[str, BaseException], None]) -> Callable[[], None]:
    """Call ``observer(where, fault)`` for every stopped fault. Returns what takes it away again."""
    with _lock:
        _observers.append(observer)

    def remove() -> None:
        with _lock:
            _observers.remove(observer)

    return remove


class guard:  # noqa: N801 - used like a keyword: `with guard("place"):`
    """Context manager: a fault inside ends here. Exceptions that are not faults (KeyboardInterrupt) pass."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, _tb: TracebackType | None
    ) -> bool:
        if fault is None:
            return False
        if not isinstance(fault, Exception):
            return False
        swallowed(self._where, fault)
        return True
