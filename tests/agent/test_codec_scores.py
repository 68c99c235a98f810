"""Scores as protobuf: the same bytes, but for ids and clocks, as the SDK's carriers through the real exporter."""

from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangrade.delivery import evaluation_span
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.log_events import GatedExporter, LogEvents
from spangrade.delivery.span_copy import scored_copy
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import ScoreRecord, SpanRef
from spangrade.model.score import Graded
from spangrade.semconv import EVALUATION_EVENT, SCORED_BY
from spangrade_agent import codec

TRACE, SPAN = (5 << 120) + 7, (9 << 56) + 3
END = 1_750_000_001_000_000_000
#: Field 500 with text, field 501 with a number: what a later OTLP may bring.
UNKNOWN = b"\xa2\x1f\x06future\xa8\x1f\x2a"


def record(name: str = "overlap", **more: Any) -> ScoreRecord:
    fields: dict[str, Any] = {
        "span": SpanRef(TRACE, SPAN, 1, "k=v", "chat gpt", END, "resp-1", "session-1"),
        "evaluator": EvaluatorInfo(name, version="2", config_hash="abcd", threshold=0.5, lower_is_better=True),
        "graded": Graded(name, 0.25, "pass", True, "because 🙂", metadata={"k": [1]}),
        "time_ns": END + 5,
        "probability": 0.5,
        "duration_s": 0.01,
        "details": {"spangrade.judge.input_tokens": 12, "spangrade.judge.model": "m"},
    }
    return ScoreRecord(**{**fields, **more})


def failed() -> ScoreRecord:
    return record("helpful", graded=Graded("helpful"), error_type="timeout", partial=True)


def sdk_span(attributes: dict[str, Any], events: int) -> ReadableSpan:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    span = provider.get_tracer("lib").start_span("chat", attributes=attributes)
    for number in range(events):
        span.add_event(f"own {number}")
    span.end()
    return exporter.get_finished_spans()[0]


def encoded(span: ReadableSpan) -> Span:
    return encode_spans([span]).resource_spans[0].scope_spans[0].spans[0]


@pytest.mark.parametrize("before", [{}, {SCORED_BY: ["old@1", "overlap@abcd"]}])
def test_scores_on_a_span_are_as_the_sdk_puts_them_on_its_copy(before: dict[str, Any]) -> None:
    """Events, their order and times, the mark with what earlier hops had taken, and the pairs without room."""
    span = sdk_span({"a": 1, **before, "z": 2}, events=125)
    pairs = [(record(),), (record("x"), record("y"), record("z")), (failed(),)]
    taken = ["overlap@abcd", "helpful@abcd"]
    ours = encoded(span)
    left = codec.add_scores(ours, pairs, taken)
    copy, left_there = scored_copy(span, pairs, taken, 128)
    assert left == list(left_there) == [pairs[1]]
    assert ours == encoded(copy)
    assert [event.name for event in ours.events[-3:]] == ["own 124", EVALUATION_EVENT, EVALUATION_EVENT]


def test_at_the_event_limit_nothing_of_the_application_goes() -> None:
    span = Span()
    for number in range(130):
        span.events.add(name=str(number))
    before = span.SerializeToString()
    pair = (record(),)
    assert codec.add_scores(span, [pair], []) == [pair]
    assert span.SerializeToString() == before


def test_a_pair_that_just_fits_rides() -> None:
    span, pair = Span(), (record("a"), record("b"))
    span.events.add(name="own")
    assert codec.add_scores(span, [pair, (record(),)], [], max_events=3) == [(record(),)]
    assert len(span.events) == 3


def test_unknown_fields_stay_byte_for_byte() -> None:
    """On the span, in an attribute, an event and a link: after our additions are taken away again, all is as before."""
    span = Span(trace_id=b"1" * 16, span_id=b"2" * 8, name="chat")
    span.attributes.add(key="k").value.string_value = "v"
    span.events.add(name="own")
    span.links.add(trace_id=b"1" * 16, span_id=b"3" * 8)
    for message in (span.attributes[0], span.attributes[0].value, span.events[0], span.links[0], span):
        message.MergeFromString(UNKNOWN)
    before = span.SerializeToString()
    assert before.count(UNKNOWN) == 5
    assert codec.add_scores(span, [(record(),), (failed(),)], ["overlap@abcd"]) == []
    after = span.SerializeToString()
    assert after.count(UNKNOWN) == 5
    read = Span.FromString(after)
    del read.events[1:], read.attributes[1:]
    assert read.SerializeToString() == before


