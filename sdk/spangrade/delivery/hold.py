"""Spans that wait, bounded, for their scores; each leaves exactly once (promise 2)."""

import threading
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

from spangrade.model.outcome import ScoreRecord
from spangrade.scoring.seam import Ticket

MAX_SPANS: Final = 4_096
FOREIGN_MAX_SPANS: Final = 1_024  # before a batch processor of the application's, which takes 2,048 and drops the rest
MAX_BYTES: Final = 64 * 2**20
BURST: Final = 512  # spans released in one go: the batch processors behind drop what comes faster than they take
PAUSE_S: Final = 0.01


class Held(Ticket):
    """One span and what it waits for.

    ``span`` is the host's own span object, given back untouched; ``route`` is where it goes. ``pairs`` lists what each
    evaluator found, in order of arrival. ``gone``: it has left, or never waited; what comes now takes a later carrier.
    """

    __slots__ = ("bytes", "deadline", "gone", "number", "pairs", "partial", "route", "span", "taken", "waiting")

    def __init__(
        self, span: Any, route: Any, size: int, deadline: float, *, gone: bool = False, partial: bool = False
    ) -> None:
        self.span = span
        self.route = route
        self.bytes = size
        self.deadline = deadline
        self.gone = gone
        self.partial = partial  # see `Ticket`
        self.number = 0  # in the order of arrival
        self.waiting = 1  # for the pipeline's reading of it
        self.pairs: tuple[tuple[ScoreRecord, ...], ...] = ()
        self.taken: tuple[str, ...] = ()


class Hold:
    """At most `MAX_SPANS` spans and `MAX_BYTES` of content; at a bound the oldest leaves with what it has.

    ``release`` is called outside the lock, once per span, on whichever thread made it ready.
    """

    def __init__(self, release: Callable[[Held], None], max_spans: int = MAX_SPANS, max_bytes: int = MAX_BYTES) -> None:
        self._release = release
        self._max_spans = max_spans
        self._max_bytes = max_bytes
        # Re-entrant, as all locks on the way of an ended span: the garbage collector may end an abandoned stream's span
        # in the middle of anything.
        self._lock = threading.RLock()
        self._held: dict[int, Held] = {}  # by number
        self._came = 0  # of all that ever came
        self._spans = 0  # as many as are held
        # What `until` said; a heap, in which entries of spans that have left are skipped. What a span comes with is no
        # earlier than that of the ones before it, so there the oldest span is looked at.
        self._deadlines: list[tuple[float, int]] = []
        self._bytes = 0
        self._closed = False
        self.evicted = 0
        self.expired = 0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def bytes(self) -> int:
        """Content held now, as its hosts estimated it."""
        return self._bytes

    def put(self, held: Held) -> None:
        """Start waiting."""
        out: list[Held] = []
        with self._lock:
            if self._closed:
                out.append(held)
                held.gone = True
            else:
                self._came = number = held.number = self._came + 1
                self._held[number] = held
                self._spans += 1
                self._bytes += held.bytes
                while self._spans > self._max_spans or (self._bytes > self._max_bytes and self._spans):
                    oldest = next(iter(self._held.values()))
                    self._remove(oldest)
                    self.evicted += 1
                    out.append(oldest)
        for one in out:
            self._release(one)

    def expect(self, held: Held, count: int) -> None:
        """Wait for ``count`` more."""
        with self._lock:
            held.waiting += count

    def until(self, held: Held, deadline: float) -> None:
        """Wait no longer than ``deadline``."""
        with self._lock:
            held.deadline = deadline
            if not held.gone:
                heappush(self._deadlines, (deadline, held.number))

    def add(self, held: Held, records: tuple[ScoreRecord, ...]) -> bool:
        """Attach a pair's records; False when the span has left."""
        with self._lock:
            if held.gone:
                return False
            held.pairs += (records,)
            return True

    def settle(self, held: Held) -> None:
        """One thing less to wait for."""
        with self._lock:
            held.waiting -= 1
            ready = held.waiting <= 0 and not held.gone and held.number in self._held
            if ready:
                self._remove(held)
        if ready:
            self._release(held)

    def expire(self, now: float) -> float | None:
        """Release what has waited long enough, at most `BURST` at once; returns when to call again."""
        out: list[Held] = []
        with self._lock:
            heap = self._deadlines
            while (oldest := next(iter(self._held.values()), None)) and oldest.deadline <= now and len(out) < BURST:
                self._remove(oldest)
                self.expired += 1
                out.append(oldest)
            while heap and len(out) < BURST:
                deadline, key = heap[0]
                held = self._held.get(key)
                if held is not None and held.deadline > deadline:  # it was given longer since; that has an entry too
                    held = None
                if held is not None and deadline > now:
                    break
                heappop(heap)
                if held is not None:
                    self._remove(held)
                    self.expired += 1
                    out.append(held)
            first = next(iter(self._held.values()), None)
            times = [heap[0][0]] if heap else []
            upcoming = min([*times, first.deadline] if first is not None else times, default=None)
            if upcoming is not None and upcoming <= now:
                upcoming = now + PAUSE_S
        for one in out:
            self._release(one)
        return upcoming

    def release_all(self, *, close: bool = False, between: Callable[[], object] | None = None) -> None:
        """Release everything now; with ``close``, nothing waits any more from here on. ``between`` is called after every
        `BURST` spans, for whoever is behind to catch up."""
        with self._lock:
            self._closed = self._closed or close
            out = list(self._held.values())
            for held in out:
                self._remove(held)
        for n, one in enumerate(out, 1):
            self._release(one)
            if between is not None and n % BURST == 0:
                between()

    def _remove(self, held: Held) -> None:
        del self._held[held.number]
        self._spans -= 1
        self._bytes -= held.bytes
        held.gone = True

    def after_fork(self) -> None:
        """In a forked child: the held spans are the parent's to export."""
        self._lock = threading.RLock()
        self._held = {}
        self._deadlines = []
        self._spans = self._bytes = 0
