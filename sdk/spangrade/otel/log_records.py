"""What instrumentations say in log records, on its way to the calls that they belong to.

The one room that touches the SDK's logs API on the application's side, which is private still (``opentelemetry.sdk._logs``);
where it is not as known, calls are graded by their spans alone, and that is said once. Seen on opentelemetry-sdk 1.40 to 1.45.

We listen on the application's logger provider, and change nothing of what goes through it. The standard library's records
come by OpenTelemetry's `LoggingHandler`, as all others. In a process a record is written before its span ends, so nothing
waits for it.
"""

import os
import weakref
from typing import Any, Final

from opentelemetry import _logs as logs_api
from opentelemetry.sdk.resources import Resource

from spangrade import _guard
from spangrade._log import once
from spangrade._suppress import active
from spangrade._switches import scoring_off
from spangrade._values import snapshot
from spangrade.otel.engine import engines
from spangrade.samples.logs import NAME, as_event, holds_content

#: By this the instrumentations of OpenTelemetry are told to capture content, and where.
CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_IN_LOGS: Final = frozenset({"true", "event_only", "span_and_event"})
_MAX_PROXIES: Final = 4

try:
    from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadWriteLogRecord
except ImportError:  # it has moved
    known = False
else:
    known = True

    class _Listener(LogRecordProcessor):
        """Never raises, never waits; whoever stands beside it gets every record as it was."""

        def on_emit(self, log_record: ReadWriteLogRecord) -> None:
            """A record was written, on the application's thread."""
            try:
                hear(log_record.log_record)
            except Exception as fault:  # noqa: BLE001 - a fault of ours
                _guard.swallowed("logs.on_emit", fault)

        def shutdown(self) -> None:
            """Nothing to end: what it has heard is the pipeline's."""

        def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - the interface's
            """Nothing is kept back."""
            return True


#: Providers that we listen on: nobody can be taken out of one again.
_heard: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def hear(record: Any) -> None:
    """Give a log record to the pipeline, if it belongs to a span that may be graded and something was said in it."""
    engine = engines.current
    if engine is None or not engine.pipeline.placed or not (record.trace_id and record.span_id):
        return
    attributes = record.attributes
    if not record.event_name and not (attributes and NAME in attributes):
        return
    if record.trace_flags is not None and not record.trace_flags & 1:  # its span is not sampled
        return
    if scoring_off() or active():
        return
    # Copies: what the application holds on to may change before it is read.
    event = as_event(
        record.event_name,
        snapshot(dict(attributes.items())) if attributes else None,
        snapshot(record.body),
        record.timestamp,
        record.observed_timestamp,
    )
    if event is not None and holds_content(event):
        engine.pipeline.offer_log(record.trace_id, record.span_id, event)


def listen(*, make: bool = False) -> None:
    """Listen on the global logger provider, when there is something to grade. Never raises.

    ``make``: where there is none, and instrumentations are told to write content to log records, make one and set it. It
    exports nothing: what went nowhere before still goes nowhere but into samples.
    """
    engine = engines.current
    if engine is None or not engine.pipeline.placed:
        return
    if not known:
        once(
            "logs:unknown", "this opentelemetry-sdk's logs API is not known; what is said in log records is not graded"
        )
        return
    with _guard.guard("logs.listen"):
        provider = _provider(make=make)
        if provider is not None and provider not in _heard:
            _heard.add(provider)
            provider.add_log_record_processor(_Listener())


def _provider(*, make: bool) -> Any:
    """Where processors can be added; None: nowhere."""
    found: Any = logs_api.get_logger_provider()
    unset = type(found).__name__ == "ProxyLoggerProvider" and type(found).__module__.startswith("opentelemetry._logs")
    if unset and make and _content_in_logs():
        made = LoggerProvider(Resource.create({}), shutdown_on_exit=False)
        logs_api.set_logger_provider(made)
        return made
    for _ in range(_MAX_PROXIES):
        if hasattr(found, "add_log_record_processor"):
            return found
        found = getattr(found, "provider", None)  # Logfire's, in front of the provider that it has made
    return None


def _content_in_logs() -> bool:
    return os.environ.get(CAPTURE, "").strip().lower() in _IN_LOGS
