"""How scores leave the agent: on the held span, as OTLP log events, or as evaluation spans, by two bounded queues."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from opentelemetry.proto.logs.v1.logs_pb2 import ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from spangrade import _guard
from spangrade._log import once
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.hold import Held
from spangrade.delivery.sink import REFUSED, NotForwarded, Pair, Settled, SpanSink
from spangrade.model.outcome import ScoreRecord
from spangrade_agent import codec
from spangrade_agent.bodies import SPOOLED
from spangrade_agent.content import apply, apply_to_logs
from spangrade_agent.forward import ForwardQueue
from spangrade_agent.spool.spooled import Kept, Spooled
from spangrade_agent.wire import Signal


@dataclass(frozen=True, slots=True)
class Origin:
    """A span that waits, with what it came in: shells of its resource and scope, which leave with it."""

    resource_spans: ResourceSpans
    scope_spans: ScopeSpans
    span: Span
    kept: Kept | None = None  # where it is in the spool


@dataclass(frozen=True, slots=True)
class _Riding:
    """Pairs on a span that is on its way: how it went is counted."""

    pairs: Sequence[Pair]


class AgentCarriers:
    """Implements `Carriers`. Until `connect` there is no upstream: scores are delivered to the page only. ``tap``: the
    span itself is somebody else's to send."""

    def __init__(
        self,
        policy: ContentPolicy,
        *,
        tap: bool = False,
        max_events: int = 128,
        spooled: Spooled | None = None,
    ) -> None:
        self._policy = policy
        self._traces: ForwardQueue | None = None
        self._logs: ForwardQueue | None = None
        self._logs_open = False
        self._tap = tap
        self._spooled = spooled
        self._max_events = max_events
        self.sink: SpanSink | None = None  # told how exports went; set by whoever wires the two

    def connect(self, traces: ForwardQueue, logs: ForwardQueue) -> None:
        """The queues to the upstream, whose `on_result` are `traces_sent` and `logs_sent`."""
        self._traces, self._logs, self._logs_open = traces, logs, True

    def accept(self, rest: bytes, holds: Sequence[Held]) -> None:
        """Take a request into the spool: ``rest`` of it goes on, ``holds`` wait. There is a spool and a destination.

        Raises:
            SpoolFull, SpoolFault: nothing of it was taken.
        """
        assert self._spooled is not None
        assert self._traces is not None
        origins = [cast("Origin", held.span) for held in holds]
        waiting = [codec.wrap_span(one.resource_spans, one.scope_spans, one.span) for one in origins]
        key, kept = self._spooled.take("traces", rest, waiting)
        for held, origin, one in zip(holds, origins, kept, strict=True):
            held.span = replace(origin, kept=one)
        if key is not None:
            self._traces.put(rest, key=key)  # a queue that is closed leaves it to the next start

    def resume(self) -> int:
        """Queue what was on its way when the process ended; returns how many requests that are."""
        if self._spooled is None:
            return 0
        count = 0
        for signal, queue in (("traces", self._traces), ("logs", self._logs)):
            if queue is not None:
                for key, body in self._spooled.on_their_way("traces" if signal == "traces" else "logs"):
                    queue.put(body, key=key)
                    count += 1
        return count

    def give_up(self, body: bytes, kept: Kept) -> None:
        """A call that waited before a restart goes on as it is: nobody wants to score it any more."""
        if self._traces is not None:
            self._hand_on(self._traces, "traces", body, None, kept)

    def full(self) -> bool:
        """True when nothing more should be taken in. With a spool that is the spool's to say."""
        return self._traces is not None and self._traces.full()

    def clean(self, span: Span) -> bool:
        """Let nothing stay in a span that does not wait but what may leave; True if that may have changed it."""
        apply(self._policy, span)
        return not self._policy.changes_nothing

    def clean_logs(self, logs: ScopeLogs) -> bool:
        """The same of log records."""
        apply_to_logs(self._policy, logs)
        return not self._policy.changes_nothing

    def exports(self, held: Held) -> bool:  # noqa: ARG002 - the same for every span
        """See `Carriers`."""
        return not self._tap

    def settles(self, held: Held) -> bool:  # noqa: ARG002
        """See `Carriers`."""
        return self._traces is not None

    def shell(self, held: Held) -> Origin:
        """See `Carriers`."""
        origin = cast("Origin", held.span)
        return Origin(origin.resource_spans, origin.scope_spans, Span())  # not kept: what it was has left

    def carry(self, held: Held, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """See `Carriers`."""
        origin = cast("Origin", held.span)
        left: Sequence[Pair] = ()
        try:
            left = codec.add_scores(origin.span, pairs, tuple(held.taken), self._max_events)
        except Exception as fault:  # noqa: BLE001 - a fault of ours must not cost the span
            _guard.swallowed("carriers.add_scores", fault)
        apply(self._policy, origin.span)
        if self._traces is None:
            return left
        riding = _Riding([pair for pair in pairs if not any(pair is other for other in left)])
        body = codec.wrap_span(origin.resource_spans, origin.scope_spans, origin.span)
        # The span was acknowledged to its sender, so the queue takes it even at its bound; new requests are refused then.
        if not self._hand_on(self._traces, "traces", body, riding, origin.kept):
            raise NotForwarded
        return left

    def noted(self, held: Held, pair: Pair) -> None:
        """A call that waits has got a judge's scores: they are durable from now on, and paid once."""
        origin = cast("Origin", held.span)
        if self._spooled is None or origin.kept is None or pair[0].evaluator.kind == "code":
            return
        finished = [one for one in held.pairs if one[0].evaluator.kind != "code"]

        def data() -> bytes:
            span = Span()
            span.CopyFrom(origin.span)
            codec.add_scores(span, finished, [one[0].evaluator.key for one in finished], self._max_events)
            return codec.wrap_span(origin.resource_spans, origin.scope_spans, span)

        self._spooled.note(origin.kept, data)

    def _hand_on(self, queue: ForwardQueue, signal: Signal, body: bytes, token: Any, kept: Kept | None = None) -> bool:
        """Queue what was acknowledged, or is the agent's own, durable first where there is a spool. False: it is closed."""
        if self._spooled is None:
            return queue.put(body, token=token, force=True)

        def failed() -> None:
            self.traces_sent([] if token is None else [token], False, SPOOLED)

        self._spooled.hand_on(queue, signal, body, token, kept, failed)
        return True

    def log(self, held: Held, pair: Pair, settled: Settled | None) -> bool:
        """See `Carriers`."""
        if self._logs is None or not self._logs_open:
            return False
        resource = cast("Origin", held.span).resource_spans.resource
        taken = []
        for record in pair:
            body, token = codec.wrap_log(resource, self._log_record(record)), settled if record is pair[-1] else None
            if self._spooled is None:
                taken.append(self._logs.put(body, token=token))
            else:
                taken.append(self._hand_on(self._logs, "logs", body, token))
        return all(taken)

    def _log_record(self, record: ScoreRecord) -> Any:
        made = codec.log_record(record)
        if not self._policy.changes_nothing:
            carrier = Span(attributes=made.attributes)
            apply(self._policy, carrier)
            del made.attributes[:]
            made.attributes.extend(carrier.attributes)
            made.body.string_value = self._policy.text(made.body.string_value)
        return made

    def evaluation_span(self, held: Held, record: ScoreRecord, settled: Settled) -> bool:
        """See `Carriers`."""
        if self._traces is None:
            settled(None)  # there is no destination: the page has it
            return True
        origin = cast("Origin", held.span)
        span = codec.evaluation_span(record)
        apply(self._policy, span)
        scope = ScopeSpans(scope=codec.OUR_SCOPE)
        return self._hand_on(self._traces, "traces", codec.wrap_span(origin.resource_spans, scope, span), settled)

    # --- how it went -------------------------------------------------------------------------------------------------

    def traces_sent(self, tokens: Sequence[Any], ok: bool, reason: str) -> None:
        """The trace queue's `on_result`."""
        failure = None if ok else reason
        for token in tokens:
            if isinstance(token, _Riding):
                if self.sink is not None:
                    self.sink.exported(token.pairs, failure)
            elif callable(token):
                with _guard.guard("carriers.settled"):
                    token(failure)

    def logs_sent(self, tokens: Sequence[Any], ok: bool, reason: str) -> None:
        """The log queue's `on_result`; a destination that takes no logs is left alone from then on."""
        if not ok and reason == "unimplemented" and self._logs_open:
            self._logs_open = False
            once(
                "agent:logs", "the destination takes no OTLP logs; late scores leave as evaluation spans", level="info"
            )
        failure = None if ok else (REFUSED if reason == "unimplemented" else reason)
        for token in tokens:
            if callable(token):
                with _guard.guard("carriers.settled"):
                    token(failure)
