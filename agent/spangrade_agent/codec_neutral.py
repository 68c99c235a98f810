"""Whole requests as neutral spans, and as events of the spans that their log records belong to."""

from collections.abc import Iterator

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from spangrade.model.span import EventData, SpanData
from spangrade.samples.logs import as_event
from spangrade_agent import codec
from spangrade_agent.wire import Encoding


def spans_of(request: ExportTraceServiceRequest) -> Iterator[SpanData]:
    """Every span of a request."""
    for group in request.resource_spans:
        resource = codec.attributes_of_kvs(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                yield codec.span_data(span, resource, scope.scope)


def log_events(body: bytes, encoding: Encoding) -> tuple[list[tuple[int, int, EventData]], int, str]:
    """``([(trace id, span id, event)], rejected, message)`` of a logs request: see `events_of`; how many could not be read,
    and why.

    Raises:
        BadRequest: the body as a whole cannot be read.
    """
    request, rejected, message = codec.decode_logs(body, encoding)
    return list(events_of(request)), rejected, message


def events_of(request: ExportLogsServiceRequest) -> Iterator[tuple[int, int, EventData]]:
    """``(trace id, span id, event)`` of the records that belong to a span and have a name."""
    for group in request.resource_logs:
        for scope in group.scope_logs:
            for record in scope.log_records:
                if len(record.trace_id) != 16 or len(record.span_id) != 8:
                    continue
                trace_id, span_id = int.from_bytes(record.trace_id, "big"), int.from_bytes(record.span_id, "big")
                event = trace_id and span_id and event_of(record)
                if event:
                    yield trace_id, span_id, event


def event_of(record: LogRecord) -> EventData | None:
    """One record as `as_event` has it."""
    return as_event(
        record.event_name,
        codec.attributes_of_kvs(record.attributes),
        codec.value_of(record.body),
        record.time_unix_nano,
        record.observed_time_unix_nano,
    )
