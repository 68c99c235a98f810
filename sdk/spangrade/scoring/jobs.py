"""Samples with their evaluators, through both lanes, to the one counted end of every pair."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spangrade._log import once
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.gate import GateState
from spangrade.model.outcome import Outcome
from spangrade.model.policy import Placed
from spangrade.model.sample import Sample
from spangrade.model.span import SpanData
from spangrade.samples.extract import quick_kind
from spangrade.samples.reading import ROOT_KINDS, Call
from spangrade.samples.sightings import is_again
from spangrade.scoring.asking import count_repairs
from spangrade.scoring.canaries import CanaryStep, due
from spangrade.scoring.clock import Clock
from spangrade.scoring.ended import Ended
from spangrade.scoring.job import Job, PairStep
from spangrade.scoring.loop import LoopLane
from spangrade.scoring.open_pairs import OpenPairs
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.processes import Processes
from spangrade.scoring.purse import Purse
from spangrade.scoring.records import records_of
from spangrade.scoring.redaction import Redact
from spangrade.scoring.room import Room, span_size, text_size
from spangrade.scoring.seam import Offer, Sink, Ticket, Watcher
from spangrade.scoring.seats import Seat, meets, seats_of
from spangrade.scoring.selection import ALWAYS, Budget, Selection, session_unit
from spangrade.scoring.settings import Settings
from spangrade.scoring.shield import shield
from spangrade.scoring.wants import SESSION, Wanted
from spangrade.scoring.worker import Lane

# They have no state, and there would be two for every pair.
_RECORDS: Final = shield("pair.records")
_SETTLE: Final = shield("pair.settle")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What jobs work with."""

    sink: Sink
    ledger: Ledger
    settings: Settings
    clock: Clock
    redact: Redact | None = None
    watcher: Watcher | None = None


