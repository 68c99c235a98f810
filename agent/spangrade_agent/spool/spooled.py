"""What relay and carriers ask of the spool: take a request in, note a finished score, hand a span on, begin again."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from spangrade._log import once
from spangrade_agent.spool.engine import Spool
from spangrade_agent.spool.records import Drop, Put, SpoolFault, Step
from spangrade_agent.wire import Signal

_TAGS: Final[dict[Signal, bytes]] = {"traces": b"t", "logs": b"l", "metrics": b"m"}


class Queue(Protocol):
    """What sends to the destination."""

    def put(
        self, body: bytes, items: int = 1, token: Any = None, *, force: bool = False, key: int | None = None
    ) -> bool: ...


@dataclass(slots=True, eq=False)
class Kept:
    """A call that waits for its scores, as it stands in the spool. ``left``: it has gone on; nothing is noted any more."""

    key: int
    size: int
    left: bool = False


class Spooled:
    """Thread-safe."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self._lock = threading.Lock()  # of every `Kept`

    # --- in --------------------------------------------------------------------------------------------------------------

    def take(self, signal: Signal, rest: bytes, held: Sequence[bytes]) -> tuple[int | None, list[Kept]]:
        """Make a request durable: ``rest`` is on its way from now on, each of ``held`` waits. Returns their keys; that of
        ``rest`` is None when it is empty.

        Raises:
            SpoolFull, SpoolFault: nothing of it is there.
        """
        steps: list[Step] = []
        key = None
        if rest:
            key = self.spool.new_key()
            steps.append(Put("out", key, _TAGS[signal] + rest))
        kept = [Kept(self.spool.new_key(), len(data)) for data in held]
        steps += [Put("held", one.key, data) for one, data in zip(kept, held, strict=True)]
        if steps:
            self.spool.write(steps)
        return key, kept

    def note(self, kept: Kept, data: Callable[[], bytes]) -> None:
        """Write anew what waits: with a score that is finished, so that a restart does not ask for it again."""
        with self._lock:
            if kept.left:
                return
            fresh = data()
            self.spool.write_later([Put("held", kept.key, fresh, was=kept.size)])
            kept.size = len(fresh)

    # --- on --------------------------------------------------------------------------------------------------------------

    def hand_on(
        self,
        queue: Queue,
        signal: Signal,
        body: bytes,
        token: Any,
        kept: Kept | None,
        failed: Callable[[], None],
    ) -> None:
        """Make ``body`` durable, in the place of the call that it is of, and queue it then. ``failed``: the queue is closed,
        and the next start sends it."""
        key = self.spool.new_key()
        steps: list[Step] = [Put("out", key, _TAGS[signal] + body)]

        def done(durable: bool) -> None:
            if not queue.put(body, token=token, force=True, key=key if durable else None):
                failed()

        if kept is None:
            self.spool.write_later(steps, done)
            return
        with self._lock:
            kept.left = True
            self.spool.write_later([*steps, Drop("held", kept.key, was=kept.size)], done)

    def keep(self, signal: Signal) -> "Keeper":
        """For a queue of this signal."""
        return Keeper(self.spool, _TAGS[signal])

    # --- again -----------------------------------------------------------------------------------------------------------

    def on_their_way(self, signal: Signal) -> Iterator[tuple[int, bytes]]:
        """Requests that nobody is known to have taken, oldest first."""
        tag = _TAGS[signal]
        return ((key, data[1:]) for key, data in self.spool.items("out") if data[:1] == tag)

    def waiting(self) -> list[tuple[Kept, bytes]]:
        """Calls that waited when the process ended, oldest first."""
        return [(Kept(key, len(data)), data) for key, data in self.spool.items("held")]

    def forget(self, kept: Kept) -> None:
        """It cannot be read."""
        self.spool.write_later([Drop("held", kept.key, was=kept.size)])


class Keeper:
    """Implements the queue's `Keep`."""

    def __init__(self, spool: Spool, tag: bytes) -> None:
        self._spool = spool
        self._tag = tag

    def load(self, key: int) -> bytes | None:
        """See `Keep`."""
        try:
            data = self._spool.read("out", key)
        except SpoolFault as fault:
            once("spool:read", "what waits in the spool cannot be read; it is dropped and counted", fault=str(fault))
            return None
        return None if data is None else data[1:]

    def release(self, keys: Sequence[tuple[int, int]]) -> None:
        """See `Keep`."""
        self._spool.write_later([Drop("out", key, was=size + len(self._tag)) for key, size in keys])
