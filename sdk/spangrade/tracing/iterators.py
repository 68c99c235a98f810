"""Iterators of ours that stand for one whose class cannot be changed: Python's own, and those that a stream hands out."""

import operator
from collections.abc import Callable
from types import CoroutineType
from typing import Any, Final

from spangrade import _guard
from spangrade.tracing.following import Following
from spangrade.tracing.streamlike import STANDS_FOR, has_step

_STEPS: Final = ("send", "throw")
_ASTEPS: Final = ("asend", "athrow")
_ENDS: Final = ("close", "aclose")


class _Standing:
    """What both have in common: they pass for what they stand for, down to its methods and its class.

    ``owner``: the stream whose iterator it is, which is told by ``over`` when the calls have ended, and lives as long as
    this does. Without one, this iterator is the stream: when it is gone, the calls end.
    """

    __slots__ = ("__weakref__", "_following", "_inner", "_over")

    def __init__(self, inner: Any, following: Following, over: Callable[[], None] | None = None) -> None:
        self._inner = inner
        self._following = following
        self._over = over

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        kind: type = self._inner.__class__
        return kind

    def __getattr__(self, name: str) -> Any:
        held = getattr(self._inner, name)
        if self._following.over or name not in (*_STEPS, *_ASTEPS, *_ENDS):
            return held

        def traced(*args: Any, **kwargs: Any) -> Any:
            following = self._following
            if name in _ENDS:
                closing = self._told(following.closing, held, args, kwargs, "closed")
                return self._told_after(closing) if type(closing) is CoroutineType else closing
            if name in _STEPS:
                return self._told(following.step, held, *args, **kwargs)
            return self._told_after(self._told(following.astep, held, *args, **kwargs))

        return traced

    def _told(self, run: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        finally:
            try:
                self._tell()
            except RecursionError:  # the next step, or the end, will
                pass

    async def _told_after(self, step: Any) -> Any:
        try:
            return await step
        finally:
            self._tell()

    def _tell(self) -> None:
        if self._over is not None and self._following.over:
            self._over()

    def __repr__(self) -> str:
        return repr(self._inner)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._inner.__reduce_ex__(protocol)  # a copy is one of what it stands for

    def __length_hint__(self) -> int:
        hint = operator.length_hint(self._inner, -1)
        return NotImplemented if hint < 0 else hint

    def __del__(self) -> None:
        if self._over is None:
            try:
                self._following.finish("closed")
            except RecursionError:  # nothing can be called here
                pass
            except Exception as fault:  # noqa: BLE001 - a fault of ours
                _guard.swallowed("stream.dropped", fault)


class Steps(_Standing):
    """An iterator."""

    __slots__ = ()

    def __iter__(self) -> "Steps":
        return self

    def __next__(self) -> Any:
        if self._following.over:
            return next(self._inner)
        return self._told(self._following.step, self._inner.__next__)


class AsyncSteps(_Standing):
    """An asynchronous one."""

    __slots__ = ()

    def __aiter__(self) -> "AsyncSteps":
        return self

    def __anext__(self) -> Any:
        if self._following.over:
            return self._inner.__anext__()
        step = self._told(self._following.astep, self._inner.__anext__)
        return step if self._over is None else self._told_after(step)


class AsyncItems(_Standing):
    """What can be iterated over asynchronously."""

    __slots__ = ()

    def __aiter__(self) -> Any:
        inner = self._inner.__aiter__()
        return inner if self._following.over else AsyncSteps(inner, self._following, lambda: None)


for _kind in (Steps, AsyncSteps, AsyncItems):
    setattr(_kind, STANDS_FOR, None)  # of any class


def followed_by(stream: Any) -> Following | None:
    """How one of these is followed; None of anything else."""
    return stream._following if type(stream) in (Steps, AsyncSteps, AsyncItems) else None


def standing_for(stream: Any, following: Following, over: Callable[[], None] | None = None) -> Any:
    """One of the two for an iterator; what is none is returned as it is."""
    kind = type(stream)
    if has_step(kind, "__next__"):
        return Steps(stream, following, over)
    return AsyncSteps(stream, following, over) if has_step(kind, "__anext__") else stream
