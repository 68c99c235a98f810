"""Scores as protobuf: events on the span that leaves, log records, evaluation spans, and requests to carry them.

The same attributes, names and times as the SDK's carriers (`spangrade.delivery`), so that a reader cannot tell the hosts
apart. Everything is made of the record alone: a resend has identical bytes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, SpanFlags

from spangrade import semconv as s
from spangrade._values import bounded, dumps, snapshot, valid
from spangrade.delivery.payload import attributes_of, summary
from spangrade.model.outcome import ScoreRecord

#: The scope of what is ours: evaluation spans and log records.
OUR_SCOPE: Final = InstrumentationScope(name=s.SCOPE)


def add_scores(
    span: Span, pairs: Sequence[tuple[ScoreRecord, ...]], taken: Sequence[str], max_events: int = 128
) -> list[tuple[ScoreRecord, ...]]:
    """Put the scores of ``pairs`` on ``span`` itself, as events, and ``taken`` into its mark of who scores it.

    Returns the pairs for which there was no room: past ``max_events`` a store drops the oldest events, which would be the
    application's own. A pair goes as a whole or not at all. Fields that this protobuf schema does not know stay.
    """
    room = max(0, max_events - len(span.events))
    left: list[tuple[ScoreRecord, ...]] = []
    for records in pairs:
        if len(records) > room:
            left.append(records)
            continue
        room -= len(records)
        for record in records:
            _add_event(span, record, attributes_of(record))
    if taken:
        _mark(span, taken)
    return left


def evaluation_span(record: ScoreRecord) -> Span:
    """One score as a span of no length, child of the scored span, at its end.

    Its id is the beginning of the score's own, so that a store that gets it twice sees one span.
    """
    ref, attributes = record.span, attributes_of(record)
    end = ref.end_ns or record.time_ns
    span = Span(
        trace_id=ref.trace_id.to_bytes(16, "big"),
        span_id=bytes.fromhex(record.score_id[:16]),
        parent_span_id=ref.span_id.to_bytes(8, "big"),
        trace_state=valid(ref.trace_state),
        flags=(ref.trace_flags & 0xFF) | SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK,
        name=bounded(f"evaluation {record.graded.name}", 256),
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=end,
        end_time_unix_nano=end,
    )
    span.status.SetInParent()
    for key, value in attributes.items():
        if key != s.RESPONSE_ID:  # Phoenix makes an output up from it
            _add(span.attributes, key, value)
    _add(span.attributes, s.OI_KIND, "EVALUATOR")
    _add(span.attributes, s.OPERATION_NAME, "evaluation")
    _add_event(span, record, attributes)
    return span


def log_record(record: ScoreRecord) -> LogRecord:
    """One score as the log event `gen_ai.evaluation.result`, with the ids of the scored span."""
    failed = record.error_type is not None
    made = LogRecord(
        time_unix_nano=record.time_ns,
        observed_time_unix_nano=record.time_ns,  # not the clock: a resend is the same record
        severity_number=SeverityNumber.SEVERITY_NUMBER_WARN if failed else SeverityNumber.SEVERITY_NUMBER_INFO,
        severity_text="WARN" if failed else "INFO",
        trace_id=record.span.trace_id.to_bytes(16, "big"),
        span_id=record.span.span_id.to_bytes(8, "big"),
        flags=record.span.trace_flags & 0xFF,
        event_name=s.EVALUATION_EVENT,
    )
    made.body.string_value = valid(summary(record))
    for key, value in attributes_of(record).items():
        _add(made.attributes, key, value)
    # Some stores keep neither EventName nor an empty body, so both are also where everything looks.
    _add(made.attributes, "event.name", s.EVALUATION_EVENT)
    return made


def wrap_span(resource_spans: ResourceSpans, scope_spans: ScopeSpans, *spans: Span) -> bytes:
    """An encoded ExportTraceServiceRequest of ``spans`` only, under the resource, scope and schema urls of the groups
    they came in. Requests joined by ``b"".join`` are one valid request: it is one repeated field."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add(schema_url=resource_spans.schema_url)
    if resource_spans.HasField("resource"):
        group.resource.CopyFrom(resource_spans.resource)
    scope = group.scope_spans.add(schema_url=scope_spans.schema_url)
    if scope_spans.HasField("scope"):
        scope.scope.CopyFrom(scope_spans.scope)
    scope.spans.extend(spans)
    return request.SerializeToString()


def wrap_log(resource: Resource, *records: LogRecord, schema_url: str = "") -> bytes:
    """An encoded ExportLogsServiceRequest of ``records`` under the scored span's resource (``schema_url``: that of the
    resource) and our scope. Such requests too can be joined by ``b"".join``."""
    request = ExportLogsServiceRequest()
    group = request.resource_logs.add(resource=resource, schema_url=schema_url)
    group.scope_logs.add(scope=OUR_SCOPE, log_records=records)
    return request.SerializeToString()


def _add_event(span: Span, record: ScoreRecord, attributes: Mapping[str, Any]) -> None:
    event = span.events.add(name=s.EVALUATION_EVENT, time_unix_nano=record.time_ns)
    for key, value in attributes.items():
        _add(event.attributes, key, value)


def _mark(span: Span, taken: Sequence[str]) -> None:
    """Add ``taken`` to ``spangrade.scored_by``, each once, those of earlier hops first."""
    known: list[str] = []
    mark: AnyValue | None = None
    for pair in span.attributes:
        if pair.key == s.SCORED_BY:
            mark = pair.value
    if mark is None:
        mark = span.attributes.add(key=s.SCORED_BY).value
    elif mark.HasField("array_value"):
        known = [item.string_value for item in mark.array_value.values]
    elif mark.string_value:  # some exporters flatten a list of one
        known = [mark.string_value]
    mark.array_value.SetInParent()
    del mark.array_value.values[:]
    for key in dict.fromkeys((*known, *taken)):
        mark.array_value.values.add(string_value=valid(key))


def _add(attributes: Any, key: str, value: Any) -> None:
    _put(attributes.add(key=valid(key)).value, value)


def _put(held: AnyValue, value: Any) -> None:
    """``value`` as the Python exporter encodes it; what it could not encode goes as text rather than costing the rest."""
    kind = type(value)
    if kind is str:
        held.string_value = valid(value)
    elif kind is bool:
        held.bool_value = value
    elif kind is int and -(2**63) <= value < 2**63:
        held.int_value = value
    elif kind is float:
        held.double_value = value
    elif kind is bytes:
        held.bytes_value = value
    elif isinstance(value, (list, tuple)):
        held.array_value.SetInParent()
        for item in value:
            _put(held.array_value.values.add(), item)
    elif isinstance(value, Mapping):
        held.kvlist_value.SetInParent()
        for key, item in value.items():
            _add(held.kvlist_value.values, str(key), item)
    elif value is not None:
        plain = snapshot(value)
        held.string_value = plain if isinstance(plain, str) else dumps(plain)
