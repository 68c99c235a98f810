"""Offers → samples: which spans make one, and how long they may wait for it. Owned by the timer thread; no user code."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import sleep
from typing import Final, Protocol

from spangrade.model.sample import Sample
from spangrade.samples.assemble import root_sample, sample_of
from spangrade.samples.extract import extract
from spangrade.samples.reading import Call
from spangrade.samples.window import GRACE_S, Decided, Lineage, TraceWindow
from spangrade.scoring.clock import Clock
from spangrade.scoring.seam import Offer, Sink, Ticket
from spangrade.scoring.settings import Settings
from spangrade.scoring.shield import shield
from spangrade.scoring.wants import Wants

#: Of the hold: how long a call may wait for its local root, so that its evaluators still have the rest.
METRICS_SHARE: Final = 0.8
JUDGES_SHARE: Final = 0.5


class Start(Protocol):
    """What a finished sample is given to."""

    def __call__(self, call: Call, sample: Sample, ticket: Ticket, target: str, partial: bool) -> None: ...


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
            if offer.lineage is None:
                self._place_later(offer, found)
            else:
                self._place(offer, offer.lineage, found)
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

    def _place(self, offer: Offer, lineage: Lineage, found: Call | None) -> None:
        """What is above it is known: a call that is graded by itself is so at once."""
        span = offer.span
        if found is None or found.evaluator:
            if lineage.root_id == span.span_id:
                self.root_ended(span.trace_id, span.span_id)
            return
        call = found if lineage.within is None else replace(found, within=lineage.within)
        targets = self.wants.targets.targets_of(call) if offer.ticket is not None else []
        before = self._window.parts_of(span.trace_id, lineage.root_id) if targets else ()
        held = None if lineage.under_call else self._candidate(offer, call)
        decide_at = self._limits(offer, held)
        self._decided(self._window.add(call, lineage, held, offer.arrived, decide_at))
        if offer.ticket is not None and targets:
            self._by_itself(call, targets, before, offer.ticket, False)

    def _place_later(self, offer: Offer, found: Call | None) -> None:
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
        self._window.arrive(found, ids, span.is_local_root, held, offer.arrived, decide_at, pick)
        if span.is_local_root:
            self._tick_by(self._clock.monotonic() + GRACE_S)

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
        for call, handle in decided.picks:
            try:
                with shield("intake.picked"):
                    targets = self.wants.targets.targets_of(call)
                    self._by_itself(call, targets, decided.around, handle, decided.partial)
            finally:
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

    def _by_itself(self, call: Call, targets: list[str], around: Sequence[Call], ticket: Ticket, partial: bool) -> None:
        """Grade a call for these targets, unless another one is its first sighting."""
        targets = self.wants.targets.first_told(call, targets, around)
        if targets:
            sample = sample_of(call, around)
            for target in targets:
                self._start(call, sample, ticket, target, partial)

    def _settle(self, ticket: Ticket) -> None:
        with shield("intake.settle"):  # a span that leaves runs whatever comes behind us
            self._sink.settle(ticket)
