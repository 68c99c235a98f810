"""Threads of ours, which nothing that foreign code raises may end: not even ``SystemExit`` or a cancellation."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from spangrade import _guard, _suppress

# Not a threading.local: where gevent has come after us, all greenlets would share it, the application's too.
_ours: ContextVar[bool] = ContextVar("spangrade_own_thread", default=False)


@contextmanager
def own_thread() -> Iterator[None]:
    """The body of a thread of ours: whatever runs in it belongs to an evaluator, and is shielded in full."""
    token = _ours.set(True)
    try:
        with _suppress.evaluator_scope():
            yield
    finally:
        _ours.reset(token)


class shield(_guard.guard):  # noqa: N801 - used like a keyword: `with shield("place"):`
    """A `_guard.guard` that on our own threads stops every ``BaseException``. On a thread of the application's, what is
    no fault (its Ctrl-C, its greenlet's time-out) is the application's, and passes."""

    __slots__ = ()

    def _stops(self, kind: type[BaseException]) -> bool:
        return _ours.get() or super()._stops(kind)
