"""The same spans give the same Samples in both hosts (promise 6): through the SDK's span objects and its adapter, and through OTLP
and the agent's codec. All spans of the cases from the field, and one of each dialect's libraries."""

import json
from pathlib import Path

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from spangrade.model.sample import Sample
from spangrade.model.span import SpanData
from spangrade.otel.adapter import span_data
from spangrade.samples.assemble import sample_of
from spangrade.samples.extract import extract
from spangrade_agent import codec
from tests.benchmarks.dialect_spans import spans
from tests.benchmarks.dialects import decode, request

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "inputs"
FILES = sorted(path.name for path in CASES.glob("C0[4-8]*.otlp.json")) if CASES.is_dir() else []


def in_the_sdk(span: SpanData) -> SpanData:
    """The span as an SDK's object, and what the adapter makes of that."""
    context = SpanContext(span.trace_id, span.span_id, False, TraceFlags(1))
    parent = None if span.parent_span_id is None else SpanContext(span.trace_id, span.parent_span_id, False)
    code = {"unset": StatusCode.UNSET, "ok": StatusCode.OK, "error": StatusCode.ERROR}[span.status]
    made = ReadableSpan(
        name=span.name, context=context, parent=parent, resource=Resource(span.resource), attributes=dict(span.attributes),
        events=[Event(event.name, dict(event.attributes), event.time_ns) for event in span.events], status=Status(code),
        start_time=span.start_ns, end_time=span.end_ns, instrumentation_scope=InstrumentationScope(span.scope_name),
    )  # fmt: skip
    return span_data(made)


def sample(span: SpanData) -> Sample | None:
    call = extract(span)
    return None if call is None else sample_of(call)


@pytest.mark.skipif(not FILES, reason="the cases from the field are not beside this checkout (../shared/cases)")
@pytest.mark.parametrize("file", FILES)
def test_a_case_gives_the_same_samples_in_both_hosts(file: str) -> None:
    body = (CASES / file).read_bytes()
    try:
        decoded, _, _ = codec.decode_traces(body, "json")
    except codec.BadRequest:
        pytest.skip("no request at all")
    for group in decoded.resource_spans:
        resource = codec.attributes_of_kvs(group.resource.attributes)
        for scope in group.scope_spans:
            for wire in scope.spans:
                agents = codec.span_data(wire, resource, scope.scope)
                if not agents.dropped_attributes:  # an SDK's span object cannot be told of them
                    assert sample(in_the_sdk(agents)) == sample(agents), agents.name


@pytest.mark.parametrize("which", spans(), ids=" ".join)
def test_a_librarys_span_gives_the_same_sample_in_both_hosts(which: tuple[str, str]) -> None:
    """As protobuf, too."""
    ours = spans()[which]
    (agents,) = decode(request(ours, copies=1))
    found = sample(agents)
    assert sample(in_the_sdk(ours)) == found
    if found is not None:
        json.dumps([found.input, found.output, found.documents, found.context, found.metadata])


def test_the_dialects_that_are_there_read_their_libraries_spans() -> None:
    """What the benchmark measures is the dialect and not a span that nobody reads."""
    from spangrade.samples.dialects import DIALECTS

    known = {dialect.name for dialect in DIALECTS}
    for (dialect, what), span in spans().items():
        call = extract(span)
        if dialect in known:
            assert call is not None, (dialect, what)
            assert dialect in call.reading.dialect.split("+"), (dialect, what, call.reading.dialect)
