"""OTLP/JSON: what the specification says, what senders send, and what a fault costs (cases C086 to C091, C123)."""

import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spangrade.model.span import SpanData
from spangrade.samples.assemble import sample_of
from spangrade.samples.extract import extract
from spangrade_agent import codec

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT.parent / "shared" / "cases" / "inputs"
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def decoded(request: Any) -> tuple[dict[str, Span], int, str]:
    """The spans by name, how many were rejected, and why."""
    message, rejected, why = codec.decode_traces(json.dumps(request).encode(), "json")
    # What is relayed must be readable by whoever is next.
    assert ExportTraceServiceRequest.FromString(message.SerializeToString()) == message
    spans = [span for group in message.resource_spans for scope in group.scope_spans for span in scope.spans]
    return {span.name: span for span in spans}, rejected, why


def one(**fields: Any) -> Any:
    """A request of one span."""
    span = {"traceId": TRACE, "spanId": SPAN, "name": "x", **fields}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def attributes(*pairs: Any) -> dict[str, Any]:
    """What the span's attributes are read as."""
    spans, rejected, _ = decoded(one(attributes=list(pairs)))
    assert rejected == 0
    return codec.attributes_of_kvs(spans["x"].attributes)


def case(name: str) -> Any:
    found = sorted(CASES.glob(f"{name}*"))
    if not found:
        pytest.skip(f"the case files are not beside this repository ({CASES})")
    return json.loads(found[0].read_text())


