"""OTLP's protobuf messages as plain JSON that a person can read: one object for each span and each log record."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.proto.trace.v1.trace_pb2 import Status as SpanStatus

JsonObject = dict[str, Any]


def plain_value(value: AnyValue) -> Any:
    """An attribute's value as JSON can carry it: bytes as base64, and the three unusual floats by name."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [plain_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return plain_attributes(value.kvlist_value.values)
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode("ascii")
    if kind == "double_value" and not math.isfinite(value.double_value):
        return str(value.double_value)
    return getattr(value, kind)


def plain_attributes(pairs: Iterable[KeyValue]) -> JsonObject:
    return {pair.key: plain_value(pair.value) for pair in pairs}


def plain_scope(scope: InstrumentationScope) -> JsonObject:
    return {"name": scope.name, "version": scope.version, "attributes": plain_attributes(scope.attributes)}


def plain_span(span: Span) -> JsonObject:
    return {
        "trace_id": span.trace_id.hex(),
        "span_id": span.span_id.hex(),
        "parent_span_id": span.parent_span_id.hex() or None,
        "name": span.name,
        "kind": Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        "start_time_unix_nano": span.start_time_unix_nano,
        "end_time_unix_nano": span.end_time_unix_nano,
        "status": {
            "code": SpanStatus.StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
            "message": span.status.message,
        },
        "attributes": plain_attributes(span.attributes),
        "events": [
            {
                "name": event.name,
                "time_unix_nano": event.time_unix_nano,
                "attributes": plain_attributes(event.attributes),
            }
            for event in span.events
        ],
        "links": [
            {
                "trace_id": link.trace_id.hex(),
                "span_id": link.span_id.hex(),
                "attributes": plain_attributes(link.attributes),
            }
            for link in span.links
        ],
    }


def plain_log(record: LogRecord) -> JsonObject:
    return {
        "trace_id": record.trace_id.hex() or None,
        "span_id": record.span_id.hex() or None,
        "event_name": record.event_name,
        "time_unix_nano": record.time_unix_nano,
        "observed_time_unix_nano": record.observed_time_unix_nano,
        "severity_number": record.severity_number,
        "severity_text": record.severity_text,
        "body": plain_value(record.body),
        "attributes": plain_attributes(record.attributes),
    }


def spans_of(request: ExportTraceServiceRequest) -> Iterator[JsonObject]:
    for group in request.resource_spans:
        resource = plain_attributes(group.resource.attributes)
        for scoped in group.scope_spans:
            for span in scoped.spans:
                yield {**plain_span(span), "resource": resource, "scope": plain_scope(scoped.scope)}


def logs_of(request: ExportLogsServiceRequest) -> Iterator[JsonObject]:
    for group in request.resource_logs:
        resource = plain_attributes(group.resource.attributes)
        for scoped in group.scope_logs:
            for record in scoped.log_records:
                yield {**plain_log(record), "resource": resource, "scope": plain_scope(scoped.scope)}
