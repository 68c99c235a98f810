"""OTLP JSON of the case files → `SpanData`, as plainly as possible. The agent's codec is another, stricter reader."""

import base64
import binascii
import json
from pathlib import Path
from typing import Any

import pytest

from spangrade.model.span import EventData, SpanData

ROOT = Path(__file__).resolve().parents[3]
CASES = ROOT.parent / "shared" / "cases" / "inputs"


def case_spans(name: str) -> dict[str, SpanData]:
    """The spans of a case file by span id in hex; the test is skipped where the case files are not there."""
    found = sorted(CASES.glob(f"{name}*"))
    if not found:
        pytest.skip(f"the case files are not beside this repository ({CASES})")
    spans: dict[str, SpanData] = {}
    lines = found[0].read_text().splitlines() if found[0].suffix == ".jsonl" else [found[0].read_text()]
    for line in lines:
        for span in read(json.loads(line)):
            spans[span.span_hex] = span
    return spans


def read(request: dict[str, Any]) -> list[SpanData]:
    """Every span of an ExportTraceServiceRequest."""
    return [
        _span(span, attributes(group.get("resource", {}).get("attributes", [])), scope.get("scope", {}).get("name", ""))
        for group in request["resourceSpans"]
        for scope in group["scopeSpans"]
        for span in scope["spans"]
    ]


def _span(span: dict[str, Any], resource: dict[str, Any], scope: str) -> SpanData:
    parent = span.get("parentSpanId")
    return SpanData(
        trace_id=int(span["traceId"], 16),
        span_id=int(span["spanId"], 16),
        parent_span_id=int(parent, 16) if parent else None,
        name=span["name"],
        start_ns=int(span.get("startTimeUnixNano") or 0),
        end_ns=int(span.get("endTimeUnixNano") or 0),
        attributes=attributes(span.get("attributes", [])),
        events=[EventData(e["name"], attributes(e.get("attributes", []))) for e in span.get("events", [])],
        resource=resource,
        scope_name=scope,
        status={2: "error", 1: "ok"}.get(span.get("status", {}).get("code", 0), "unset"),
        dropped_attributes=int(span.get("droppedAttributesCount") or 0),
    )


def attributes(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """A list of KeyValue as a dict."""
    return {pair["key"]: value(pair["value"]) for pair in pairs}


def value(held: dict[str, Any]) -> Any:
    """An AnyValue as a Python value; sequences are tuples, as in the SDK."""
    for kind, inner in held.items():
        if kind == "arrayValue":
            return tuple(value(item) for item in inner.get("values", []))
        if kind == "kvlistValue":
            return attributes(inner.get("values", []))
        if kind == "intValue":
            return int(inner)
        if kind == "bytesValue":
            try:
                return base64.b64decode(inner, validate=True)
            except binascii.Error:
                return None
        return inner
    return None
