"""What text may leave the agent: the SDK's content policy, on protobuf spans and log records."""

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spangrade import _guard
from spangrade.delivery.content import FAILED, ContentPolicy
from spangrade.samples.logs import NAME
from spangrade.semconv import EVALUATION_EVENT


def apply(policy: ContentPolicy, span: Span) -> None:
    """Redact and strip ``span`` in place; nothing is touched under the default policy. If that fails by a fault of ours,
    all text of the span is withheld, since the other way round would be the worse fault."""
    if policy.changes_nothing:
        return
    try:
        with policy.at_work():
            _apply(policy, span)
    except Exception as fault:  # noqa: BLE001
        _guard.swallowed("content.apply", fault)
        _withhold(span)


def apply_to_logs(policy: ContentPolicy, logs: ScopeLogs) -> None:
    """The same for the log records of one scope, in place. Messages that are a record of their own do not leave at all where
    content may not; an application's own lines are its own, and are redacted only."""
    if policy.changes_nothing:
        return
    for at in range(len(logs.log_records) - 1, -1, -1):
        record = logs.log_records[at]
        try:
            with policy.at_work():
                leaves = _apply_to_log(policy, record)
            if not leaves:
                del logs.log_records[at]
        except Exception as fault:  # noqa: BLE001 - as of a span
            _guard.swallowed("content.apply_to_logs", fault)
            record.ClearField("attributes")
            record.body.string_value = FAILED


def _apply_to_log(policy: ContentPolicy, record: LogRecord) -> bool:
    name = record.event_name or next((kv.value.string_value for kv in record.attributes if kv.key == NAME), "")
    if not policy.event_may_leave(name):
        return False
    if not policy.export_content and name.startswith("gen_ai.") and name != EVALUATION_EVENT:
        record.ClearField("body")  # of an event whose fields nobody knows yet
    if record.body.HasField("kvlist_value"):
        _attributes(policy, record.body.kvlist_value.values)
    else:
        _value(policy, record.body)
    _attributes(policy, record.attributes)
    if record.event_name:
        record.event_name = policy.said(record.event_name)
    return True


def _apply(policy: ContentPolicy, span: Span) -> None:
    span.name = policy.said(span.name)
    _attributes(policy, span.attributes)
    for at in range(len(span.events) - 1, -1, -1):
        if not policy.event_may_leave(span.events[at].name):
            del span.events[at]
    for event in span.events:
        event.name = policy.said(event.name)
        _attributes(policy, event.attributes)
    for link in span.links:
        _attributes(policy, link.attributes)
    if span.status.message:
        span.status.message = policy.description(span.status.message) or ""


def _withhold(span: Span) -> None:
    span.name = FAILED
    span.ClearField("attributes")
    span.ClearField("events")
    for link in span.links:
        link.ClearField("attributes")
    span.status.ClearField("message")


def _attributes(policy: ContentPolicy, attributes: RepeatedCompositeFieldContainer[KeyValue]) -> None:
    for at in range(len(attributes) - 1, -1, -1):
        key = attributes[at].key
        if not policy.may_leave(key):
            del attributes[at]
        elif policy.changes(key):
            _value(policy, attributes[at].value)


def _value(policy: ContentPolicy, value: AnyValue) -> None:
    which = value.WhichOneof("value")
    if which == "string_value":
        value.string_value = policy.said(value.string_value)
    elif which == "bytes_value":
        value.bytes_value = policy.encoded(value.bytes_value)
    elif which == "array_value":
        for item in value.array_value.values:
            _value(policy, item)
    elif which == "kvlist_value":
        for pair in value.kvlist_value.values:
            _value(policy, pair.value)
