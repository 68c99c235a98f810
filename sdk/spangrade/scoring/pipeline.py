"""The one pipeline of both hosts: spans in, scores out, every pair accounted for.

Threads: the application's only puts an `Offer` on a queue. One timer thread of ours takes them off, reads them into
Samples and watches all deadlines; it runs no user code. Lane 1 runs metrics, lane 2 judges.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spangrade._sizes import text_size
from spangrade._switches import disabled, held
from spangrade.model.gate import GateState
from spangrade.model.policy import Placed
from spangrade.model.span import EventData
from spangrade.samples.tally import Waiting
from spangrade.scoring.clock import Clock, SystemClock
from spangrade.scoring.intake import Intake
from spangrade.scoring.jobs import Jobs, Surroundings
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.purse import Purse
from spangrade.scoring.redaction import Redact
from spangrade.scoring.seam import LogOffer, Offer, Sink, Watcher
from spangrade.scoring.settings import Settings
from spangrade.scoring.shield import shield
from spangrade.scoring.timer import Timer
from spangrade.scoring.wants import Wanted, Wants

__all__ = ["Pipeline", "Settings"]

_DISABLED: Final = disabled.key
RETRY_S: Final = 1.0  # a part of the tick that failed is tried again after this
JOIN_S: Final = 1.0  # for the timer thread to end


@dataclass(frozen=True, slots=True)
class _RootEnded:
    trace_id: int
    span_id: int


class _Flush:
    """Goes through the queue, so that what was offered before it belongs to the epoch that it closes. ``last``: nothing comes
    after it."""

    def __init__(self, *, last: bool = False) -> None:
        self.last = last
        self.done = threading.Event()
        self.epoch = -1


class Pipeline:
    """Grades what it is offered with ``placed``; hands results to ``sink``; counts in ``ledger``.

    In a forked child it starts afresh: at `after_fork`, or, where no hook runs at a fork, at the first call of the child.
    ``on_fork`` is called then, for the host to reset what is its own; the other threads' calls wait for it. ``on_use`` is
    called when the first span of a process is taken.
    """

    def __init__(
        self,
        placed: Sequence[Placed],
        sink: Sink,
        settings: Settings | None = None,
        clock: Clock | None = None,
        ledger: Ledger | None = None,
        redact: Redact | None = None,
        watcher: Watcher | None = None,
        on_fork: Callable[[], None] | None = None,
        on_use: Callable[[], None] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.clock = clock or SystemClock()
        self.ledger = ledger or Ledger()
        self.ledger.budgets = lambda: {purse.key: purse.state() for purse in self.purses()}
        self.ledger.endpoints = self.endpoints
        self._look_at(placed)
        self._sink = sink
        self._around = Surroundings(sink, self.ledger, self.settings, self.clock, redact, watcher)
        self._on_fork = on_fork
        self._on_use = on_use
        self._closed = False
        self.pid = os.getpid()  # whose state this is; a host that compares it spares itself `check_fork`
        self._resetting = 0  # the process that is being reset now
        self._fork_locks: dict[int, threading.RLock] = {}
        self._fresh_state()

    def _look_at(self, placed: Sequence[Placed]) -> None:
        self.placed = placed  # what grades now
        self.wanted = Wanted.of(p.evaluator.info.target for p in placed)
        self.targets = self.wanted.kinds
        self.rules = self.wanted.rules
        self.root_kinds = self.wanted.root_kinds  # what may be scored as a root

    def place(self, placed: Sequence[Placed]) -> None:
        """Grade with ``placed`` in place of what was there, from the next sample on; pairs that have begun end as they
        began. Those that stay are the same objects. One thread at a time; not while the process forks."""
        self._jobs.place(placed)  # first: a span that is newly looked at then finds who scores it
        self._look_at(placed)
        self._intake.wants = Wants(self.wanted, self._jobs.may_judge)

    def purses(self) -> list[Purse]:
        """The ceilings in money of its judges; empty where none has any."""
        return self._jobs.purses()

    def endpoints(self) -> list[GateState]:
        """How the endpoints of its judges' models stand."""
        return self._jobs.endpoints()

    def _fresh_state(self) -> None:
        self._timer = Timer(self._take, self.tick, self._began, self.clock)
        self._jobs = Jobs(self.placed, self._around, self._timer.wake)
        wants = Wants(self.wanted, self._jobs.may_judge)
        self._intake = Intake(
            self._sink,
            wants,
            self.settings,
            self.clock,
            self._jobs.start,
            self._timer.tick_by,
            self.ledger.tally,
            self._jobs.take_turn,
            watch=None if self._around.watcher is None else self._around.watcher.took,
        )

    def _began(self) -> None:
        self._jobs.ensure_workers()
        if self._on_use is not None:
            with shield("pipeline.on_use"):
                self._on_use()

    # --- the host's side ---------------------------------------------------------------------------------------------

    def offer(self, offer: Offer) -> bool:
        """Take one ended span; never blocks, never raises. False: not taken, the span is the host's again."""
        self.check_fork()
        return self.take(offer)

    def take(self, offer: Offer) -> bool:
        """`offer` by a host that has called `check_fork` already, and asked whether scoring is off."""
        if _DISABLED in held and disabled():  # while the process runs; at its start nothing of this is made
            return False
        if self._closed:
            self._jobs.refused(offer, "shutdown")
            return False
        timer, room = self._timer, self._jobs.room
        if not (timer.alive or timer.fits):
            self._fresh_state()
            timer, room = self._timer, self._jobs.room
        if timer.waiting() >= self.settings.max_offers or not room.take(offer.size):
            self._jobs.refused(offer, "overload")
            return False
        if not (timer.alive or timer.ensure()):
            room.release(offer.size)
            self._jobs.refused(offer, "overload")
            return False
        timer.put(offer)
        if timer.closed:  # while this was under way: nobody may be there to take it
            self._leftovers()
        return True

    def offer_log(self, trace_id: int, span_id: int, event: EventData) -> None:
        """Take a log record that belongs to a span, which may come before or after it; never blocks, never raises."""
        self.check_fork()
        if self._closed or (_DISABLED in held and disabled()):
            return
        timer, room = self._timer, self._jobs.room
        log = LogOffer(trace_id, span_id, event, self.clock.monotonic(), 256 + text_size(event.attributes))
        if timer.waiting() >= self.settings.max_offers or not room.take(log.size):
            self.ledger.tally.logs["overload"] += 1
        elif timer.alive or timer.ensure():
            timer.put(log)
        else:
            room.release(log.size)

    def waiting(self) -> Waiting:
        """What samples are made of, and is held now."""
        return self._intake.waiting()

    def root_ended(self, trace_id: int, span_id: int) -> None:
        """An entry span that is no call itself has ended: what waits below it can be decided."""
        self.check_fork()
        if not self._closed:
            self._timer.put(_RootEnded(trace_id, span_id))

    # --- the timer thread ----------------------------------------------------------------------------------------------

    def _take(self, item: Any) -> None:
        if isinstance(item, Offer):
            try:
                self._intake.read(item)
            finally:
                self._jobs.room.release(item.size)  # what became of it takes its own room
        elif isinstance(item, LogOffer):
            try:
                self._intake.hear(item)
            finally:
                self._jobs.room.release(item.size)
        elif isinstance(item, _RootEnded):
            self._intake.root_ended(item.trace_id, item.span_id)
        elif isinstance(item, _Flush):
            try:
                self._intake.decide_all(last=item.last)
            finally:
                item.epoch = self._jobs.open.next_epoch()
                item.done.set()

    def tick(self) -> float:
        """Act on every deadline that has passed; returns when the next one is due. Called by the timer thread."""
        now = self.clock.monotonic()
        times: list[float] = []
        for part in (self._intake.tick, self._sink.expire, self._jobs.check):
            upcoming: float | None = now + RETRY_S
            with shield("pipeline.tick"):
                upcoming = part(now)
            if upcoming is not None:
                times.append(upcoming)
        return min(times, default=float("inf"))

    # --- flush and end -----------------------------------------------------------------------------------------------------

    def drain(self, timeout: float, *, judges: bool) -> bool:
        """Wait until everything offered before has its metrics (and, if asked, its judges); True when it has.

        What is offered meanwhile is not waited for. Samples that still wait for their local root are decided as they are
        (partial). Conversations go on.
        """
        return self._drain(timeout, _Flush(), judges=judges)

    def _drain(self, timeout: float, flush: _Flush, *, judges: bool) -> bool:
        self.check_fork()
        if not self._timer.started or self._closed:
            return True
        end = time.monotonic() + timeout  # a person or an exit waits here: real time, whatever clock scoring has
        self._timer.put_now(flush)
        if not self._timer.ensure() or not flush.done.wait(timeout):
            return False
        return self._jobs.open.wait(flush.epoch, judges=judges, until=end)

    def shutdown(self, timeout: float) -> bool:
        """Drain within ``timeout``, then end all threads; what is left ends as dropped(shutdown). Conversations that go on are
        graded as they are (partial). Safe to call twice."""
        self.check_fork()
        if self._closed:
            return True
        drained = self._drain(timeout, _Flush(last=True), judges=True)
        self._closed = self._timer.closed = True
        self._jobs.close()
        self._timer.stop(JOIN_S)
        self._leftovers()
        self._sink.release_all()
        return drained

    def _leftovers(self) -> None:
        """Offers that nobody will read any more: count them, let their spans go."""
        for item in self._timer.leftovers():
            if isinstance(item, Offer):
                self._jobs.room.release(item.size)
                self._jobs.refused(item, "shutdown")
                if item.ticket is not None:
                    with shield("pipeline.leftover"):
                        self._sink.settle(item.ticket)
            elif isinstance(item, LogOffer):
                self._jobs.room.release(item.size)
            elif isinstance(item, _Flush):
                item.done.set()

    # --- forks -------------------------------------------------------------------------------------------------------------

    def check_fork(self) -> None:
        """Start afresh if this is a forked child that has not done so, or if gevent has come between. Costs next to nothing;
        hosts call it before they touch what they reset in ``on_fork``."""
        if self.pid != os.getpid():
            self.after_fork()
        if not self._timer.fits and not self._closed:
            self._fresh_state()

    def after_fork(self) -> None:
        """In a forked child: the parent's queue, threads, counts and locks are the parent's. Start afresh, lazily.

        Does nothing the second time in one process, and in the process that made the pipeline.
        """
        pid = os.getpid()
        with self._fork_locks.setdefault(pid, threading.RLock()):  # no lock of before: its owner may be the parent's
            if pid in (self.pid, self._resetting):  # the latter: `on_fork` calls back
                return
            self._resetting = pid
            self._jobs.after_fork()
            self.ledger.after_fork()
            self._fresh_state()
            if self._on_fork is not None:
                with shield("pipeline.on_fork"):
                    self._on_fork()
            self.pid = pid
