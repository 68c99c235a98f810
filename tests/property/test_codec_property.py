"""The codec over arbitrary bytes, arbitrary JSON, and arbitrary requests in both encodings."""

import base64
import json
import math
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from spangrade.samples import kinds
from spangrade_agent import codec
from spangrade_agent.wire import SIGNALS, Encoding, Signal

slow_ok = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
REQUESTS: dict[Signal, type[Message]] = {
    "traces": ExportTraceServiceRequest,
    "logs": ExportLogsServiceRequest,
    "metrics": ExportMetricsServiceRequest,
}
IDS = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}


def take(body: bytes, encoding: Encoding) -> int:
    """All that the agent does with a body; returns how many spans were read. Only `BadRequest` may come out."""
    read = 0
    for signal in SIGNALS:
        try:
            relayed, rejected, why = codec.decode_other_counted(signal, body, encoding)
        except codec.BadRequest:
            continue
        assert rejected == 0 or why
        REQUESTS[signal].FromString(relayed)
    try:
        request, rejected, why = codec.decode_traces(body, encoding)
    except codec.BadRequest:
        return 0
    assert rejected == 0 or why
    assert ExportTraceServiceRequest.FromString(request.SerializeToString()).ByteSize() == request.ByteSize()
    codec.response("traces", encoding, rejected, why)
    found = codec.quick_llm(request.SerializeToString())
    for group in request.resource_spans:
        resource = codec.attributes_of_kvs(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                data = codec.span_data(span, resource, scope.scope)
                assert data.trace_id
                assert data.span_id
                assert found or kinds.quick_kind(data.attributes) is None
                codec.add_scores(span, [], ["a@b"])
                codec.wrap_span(group, scope, span)
                read += 1
    return read


@slow_ok
@given(st.binary(max_size=200))
def test_arbitrary_bytes(body: bytes) -> None:
    for encoding in ("protobuf", "json"):
        take(body, encoding)


def names_of(descriptor: Descriptor, known: set[str]) -> set[str]:
    """The JSON names of all fields below."""
    for field in descriptor.fields:
        if field.json_name not in known:
            known.add(field.json_name)
            if field.message_type is not None:
                names_of(field.message_type, known)
    return known


# Names that lead the walk in, at whatever place; and values that are nearly right.
NAMES = st.sampled_from(sorted(names_of(ExportTraceServiceRequest.DESCRIPTOR, {"logRecords", "dataPoints", "data"})))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "12", "NaN", "\ud83d", "AAEC", "gen_ai.x"]
    )
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=6)
)


@slow_ok
@given(JSON)
def test_arbitrary_json(value: Any) -> None:
    take(json.dumps(value).encode(), "json")


@slow_ok
@given(st.dictionaries(NAMES, JSON, max_size=8), JSON)
def test_an_arbitrary_span_among_good_ones_costs_no_good_one(span: dict[str, Any], other: Any) -> None:
    good = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "good"}
    spans = [good, span, {**good, **span, "name": "maybe"}, other, good]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}], "resource": other}]}).encode()
    assert take(body, "json") >= 2
    request, rejected, _ = codec.decode_traces(body, "json")
    read = request.resource_spans[0].scope_spans[0].spans
    assert (read[0].name, read[-1].name) == ("good", "good")
    assert len(read) + rejected == 5


# --- both encodings ---------------------------------------------------------------------------------------------------

#: The lists that lead to a span's attributes and their like are never empty: most requests would say nothing else.
WAY = frozenset(
    [
        "resource_spans",
        "scope_spans",
        "spans",
        "resource_logs",
        "scope_logs",
        "log_records",
        "resource_metrics",
        "scope_metrics",
        "metrics",
        "data_points",
        "attributes",
    ]
)
#: An attribute without a key is left out, and nothing without ids is a span.
NEEDED = frozenset([("Span", "trace_id"), ("Span", "span_id"), ("KeyValue", "key"), ("KeyValue", "value")])


