"""Requests in protobuf, neutral spans equal to the SDK's, answers, and the cheap test for calls."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry import trace as trace_api
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags, TraceState
from opentelemetry.trace import Status as SpanStatus

from spangrade.model.span import SpanData
from spangrade.otel import adapter
from spangrade.samples import kinds
from spangrade.samples.dialects import DIALECTS
from spangrade_agent import codec
from spangrade_agent.wire import Encoding, Signal

TRACE, SPAN, PARENT = bytes(range(16)), bytes(range(1, 9)), bytes(range(11, 19))


def request_of(*spans: Span) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.extend(spans)
    return request


def spans_of(request: ExportTraceServiceRequest) -> list[SpanData]:
    return [
        codec.span_data(span, codec.attributes_of_kvs(group.resource.attributes), scope.scope)
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def ended(make: Callable[[trace_api.Tracer], None], limits: SpanLimits | None = None) -> list[ReadableSpan]:
    """The spans that ``make`` ends, of a real SDK."""
    exporter = InMemorySpanExporter()
    resource = Resource.create({"service.name": "shop", "service.tags": ["a", "b"]})
    provider = TracerProvider(resource=resource, span_limits=limits, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    make(provider.get_tracer("my.lib", "1.2"))
    return list(exporter.get_finished_spans())


def as_the_agent_sees(spans: list[ReadableSpan]) -> list[SpanData]:
    """Through the real exporter's encoder, the wire and the codec."""
    body = encode_spans(spans).SerializeToString()
    request, rejected, message = codec.decode_traces(body, "protobuf")
    assert (rejected, message) == (0, "")
    assert request.SerializeToString() == body
    return spans_of(request)


def as_the_sdk_sees(span: ReadableSpan) -> SpanData:
    """But for the W3C flags, which the exporter does not send."""
    return replace(adapter.span_data(span), trace_flags=1)


def test_every_attribute_type_is_as_in_the_process() -> None:
    """Text, numbers, bytes, None, nested lists and maps, in attributes and in events."""

    def make(tracer: trace_api.Tracer) -> None:
        with tracer.start_as_current_span("chat", start_time=1_700_000_000_000_000_001) as span:
            span.set_attributes({"text": "Größe 🙂", "empty": "", "yes": True, "no": False, "zero": 0, "n": -(2**63)})
            span.set_attributes({"half": 0.5, "inf": float("inf"), "bytes": b"\xff\x00", "none": None, "list": []})  # type: ignore[dict-item]
            span.set_attribute("mixed", [1, "a", "", None, 2.5, b"x", [1, [2]], {"k": [True]}])  # type: ignore[arg-type]
            span.set_attribute("map", {"a": (1, {"b": (True,)}), "e": {}, "s": ""})  # type: ignore[arg-type]
            span.add_event("first", {"q": [1, 2], "z": {"a": (1,)}}, timestamp=5)  # type: ignore[dict-item]
            span.add_event("second", timestamp=6)
            span.set_status(SpanStatus(StatusCode.ERROR, "it broke"))

    spans = ended(make)
    assert as_the_agent_sees(spans) == [as_the_sdk_sees(span) for span in spans]


def test_parents_flags_states_and_losses_are_as_in_the_process() -> None:
    """A remote parent, a local one and none; trace state; attributes lost to a limit; status ok."""

    def make(tracer: trace_api.Tracer) -> None:
        state = TraceState([("rojo", "00f067"), ("congo", "t61")])
        context = SpanContext(1 << 100, 77, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)
        remote = trace_api.set_span_in_context(NonRecordingSpan(context))
        with tracer.start_as_current_span("entry", remote), tracer.start_as_current_span("inner") as inner:
            inner.set_attributes({f"k{i}": i for i in range(9)})
            inner.set_status(StatusCode.OK)
        tracer.start_span("root").end()

    spans = ended(make, SpanLimits(max_span_attributes=4))
    seen = as_the_agent_sees(spans)
    assert seen == [as_the_sdk_sees(span) for span in spans]
    assert [(s.name, s.parent_is_remote, s.is_local_root) for s in seen] == [
        ("inner", False, False),
        ("entry", True, True),
        ("root", None, True),
    ]
    assert seen[0].dropped_attributes == 5
    assert seen[0].trace_state == "rojo=00f067,congo=t61"


