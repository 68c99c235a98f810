"""What leaves is collected and exported in batches, by one thread of ours.

The SDK's own batch processors start their thread when they are made, and another one in every forked child, used or not;
after a fork that no hook is told of, the child may inherit a lock that nobody will release; their flush keeps to no
limit; and what they drop, they drop unseen. Here a process has its own queue, locks and thread, made for its first item,
and whoever gave an item that is lost hears of it.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from spangrade._threads import unbound
from spangrade.scoring.shield import own_thread, shield

T = TypeVar("T")

QUEUE_FULL: Final = "queue_full"
SHUTDOWN: Final = "shutdown"


@dataclass(frozen=True, slots=True)
class Limits:
    """``queue``: items that may wait; ``batch``: items exported at once; ``delay_s``: how long the first one waits for more;
    ``queue_bytes``, ``batch_bytes``: how much content waits, and goes at once, a single item of any size aside."""

    queue: int = 2_048
    batch: int = 512
    delay_s: float = 5.0
    queue_bytes: int = 64 * 2**20  # as much as the hold
    batch_bytes: int = 3 * 2**20  # a gRPC server refuses more than 4 MiB where nobody has told it otherwise

    @classmethod
    def said(cls, prefix: str, more_room: int = 0, delay_s: float | None = None) -> "Limits":
        """OpenTelemetry's variables ``<prefix>_SCHEDULE_DELAY`` (in milliseconds), ``_MAX_QUEUE_SIZE`` and
        ``_MAX_EXPORT_BATCH_SIZE``, with their defaults where they are not said or make no sense; the queue larger by
        ``more_room``; ``delay_s`` in place of what they say."""
        delay = _positive(f"{prefix}_SCHEDULE_DELAY", 5_000) / 1000 if delay_s is None else delay_s
        queue = _positive(f"{prefix}_MAX_QUEUE_SIZE", 2_048) + more_room
        return cls(queue, min(queue, _positive(f"{prefix}_MAX_EXPORT_BATCH_SIZE", 512)), delay)


def _positive(name: str, default: int) -> int:
    try:
        number = int(os.environ.get(name, default))
    except ValueError:
        return default
    return number if number > 0 else default


class _Here(Generic[T]):
    """The queue of one process: items with their sizes. ``cond`` guards it all; ``hurry``: everything up to this item is to
    leave without delay. Items are numbered as they are put; ``out`` have left the queue, the batches that begin at
    ``flying`` are with the exporter."""

    __slots__ = (
        "bytes", "closed", "cond", "flying", "full", "given", "hurry", "out", "pid", "queue", "starting", "thread",
    )  # fmt: skip

    def __init__(self, pid: int) -> None:
        self.pid = pid
        # Re-entrant, as all locks on the way of an ended span: the garbage collector may end one anywhere.
        self.cond = threading.Condition(threading.RLock())
        self.queue: deque[tuple[T, int]] = deque()
        self.given = self.out = self.hurry = self.bytes = 0
        self.flying: list[int] = []
        self.full = False  # there is enough for a batch
        self.closed = False
        self.starting = False
        self.thread: threading.Thread | None = None

    @property
    def done(self) -> int:
        """All up to this item have been exported, or are lost."""
        return min(self.flying, default=self.out)

    def take(self) -> T:
        item, size = self.queue.popleft()
        self.out += 1
        self.bytes -= size
        return item


class Batcher(Generic[T]):
    """Gives batches to ``export``, on one thread at a time. ``lost(item, reason)`` hears of each one that is not exported:
    at a bound that is the oldest. ``size(item)``: about how many bytes it takes. ``began`` is called in each process that
    puts something.

    In a forked child what its parent had queued is the parent's to export.
    """

    def __init__(
        self,
        name: str,
        export: Callable[[Sequence[T]], object],
        lost: Callable[[T, str], None],
        limits: Limits,
        size: Callable[[T], int],
        began: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._size = size
        self._began = began
        self._export = export
        self._lost = lost
        self._limits = limits
        self._of_process: dict[int, _Here[T]] = {}  # by process id; a lock could be held by a thread of the parent's

    def _here(self) -> "_Here[T]":
        pid = os.getpid()
        here = self._of_process.get(pid)
        return self._of_process.setdefault(pid, _Here(pid)) if here is None else here

    def put(self, item: T) -> None:
        """Queue an item; never blocks. Where there is no room for it the oldest is lost; after `close` it is lost itself."""
        here, start = self._here(), False
        lost: list[T] = []
        limits, size = self._limits, 0
        with shield("batch.size"):
            size = self._size(item)
        with here.cond:
            closed = here.closed
            if closed:
                lost.append(item)
            else:
                here.queue.append((item, size))
                here.given += 1
                here.bytes += size
                while len(here.queue) > limits.queue or (here.bytes > limits.queue_bytes and len(here.queue) > 1):
                    lost.append(here.take())
                full = here.full
                here.full = len(here.queue) >= limits.batch or here.bytes >= limits.batch_bytes
                if len(here.queue) == 1 or here.full > full:
                    here.cond.notify_all()
                start = here.thread is None and not here.starting
        for one in lost:
            with shield("batch.lost"):
                self._lost(one, SHUTDOWN if closed else QUEUE_FULL)
        if start:
            self._start(here)

    def _start(self, here: "_Here[T]") -> bool:
        """True when there is a thread; none can be started when the interpreter closes."""
        with here.cond:
            if here.thread is not None and here.thread.is_alive():
                return True
            if here.starting:
                return True
            here.starting = True
        try:  # all of it: where the application's stack is nearly full, making a thread fails as well
            thread = threading.Thread(target=self._run, args=(here,), name=f"spangrade-{self._name}", daemon=True)
            unbound(thread.start)
            here.thread = thread
        except RuntimeError:
            return False
        finally:
            here.starting = False
        with shield("batch.began"):
            self._began()
        return True

    def _run(self, here: "_Here[T]") -> None:
        with own_thread():
            while self._one_batch(here):
                pass

    def _one_batch(self, here: "_Here[T]") -> bool:
        """Wait for a batch and export it; False when nothing is left and nothing will come."""
        with here.cond:
            while not here.queue:
                if here.closed:
                    return False
                here.cond.wait()
            until = time.monotonic() + self._limits.delay_s
            while here.queue and not here.full and not here.closed and here.hurry <= here.out:
                left = until - time.monotonic()
                if left <= 0:
                    break
                here.cond.wait(left)
        self._export_some(here)
        return True

    def _export_some(self, here: "_Here[T]") -> bool:
        batch: list[T] = []
        with here.cond:
            first, room = here.out, self._limits.batch_bytes
            while here.queue and len(batch) < self._limits.batch and (not batch or here.queue[0][1] <= room):
                room -= here.queue[0][1]
                batch.append(here.take())
            here.full = len(here.queue) >= self._limits.batch or here.bytes >= self._limits.batch_bytes
            if batch:
                here.flying.append(first)
        if not batch:
            return False
        try:
            with shield("batch.export"):
                self._export(batch)
        finally:
            with here.cond:
                here.flying.remove(first)
                here.cond.notify_all()
        return True

    def flush(self, timeout: float) -> bool:
        """Export what was put before, without delay; False when that takes longer than ``timeout`` seconds."""
        here = self._here()
        with here.cond:
            target = here.given
            if here.done >= target:
                return True
            here.hurry = max(here.hurry, target)
            here.cond.notify_all()
        if not self._start(here):
            with own_thread():
                while here.done < target and self._export_some(here):
                    pass
        with here.cond:
            return here.cond.wait_for(lambda: here.done >= target, timeout)

    def close(self, timeout: float) -> bool:
        """Take no more, export what is queued within ``timeout`` seconds; the rest is lost."""
        here = self._here()
        with here.cond:
            here.closed = True
            here.cond.notify_all()
        done = self.flush(timeout)
        with here.cond:
            left = [here.take() for _ in range(len(here.queue))]
            here.cond.notify_all()
        for item in left:
            with shield("batch.lost"):
                self._lost(item, SHUTDOWN)
        return done