def messages(descriptor: Descriptor, levels: int) -> st.SearchStrategy[Any]:
    """Any message of this type, some of its fields set, lists of at most two."""
    kind: Any = GetMessageClass(descriptor)
    fields = [field for field in descriptor.fields if levels > 0 or field.message_type is None]
    always = {f.name: values(f, levels) for f in fields if (descriptor.name, f.name) in NEEDED or f.name in WAY}
    others = {f.name: values(f, levels) for f in fields if f.name not in always}
    chosen = st.lists(st.sampled_from(sorted(others)), max_size=4, unique=True) if others else st.just([])

    def build(picked: dict[str, Any]) -> Any:
        message = kind()
        for name, value in picked.items():
            if isinstance(value, list):
                getattr(message, name).extend(value)
            elif isinstance(value, Message):
                getattr(message, name).CopyFrom(value)
                getattr(message, name).SetInParent()
            else:
                setattr(message, name, value)
        return message

    return chosen.flatmap(
        lambda names: st.fixed_dictionaries({**always, **{name: others[name] for name in names}})
    ).map(build)


def values(field: FieldDescriptor, levels: int) -> st.SearchStrategy[Any]:
    one = (
        scalars(field) if field.message_type is None else st.deferred(lambda: messages(field.message_type, levels - 1))
    )
    repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == 3
    return st.lists(one, min_size=int(field.name in WAY), max_size=2) if repeated else one


def scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    kind = field.cpp_type
    if field.name in IDS:
        exact = st.binary(min_size=IDS[field.name], max_size=IDS[field.name])
        return exact.filter(any)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=9)
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return st.sampled_from(sorted(field.enum_type.values_by_number))
    ranges = {
        FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
        FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
        FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
        FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    }
    if kind in ranges:
        return st.integers(*ranges[kind])
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return st.text(min_size=1 if field.name == "key" else 0, max_size=9)
    return st.floats(allow_nan=False) | st.just(math.nan)


def otlp_json(message: Message, *, snake: bool, numbers: bool, upper: bool) -> bytes:
    """Another writer's OTLP/JSON: protobuf's own, with its base64 ids turned into hex."""
    plain = MessageToDict(message, use_integers_for_enums=True, preserving_proto_field_name=snake)

    def fixed(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: fixed(key, inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [fixed(name, inner) for inner in value]
        if name in ("traceId", "spanId", "parentSpanId", *IDS):
            digits = base64.b64decode(value).hex()
            return digits.upper() if upper else digits
        if numbers and name in ("intValue", "int_value", "startTimeUnixNano", "start_time_unix_nano", "count"):
            return int(value)
        return value

    return json.dumps(fixed("", plain)).encode()


@pytest.mark.parametrize("signal", SIGNALS)
@settings(slow_ok, max_examples=40)
@given(data=st.data(), snake=st.booleans(), numbers=st.booleans(), upper=st.booleans())
def test_json_is_read_as_the_protobuf_request_it_was_made_of(
    signal: Signal, data: st.DataObject, snake: bool, numbers: bool, upper: bool
) -> None:
    """Names, ids, integers, enums, presence of optional and empty fields: byte for byte the same request."""
    request = data.draw(messages(REQUESTS[signal].DESCRIPTOR, 8))
    body = request.SerializeToString()
    text = otlp_json(request, snake=snake, numbers=numbers, upper=upper)
    assert codec.decode_other_counted(signal, text, "json") == (body, 0, "")
    if signal == "traces":
        read, rejected, why = codec.decode_traces(text, "json")
        assert (read.SerializeToString(), rejected, why) == (body, 0, "")
        assert codec.decode_traces(body, "protobuf")[0].SerializeToString() == body


@settings(slow_ok, max_examples=40)
@given(data=st.data(), unknown=st.binary(min_size=1, max_size=8))
def test_fields_of_a_later_protocol_go_through(data: st.DataObject, unknown: bytes) -> None:
    """At every level of a span's message."""
    request = data.draw(messages(ExportTraceServiceRequest.DESCRIPTOR, 6))
    later = b"\xa2\x1f" + bytes([len(unknown)]) + unknown
    for group in request.resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                for message in (span, *span.attributes, *span.events, *span.links):
                    message.MergeFromString(later)
    body = request.SerializeToString()
    read, rejected, _ = codec.decode_traces(body, "protobuf")
    assert rejected == 0
    assert read.SerializeToString() == body
