"""Small OTLP requests, made by hand."""

from __future__ import annotations

import secrets
import time
from typing import Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROTOBUF: Final = {"content-type": "application/x-protobuf"}


def marker() -> tuple[str, bytes]:
    """A trace of one span, and its id: what was sent before it to a store that keeps the order can be found when it can."""
    trace_id, now = secrets.token_bytes(16), time.time_ns()
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = trace_id, secrets.token_bytes(8), "marker"
    span.start_time_unix_nano = span.end_time_unix_nano = now
    return trace_id.hex(), request.SerializeToString()


def log_record(text: str) -> bytes:
    """A request with one log record."""
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add().body.string_value = text
    return request.SerializeToString()
