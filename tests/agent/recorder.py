"""An ingest that answers as a test tells it and keeps what came; and what the official exporters send to it."""

from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from spangrade_agent.wire import Answer, Encoding, Signal


class Recorder:
    """Scripted: ``answer`` is given to every request, unless ``fault`` is raised instead."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.fault: Exception | None = None
        self.came: list[tuple[Signal, bytes, Encoding]] = []

    def ingest(self, signal: Signal, body: bytes, encoding: Encoding) -> Answer:
        self.came.append((signal, body, encoding))
        if self.fault is not None:
            raise self.fault
        return self.answer


def send_all_three(spans: Any, logs: Any, metrics: Any) -> None:
    """One span ``answer`` with 5,000 characters of input, one record ``hello``, one count ``calls``, by these exporters."""
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    with tracers.get_tracer("t").start_as_current_span("answer") as span:
        span.set_attribute("input.value", "q" * 5000)
    loggers = LoggerProvider()
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    loggers.get_logger("l").emit(body="hello")
    meters = MeterProvider([PeriodicExportingMetricReader(metrics, export_interval_millis=1e9)])
    meters.get_meter("m").create_counter("calls").add(1)
    assert meters.force_flush()
    for provider in (tracers, loggers, meters):
        provider.shutdown()


def assert_all_three_came(recorder: Recorder) -> None:
    """What `send_all_three` sent is what came, in protobuf."""
    bodies = {signal: body for signal, body, encoding in recorder.came if encoding == "protobuf"}
    (span,) = ExportTraceServiceRequest.FromString(bodies["traces"]).resource_spans[0].scope_spans[0].spans
    (record,) = ExportLogsServiceRequest.FromString(bodies["logs"]).resource_logs[0].scope_logs[0].log_records
    (metric,) = ExportMetricsServiceRequest.FromString(bodies["metrics"]).resource_metrics[0].scope_metrics[0].metrics
    assert span.name == "answer"
    assert {pair.key: len(pair.value.string_value) for pair in span.attributes} == {"input.value": 5000}
    assert record.body.string_value == "hello"
    assert metric.name == "calls"