def neutral(request: Any) -> list[SpanData]:
    message, _, _ = codec.decode_traces(json.dumps(request).encode(), "json")
    return [
        codec.span_data(span, codec.attributes_of_kvs(group.resource.attributes), scope.scope)
        for group in message.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def test_a_literal_request_as_the_specification_has_it() -> None:
    """Every field of a span, each in its JSON form."""
    body = """{"resourceSpans": [{
      "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}], "droppedAttributesCount": 1},
      "schemaUrl": "https://r",
      "scopeSpans": [{
        "scope": {"name": "lib", "version": "1", "attributes": [{"key": "a", "value": {"boolValue": false}}]},
        "schemaUrl": "https://s",
        "spans": [{
          "traceId": "0AF7651916CD43DD8448EB211C80319C", "spanId": "b7ad6b7169203331", "parentSpanId": "00f067aa0ba902b7",
          "traceState": "k=v", "flags": 769, "name": "chat", "kind": 3,
          "startTimeUnixNano": "1750000000000000001", "endTimeUnixNano": 1750000000000000002,
          "attributes": [{"key": "n", "value": {"intValue": "-9223372036854775808"}},
                         {"key": "d", "value": {"doubleValue": "-Infinity"}}],
          "droppedAttributesCount": 2,
          "events": [{"timeUnixNano": "7", "name": "e", "attributes": [], "droppedAttributesCount": 3}],
          "droppedEventsCount": 4,
          "links": [{"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "00f067aa0ba902b7", "traceState": "l=1",
                     "flags": 1}],
          "droppedLinksCount": 5,
          "status": {"code": 2, "message": "broke"}
        }]}]}]}"""
    wanted = ExportTraceServiceRequest()
    group = wanted.resource_spans.add(schema_url="https://r")
    group.resource.attributes.add(key="service.name").value.string_value = "shop"
    group.resource.dropped_attributes_count = 1
    scope = group.scope_spans.add(schema_url="https://s")
    scope.scope.name, scope.scope.version = "lib", "1"
    scope.scope.attributes.add(key="a").value.bool_value = False
    trace, parent = bytes.fromhex(TRACE), bytes.fromhex("00f067aa0ba902b7")
    span = scope.spans.add(trace_id=trace, span_id=bytes.fromhex(SPAN), parent_span_id=parent, trace_state="k=v")
    span.flags, span.name, span.kind = 769, "chat", Span.SPAN_KIND_CLIENT
    span.start_time_unix_nano, span.end_time_unix_nano = 1750000000000000001, 1750000000000000002
    span.attributes.add(key="n").value.int_value = -(2**63)
    span.attributes.add(key="d").value.double_value = -math.inf
    span.dropped_attributes_count, span.dropped_events_count, span.dropped_links_count = 2, 4, 5
    span.events.add(time_unix_nano=7, name="e", dropped_attributes_count=3)
    span.links.add(trace_id=trace, span_id=parent, trace_state="l=1", flags=1)
    span.status.code, span.status.message = 2, "broke"
    assert codec.decode_traces(body.encode(), "json") == (wanted, 0, "")


def test_c086_ids_in_every_form_are_one_trace() -> None:
    """Hex of either case, base64, Node Buffers and lists; zero and short ids are rejected and counted."""
    spans, rejected, why = decoded(case("C086"))
    assert list(spans) == [f"chat {n}" for n in ("hexlow", "hexup", "b64", "buf", "emptyparent", "zeroparent")]
    assert {span.trace_id.hex() for span in spans.values()} == {"8eb3380315a365eff5d53ef2bdaaec98"}
    assert [span.span_id.hex()[-2:] for span in spans.values()] == ["ab", "ac", "ad", "ae", "af", "b0"]
    parents = [data.parent_span_id for data in neutral(case("C086"))]
    assert parents == [None, *[0xCAFE0123456789AB] * 3, None, None]
    assert (rejected, "spans 2" in why) == (2, True)


def test_c087_one_bad_span_costs_only_itself() -> None:
    """Attributes, events and links that cannot be read are left out and counted in their span."""
    spans, rejected, why = decoded(case("C087"))
    names = ["one", "novalue", "badarray", "badevents", "badattrs", "bigtokens", "overflow", "two"]
    assert list(spans) == [f"chat {name}" for name in names]
    assert rejected == 3
    assert all(part in why for part in ("spans 3", "attributes 3", "events 1"))
    assert {name.removeprefix("chat "): span.dropped_attributes_count for name, span in spans.items()} == {
        **dict.fromkeys(names, 0),
        "novalue": 1,
        "badarray": 1,
        "badattrs": 1,
    }
    assert spans["chat badevents"].dropped_events_count == 1
    found = codec.attributes_of_kvs(spans["chat novalue"].attributes)
    assert found["lonely.key"] is None
    assert found["null.value"] is None
    assert codec.attributes_of_kvs(spans["chat bigtokens"].attributes)["gen_ai.usage.input_tokens"] == 3_000_000_000
    assert json.loads(codec.response("traces", "json", rejected, why))["partialSuccess"]["rejectedSpans"] == "3"


def test_c088_enum_names_unknown_fields_and_numbers_of_every_form() -> None:
    """What is unknown at any level is ignored, and an unknown kind is unspecified."""
    spans, rejected, why = decoded(case("C088"))
    assert (len(spans), rejected, why) == (6, 0, "")
    kinds = {name.removeprefix("chat "): span.kind for name, span in spans.items()}
    assert kinds == {"kindname": 3, "nokind": 0, "kind99": 0, "kindnew": 0, "future": 1, "numbers": 1}
    assert [spans[f"chat {name}"].status.code for name in ("kindname", "nokind", "kind99")] == [2, 0, 2]
    assert (spans["chat future"].flags, spans["chat future"].trace_state) == (257, "x=1")
    numbers = spans["chat numbers"]
    assert (numbers.start_time_unix_nano, numbers.end_time_unix_nano) == (1750000000000000000, 1750000001000000000)
    found = codec.attributes_of_kvs(numbers.attributes)
    assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == (25, 7)
    assert math.isnan(found["d"])
    assert found["e"] == 1.0
    assert type(found["e"]) is float


def test_c089_snake_case_is_read_and_a_dumped_go_struct_refused() -> None:
    """The refusal says what would have been right; anything else would look like an empty request."""
    (span,) = neutral(case("C089"))
    assert span.resource == {"service.name": "shop-assistant"}
    call = extract(span)
    assert call is not None
    assert sample_of(call).output == "Hello snake"
    dump = {"ResourceSpans": [{"Resource": {"Attributes": None}, "ScopeSpans": [{"Spans": [{"TraceID": [1, 2]}]}]}]}
    with pytest.raises(codec.BadRequest, match=r"none of the fields of ExportTraceServiceRequest \(resourceSpans\)"):
        decoded(dump)
    with pytest.raises(codec.BadRequest, match=r"resourceSpans\[0\] has none of the fields of ResourceSpans"):
        decoded({"resourceSpans": dump["ResourceSpans"]})


def test_c090_empty_requests_and_the_old_names() -> None:
    *empty, old = case("C090")
    assert len(empty) == 6
    for request in empty:
        assert decoded(request) == ({}, 0, "")
    spans, rejected, why = decoded(old)
    assert (list(spans), rejected, why) == (["chat ancient"], 0, "")


def test_the_names_of_before_otlp_0_15() -> None:
    """A faulty list under the old name takes nothing from the new one's."""
    old = {"instrumentationLibrarySpans": [{"instrumentationLibrary": {"name": "lib"}, "spans": []}]}
    both = {"scopeSpans": [{"spans": [{"traceId": TRACE, "spanId": SPAN}]}], "instrumentationLibrarySpans": "none"}
    message, rejected, why = codec.decode_traces(json.dumps({"resourceSpans": [old, both]}).encode(), "json")
    assert message.resource_spans[0].scope_spans[0].scope.name == "lib"
    assert len(message.resource_spans[1].scope_spans[0].spans) == 1
    assert (rejected, "scopeSpans 1" in why) == (0, True)


def test_c091_every_type_of_value() -> None:
    """Messages as real lists and maps make the same Sample; base64 that is none costs only its attribute."""
    (span,) = neutral(case("C091"))
    assert span.attributes["mixed"] == (1, "a", True, None, 2.5)
    assert span.attributes["empty"] == {}
    assert span.attributes["nested"] == {"a": {"b": {"c": ({"d": "deep"},)}}}
    assert span.attributes["raw"] == b"\xff\x00hi"
    assert "badraw" not in span.attributes
    assert span.dropped_attributes == 1
    call = extract(span)
    assert call is not None
    sample = sample_of(call)
    assert (sample.input, sample.output) == ("structured, not JSON text", "an answer as real OTLP values")


def test_c123_times_are_kept_as_they_are_and_negative_ones_cannot_be() -> None:
    spans, rejected, why = decoded(case("C123"))
    names = ("zero", "reversed", "endzero", "year1970", "future", "millis", "maxu64", "missing", "control")
    assert list(spans) == [f"chat {name}" for name in names]
    assert (rejected, "startTimeUnixNano is out of range" in why) == (1, True)
    assert spans["chat maxu64"].end_time_unix_nano == 2**64 - 1
    assert spans["chat missing"].start_time_unix_nano == 0


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"stringValue": ""}, ""),
        ({"stringValue": "cut \ud83d"}, "cut \ufffd"),
        ({"boolValue": False}, False),
        ({"intValue": "9223372036854775807"}, 2**63 - 1),
        ({"intValue": 1e3}, 1000),
        ({"doubleValue": "0.5"}, 0.5),
        ({"doubleValue": 10**400 // 10**390}, 1e10),
        ({"bytesValue": "_-8="}, b"\xff\xef"),
        ({"bytesValue": "/+8"}, b"\xff\xef"),
        ({"bytesValue": ""}, b""),
        ({"arrayValue": {}}, ()),
        ({"kvlistValue": {"values": [{"key": "", "value": {"intValue": 1}}, {"key": "k"}]}}, {"": 1, "k": None}),
        ({}, None),
        ({"stringValue": None}, None),
        ({"stringValue": "a", "newKind": {"x": 1}}, "a"),
    ],
)
def test_values_that_are_read(value: Any, read: Any) -> None:
    found = attributes({"key": "v", "value": value})
    assert found == {"v": read}
    assert type(found["v"]) is type(read)


