"""What the applications of this folder have in common: spans (and log records) go out by OTLP over HTTP, to
OTEL_EXPORTER_OTLP_ENDPOINT, as any application's would; and which scenario of the test a trace belongs to is printed at the
end. Where Spangrade can be imported, what it makes of the ended spans in this process is printed with it.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

REPLAY = os.environ.get("REPLAY", "")


def replayed(provider: str, cassette: str, version: str = "") -> str:
    """The base URL of a model's API that says what that cassette recorded; ``version``: "/v1", where a client wants it."""
    return f"{REPLAY}/{provider}/{cassette}{version}"


def make_provider() -> TracerProvider:
    """A provider such as an application makes; libraries that make their own are given to `main` instead."""
    provider = TracerProvider(resource=Resource.create({"service.name": "app"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def make_logs() -> Any:
    """The same for log records."""
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    logs = LoggerProvider(resource=Resource.create({"service.name": "app"}))
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    return logs


class Watch(SpanProcessor):
    """Keeps what ended, and which traces began in which scenario."""

    def __init__(self) -> None:
        self.scenario = ""
        self.traces: dict[str, list[str]] = {}
        self.spans: list[ReadableSpan] = []
        self.logs: list[Any] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        trace_id = f"{span.get_span_context().trace_id:032x}"
        mine = self.traces.setdefault(self.scenario, [])
        if trace_id not in mine:
            mine.append(trace_id)

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)

    # A log record processor, too; the oldest SDKs call it `emit`.
    def on_emit(self, record: Any) -> None:
        self.logs.append(record)

    emit = on_emit


def main(scenarios: Mapping[str, Callable[[], None]], provider: Any, logs: Any = None) -> None:
    """Runs the scenarios that the command line names, flushes, and prints the JSON that the test reads."""
    watch = Watch()
    provider.add_span_processor(watch)
    if logs is not None:
        logs.add_log_record_processor(watch)
    for name in sys.argv[1:]:
        watch.scenario = name
        scenarios[name]()
    provider.force_flush()
    if logs is not None:
        logs.force_flush()
    print(json.dumps({"traces": watch.traces, "in_process": _in_process(watch)}))
    sys.stdout.flush()
    provider.shutdown()
    if logs is not None:
        logs.shutdown()


def _in_process(watch: Watch) -> Any:
    if os.environ.get("IN_PROCESS") != "1":
        return None
    from as_json import described

    from spangrade.otel.adapter import span_data
    from spangrade.samples.logs import as_event, with_logs

    events: dict[tuple[int, int], list[Any]] = {}
    for one in watch.logs:
        record = one.log_record
        event = as_event(record.event_name, record.attributes, record.body, record.timestamp, record.observed_timestamp)
        if event is not None and record.span_id:
            events.setdefault((record.trace_id, record.span_id), []).append(event)
    spans = [span_data(span) for span in watch.spans]
    return described([with_logs(span, events.get((span.trace_id, span.span_id), ())) for span in spans])
