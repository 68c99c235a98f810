"""Offers → samples: which spans make one, and how long they may wait for it. Owned by the timer thread; no user code."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import sleep
from typing import Final

from spangrade.samples.assemble import root_sample, sample_of
from spangrade.samples.extract import extract
from spangrade.samples.log_waits import may_be_told
from spangrade.samples.logs import with_logs
from spangrade.samples.pending_logs import MAX_OF_A_SPAN, PendingLogs
from spangrade.samples.reading import Call
from spangrade.samples.tally import Tally, Waiting
from spangrade.samples.window import Decided, Lineage, TraceWindow
from spangrade.scoring.clock import Clock
from spangrade.scoring.conversations import Conversations, Start
from spangrade.scoring.seam import LogOffer, Offer, Sink, Ticket
from spangrade.scoring.settings import Settings
from spangrade.scoring.shield import shield
from spangrade.scoring.wants import Wants

#: Of the hold: how long a call may wait for its local root, so that its evaluators still have the rest.
METRICS_SHARE: Final = 0.8
JUDGES_SHARE: Final = 0.5
GATHER_S: Final = 0.02  # what a call's log records may take to come together


class Intake:
    """Reads offered spans and decides samples. ``tick_by`` is told of every deadline that `tick` has to look at;
    ``take_turn`` of every turn of a conversation; ``watch`` is shown every call."""

    def __init__(
        self,
        sink: Sink,
        wants: Wants,
        settings: Settings,
        clock: Clock,
        start: Start,
        tick_by: Callable[[float], None],
        tally: Tally,
        take_turn: Callable[[Call, Ticket], None],
        watch: Callable[[Call], None] | None = None,
    ) -> None:
        self._sink = sink
        self.wants = wants  # replaced whole when the evaluators change
        self._settings = settings
        self._clock = clock
        self._start = start
        self._tick_by = tick_by
        self._bounds = settings.assembly
        self._tally = tally
        self._window: TraceWindow[Ticket] = TraceWindow(settings.assembly, tally)
        self._logs = PendingLogs(settings.assembly, tally)
        self._told: set[tuple[int, int]] = set()  # calls that wait, and whose log records have come
        self._conversations = Conversations(sink, settings.assembly, tally, start, take_turn)
        self._watch = watch

    def read(self, offer: Offer) -> None:
        """Take one span in; its sample, if it completes one, starts at once."""
        try:
            span = offer.span
            sleep(0)  # here and below: the application's threads may have the interpreter between two pieces of work
            logs = self._logs.take((span.trace_id, span.span_id)) if len(self._logs) else ()
            if logs:
                self._tally.logs["joined"] += len(logs)
                span = with_logs(span, logs)
            found = extract(span)
            sleep(0)
            if found is not None and self._watch is not None:
                with shield("watcher.took"):
                    self._watch(found)
            if offer.lineage is None:
                self._place_later(offer, found, told=bool(logs))
            else:
                self._place(offer, offer.lineage, found, told=bool(logs))
        finally:
            if offer.ticket is not None:
                self._settle(offer.ticket)  # the host counts one for the reading itself

    def hear(self, log: LogOffer) -> None:
        """Take a log record in: of a call that waits for it, or of a span that has not come."""
        ids = (log.trace_id, log.span_id)
        self._logs.put(ids, log.event, log.arrived)
        if self._window.expected(*ids) is not None:
            self._told.add(ids)
            self._tick_by(log.arrived + GATHER_S)
        else:
            self._tick_by(log.arrived + self._bounds.max_age)

    def _join(self, now: float) -> None:
        """Read the calls again that log records have told of: once for all that have come together."""
        told, self._told = self._told, set()
        for ids in told:
            waiting = self._window.expected(*ids)
            if waiting is None:
                continue
            logs = self._logs.take(ids)
            if len(waiting.span.events) + len(logs) > 2 * MAX_OF_A_SPAN:
                self._tally.logs["max_of_a_span"] += len(logs)
                continue
            self._tally.logs["joined"] += len(logs)
            found = extract(with_logs(waiting.span, logs))
            if found is not None:
                self._window.said(replace(found, within=waiting.within, over=waiting.over), now)

    def root_ended(self, trace_id: int, span_id: int) -> None:
        """A local root that is no call has ended."""
        self._decided(self._window.root_ended(trace_id, span_id, self._clock.monotonic()))

    def tick(self, now: float) -> float | None:
        """Decide what can wait no longer; returns when to look again."""
        self._join(now)
        for decided in self._window.due(now):
            self._decided(decided)
        times = (self._window.next_due(), self._logs.expire(now), self._conversations.tick(now))
        return min((at for at in times if at is not None), default=None)

    def decide_all(self, *, last: bool = False) -> None:
        """Decide everything that waits, as it is. Conversations go on, unless this is the end."""
        self._join(self._clock.monotonic())
        for decided in self._window.decide_all():
            self._decided(decided)
        if last:
            self._conversations.decide_all()

    def waiting(self) -> Waiting:
        """What is held now."""
        sessions = self._conversations.window
        return Waiting(
            len(self._window), self._window.bytes, len(self._logs), self._logs.bytes, len(sessions), sessions.bytes
        )

    def _place(self, offer: Offer, lineage: Lineage, found: Call | None, *, told: bool) -> None:
        """What is above it is known: a call that is graded by itself is so at once. ``told``: by log records, already."""
        span = offer.span
        if found is None or found.evaluator:
            if lineage.root_id == span.span_id:
                self.root_ended(span.trace_id, span.span_id)
            return
        call = found if lineage.over is None else replace(found, within=lineage.within, over=lineage.over)
        targets = self.wants.targets.targets_of(call) if offer.ticket is not None else []
        before = self._window.parts_of(span.trace_id, lineage.root_id) if targets else ()
        held = None if lineage.under_call else self._candidate(offer, call)
        decide_at = self._limits(offer, held)
        until = self._logs_until(offer, call, told=told)
        self._decided(self._window.add(call, lineage, held, offer.arrived, decide_at, until))
        if offer.ticket is not None and targets:
            self._by_itself(call, targets, before, offer.ticket, offer.ticket.partial, lineage.given)

    def _place_later(self, offer: Offer, found: Call | None, *, told: bool) -> None:
        """What is above it may come later: until then it waits."""
        span = offer.span
        call = None if found is None or found.evaluator else found
        held = None if call is None else self._candidate(offer, call)
        pick = None
        if call is not None and offer.ticket is not None and self.wants.targets.targets_of(call):
            pick = offer.ticket
            self._sink.expect(pick, 1)
        decide_at = self._limits(offer, held or pick)
        ids = (span.trace_id, span.span_id, span.parent_span_id)
        until = 0.0 if call is None else self._logs_until(offer, call, told=told)
        self._window.arrive(found, ids, span.is_local_root, held, offer.arrived, decide_at, pick, until)
        due = self._window.next_due()  # of a local root its grace, and of what comes after its root too
        if due is not None:
            self._tick_by(due)

    def _logs_until(self, offer: Offer, call: Call, *, told: bool) -> float:
        """Till when a call's log records are waited for; 0 when it is not expected to have any."""
        if not self._bounds.logs or not may_be_told(call):
            return offer.arrived if told else 0.0
        self._tick_by(offer.arrived + self._bounds.logs)
        return offer.arrived + self._bounds.logs

    def _candidate(self, offer: Offer, call: Call) -> Ticket | None:
        """The ticket of a span that may carry a root score; it then waits for the decision too."""
        if offer.ticket is None or call.kind not in self.wants.targets.root_kinds:
            return None
        self._sink.expect(offer.ticket, 1)
        return offer.ticket

    def _limits(self, offer: Offer, held: Ticket | None) -> float:
        """Say when the span must leave at the latest; returns when its root must be decided."""
        judged = self.wants.judge(offer.span.trace_id, offer.span.trace_state)
        limit = self._settings.judge_hold if judged else self._settings.metric_hold
        if offer.ticket is not None:
            self._sink.until(offer.ticket, offer.arrived + limit)
            self._tick_by(offer.arrived + limit)
        if self._bounds.quiet is not None:
            self._tick_by(offer.arrived + self._bounds.quiet)
        if held is None or self._bounds.quiet is not None:
            return float("inf")
        # A grace that is longer than the hold is meant to be waited for; the span leaves before its scores then.
        decide_at = offer.arrived + max(self._bounds.grace, limit * (JUDGES_SHARE if judged else METRICS_SHARE))
        self._tick_by(decide_at)
        return decide_at

    def _decided(self, decided: Decided[Ticket] | None) -> None:
        if decided is None:
            return
        for handle in decided.rest:
            self._settle(handle)
        for call, handle in decided.picks:
            try:
                with shield("intake.picked"):
                    targets = self.wants.targets.targets_of(call)
                    self._by_itself(call, targets, decided.around, handle, decided.partial or handle.partial)
            finally:
                self._settle(handle)
        if decided.carrier is None:
            return
        try:
            with shield("intake.decided"):  # what goes wrong with one decision costs no other one
                partial = decided.partial or decided.carrier.partial
                found = root_sample(decided.tops, decided.parts, partial=partial)
                sleep(0)
                if found is not None:
                    self._start(found[0], found[1], decided.carrier, "root", partial)
                    if self.wants.targets.sessions:
                        now = self._clock.monotonic()
                        self._conversations.turn(*found, decided.carrier, now, partial=partial)
                        self._tick_by(now + self._bounds.session_idle)
        finally:
            self._settle(decided.carrier)

    def _by_itself(
        self,
        call: Call,
        targets: list[str],
        around: Sequence[Call],
        ticket: Ticket,
        partial: bool,
        given: str | None = None,
    ) -> None:
        """Grade a call for these targets, unless another one is its first sighting. ``given``: see `Lineage`."""
        targets = self.wants.targets.first_told(call, targets, around)
        if targets:
            sample = sample_of(call, around, given)
            for target in targets:
                self._start(call, sample, ticket, target, partial)

    def _settle(self, ticket: Ticket) -> None:
        with shield("intake.settle"):  # a span that leaves runs whatever comes behind us
            self._sink.settle(ticket)