@pytest.mark.parametrize(
    ("flags", "remote", "w3c"),
    [(0, None, 1), (0x100, False, 1), (0x300, True, 1), (0x301, True, 1), (0x303, True, 3), (0x200, None, 1)],
)
def test_flags(flags: int, remote: bool | None, w3c: int) -> None:
    """Bit 9 counts only where bit 8 says that it is meant; flags that say nothing are taken for sampled."""
    data = codec.span_data(Span(parent_span_id=PARENT, flags=flags), {}, InstrumentationScope())
    assert (data.parent_is_remote, data.trace_flags) == (remote, w3c)


def test_a_parent_of_zeros_is_none_and_an_unknown_status_unset() -> None:
    """Open enums may bring any number."""
    span = Span(parent_span_id=bytes(8), flags=0x300)
    span.status.MergeFromString(b"\x18\x63")  # code 99
    data = codec.span_data(span, {}, InstrumentationScope())
    assert (data.parent_span_id, data.parent_is_remote, data.status) == (None, None, "unset")


def test_of_a_key_that_is_there_twice_the_last_counts() -> None:
    span = Span()
    span.attributes.add(key="k").value.int_value = 1
    span.attributes.add(key="k").value.string_value = "two"
    assert codec.attributes_of_kvs(span.attributes) == {"k": "two"}


def test_spans_that_no_store_takes_are_rejected_and_the_rest_stays() -> None:
    good = Span(trace_id=TRACE, span_id=SPAN, parent_span_id=PARENT, name="good")
    bad = [
        Span(span_id=SPAN),
        Span(trace_id=bytes(16), span_id=SPAN),
        Span(trace_id=TRACE[:15], span_id=SPAN),
        Span(trace_id=TRACE),
        Span(trace_id=TRACE, span_id=bytes(8)),
        Span(trace_id=TRACE, span_id=SPAN + b"1"),
        Span(trace_id=TRACE, span_id=SPAN, parent_span_id=b"123"),
    ]
    body = request_of(*bad[:4], good, *bad[4:]).SerializeToString()
    request, rejected, message = codec.decode_traces(body, "protobuf")
    assert [span.name for span in spans_of(request)] == ["good"]
    assert rejected == 7
    assert "spans 7" in message
    assert "traceId is missing, all zero or not of 16 bytes" in message


def test_a_link_with_half_an_id_costs_only_itself() -> None:
    """Go's reader refuses the whole batch for it, so it may not be passed on."""
    span = Span(trace_id=TRACE, span_id=SPAN, dropped_links_count=2)
    span.links.add(trace_id=TRACE, span_id=SPAN)
    span.links.add(trace_id=TRACE[:3], span_id=SPAN)
    span.links.add()
    request, rejected, message = codec.decode_traces(request_of(span).SerializeToString(), "protobuf")
    (kept,) = request.resource_spans[0].scope_spans[0].spans
    assert ([link.trace_id for link in kept.links], kept.dropped_links_count) == ([TRACE, b""], 3)
    assert (rejected, "links 1" in message) == (0, True)


def test_an_empty_body_is_an_empty_request() -> None:
    assert codec.decode_traces(b"", "protobuf") == (ExportTraceServiceRequest(), 0, "")


@pytest.mark.parametrize(
    "body",
    [
        b'{"resourceSpans": []}',
        b"<html>",
        b"\x1f\x8b\x08\x00",
        request_of(Span(trace_id=TRACE, span_id=SPAN, name="cut here")).SerializeToString()[:-3],
        request_of(Span(trace_id=TRACE, span_id=SPAN, name="utf")).SerializeToString().replace(b"utf", b"u\xfff"),
        b"\x9a\x3e\x01a",  # an unknown field alone
    ],
)
def test_what_is_no_protobuf_request_is_refused_with_a_sentence(body: bytes) -> None:
    with pytest.raises(codec.BadRequest, match="the body is no ExportTraceServiceRequest in protobuf: "):
        codec.decode_traces(body, "protobuf")