@pytest.mark.parametrize(
    "attribute",
    [
        {"key": "v", "value": {"intValue": "1_000"}},
        {"key": "v", "value": {"intValue": " 5"}},
        {"key": "v", "value": {"intValue": "1e3"}},
        {"key": "v", "value": {"intValue": True}},
        {"key": "v", "value": {"intValue": 0.5}},
        {"key": "v", "value": {"intValue": "٣"}},
        {"key": "v", "value": {"doubleValue": 10**400}},
        {"key": "v", "value": {"doubleValue": "much"}},
        {"key": "v", "value": {"doubleValue": True}},
        {"key": "v", "value": {"boolValue": "true"}},
        {"key": "v", "value": {"stringValue": 5}},
        {"key": "v", "value": {"bytesValue": [1, 2]}},
        {"key": "v", "value": {"arrayValue": {"values": [{"stringValue": "kept?"}, {"intValue": "x"}]}}},
        {"key": "v", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"intValue": "x"}}]}}},
        {"key": "v", "value": {"arrayValue": {"values": [None]}}},
        {"key": "v", "value": {"StringValue": "Go"}},
        {"key": "v", "value": "bare"},
        {"key": 5, "value": {"stringValue": "x"}},
        {"value": {"stringValue": "no key"}},
        {"key": "", "value": {"stringValue": "no key"}},
        "text",
        None,
    ],
)
def test_attributes_that_cannot_be_read_are_left_out_whole_and_counted(attribute: Any) -> None:
    """Half a list would be another list."""
    good = {"key": "good", "value": {"intValue": 1}}
    spans, rejected, why = decoded(one(attributes=[attribute, good], droppedAttributesCount=4))
    assert codec.attributes_of_kvs(spans["x"].attributes) == {"good": 1}
    assert spans["x"].dropped_attributes_count == 5
    assert (rejected, why.startswith("left out: attributes 1 (attributes[0]")) == (0, True)