@pytest.mark.parametrize(
    ("given", "known"), [({"string_value": "old@1"}, ["old@1"]), ({"string_value": ""}, []), ({"int_value": 3}, [])]
)
def test_a_mark_of_another_type_becomes_a_list(given: dict[str, Any], known: list[str]) -> None:
    """Some exporters flatten a list of one; what cannot be a mark is replaced."""
    span = Span()
    for name, value in given.items():
        setattr(span.attributes.add(key=SCORED_BY).value, name, value)
    codec.add_scores(span, [], ["new@2", "new@2"])
    assert codec.attributes_of_kvs(span.attributes) == {SCORED_BY: (*known, "new@2")}


def test_odd_values_in_details_cost_nothing_else() -> None:
    """Too large numbers, half an emoji, sets: as text, as far as they can be."""
    odd = {"big": 2**70, "half": "a\ud83d", "set": {1}, "list": [1, None, {"k": b"x"}], "none": None, "map": {}}
    span = Span()
    codec.add_scores(span, [(record(details=odd),)], [])
    found = codec.attributes_of_kvs(span.events[0].attributes)
    assert {key: found.get(key) for key in odd} == {
        "big": str(2**70),
        "half": "a\ufffd",
        "set": "[1]",
        "list": (1, None, {"k": b"x"}),
        "none": None,
        "map": {},
    }
    assert "none" not in found


@pytest.mark.parametrize("one", [record(), failed()])
def test_an_evaluation_span_is_as_the_sdk_emits_it(one: ScoreRecord) -> None:
    """But for its id, which is the beginning of the score's, and the W3C flags, which the exporter leaves out."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    evaluation_span.emit(provider.get_tracer("spangrade"), one, ContentPolicy())
    theirs, ours = encoded(exporter.get_finished_spans()[0]), codec.evaluation_span(one)
    assert ours.span_id.hex() == one.score_id[:16]
    assert ours == codec.evaluation_span(one)
    assert (ours.flags, theirs.flags) == (0x101, 0x100)
    assert (ours.start_time_unix_nano, ours.end_time_unix_nano) == (END, END)
    for span in (theirs, ours):
        span.ClearField("span_id")
        span.ClearField("flags")
    assert ours == theirs


def test_an_evaluation_span_of_a_span_without_end_is_at_the_score() -> None:
    ours = codec.evaluation_span(record(span=SpanRef(TRACE, SPAN)))
    assert (ours.start_time_unix_nano, ours.end_time_unix_nano) == (END + 5, END + 5)


class _Kept(LogRecordExporter):
    def __init__(self) -> None:
        self.batch: list[ReadableLogRecord] = []

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self.batch.extend(batch)
        return LogRecordExportResult.SUCCESS

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


@pytest.mark.parametrize("one", [record(), failed()])
def test_a_log_record_is_as_the_sdk_emits_it(one: ScoreRecord) -> None:
    """But for the time at which it was observed: ours is the score's, so that a resend is the same record."""
    kept = _Kept()
    logs = LogEvents(GatedExporter(kept, lambda: True), Resource({}), ContentPolicy())
    logs.emit(one)
    assert logs.force_flush(10_000)
    logs.shutdown()
    theirs = encode_logs(kept.batch).resource_logs[0].scope_logs[0].log_records[0]
    ours = codec.log_record(one)
    assert ours.observed_time_unix_nano == one.time_ns
    theirs.observed_time_unix_nano = one.time_ns
    assert ours == theirs


def test_wrapped_spans_keep_resource_scope_and_urls_and_can_be_joined() -> None:
    """Also fields of resource and scope that we do not know; the other spans of the group stay behind."""
    group = ResourceSpans(schema_url="https://r")
    group.resource.attributes.add(key="service.name").value.string_value = "shop"
    group.resource.MergeFromString(UNKNOWN)
    scope = group.scope_spans.add(schema_url="https://s")
    scope.scope.name = "lib"
    scope.spans.add(name="stays")
    first, second = Span(name="first"), Span(name="second")
    body = codec.wrap_span(group, scope, first) + codec.wrap_span(ResourceSpans(), ScopeSpans(), first, second)
    request = ExportTraceServiceRequest.FromString(body)
    whole, bare = request.resource_spans
    assert whole.resource == group.resource
    assert (whole.schema_url, whole.scope_spans[0].schema_url) == ("https://r", "https://s")
    assert whole.scope_spans[0].scope == scope.scope
    assert list(whole.scope_spans[0].spans) == [first]
    assert not bare.HasField("resource")
    assert list(bare.scope_spans[0].spans) == [first, second]


def test_wrapped_logs_are_of_our_scope_under_the_resource() -> None:
    resource = ResourceMessage()
    resource.attributes.add(key="service.name").value.string_value = "shop"
    one = codec.log_record(record())
    request = ExportLogsServiceRequest.FromString(codec.wrap_log(resource, one, LogRecord(), schema_url="https://r"))
    (group,) = request.resource_logs
    assert (group.resource, group.schema_url) == (resource, "https://r")
    assert group.scope_logs[0].scope == codec.OUR_SCOPE
    assert list(group.scope_logs[0].log_records) == [one, LogRecord()]