def test_protobuf_of_other_signals_is_tried_and_comes_back_as_it_is() -> None:
    logs = ExportLogsServiceRequest()
    logs.resource_logs.add().scope_logs.add().log_records.add(severity_text="INFO")
    body = logs.SerializeToString() + b"\x9a\x3e\x01a"
    assert codec.decode_other_counted("logs", body, "protobuf") == (body, 0, "")
    assert codec.decode_other("metrics", b"", "protobuf") == b""
    with pytest.raises(codec.BadRequest, match="ExportMetricsServiceRequest"):
        codec.decode_other("metrics", b"hello", "protobuf")


# --- is there anything to score? ---------------------------------------------------------------------------------------


def test_quick_llm_finds_every_key_that_tells_a_call() -> None:
    """Whatever its value, and whatever dialects there will be: the needles are made of their tables."""
    keys = set(kinds._KEYS).union(*(dialect.kind_marks for dialect in DIALECTS))
    assert len(keys) > 15
    for key in keys:
        span = Span(trace_id=TRACE, span_id=SPAN, name="x")
        span.attributes.add(key=key).value.int_value = 1
        assert codec.quick_llm(request_of(span).SerializeToString()), key


def test_quick_llm_passes_ordinary_spans_by() -> None:
    span = Span(trace_id=TRACE, span_id=SPAN, name="GET /api/items/:id")
    for key in ("http.request.method", "url.path", "server.address", "db.query.text", "messaging.system"):
        span.attributes.add(key=key).value.string_value = "some value"
    assert not codec.quick_llm(request_of(span).SerializeToString())
    assert not codec.quick_llm(b"")


@pytest.mark.parametrize("keys", [["a.b", "a.c", "a"], ["new.kind"], ["x.y", "x.z", "q.x.y"], ["ab", "b", "abc"], []])
def test_every_key_holds_a_needle_and_no_needle_is_idle(keys: list[str]) -> None:
    needles = codec._needles(keys)
    assert all(any(needle in key.encode() for needle in needles) for key in keys)
    assert all(any(needle in key.encode() for key in keys) for needle in needles)


# --- answers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signal", "kind", "json_field"),
    [
        ("traces", ExportTraceServiceResponse, "rejectedSpans"),
        ("logs", ExportLogsServiceResponse, "rejectedLogRecords"),
        ("metrics", ExportMetricsServiceResponse, "rejectedDataPoints"),
    ],
)
def test_responses(signal: Signal, kind: type, json_field: str) -> None:
    """Full success is the empty message; a count goes as text in JSON, as every 64-bit integer."""
    assert codec.response(signal, "protobuf", 0, "") == b""
    assert codec.response(signal, "json", 0, "") == b"{}"
    answer = kind.FromString(codec.response(signal, "protobuf", 3, "why"))
    assert [value for _, value in answer.partial_success.ListFields()] == [3, "why"]
    assert json.loads(codec.response(signal, "json", 3, "why")) == {
        "partialSuccess": {json_field: "3", "errorMessage": "why"}
    }
    assert json.loads(codec.response(signal, "json", 0, "only a warning")) == {
        "partialSuccess": {"errorMessage": "only a warning"}
    }


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_status_bodies(encoding: Encoding) -> None:
    """Half an emoji in the message must not cost the answer."""
    body = codec.status_body(encoding, 3, "bad \ud83d body")
    if encoding == "json":
        assert json.loads(body) == {"code": 3, "message": "bad \ufffd body"}
    else:
        assert Status.FromString(body) == Status(code=3, message="bad \ufffd body")
    assert codec.response("traces", encoding, 1, "\ud83d")
