"""What text may leave the agent: the SDK's content policy, on protobuf spans."""

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spangrade.delivery.content import ContentPolicy
from spangrade.samples.extract import CONTENT_EVENTS, is_content_key
from spangrade.semconv import EXPLANATION


def apply(policy: ContentPolicy, span: Span) -> None:
    """Redact and strip ``span`` in place; nothing is touched under the default policy."""
    if policy.changes_nothing:
        return
    _attributes(policy, span.attributes)
    if not policy.export_content:
        kept = [event for event in span.events if event.name not in CONTENT_EVENTS]
        if len(kept) != len(span.events):
            del span.events[:]
            span.events.extend(kept)
    for event in span.events:
        _attributes(policy, event.attributes)
    if policy.redact is not None and span.status.message:
        span.status.message = policy.text(span.status.message)


def _attributes(policy: ContentPolicy, attributes: RepeatedCompositeFieldContainer[KeyValue]) -> None:
    for at in range(len(attributes) - 1, -1, -1):
        key = attributes[at].key
        gone = (
            not policy.export_explanations if key == EXPLANATION else is_content_key(key) and not policy.export_content
        )
        if gone:
            del attributes[at]
        elif policy.redact is not None:
            _value(policy, attributes[at].value)


def _value(policy: ContentPolicy, value: AnyValue) -> None:
    which = value.WhichOneof("value")
    if which == "string_value":
        value.string_value = policy.text(value.string_value)
    elif which == "array_value":
        for item in value.array_value.values:
            _value(policy, item)
    elif which == "kvlist_value":
        for pair in value.kvlist_value.values:
            _value(policy, pair.value)
