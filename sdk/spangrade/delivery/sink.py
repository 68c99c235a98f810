"""The end of the pipeline in both hosts: scores onto held spans, or by a later carrier; every one of them counted."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from spangrade import _guard
from spangrade.delivery.hold import MAX_SPANS, Held, Hold
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import ScoreRecord
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.seam import Ticket
from spangrade.scoring.shield import shield

Pair = tuple[ScoreRecord, ...]
REFUSED = "refused"  # the destination takes no logs at all
Settled = Callable[[str | None], None]


class Carriers(Protocol):
    """How scores leave in one host. ``held.route`` says where its span goes; what else it is, is the host's business."""

    def exports(self, held: Held) -> bool:
        """False in late mode: the span is somebody else's to export, and every score takes a later carrier."""

    def settles(self, held: Held) -> bool:
        """True when it is said later how the export went (`SpanSink.exported`); else handing over is all that is known."""

    def shell(self, held: Held) -> Any:
        """What later carriers need of a span that has left, without its content."""

    def carry(self, held: Held, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """Hand the span on with ``pairs`` as events and the mark of who has taken it. Returns the pairs for which there was
        no room. Raises `NotForwarded` when the span could not be handed on."""

    def log(self, held: Held, pair: Pair, settled: Settled | None) -> bool:
        """Queue a pair as log events; ``settled(failure)`` hears once how it went. False: no logs are taken here."""

    def evaluation_span(self, held: Held, record: ScoreRecord, settled: Settled) -> bool:
        """Send one score as a child span of the scored one; ``settled(failure)`` hears once how it went, at once where
        handing over is all that is known. False, and it hears nothing: nobody takes it."""


class NotForwarded(Exception):
    """The span's next hop raised."""


class SpanSink:
    """Implements `scoring.seam.Sink` over a `Hold`. ``noted`` is told of each pair that a span that waits has got."""

    def __init__(
        self,
        ledger: Ledger,
        carriers: Carriers,
        max_held: int = MAX_SPANS,
        noted: Callable[[Held, Pair], None] | None = None,
    ) -> None:
        self.ledger = ledger
        self._carriers = carriers
        self.hold = Hold(self._release, max_held)
        self._noted = noted
        self._closed = False

    # --- Sink --------------------------------------------------------------------------------------------------------

    def expect(self, ticket: Ticket, pairs: int) -> None:
        """See `Sink`."""
        self.hold.expect(cast("Held", ticket), pairs)

    def until(self, ticket: Ticket, deadline: float) -> None:
        """See `Sink`."""
        self.hold.until(cast("Held", ticket), deadline)

    def taken(self, ticket: Ticket, evaluators: Sequence[EvaluatorInfo]) -> None:
        """See `Sink`."""
        held = cast("Held", ticket)
        held.taken = tuple(dict.fromkeys((*held.taken, *(info.key for info in evaluators))))

    def scores(
        self,
        ticket: Ticket,
        evaluator: EvaluatorInfo,  # noqa: ARG002 - each record names it
        records: Sequence[ScoreRecord],
        scored: bool,  # noqa: ARG002
    ) -> None:
        """See `Sink`."""
        pair = tuple(records)
        with _guard.guard("sink.scores"):
            held = cast("Held", ticket)
            if not self.hold.add(held, pair):
                self._late(held, pair)
            elif self._noted is not None:
                self._noted(held, pair)

    def later(self, ticket: Ticket) -> Ticket:
        """See `Sink`."""
        held = cast("Held", ticket)
        return Held(self._carriers.shell(held), held.route, 0, 0.0, gone=True)

    def settle(self, ticket: Ticket) -> None:
        """See `Sink`."""
        self.hold.settle(cast("Held", ticket))

    def expire(self, now: float) -> float | None:
        """See `Sink`."""
        return self.hold.expire(now)

    def release_all(self) -> None:
        """See `Sink`."""
        self.hold.release_all()

    # --- leaving -----------------------------------------------------------------------------------------------------

    def _release(self, held: Held) -> None:
        """One span leaves with what it has."""
        with shield("sink.release"):  # one span's fault must not cost the others that leave with it
            self._leave(held)

    def _leave(self, held: Held) -> None:
        pairs = held.pairs
        try:
            left = self._carriers.carry(held, pairs)
        except NotForwarded:
            self.exported(pairs, "forward_failed")
            return
        riding = [pair for pair in pairs if not any(pair is other for other in left)]
        if not self._carriers.settles(held):
            self.exported(riding, None)
        for pair in riding:
            self._log_copy(held, pair)
        for pair in left:
            with _guard.guard("sink.no_room"):
                self._late(held, pair)

    def close_accounts(self, reason: str) -> None:
        """Nothing is counted after this: scores that are still on their way end as ``undelivered(reason)``."""
        self._closed = True
        self.ledger.close(reason)

    def exported(self, pairs: Sequence[Pair], failure: str | None) -> None:
        """How it went for the pairs that rode on one exported span."""
        for pair in pairs:
            self._delivered(pair, "span_event", failure)

    def _delivered(self, pair: Pair, carrier: str, failure: str | None = None) -> None:
        if self._closed or not _is_scored(pair):  # an error is sent, but it is no score
            return
        if failure is None:
            self.ledger.delivered(pair[0].evaluator, carrier)
        else:
            self.ledger.undelivered(pair[0].evaluator, failure)

    def _log_copy(self, held: Held, pair: Pair) -> None:
        """The second carrier of a score that leaves on (or as) a span."""
        with _guard.guard("sink.log_copy"):
            if self._carriers.log(held, pair, None) and _is_scored(pair):
                self.ledger.also(pair[0].evaluator, "log_event")

    def _late(self, held: Held, pair: Pair) -> None:
        """The span has left, or is somebody else's: by log event where those are taken, else by evaluation span."""
        if not self._carriers.exports(held):
            self._by_span(held, pair)
            self._log_copy(held, pair)
            return

        def settled(failure: str | None) -> None:
            if failure == REFUSED:
                self._by_span(held, pair)
            else:
                self._delivered(pair, "log_event", failure)

        if not self._carriers.log(held, pair, settled):
            self._by_span(held, pair)

    def _by_span(self, held: Held, pair: Pair) -> None:
        heard = _Heard(len(pair), lambda failure: self._delivered(pair, "evaluation_span", failure))
        for record in pair:
            sent = False
            with _guard.guard("sink.evaluation_span"):
                sent = self._carriers.evaluation_span(held, record, heard.of_one)
            if not sent:
                heard.of_one("no_carrier")


def _is_scored(pair: Pair) -> bool:
    """Whether there is a score among the pair's records: it is counted as one pair, whatever failed beside it."""
    return any(record.error_type is None for record in pair)


class _Heard:
    """Waits for what became of each of several spans; then says whether one failed, and how."""

    def __init__(self, spans: int, of_all: Settled) -> None:
        self._left = spans
        self._of_all = of_all
        self._failure: str | None = None
        self._lock = threading.RLock()

    def of_one(self, failure: str | None) -> None:
        with self._lock:
            self._left -= 1
            self._failure = self._failure or failure
            if self._left:
                return
        self._of_all(self._failure)