class Jobs:
    """Everything that belongs to one process: after a fork the child makes another."""

    def __init__(self, placed: Sequence[Placed], around: Surroundings, wake: Callable[[], None]) -> None:
        settings, clock = around.settings, around.clock
        self._around = around
        self._sink = around.sink
        self._ledger = around.ledger
        self._processes = Processes(settings.metric_processes, clock)
        self._seats = seats_of(placed, settings, clock, self._processes)
        self._budgets: dict[str, Budget] = {}  # of judges that are paused too, by name: a pause renews no ceiling
        self.redact = around.redact
        self.open = OpenPairs()
        self.room = Room(settings.max_bytes)
        self._loop = LoopLane(clock, wake)
        self._metrics = Lane("metrics", settings.metric_threads, settings.max_steps, clock, wake, loop=self._loop)
        self._judges = Lane(
            "judges", settings.judge_threads, settings.max_steps, clock, wake, float("inf"), loop=self._loop
        )
        self._remote = Lane(  # its threads wait for workers: one for each, and no stand-ins
            "processes", settings.metric_processes, settings.max_steps, clock, wake, float("inf")
        )
        self._closed = False

    def place(self, placed: Sequence[Placed]) -> None:
        """Grade with these from the next sample on; those that stay keep their seats, with their windows and pauses, and
        a judge of a name that was there before its ceilings. Pairs that have begun hold the seat that they began with. The list
        is replaced whole: other threads read it."""
        before = {id(seat.placed): seat for seat in self._seats}
        self._budgets.update((seat.info.name, seat.budget) for seat in self._seats if not seat.budget.unlimited)
        seats = seats_of(placed, self._around.settings, self._around.clock, self._processes)
        for at, new in enumerate(seats):
            kept = before.get(id(new.placed))
            if kept is not None:
                kept.turn.limit, kept.turn.loop_limit = new.turn.limit, new.turn.loop_limit
                seats[at] = kept
            elif new.info.name in self._budgets and not new.budget.unlimited:
                seats[at] = replace(new, budget=new.budget.after(self._budgets[new.info.name]))
        self._seats = seats

    def ensure_workers(self) -> None:
        """Start what will be needed."""
        for lane in {self._lane_of(seat) for seat in self._seats}:
            lane.ensure_worker()
        if any(seat.placed.evaluator.is_async for seat in self._seats):
            self._loop.ensure()

    def _lane_of(self, seat: Seat) -> Lane:
        return self._judges if seat.is_judge else self._remote if seat.is_remote else self._metrics

    def purses(self) -> list[Purse]:
        """Those of its judges that have one."""
        return [seat.purse for seat in self._seats if seat.purse is not None]

    def endpoints(self) -> list[GateState]:
        """How the endpoints of its judges stand."""
        gates = [gate for seat in self._seats if seat.is_judge for gate in getattr(seat.placed.evaluator, "gates", ())]
        return [gate.state() for gate in {id(gate): gate for gate in gates}.values()]

    def may_judge(self, trace_id: int, trace_state: str) -> bool:
        """Whether a judge may be chosen for this trace: its spans may then wait longer."""
        return any(
            s.is_judge and s.info.target != SESSION and s.selector.candidate(trace_id, trace_state).chosen
            for s in self._seats
        )

    def refused(self, offer: Offer, reason: str) -> None:
        """Count the pairs of an offer that was not taken. Nothing was read of it (this may be the application's thread),
        so which evaluators it meets is told by kind and place alone."""
        span = offer.span
        kind = quick_kind(span.attributes) if offer.ticket is not None else None
        if kind is None or kind == "evaluator":
            return
        lineage = offer.lineage
        wanted = Wanted.of(seat.info.target for seat in self._seats)
        targets = wanted.by_itself(kind, span.name, span.scope_name, span.attributes)
        if lineage is not None and is_again(kind, lineage.within):
            targets = [target for target in targets if target != kind]
        if kind in ROOT_KINDS and not (lineage and lineage.under_call):
            targets.append("root")
        for seat in meets(self._seats, targets, span.attributes, span.resource):
            self._ledger.met(seat.info)
            self._ledger.ended(seat.info, Outcome.DROPPED, reason)

    def take_turn(self, call: Call, ticket: Ticket) -> None:
        """A turn of a conversation, which will be graded later: whoever gets its span next leaves that to us."""
        infos = [s.info for s in meets(self._seats, (SESSION,), call.span.attributes, call.span.resource)]
        if infos:
            with shield("sink.taken"):
                self._sink.taken(ticket, infos)

    def start(self, call: Call, sample: Sample, ticket: Ticket, target: str, partial: bool) -> None:
        """Grade a sample. Once its pairs are counted as met, each of them ends, whatever happens."""
        span = call.span
        seats = meets(self._seats, (target,), span.attributes, span.resource)
        if not seats:
            return
        unit = (span.trace_id, span.trace_state)
        if target == SESSION:
            unit = (session_unit(str(sample.context.get("session_id"))), "")
        chosen = [(s, s.selector.at_once(*unit) if s.is_judge else ALWAYS) for s in seats]
        metrics = [(s, selection) for s, selection in chosen if not s.is_judge]
        judges = [(s, selection) for s, selection in chosen if s.is_judge and selection.chosen]
        size = _size(span, sample)
        epoch = self.open.began(len(metrics), len(chosen) - len(metrics))
        job = Job(self, call, sample, ticket, partial, target, metrics, judges, len(chosen), epoch, size, unit=unit)
        self.room.add(size)
        infos = [s.info for s in seats]
        self._ledger.met(*infos)
        if self._around.watcher is not None:
            with shield("watcher.began"):
                self._around.watcher.began(job.key, call, sample, infos, partial)
        with shield("sink.taken"):
            self._sink.taken(ticket, infos)
            self._sink.expect(ticket, len(seats))
        for seat, selection in chosen:
            if not selection.chosen:
                self.pair_ended(job, seat, selection, Ended(Outcome.NOT_SAMPLED, selection.reason))
        if not metrics:
            self.metrics_ended(job)
            return
        steps = [PairStep(job, seat, selection) for seat, selection in metrics if not seat.is_remote]
        remote = [PairStep(job, seat, selection) for seat, selection in metrics if seat.is_remote]
        for lane, its_steps in ((self._metrics, steps), (self._remote, remote)):
            if its_steps and not lane.submit(list(its_steps)):
                self._drop(its_steps)

    def _drop(self, steps: Sequence[PairStep]) -> None:
        reason = "shutdown" if self._closed else "queue_full"
        once(f"lane:{reason}", "scoring cannot keep up; pairs are dropped and counted", reason=reason)
        for step in steps:
            step.gave_up(reason, 0.0)

    def go_on(self, step: PairStep) -> None:
        """A part of an evaluator was left: the rest of it."""
        if not self._metrics.submit([step], again=True):
            self._drop([step])

    def metrics_ended(self, job: Job) -> None:
        """All metrics of a sample have ended: its chosen judges' turn, and that of the conditions on what was found."""
        for seat, candidate in job.judges:
            policy, selection = seat.placed.policy, candidate
            if policy.conditional and not policy.asks_code:
                selection = job.decided(seat)
                if not selection.chosen:
                    self.pair_ended(job, seat, selection, Ended(Outcome.NOT_SAMPLED, selection.reason))
                    continue
            step = PairStep(job, seat, selection)
            if not self._judges.submit([step]):
                self._drop([step])
                continue
            canary = due(seat, job.call.span.trace_id, job.call.span.trace_state)
            if canary is not None:
                beside = CanaryStep(seat, canary, self._ledger)
                if not self._judges.submit([beside]):
                    beside.gave_up("queue_full", 0.0)

    def pair_ended(self, job: Job, seat: Seat, selection: Selection, ended: Ended) -> None:
        """The one counted end of a pair; then the span waits for one less."""
        info = seat.info
        try:
            self._ledger.ended(info, ended.outcome, ended.reason)
            if seat.is_judge:
                verdict = ended.verdict
                details = ended.details if verdict is None else verdict.details
                count_repairs(self._ledger, info, details, scored=ended.outcome is Outcome.SCORED)
            elif ended.outcome is Outcome.ERROR:
                _say(info, ended.reason)
            with _RECORDS:
                records = records_of(job, info, selection, ended, self._around.clock.time_ns())
                if self._around.watcher is not None:
                    with shield("watcher.ended"):
                        self._around.watcher.ended(
                            job.key, info, ended.outcome, ended.reason, records, selection.probability
                        )
                if records:
                    self._sink.scores(job.ticket, info, records, ended.outcome is Outcome.SCORED)
        finally:
            try:
                with _SETTLE:  # at the last pair the span leaves, to whatever comes behind us
                    self._sink.settle(job.ticket)
            finally:
                if job.is_last():
                    self.room.release(job.size)
                self.open.ended(job.epoch, judge=seat.is_judge)

    # --- time and end -------------------------------------------------------------------------------------------------

    def check(self, now: float) -> float | None:
        """Act on what has run out of time; returns when to look again, None while everything is idle."""
        times: list[float] = []
        for part in (self._processes, self._metrics, self._remote, self._judges, self._loop):
            upcoming: float | None = now + 1.0  # should it fail
            with shield("jobs.check"):
                upcoming = part.check(now)
            if upcoming is not None:
                times.append(upcoming)
        return min(times, default=None)

    def close(self) -> None:
        """What has not ended is dropped as ``shutdown``."""
        self._closed = True
        self._metrics.close()
        self._judges.close()
        self._loop.close()
        self._remote.close()
        self._processes.close()

    def after_fork(self) -> None:
        """The child has jobs of its own; these are the parent's."""
        self._loop.after_fork()
        self._processes.after_fork()


def _say(info: EvaluatorInfo, error: str) -> None:
    """Once for a metric and kind of error: who wrote it wants to know. The message stays out: it may quote what users wrote."""
    error = error if error.isidentifier() else "?"
    event = "a metric gives errors instead of scores; their messages leave with them"
    once(f"metric:{info.key}:{error}", event, evaluator=info.name, error=error)


def _size(span: SpanData, sample: Sample) -> int:
    """What a sample keeps alive: the span that it is of, and what came from other spans."""
    return span_size(span) + text_size(sample.input) + text_size(sample.documents)
