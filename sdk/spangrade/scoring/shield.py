"""Threads of ours, which nothing that foreign code raises may end: not even ``SystemExit`` or a cancellation."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from spangrade import _guard, _suppress

_here = threading.local()


@contextmanager
def own_thread() -> Iterator[None]:
    """The body of a thread of ours: whatever runs in it belongs to an evaluator, and is shielded in full."""
    _here.ours = True
    with _suppress.evaluator_scope():
        yield


class shield(_guard.guard):  # noqa: N801 - used like a keyword: `with shield("place"):`
    """A `_guard.guard` that on our own threads stops every ``BaseException``. On a thread of the application's, what is
    no fault (its Ctrl-C, its greenlet's time-out) is the application's, and passes."""

    __slots__ = ()

    def _stops(self, kind: type[BaseException]) -> bool:
        return getattr(_here, "ours", False) or super()._stops(kind)