def test_values_are_read_as_deep_as_the_next_reader_can_follow() -> None:
    """protobuf readers stop at 100 nested messages; what is deeper costs its attribute, not the relay."""

    def nested(levels: int) -> Any:
        value: Any = {"stringValue": "deep"}
        for _ in range(levels):
            value = {"arrayValue": {"values": [value]}}
        return {"key": "v", "value": value}

    assert "v" in attributes(nested(45))
    assert attributes(nested(46)) == {}


@pytest.mark.parametrize(
    "field",
    [
        {"traceId": "0af7651916cd43dd8448eb211c80319"},
        {"traceId": TRACE[:-1] + "g"},
        {"traceId": " " * 32},
        {"traceId": None},
        {"spanId": {"data": [256] * 8}},
        {"spanId": [1, 2, 3]},
        {"spanId": 5},
        {"parentSpanId": "00f067"},
        {"parentSpanId": base64.b64encode(b"12345").decode()},
        {"name": 5},
        {"startTimeUnixNano": "soon"},
        {"endTimeUnixNano": 2**64},
        {"flags": -1},
        {"kind": []},
    ],
)
def test_spans_that_cannot_be_read_are_rejected(field: dict[str, Any]) -> None:
    """A wrong parent would make a root of a child, so it costs the span."""
    spans, rejected, why = decoded(one(**field))
    assert (spans, rejected) == ({}, 1)
    assert next(iter(field)) in why


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (2**63, str(2**63)),
        (-(2**70), str(-(2**70))),
        (str(2**63), str(2**63)),
        (str(-(2**63) - 1), str(-(2**63) - 1)),
        ("1" * 30, "1" * 30),
        (1e21, "1000000000000000000000"),
        (5.0, 5),
        (str(2**63 - 1), 2**63 - 1),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        ("-000000000000000000007", -7),
    ],
)
def test_c035_an_integer_beyond_64_bits_is_read_as_text(sent: Any, read: Any) -> None:
    """Alone, in a list, and in a map; nothing is left out, and nothing said of it."""
    value, more = {"intValue": sent}, {"key": "in a map", "value": {"intValue": sent}}
    pairs = [
        {"key": "alone", "value": value},
        {"key": "list", "value": {"arrayValue": {"values": [value]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [more]}}},
    ]
    spans, rejected, why = decoded(one(attributes=pairs))
    assert (rejected, why, spans["x"].dropped_attributes_count) == (0, "", 0)
    found = codec.attributes_of_kvs(spans["x"].attributes)
    assert found == {"alone": read, "list": (read,), "map": {"in a map": read}}


