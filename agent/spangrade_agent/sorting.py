"""One request, sorted: which of its spans wait for scores, and which go on at once."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from spangrade.delivery.hold import Held
from spangrade.model.span import SpanData
from spangrade.samples.extract import quick_kind
from spangrade.scoring.pipeline import Pipeline
from spangrade.scoring.seam import Offer
from spangrade_agent import codec
from spangrade_agent.carriers import AgentCarriers, Origin

Mode = Literal["relay", "tap"]
MAX_SEEN: Final = 65_536

_Key = tuple[bytes, bytes, int, int]


@dataclass(slots=True)
class Plan:
    """One request, sorted: offers for the pipeline, spans to hold, and whether anything was taken out of it."""

    offers: list[Offer]
    holds: list[Held]
    changed: bool = False
    duplicates: int = 0


class Sorter:
    """Remembers the calls that it has seen, so that one that is sent again is known. Thread-safe. ``sends``: there is a
    destination."""

    def __init__(self, pipeline: Pipeline, carriers: AgentCarriers, mode: Mode, *, sends: bool) -> None:
        self._pipeline = pipeline
        self._carriers = carriers
        self._tap = mode == "tap"
        self._goes_on = sends and not self._tap
        self._lock = threading.Lock()
        self._seen: OrderedDict[_Key, None] = OrderedDict()

    def sort(self, request: ExportTraceServiceRequest) -> Plan:
        """Take out of ``request`` the spans that wait, and those that came before; what stays goes on, cleaned."""
        plan = Plan([], [])
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
                        if self._goes_on:
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
        return Held(origin, None, origin.span.ByteSize() + 512, deadline, gone=self._tap)

    def _seen_before(self, span: Span) -> bool:
        key = _key(span)
        with self._lock:
            if key in self._seen:
                return True
            self._seen[key] = None
            if len(self._seen) > MAX_SEEN:
                self._seen.popitem(last=False)
            return False

    def forget(self, holds: list[Held]) -> None:
        """The request was refused: when it comes again, its calls are new."""
        with self._lock:
            for held in holds:
                self._seen.pop(_key(held.span.span), None)


def _key(span: Span) -> _Key:
    """A span that is sent again has the same times; another one with the same ids (of a seeded generator) has not."""
    return span.trace_id, span.span_id, span.start_time_unix_nano, span.end_time_unix_nano


def _copied(span: Span) -> Span:
    copy = Span()
    copy.CopyFrom(span)
    return copy


def serialized(request: ExportTraceServiceRequest) -> bytes:
    """The request without envelopes that hold no span; empty when none is left."""
    for resource_spans in request.resource_spans:
        _drop(resource_spans.scope_spans, lambda scope: scope.spans)
    _drop(request.resource_spans, lambda group: group.scope_spans)
    return request.SerializeToString()


def serialized_logs(request: ExportLogsServiceRequest) -> bytes:
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
