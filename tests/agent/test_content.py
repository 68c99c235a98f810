"""What text leaves the agent is what would leave the SDK, by one policy."""

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from spangrade import semconv as s
from spangrade.delivery.content import FAILED, ContentPolicy
from spangrade_agent.content import apply

SECRET = "4111111111111111"
CONTENT = {s.OI_INPUT: f"card {SECRET}", s.OUTPUT_MESSAGES: f'[{{"content": "{SECRET}"}}]'}
IDS = {s.SCORE_ID: SECRET, s.SCORED_BY: (f"m@{SECRET}",), s.CONFIG_HASH: SECRET}


def spoken(value: str) -> str:
    return value.replace(SECRET, "[card]")


def full() -> ReadableSpan:
    """A span that holds the secret wherever a span can hold text."""
    keep = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(keep))
    other = {
        "plain": SECRET,
        "many": [SECRET, "x"],
        "raw": SECRET.encode(),
        "binary": b"\xff" + SECRET.encode(),
        "n": 7,
    }
    link = Link(SpanContext(1, 2, True, TraceFlags(1)), {**other, **CONTENT, s.SCORED_BY: IDS[s.SCORED_BY]})
    span = provider.get_tracer("app").start_span(f"GET /{SECRET}", links=[link], attributes={**other, **CONTENT})
    span.set_attribute(s.SCORED_BY, IDS[s.SCORED_BY])
    span.add_event("exception", {"exception.message": f"no {SECRET}", "exception.type": "KeyError"})
    span.add_event("gen_ai.user.message", {"content": SECRET})
    span.add_event(f"step {SECRET}", {**other, **CONTENT})
    span.add_event(
        s.EVALUATION_EVENT,
        {**IDS, s.EXPLANATION: f"because of {SECRET}", s.VALUE_JSON: f'["{SECRET}"]', s.SCORE_METADATA: f'"{SECRET}"'},
    )
    span.set_status(Status(StatusCode.ERROR, f"KeyError: {SECRET}"))
    span.end()
    (ended,) = keep.get_finished_spans()
    return ended


def on_the_wire(span: ReadableSpan) -> Span:
    return encode_spans([span]).resource_spans[0].scope_spans[0].spans[0]


def broken(_: str) -> str:
    raise RuntimeError("the application's")


@pytest.mark.parametrize("redact", [None, spoken, broken, lambda _: None])
@pytest.mark.parametrize("export_content", [True, False])
@pytest.mark.parametrize("export_explanations", [True, False])
def test_the_agent_strips_and_redacts_a_span_as_the_sdk_does(
    redact: Callable[[str], Any] | None,
    export_content: bool,
    export_explanations: bool,
    swallowed_faults: list[Any],
) -> None:
    policy = ContentPolicy(redact, export_content=export_content, export_explanations=export_explanations)
    span = full()
    theirs = on_the_wire(span)
    apply(policy, theirs)
    assert theirs == on_the_wire(policy.span(span))
    assert {where for where, _ in swallowed_faults} <= {"redact"}  # the hook that raises
    swallowed_faults.clear()


def test_ids_of_scores_are_not_redacted_and_all_other_text_is() -> None:
    span = on_the_wire(full())
    apply(ContentPolicy(spoken), span)
    (score,) = (event for event in span.events if event.name == s.EVALUATION_EVENT)
    left = {pair.key for pair in score.attributes if SECRET in str(pair.value)}
    assert left == set(IDS)
    assert SECRET not in span.name + span.status.message + "".join(event.name for event in span.events)


def test_without_content_no_text_of_a_users_is_left() -> None:
    span = on_the_wire(full())
    apply(ContentPolicy(export_content=False), span)
    kept = [*span.attributes, *span.links[0].attributes, *(pair for event in span.events for pair in event.attributes)]
    assert not {pair.key for pair in kept} & {*CONTENT, "exception.message", s.VALUE_JSON, s.SCORE_METADATA, "content"}
    assert span.status.message == ""


def test_a_fault_of_ours_withholds_the_text(swallowed_faults: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: ContentPolicy, key: str) -> bool:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(ContentPolicy, "may_leave", fails)
    span = on_the_wire(full())
    apply(ContentPolicy(spoken), span)
    assert SECRET not in str(span)
    assert (span.name, len(span.span_id), len(span.links)) == (FAILED, 8, 1)
    assert [where for where, _ in swallowed_faults] == ["content.apply"]
    swallowed_faults.clear()
