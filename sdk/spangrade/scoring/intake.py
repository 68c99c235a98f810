"""Offers → samples: which spans make one, and how long they may wait for it. Owned by the timer thread; no user code."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import sleep
from typing import Final, Protocol

from spangrade.model.sample import Sample
from spangrade.samples.assemble import root_sample, sample_of
from spangrade.samples.extract import extract
from spangrade.samples.reading import ROOT_KINDS, Call
from spangrade.samples.window import GRACE_S, Decided, Lineage, TraceWindow
from spangrade.scoring.clock import Clock
from spangrade.scoring.seam import Offer, Sink, Ticket
from spangrade.scoring.settings import Settings
from spangrade.scoring.shield import shield

#: Of the hold: how long a call may wait for its local root, so that its evaluators still have the rest.
METRICS_SHARE: Final = 0.8
JUDGES_SHARE: Final = 0.5


class Start(Protocol):
    """What a finished sample is given to."""

    def __call__(self, call: Call, sample: Sample, ticket: Ticket, target: str, partial: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Wants:
    """What the evaluators look at: ``targets``, and whether a judge may be chosen for a trace (by id and state)."""

    targets: frozenset[str]
    judge: Callable[[int, str], bool]


class Intake:
    """Reads offered spans and decides samples. ``tick_by`` is told of every deadline that `tick` has to look at."""

    def __init__(
        self, sink: Sink, wants: Wants, settings: Settings, clock: Clock, start: Start, tick_by: Callable[[float], None]
    ) -> None:
        self._sink = sink
        self.wants = wants  # replaced whole when the evaluators change
        self._settings = settings
        self._clock = clock
        self._start = start
        self._tick_by = tick_by
        self._window: TraceWindow[Ticket] = TraceWindow()

    def read(self, offer: Offer) -> None:
        """Take one span in; its sample, if it completes one, starts at once."""
        try:
            span = offer.span
            sleep(0)  # here and below: the application's threads may have the interpreter between two pieces of work
            found = extract(span)
            sleep(0)
            call = None if found is None or found.evaluator else found
            before = self._before(call, offer)
            if offer.lineage is None:
                self._place_later(offer, call)
            else:
                self._place(offer, offer.lineage, call)
            if call is not None and offer.ticket is not None and call.kind in self.wants.targets:
                self._start(call, sample_of(call, before), offer.ticket, call.kind, False)
        finally:
            if offer.ticket is not None:
                self._settle(offer.ticket)  # the host counts one for the reading itself

    def root_ended(self, trace_id: int, span_id: int) -> None:
        """A local root that is no call has ended."""
        self._decided(self._window.root_ended(trace_id, span_id))

    def tick(self, now: float) -> float | None:
        """Decide what can wait no longer; returns when to look again."""
        for decided in self._window.due(now):
            self._decided(decided)
        return self._window.next_due()

    def decide_all(self) -> None:
        """Decide everything that waits, as it is."""
        for decided in self._window.decide_all():
            self._decided(decided)

    def _before(self, call: Call | None, offer: Offer) -> Sequence[Call]:
        """What has ended before a call that is graded by itself: it may have fed it."""
        if call is None or offer.ticket is None or call.kind not in self.wants.targets:
            return ()
        return self._window.parts_of(call.span.trace_id, offer.lineage.root_id if offer.lineage is not None else 0)

    def _place(self, offer: Offer, lineage: Lineage, call: Call | None) -> None:
        span = offer.span
        if call is None:
            if lineage.root_id == span.span_id:
                self.root_ended(span.trace_id, span.span_id)
            return
        held = None if lineage.under_call else self._candidate(offer, call)
        decide_at = self._limits(offer, held)
        self._decided(self._window.add(call, lineage, held, offer.arrived, decide_at))

    def _place_later(self, offer: Offer, call: Call | None) -> None:
        span = offer.span
        held = None if call is None else self._candidate(offer, call)
        decide_at = self._limits(offer, held)
        ids = (span.trace_id, span.span_id, span.parent_span_id)
        self._window.arrive(call, ids, span.is_local_root, held, offer.arrived, decide_at)
        if span.is_local_root:
            self._tick_by(self._clock.monotonic() + GRACE_S)

    def _candidate(self, offer: Offer, call: Call) -> Ticket | None:
        """The ticket of a span that may carry a root score; it then waits for the decision too."""
        if offer.ticket is None or "root" not in self.wants.targets or call.kind not in ROOT_KINDS:
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
        if held is None:
            return float("inf")
        decide_at = offer.arrived + limit * (JUDGES_SHARE if judged else METRICS_SHARE)
        self._tick_by(decide_at)
        return decide_at

    def _decided(self, decided: Decided[Ticket] | None) -> None:
        if decided is None:
            return
        for handle in decided.rest:
            self._settle(handle)
        if decided.carrier is None:
            return
        try:
            with shield("intake.decided"):  # what goes wrong with one decision costs no other one
                found = root_sample(decided.tops, decided.parts, partial=decided.partial)
                sleep(0)
                if found is not None:
                    self._start(found[0], found[1], decided.carrier, "root", decided.partial)
        finally:
            self._settle(decided.carrier)

    def _settle(self, ticket: Ticket) -> None:
        with shield("intake.settle"):  # a span that leaves runs whatever comes behind us
            self._sink.settle(ticket)