def test_c035_an_integer_of_more_digits_than_python_reads_costs_no_request() -> None:
    digits = "9" * 5_000
    body = json.dumps(one(attributes=[{"key": "n", "value": {"intValue": 0}}], flags=1)).replace(
        '"intValue": 0', f'"intValue": {digits}'
    )
    message, rejected, why = codec.decode_traces(body.encode(), "json")
    span = message.resource_spans[0].scope_spans[0].spans[0]
    assert (codec.attributes_of_kvs(span.attributes), rejected, why) == ({"n": digits}, 0, "")
    for field in ("startTimeUnixNano", "kind", "flags", "name"):
        body = json.dumps(one(**{field: 0})).replace(f'"{field}": 0', f'"{field}": {digits}')
        _, rejected, _ = codec.decode_traces(body.encode(), "json")
        assert rejected == (field != "kind"), field
    for name in ("doubleValue", "stringValue"):
        body = json.dumps(one(attributes=[{"key": "n", "value": {name: 0}}])).replace(
            f'"{name}": 0', f'"{name}": {digits}'
        )
        message, rejected, why = codec.decode_traces(body.encode(), "json")
        assert (rejected, "attributes 1" in why) == (0, True)


def test_half_an_emoji_is_replaced_wherever_it_is() -> None:
    """JavaScript sends one where it has cut a text; protobuf has no place for it."""
    spans, _, _ = decoded(one(name="cut \ud83d", attributes=[{"key": "\ud83d", "value": {"boolValue": True}}]))
    assert codec.attributes_of_kvs(spans["cut \ufffd"].attributes) == {"\ufffd": True}


def test_faults_around_spans_cost_no_span() -> None:
    """Resource, scope and status: one field less; a link or event: itself."""
    request = one(
        status={"code": 2, "message": 5},
        links=[{"traceId": TRACE, "spanId": "12"}, {"traceId": TRACE, "spanId": SPAN}],
        events=[{"name": "e", "timeUnixNano": "-1"}, {"name": "kept"}],
    )
    request["resourceSpans"][0] |= {"resource": "none", "schemaUrl": 5}
    request["resourceSpans"][0]["scopeSpans"][0]["scope"] = {"name": "lib", "version": 2}
    request["resourceSpans"] += [None, {"scopeSpans": "none"}]
    message, rejected, why = codec.decode_traces(json.dumps(request).encode(), "json")
    first = message.resource_spans[0]
    span = first.scope_spans[0].spans[0]
    assert rejected == 0
    assert (first.scope_spans[0].scope.name, span.status.code) == ("lib", 2)
    assert ([event.name for event in span.events], span.dropped_events_count) == (["kept"], 1)
    assert ([link.span_id.hex() for link in span.links], span.dropped_links_count) == ([SPAN], 1)
    for part in ("resource 1", "schemaUrl 1", "version 1", "message 1", "links 1", "events 1", "scopeSpans 1"):
        assert part in why


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "no JSON"),
        (b"[]", "is no object"),
        (b"null", "is no object"),
        (b'"text"', "is no object"),
        (b'{"resourceSpans": [{"scope', "no JSON"),
        (b"\x1f\x8b\x08\x00", "no JSON"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"a":' * 200_000, "nested too deep"),
        (b'{"resourceSpans": "x\xff"}', "no JSON"),
        (b'{"resourceSpans": ' + b"9" * 5000 + b"}", r"nothing of this .* \(resourceSpans is no list"),
        (b'{"resourceLogs": []}', "none of the fields of ExportTraceServiceRequest"),
        (b'{"resourceSpans": {"scopeSpans": []}}', r"nothing of this .* \(resourceSpans is no list"),
        (b'{"resourceSpans": [5, "x"]}', r"nothing of this .* \(resourceSpans\[0\] is no object"),
    ],
)
def test_bodies_of_which_nothing_can_be_read_are_refused(body: bytes, why: str) -> None:
    with pytest.raises(codec.BadRequest, match=why):
        codec.decode_traces(body, "json")


