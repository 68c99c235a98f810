"""The one place where our own faults stop, so that none reaches the application (promise 1).

A fault is logged once per place and kind, counted, and shown to the test suite, whose autouse fixture raises it again.
Of a fault only its type is logged: its message can hold what users wrote, or a key, and to ask for it runs its own code.
"""

import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final

from spangrade import _classes
from spangrade._log import once

# A finalizer of ours may meet a fault while the garbage collector interrupts whoever holds this.
_lock = threading.RLock()
_count = 0
_SHALLOW: Final = 60  # levels; ours go some twenty deep
_observers: list[Callable[[str, BaseException], None]] = []


def swallowed(where: str, fault: BaseException) -> None:
    """Record a fault of ours that was stopped at ``where``. Never raises, whatever the fault's class does."""
    global _count
    if issubclass(type(fault), RecursionError) and _is_shallow(fault):
        return  # the application had nearly used up its stack when it came to us
    with _lock:
        _count += 1
        observers = tuple(_observers)
    for tell in (_log, *observers):
        try:
            tell(where, fault)
        except Exception:  # noqa: BLE001, S112 - a log handler of the application's: nobody is left to tell
            continue


def _is_shallow(fault: BaseException) -> bool:
    """Whether a fault came up few levels below where it was stopped: a recursion of our own would be as deep as the stack."""
    step, levels = fault.__traceback__, 0
    while step is not None and levels <= _SHALLOW:
        step, levels = step.tb_next, levels + 1
    return levels <= _SHALLOW


def _log(where: str, fault: BaseException) -> None:
    # A class can be named anything at run time, text of a user's too.
    name = _classes.name(type(fault))
    error = name if name.isidentifier() else "?"
    event = "spangrade had a fault of its own; the application is not affected"
    once(f"guard:{where}:{error}", event, level="error", where=where, error=error)


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


def _after_fork() -> None:
    # The thread that held the lock does not exist in the child.
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class guard:  # noqa: N801 - used like a keyword: `with guard("place"):`
    """Context manager: a fault inside ends here. Exceptions that are not faults (KeyboardInterrupt) pass."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, _kind: type[BaseException] | None, fault: BaseException | None, _tb: TracebackType | None
    ) -> bool:
        if fault is None or not self._stops(type(fault)):
            return False
        swallowed(self._where, fault)
        return True

    def _stops(self, kind: type[BaseException]) -> bool:
        # Asked of the type: isinstance would ask the fault for its __class__.
        return issubclass(kind, Exception)
