"""The SDK's end of the pipeline: scores onto held spans, or by a later carrier."""

from collections.abc import Sequence
from typing import Protocol, cast

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Tracer

from spangrade import _guard
from spangrade.delivery import evaluation_span
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.hold import Held, Hold
from spangrade.delivery.log_events import REFUSED, LogEvents
from spangrade.delivery.span_copy import scored_copy
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import ScoreRecord
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.seam import Ticket

Pair = tuple[ScoreRecord, ...]


class Route(Protocol):
    """Where one provider's spans go. A processor of ours is one."""

    @property
    def exports(self) -> bool:
        """False in late mode: the span is somebody else's to export, and every score takes a later carrier."""

    @property
    def settles(self) -> bool:
        """True when the exporter behind says later how it went (`SpanSink.exported`); else handing over is all that is
        known."""

    def forward(self, span: ReadableSpan) -> None:
        """Hand a span on. May raise."""

    def tracer(self) -> Tracer:
        """Where evaluation spans start."""


class SpanSink:
    """Implements `scoring.seam.Sink` for spans of the OpenTelemetry SDK. ``log_events``: the logs pipeline, if any."""

    def __init__(
        self,
        ledger: Ledger,
        log_events: LogEvents | None = None,
        max_events: int = 128,
        policy: ContentPolicy | None = None,
    ) -> None:
        self.ledger = ledger
        self._policy = policy or ContentPolicy()
        self.log_events = log_events
        self._max_events = max_events
        self.hold = Hold(self._release)

    # --- Sink --------------------------------------------------------------------------------------------------------

    def expect(self, ticket: Ticket, pairs: int) -> None:
        """See `Sink`."""
        self.hold.expect(cast("Held", ticket), pairs)

    def until(self, ticket: Ticket, deadline: float) -> None:
        """See `Sink`."""
        self.hold.until(cast("Held", ticket), deadline)

    def taken(self, ticket: Ticket, evaluators: Sequence[EvaluatorInfo]) -> None:
        """See `Sink`."""
        cast("Held", ticket).taken.update(dict.fromkeys(info.key for info in evaluators))

    def scores(self, ticket: Ticket, evaluator: EvaluatorInfo, records: Sequence[ScoreRecord], scored: bool) -> None:
        """See `Sink`."""
        pair = tuple(records)
        with _guard.guard("sink.scores"):
            held = cast("Held", ticket)
            if self.hold.add(held, pair):
                self._log_copy(evaluator, pair, scored)
            else:
                self._late(held.route, evaluator, pair, scored)

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
        route: Route = held.route
        span, left, pairs = held.span, list(held.pairs), list(held.pairs)
        try:
            span, left = scored_copy(held.span, pairs, tuple(held.taken), self._max_events)
        except Exception as fault:  # noqa: BLE001 - a fault of ours must not cost the span
            _guard.swallowed("sink.copy", fault)
        for pair in left:
            with _guard.guard("sink.no_room"):
                self._late(route, pair[0].evaluator, pair, pair[0].error_type is None)
        riding = [pair for pair in pairs if not any(pair is other for other in left)]
        try:
            route.forward(span)
        except Exception as fault:  # noqa: BLE001 - the next processor is not ours
            _guard.swallowed("sink.forward", fault)
            self.exported(riding, "forward_failed")
            return
        if not route.settles:
            self.exported(riding, None)

    def exported(self, pairs: Sequence[Pair], failure: str | None) -> None:
        """How it went for the pairs that rode on one exported span."""
        for pair in pairs:
            if pair[0].error_type is not None:
                continue
            if failure is None:
                self.ledger.delivered(pair[0].evaluator, "span_event")
            else:
                self.ledger.undelivered(pair[0].evaluator, failure)

    def _log_copy(self, evaluator: EvaluatorInfo, pair: Pair, scored: bool) -> None:
        """The second carrier of a score that rides on its span."""
        log_events = self.log_events
        if log_events is None:
            return
        sent = [log_events.emit(record) for record in pair]
        if scored and all(sent):
            self.ledger.also(evaluator, "log_event")

    def _late(self, route: Route, evaluator: EvaluatorInfo, pair: Pair, scored: bool) -> None:
        """The span has left, or is somebody else's: by log event where those are taken, else by evaluation span."""
        if not route.exports:
            self._by_span(route, evaluator, pair, scored)
            self._log_copy(evaluator, pair, scored)
            return

        def settled(failure: str | None) -> None:
            if failure == REFUSED:
                self._by_span(route, evaluator, pair, scored)
            elif scored and failure is None:
                self.ledger.delivered(evaluator, "log_event")
            elif scored and failure is not None:
                self.ledger.undelivered(evaluator, failure)

        if self.log_events is None or not self.log_events.emit_all(pair, settled):
            self._by_span(route, evaluator, pair, scored)

    def _by_span(self, route: Route, evaluator: EvaluatorInfo, pair: Pair, scored: bool) -> None:
        tracer = route.tracer()
        for record in pair:
            evaluation_span.emit(tracer, record, self._policy)
        if scored:
            self.ledger.delivered(evaluator, "evaluation_span")
