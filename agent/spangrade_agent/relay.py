"""OTLP requests in, spans on: calls wait for their scores, everything else goes on at once.

The sender is told the truth: what goes on at once is sent upstream before the request is acknowledged, and the
upstream's answer is the sender's. Calls are taken over only after that; from then on they are the agent's to deliver.
A request that a sender repeats, since the acknowledgement was lost, does not score or send a call again; its other spans
are sent again (the agent remembers calls only).

Log records are joined to the calls that they belong to (a request that comes again says nothing new), and go on.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from spangrade import _guard
from spangrade._log import once
from spangrade.delivery.hold import Held
from spangrade.delivery.sink import SpanSink
from spangrade.model.span import SpanData
from spangrade.samples.extract import quick_kind
from spangrade.samples.logs import holds_content
from spangrade.scoring.pipeline import Pipeline
from spangrade.scoring.seam import Offer
from spangrade_agent import codec
from spangrade_agent.carriers import AgentCarriers, Origin
from spangrade_agent.codec_neutral import events_of
from spangrade_agent.wire import Answer, Encoding, Kind, Signal, Upstream

Mode = Literal["relay", "tap"]
MAX_SEEN: Final = 65_536
FULL_RETRY_S: Final = 1.0

_Key = tuple[bytes, bytes, int, int]


@dataclass(slots=True)
class Counts:
    """What came in and what became of it. Read by the admin listener; a lost increment would be a small lie, so the
    relay's lock is held where they change."""

    received: int = 0
    passed_on: int = 0
    held: int = 0
    rejected: int = 0
    duplicates: int = 0


@dataclass(slots=True)
class _Plan:
    """One request, sorted: offers for the pipeline, spans to hold, and whether anything was taken out of it."""

    offers: list[Offer]
    holds: list[Held]
    changed: bool = False
    duplicates: int = 0


