"""The one pipeline of both hosts: spans in, scores out, every pair accounted for.

Threads: the application's only puts an `Offer` on a queue. One timer thread of ours takes them off, reads them into
Samples and watches all deadlines; it runs no user code. Lane 1 runs metrics, lane 2 judges.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from spangrade import _guard, _suppress
from spangrade._log import once
from spangrade.model.outcome import Outcome
from spangrade.model.policy import Placed
from spangrade.model.sample import Sample
from spangrade.samples.extract import extract
from spangrade.samples.reading import ROOT_KINDS, Call
from spangrade.scoring.clock import Clock, SystemClock
from spangrade.scoring.intake import Intake, Wants
from spangrade.scoring.job import Ended, Job, PairStep, Seat
from spangrade.scoring.loop import LoopThread
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.records import records_of
from spangrade.scoring.redaction import Redact
from spangrade.scoring.seam import Offer, Sink, Ticket, Watcher
from spangrade.scoring.selection import ALWAYS, Budget, Selection, Selector
from spangrade.scoring.settings import Settings
from spangrade.scoring.worker import Lane, Turn
from spangrade.semconv import SCORED_BY

__all__ = ["Pipeline", "Settings"]


@dataclass(frozen=True, slots=True)
class _RootEnded:
    trace_id: int
    span_id: int


class _Stop:
    pass


@dataclass(slots=True)
class _Flush:
    done: threading.Event


class Pipeline:
    """Grades what it is offered with ``placed``; hands results to ``sink``; counts in ``ledger``."""

    def __init__(
        self,
        placed: Sequence[Placed],
        sink: Sink,
        settings: Settings | None = None,
        clock: Clock | None = None,
        ledger: Ledger | None = None,
        redact: Redact | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.redact = redact
        self.clock = clock or SystemClock()
        self.ledger = ledger or Ledger()
        self._sink = sink
        self._watcher = watcher
        self._seats = [self._seat(p) for p in placed]
        self.targets = frozenset(seat.info.target for seat in self._seats)
        self._has_metric = any(seat.info.kind == "code" for seat in self._seats)
        self._has_judge = any(seat.info.kind != "code" for seat in self._seats)
        self._idle = threading.Condition()
        self._fresh_state()

    def _fresh_state(self) -> None:
        self._queue: SimpleQueue[Any] = SimpleQueue()
        wants = Wants(self.targets, self._may_judge)
        self._intake = Intake(self._sink, wants, self.settings, self.clock, self._start_job, self._tick_by)
        self._metrics_lane = Lane(
            "metrics", self.settings.metric_threads, self.settings.max_steps, self.clock, self._wake
        )
        self._judges_lane = Lane(
            "judges", self.settings.judge_threads, self.settings.max_steps, self.clock, self._wake, float("inf")
        )
        self._loop = LoopThread()
        self._open = {"code": 0, "llm": 0}  # pairs that have not ended, by kind
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()
        self._next_tick = float("inf")
        self._closed = False

    def _seat(self, placed: Placed) -> Seat:
        evaluator, info = placed.evaluator, placed.evaluator.info
        limit = self.settings.judge_threads if info.kind == "llm" else self.settings.metric_limit
        return Seat(
            placed,
            Selector(info, placed.policy, self.clock),
            Budget(placed.policy.budget or {}, self.clock),
            Turn(info.name, evaluator.timeout, limit),
        )

    def _may_judge(self, trace_id: int, trace_state: str) -> bool:
        """Whether a judge may be chosen for this trace: its spans may then wait longer."""
        return any(s.info.kind != "code" and s.selector.would_choose(trace_id, trace_state) for s in self._seats)

    # --- the host's side ---------------------------------------------------------------------------------------------

    def offer(self, offer: Offer) -> bool:
        """Take one ended span; never blocks, never raises. False: not taken, the span is the host's again."""
        if self._closed or self._queue.qsize() >= self.settings.max_offers or not self._started():
            self._refused(offer, "shutdown" if self._closed else "overload")
            return False
        self._queue.put(offer)
        return True

    def root_ended(self, trace_id: int, span_id: int) -> None:
        """An entry span that is no call itself has ended: what waits below it can be decided."""
        if not self._closed:
            self._queue.put(_RootEnded(trace_id, span_id))

    def _refused(self, offer: Offer, reason: str) -> None:
        # Nothing was read of the span, so which evaluators it meets is told by kind and place alone.
        if offer.ticket is None:
            return
        call = extract(offer.span)
        if call is None or call.evaluator:
            return
        for seat in self._seats:
            target = seat.info.target
            is_root = target == "root" and call.kind in ROOT_KINDS and not (offer.lineage and offer.lineage.under_call)
            if target == call.kind or is_root:
                self.ledger.met(seat.info)
                self.ledger.ended(seat.info, Outcome.DROPPED, reason)

    def _wake(self) -> None:
        self._queue.put(None)

    def _started(self) -> bool:
        if self._thread is not None:
            return True
        with self._start_lock:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="spangrade-timer", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the interpreter is shutting down
                    return False
                self._thread = thread
                for lane, wanted in ((self._metrics_lane, self._has_metric), (self._judges_lane, self._has_judge)):
                    if wanted:
                        lane.ensure_worker()
                if any(seat.placed.evaluator.is_async for seat in self._seats):
                    self._loop.ensure()
        return True

    # --- the timer thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        with _suppress.evaluator_scope():
            while True:
                item: Any = None
                try:
                    item = self._queue.get(timeout=self._until_tick())
                except Empty:
                    pass
                if isinstance(item, _Stop):
                    return
                with _guard.guard("pipeline.take"):
                    self._take(item)
                if item is None or self.clock.monotonic() >= self._next_tick:
                    with _guard.guard("pipeline.tick"):
                        self._next_tick = self.tick()

    def _until_tick(self) -> float | None:
        if self._next_tick == float("inf"):
            return None
        # At most a minute: a deadline far away is no reason to ask the lock for a time-out that it cannot take.
        return min(max(0.0, self._next_tick - self.clock.monotonic()), 60.0)

    def _tick_by(self, when: float) -> None:
        """A deadline that `tick` has not seen yet."""
        self._next_tick = min(self._next_tick, when)

    def _take(self, item: Any) -> None:
        if isinstance(item, Offer):
            self._intake.read(item)
        elif isinstance(item, _RootEnded):
            self._intake.root_ended(item.trace_id, item.span_id)
        elif isinstance(item, _Flush):
            self._intake.decide_all()
            item.done.set()

    def tick(self) -> float:
        """Act on every deadline that has passed; returns when the next one is due. Called by the timer thread."""
        now = self.clock.monotonic()
        times = (
            self._intake.tick(now),
            self._sink.expire(now),
            self._metrics_lane.check(now),
            self._judges_lane.check(now),
        )
        return min((t for t in times if t is not None), default=float("inf"))

    def _start_job(self, call: Call, sample: Sample, ticket: Ticket, target: str, partial: bool) -> None:
        already = call.span.attributes.get(SCORED_BY) or ()
        resource = call.span.resource
        seats = [
            s
            for s in self._seats
            if s.info.target == target and s.info.key not in already and s.placed.applies_to(resource)
        ]
        if not seats:
            return
        span = call.span
        chosen = [
            (s, s.selector.decide(span.trace_id, span.trace_state) if s.info.kind != "code" else ALWAYS) for s in seats
        ]
        job = Job(
            self,
            call,
            sample,
            ticket,
            partial,
            target,
            [(s, sel) for s, sel in chosen if s.info.kind == "code"],
            [(s, sel) for s, sel in chosen if s.info.kind != "code" and sel.chosen],
        )
        for seat, _ in chosen:
            self.ledger.met(seat.info)
        with self._idle:
            self._open["code"] += len(job.metrics)
            self._open["llm"] += len(chosen) - len(job.metrics)
        if self._watcher is not None:
            with _guard.guard("watcher.began"):
                self._watcher.began(job.key, call, sample, [s.info for s in seats], partial)
        self._sink.taken(ticket, [s.info for s in seats])
        self._sink.expect(ticket, len(seats))
        for seat, selection in chosen:
            if not selection.chosen:
                self.pair_ended(job, seat, selection, Ended(Outcome.NOT_SAMPLED, selection.reason))
        if not job.metrics:
            self.metrics_ended(job)
            return
        steps = [PairStep(job, seat, selection) for seat, selection in job.metrics]
        if not self._metrics_lane.submit(list(steps)):
            self._drop(steps)

    def _drop(self, steps: Sequence[PairStep]) -> None:
        reason = "shutdown" if self._closed else "queue_full"
        once(f"lane:{reason}", "scoring cannot keep up; pairs are dropped and counted", reason=reason)
        for step in steps:
            step.gave_up(reason, 0.0)

    # --- what jobs call -------------------------------------------------------------------------------------------------

    def metrics_ended(self, job: Job) -> None:
        """All metrics of a sample have ended: its chosen judges' turn."""
        for seat, selection in job.judges:
            step = PairStep(job, seat, selection)
            if not self._judges_lane.submit([step]):
                self._drop([step])

    def on_loop(self, step: PairStep, awaitable: Any) -> None:
        """An async metric: its coroutine runs on our loop, its thread is free."""
        started = self.clock.monotonic()

        def done(result: Any, fault: BaseException | None) -> None:
            duration = max(0.0, self.clock.monotonic() - started)
            if isinstance(fault, TimeoutError):
                step.gave_up("timeout", duration)
            else:
                step.done(result, fault, duration)

        if not self._loop.run(awaitable, step.turn.timeout_s, done):
            step.gave_up("shutdown", 0.0)

    def pair_ended(self, job: Job, seat: Seat, selection: Selection, ended: Ended) -> None:
        """The one counted end of a pair; then the span waits for one less."""
        info = seat.info
        try:
            self.ledger.ended(info, ended.outcome, ended.reason)
            records = records_of(job, info, selection, ended, self.clock.time_ns())
            if self._watcher is not None:
                with _guard.guard("watcher.ended"):
                    self._watcher.ended(job.key, info, ended.outcome, ended.reason, records, selection.probability)
            if records:
                self._sink.scores(job.ticket, info, records, ended.outcome is Outcome.SCORED)
        finally:
            self._sink.settle(job.ticket)
            with self._idle:
                self._open["code" if info.kind == "code" else "llm"] -= 1
                self._idle.notify_all()

    # --- flush and end -----------------------------------------------------------------------------------------------------

    def drain(self, timeout: float, *, judges: bool) -> bool:
        """Wait until everything offered before has its metrics (and, if asked, its judges); True when it has.

        Samples that still wait for their local root are decided as they are (partial).
        """
        if self._thread is None or self._closed:
            return True
        end = time.monotonic() + timeout  # a person or an exit waits here: real time, whatever clock scoring has
        flush = _Flush(threading.Event())
        self._queue.put(flush)
        if not flush.done.wait(timeout):
            return False

        def quiet() -> bool:
            return self._open["code"] == 0 and (not judges or self._open["llm"] == 0)

        with self._idle:
            while not quiet():
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._idle.wait(left)
        return True

    def shutdown(self, timeout: float) -> bool:
        """Drain within ``timeout``, then end all threads; what is left ends as dropped(shutdown). Safe to call twice."""
        if self._closed:
            return True
        drained = self.drain(timeout, judges=True)
        self._closed = True
        self._metrics_lane.close()
        self._judges_lane.close()
        self._loop.stop()
        self._queue.put(_Stop())
        self._leftovers()
        self._sink.release_all()
        return drained

    def _leftovers(self) -> None:
        """Offers that nobody will read any more: count them, let their spans go."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(1.0)
        while True:
            try:
                item = self._queue.get_nowait()
            except Empty:
                return
            if isinstance(item, Offer):
                self._refused(item, "shutdown")
                if item.ticket is not None:
                    self._sink.settle(item.ticket)
            elif isinstance(item, _Flush):
                item.done.set()

    def after_fork(self) -> None:
        """In a forked child: the parent's queue and threads are the parent's. Start afresh, lazily."""
        closed = self._closed
        self._idle = threading.Condition()
        self._fresh_state()
        self._closed = closed
