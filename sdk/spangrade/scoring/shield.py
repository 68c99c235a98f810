"""Threads of ours, which nothing that foreign code raises may end: not even ``SystemExit`` or a cancellation."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from spangrade import _guard, _suppress

_here = threading.local()


@contextmanager
def own_thread() -> Iterator[None]:
    """The body of a thread of ours: whatever runs in it belongs to an evaluator, and is shielded in full."""
    _here.ours = True
    with _suppress.evaluator_scope():
        yield


class shield:  # noqa: N801 - used like a keyword: `with shield("place"):`
    """Like `_guard.guard`, and on our own threads for every ``BaseException``. On a thread of the application's, what is
    no fault (its Ctrl-C, its greenlet's time-out) is the application's, and passes."""

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
        if not isinstance(fault, Exception) and not getattr(_here, "ours", False):
            return False
        _guard.swallowed(self._where, fault)
        return True