class Relay:
    """Implements `Ingest`. ``upstream`` None: nothing is sent on (scores are on the page only)."""

    def __init__(
        self, pipeline: Pipeline, sink: SpanSink, carriers: AgentCarriers, upstream: Upstream | None, mode: Mode
    ) -> None:
        self._pipeline = pipeline
        self._sink = sink
        self._carriers = carriers
        self._upstream = upstream
        self._mode = mode
        self._lock = threading.Lock()
        self._seen: OrderedDict[_Key, None] = OrderedDict()
        self.counts = Counts()
        self.refused: dict[tuple[Signal, Kind], int] = {}  # requests that the destination did not take, by its answer

    def ingest(self, signal: Signal, body: bytes, encoding: Encoding) -> Answer:
        """Take one request; see `Ingest`."""
        try:
            if signal == "traces":
                return self._traces(body, encoding)
            if signal == "logs":
                return self._logs(body, encoding)
            rejected, message = 0, ""
            if encoding == "json":
                body, rejected, message = codec.decode_other_counted(signal, body, encoding)
        except codec.BadRequest as fault:
            return Answer(Kind.BAD, str(fault))
        return _with(self._send(signal, body), rejected, message)

    def _logs(self, body: bytes, encoding: Encoding) -> Answer:
        """Log records go on as they came, as far as their content may; what was said in them is joined to its span as well,
        also where the destination takes no logs."""
        request, rejected, message = codec.decode_logs(body, encoding)
        if self._pipeline.placed:
            with _guard.guard("relay.logs"):
                for trace_id, span_id, event in events_of(request):
                    if holds_content(event):
                        self._pipeline.offer_log(trace_id, span_id, event)
        changed = encoding == "json" or bool(rejected or message)
        if self._mode == "relay" and self._upstream is not None:
            for group in request.resource_logs:
                for scope in group.scope_logs:
                    changed = self._carriers.clean_logs(scope) or changed
        return _with(self._send("logs", _serialized_logs(request) if changed else body), rejected, message)

    def _send(self, signal: Signal, body: bytes) -> Answer:
        # A tap is given a copy: the original goes its own way, so nothing of it is sent on.
        if self._upstream is None or self._mode == "tap" or not body:
            return Answer()
        answer = self._upstream.send(signal, body)
        if answer.kind is not Kind.OK:
            with self._lock:
                self.refused[signal, answer.kind] = self.refused.get((signal, answer.kind), 0) + 1
            once(
                f"relay:{signal}:{answer.kind}",
                "the destination does not take requests; their senders are told so, and this is said once",
                signal=signal,
                answer=answer.kind.value,
                message=answer.message[:200],
            )
        return answer

    def _traces(self, body: bytes, encoding: Encoding) -> Answer:
        if self._carriers.full():
            return Answer(Kind.RETRY, "the agent's queue is full", retry_after_s=FULL_RETRY_S)
        request, rejected, message = codec.decode_traces(body, encoding)
        total = sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
        plan = self._plan(request)
        untouched = encoding == "protobuf" and not plan.changed and not rejected and not message
        answer = self._send("traces", body if untouched else _serialized(request))
        if answer.kind is not Kind.OK:
            self._forget(plan.holds)
            return answer
        for held in plan.holds:
            if not held.gone:
                self._sink.hold.put(held)
        for offer in plan.offers:
            self._offer(offer)
        with self._lock:
            self.counts.received += total + rejected
            self.counts.held += len(plan.holds)
            self.counts.duplicates += plan.duplicates
            self.counts.passed_on += total - len(plan.holds) - plan.duplicates
            self.counts.rejected += rejected
        return _with(answer, rejected, message)

    def _offer(self, offer: Offer) -> None:
        taken = False
        with _guard.guard("relay.offer"):
            taken = self._pipeline.offer(offer)
        if not taken and offer.ticket is not None:
            self._sink.settle(offer.ticket)

    # --- sorting ---------------------------------------------------------------------------------------------------------

    def _plan(self, request: ExportTraceServiceRequest) -> _Plan:
        plan = _Plan([], [])
        now = self._pipeline.clock.monotonic()
        for resource_spans in request.resource_spans:
            resource = codec.attributes_of_kvs(resource_spans.resource.attributes)
            shell: ResourceSpans | None = None  # what a span that waits takes along; made when one does
            for scope_spans in resource_spans.scope_spans:
                scope_shell: ScopeSpans | None = None
                for at in range(len(scope_spans.spans) - 1, -1, -1):  # backwards: spans are taken out on the way
                    span = scope_spans.spans[at]
                    data = codec.span_data(span, resource, scope_spans.scope)
                    if not self._waits(data):
                        plan.offers.append(Offer(data, None, None, now))
                        if self._mode == "relay" and self._upstream is not None:
                            plan.changed = self._carriers.clean(span) or plan.changed
                        continue
                    if self._seen_before(span):
                        plan.duplicates += 1
                    else:
                        if shell is None:
                            shell = ResourceSpans(
                                resource=resource_spans.resource, schema_url=resource_spans.schema_url
                            )
                        if scope_shell is None:
                            scope_shell = ScopeSpans(scope=scope_spans.scope, schema_url=scope_spans.schema_url)
                        held = self._held(Origin(shell, scope_shell, _copied(span)), now)
                        plan.holds.append(held)
                        plan.offers.append(Offer(data, held, None, now, size=held.bytes))
                    del scope_spans.spans[at]
                    plan.changed = True
        plan.offers.reverse()
        return plan

    def _waits(self, data: SpanData) -> bool:
        kind = quick_kind(data.attributes)
        if kind is None or kind == "evaluator":
            return False
        wanted = self._pipeline.wanted
        if kind in wanted.root_kinds or kind in wanted.kinds:
            return True
        return bool(wanted.rules and wanted.by_itself(kind, data.name, data.scope_name, data.attributes))

    def _held(self, origin: Origin, now: float) -> Held:
        deadline = now + self._pipeline.settings.judge_hold
        return Held(origin, None, origin.span.ByteSize() + 512, deadline, gone=self._mode == "tap")

    def _seen_before(self, span: Span) -> bool:
        key = _key(span)
        with self._lock:
            if key in self._seen:
                return True
            self._seen[key] = None
            if len(self._seen) > MAX_SEEN:
                self._seen.popitem(last=False)
            return False

    def _forget(self, holds: list[Held]) -> None:
        """The request was refused: when it comes again, its calls are new."""
        with self._lock:
            for held in holds:
                self._seen.pop(_key(held.span.span), None)


def _with(answer: Answer, rejected: int, message: str) -> Answer:
    """The destination's answer, and what could not be read."""
    if answer.kind is Kind.OK and (rejected or message):
        return Answer(Kind.OK, message or answer.message, rejected + answer.rejected)
    return answer


def _key(span: Span) -> _Key:
    """A span that is sent again has the same times; another one with the same ids (of a seeded generator) has not."""
    return span.trace_id, span.span_id, span.start_time_unix_nano, span.end_time_unix_nano


def _copied(span: Span) -> Span:
    copy = Span()
    copy.CopyFrom(span)
    return copy


def _serialized(request: ExportTraceServiceRequest) -> bytes:
    """The request without envelopes that hold no span; empty when none is left."""
    for resource_spans in request.resource_spans:
        _drop(resource_spans.scope_spans, lambda scope: scope.spans)
    _drop(request.resource_spans, lambda group: group.scope_spans)
    return request.SerializeToString()


def _serialized_logs(request: ExportLogsServiceRequest) -> bytes:
    """The same of log records."""
    for resource_logs in request.resource_logs:
        _drop(resource_logs.scope_logs, lambda scope: scope.log_records)
    _drop(request.resource_logs, lambda group: group.scope_logs)
    return request.SerializeToString()


def _drop(envelopes: Any, held: Callable[[Any], Any]) -> None:
    """Take away those that hold nothing."""
    for at in range(len(envelopes) - 1, -1, -1):
        if not held(envelopes[at]):
            del envelopes[at]