def test_reasons_are_few_short_and_without_content() -> None:
    spans = [{"traceId": TRACE, "spanId": SPAN, "name": 5, "secret": "hunter2"} for _ in range(1000)]
    _, rejected, why = decoded({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    assert rejected == 1000
    assert len(why) < 300
    assert "hunter2" not in why
    deep: Any = {"stringValue": "hunter2"}
    for _ in range(60):
        deep = {"kvlistValue": {"values": [{"key": "k", "value": deep}]}}
    _, _, why = decoded(one(attributes=[{"key": f"k{i}", "value": deep} for i in range(9)]))
    assert len(why) < 1_500
    assert "hunter2" not in why


def test_logs_are_relayed_as_protobuf() -> None:
    """Ids are hex there too; a record that cannot be read is rejected and counted, the rest goes on."""
    good = {
        "timeUnixNano": "5",
        "severityNumber": "SEVERITY_NUMBER_WARN",
        "severityText": "WARN",
        "body": {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}},
        "traceId": TRACE.upper(),
        "spanId": SPAN,
        "eventName": "gen_ai.evaluation.result",
        "flags": 1,
        "later": {},
    }
    bare = {"body": {"stringValue": "no trace"}, "traceId": "", "spanId": ""}
    records = [good, {"traceId": "12", "body": {"stringValue": "x"}}, bare, {"body": {"intValue": "x"}}]
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).encode()
    relayed, rejected, why = codec.decode_other_counted("logs", body, "json")
    assert relayed == codec.decode_other("logs", body, "json")
    assert (rejected, "logRecords 1, body 1" in why) == (1, True)
    read = ExportLogsServiceRequest.FromString(relayed).resource_logs[0].scope_logs[0].log_records
    assert [record.trace_id.hex() for record in read] == [TRACE, "", ""]
    assert (read[0].severity_number, read[0].span_id.hex(), read[0].time_unix_nano) == (13, SPAN, 5)
    assert read[0].body.kvlist_value.values[0].value.string_value == "v"
    assert read[0].event_name == "gen_ai.evaluation.result"
    assert read[1].body.string_value == "no trace"


def test_metrics_are_relayed_as_protobuf() -> None:
    """Optional fields keep whether they are set; a data point that cannot be read is rejected and counted."""
    points = [
        {"startTimeUnixNano": "1", "timeUnixNano": "2", "count": "3", "sum": 0, "bucketCounts": ["1", 2], "explicitBounds": [0.5]},
        {"timeUnixNano": "2", "count": "3", "bucketCounts": ["x"]},
    ]  # fmt: skip
    metrics = [
        {"name": "h", "unit": "s", "histogram": {"aggregationTemporality": 2, "dataPoints": points}},
        {
            "name": "g",
            "gauge": {"dataPoints": [{"timeUnixNano": 1, "asDouble": "NaN"}, {"timeUnixNano": 1, "asInt": "0"}]},
        },
        {"name": "s", "sum": {"isMonotonic": True, "aggregationTemporality": "AGGREGATION_TEMPORALITY_DELTA"}},
    ]
    body = json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}).encode()
    relayed, rejected, why = codec.decode_other_counted("metrics", body, "json")
    assert (rejected, "dataPoints 1" in why) == (1, True)
    h, g, s = ExportMetricsServiceRequest.FromString(relayed).resource_metrics[0].scope_metrics[0].metrics
    (point,) = h.histogram.data_points
    assert (point.HasField("sum"), point.HasField("min"), list(point.bucket_counts)) == (True, False, [1, 2])
    assert [p.WhichOneof("value") for p in g.gauge.data_points] == ["as_double", "as_int"]
    assert (s.sum.is_monotonic, s.sum.aggregation_temporality) == (True, 1)
    with pytest.raises(codec.BadRequest, match="ExportMetricsServiceRequest"):
        codec.decode_other("metrics", b'{"resourceLogs": []}', "json")
