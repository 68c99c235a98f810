"""Streams that are being followed, so that those still half read when the process ends can be ended with what there was.

They are known weakly, and up to a bound: one more than that ends as ever, when it is read to its end, closed or dropped.
"""

import weakref
from os import getpid
from typing import Any, ClassVar, Final

from spangrade import _guard

#: More than these are not remembered.
MAX_OPEN: Final = 10_000


class _Open:
    """Those of this process. What a forked child inherits is its parent's to end."""

    pid = getpid()
    # By id: whoever opens one takes it out before it is gone.
    streams: ClassVar[dict[int, weakref.ref[Any]]] = {}


def opened(stream: Any) -> None:
    """Remember a stream, which has a method ``leave()``."""
    if getpid() != _Open.pid:
        _Open.pid, _Open.streams = getpid(), {}
    if len(_Open.streams) < MAX_OPEN:
        _Open.streams[id(stream)] = weakref.ref(stream)


def ended(stream: Any) -> None:
    """Forget it."""
    _Open.streams.pop(id(stream), None)


def any_open() -> bool:
    """Whether there are some of this process's own."""
    return bool(_Open.streams) and getpid() == _Open.pid


def end_open_streams() -> None:
    """End the calls of all that are open, with what came so far. Who still reads one gets the rest of it, unrecorded."""
    if getpid() != _Open.pid:
        return
    for known in list(_Open.streams.values()):
        stream = known()
        if stream is not None:
            with _guard.guard("stream.leave"):
                stream.leave()
