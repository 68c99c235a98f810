"""The SDK's carriers: a held copy for the next processor, log events, evaluation spans."""

from collections.abc import Sequence
from typing import Any, Protocol, cast

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Tracer

from spangrade import _guard
from spangrade.delivery import evaluation_span
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.hold import Held
from spangrade.delivery.log_events import LogEvents
from spangrade.delivery.sink import NotForwarded, Pair, Settled
from spangrade.delivery.span_copy import scored_copy
from spangrade.model.outcome import ScoreRecord


class Route(Protocol):
    """Where one provider's spans go: a processor or exporter of ours is one. See `Carriers` for the first two;
    ``settles_evaluations``: the same as the second, of evaluation spans."""

    @property
    def exports(self) -> bool: ...

    @property
    def settles(self) -> bool: ...

    @property
    def settles_evaluations(self) -> bool: ...

    def forward(self, span: ReadableSpan) -> None:
        """Hand a span on. May raise."""

    def tracer(self) -> Tracer:
        """Where evaluation spans start."""


class OtelCarriers:
    """Implements `Carriers`. ``log_events``: the logs pipeline, if there is one."""

    def __init__(self, policy: ContentPolicy, log_events: LogEvents | None = None, max_events: int = 128) -> None:
        self._policy = policy
        self._log_events = log_events
        self._max_events = max_events

    def exports(self, held: Held) -> bool:
        """See `Carriers`."""
        return _route(held).exports

    def settles(self, held: Held) -> bool:
        """See `Carriers`."""
        return _route(held).settles

    def shell(self, held: Held) -> Any:  # noqa: ARG002 - the record names its span
        """See `Carriers`."""
        return None

    def carry(self, held: Held, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """See `Carriers`."""
        span: Any = held.span
        left: Sequence[Pair] = pairs
        try:
            span, left = scored_copy(held.span, pairs, held.taken, self._max_events)
        except Exception as fault:  # noqa: BLE001 - a fault of ours must not cost the span
            _guard.swallowed("carriers.copy", fault)
        try:
            _route(held).forward(span)
        except BaseException as fault:
            # Whatever the next hop raises (a sys.exit too) is its own; our thread and the next spans must outlive it.
            _guard.swallowed("carriers.forward", fault)
            raise NotForwarded from fault
        return left

    def log(self, held: Held, pair: Pair, settled: Settled | None) -> bool:  # noqa: ARG002 - one pipeline for all routes
        """See `Carriers`."""
        log_events = self._log_events
        if log_events is None:
            return False
        if settled is not None:
            return log_events.emit_all(pair, settled)
        return all([log_events.emit(record) for record in pair])  # noqa: C419 - each of them is to be sent

    def evaluation_span(self, held: Held, record: ScoreRecord, settled: Settled) -> bool:
        """See `Carriers`."""
        route = _route(held)
        if route.settles_evaluations:
            return evaluation_span.emit(route.tracer(), record, self._policy, settled)
        sent = evaluation_span.emit(route.tracer(), record, self._policy)
        if sent:
            settled(None)
        return sent


def _route(held: Held) -> Route:
    return cast("Route", held.route)
