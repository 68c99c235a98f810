"""Behind a head sampler: what is sampled is scored, and nothing else is."""

from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import (
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

import spangrade as sg
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter

from .others import CALL, Reader, answer, scored, their_provider, yes


def test_behind_a_head_sampler_of_a_tenth_exactly_the_sampled_calls_are_scored(exporter: CollectingExporter) -> None:
    provider = their_provider(SimpleSpanProcessor(exporter), sampler=ParentBased(TraceIdRatioBased(0.1)))
    sg.configure(metrics=[yes])
    for number in range(200):
        assert answer(str(number)) == f"answer to {number}"
    assert sg.flush(10)
    sampled = len(exporter.named("answer"))
    assert 3 <= sampled <= 60  # a tenth of 200; outside with a probability below 1e-6
    assert len(exporter.named("evaluation yes")) == scored() == sampled
    assert provider.sampler is not None


@pytest.mark.parametrize("sampled", [True, False])
def test_a_callers_decision_holds_for_the_whole_call_below_it(sampled: bool, exporter: CollectingExporter) -> None:
    their_provider(SimpleSpanProcessor(exporter), sampler=ParentBased(TraceIdRatioBased(0.0)))
    sg.configure(metrics=[yes])
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    caller = NonRecordingSpan(SpanContext(1, 2, is_remote=True, trace_flags=flags))
    with trace_api.use_span(caller):
        answer("a")
    assert sg.flush(5)
    assert len(exporter.spans) == (2 if sampled else 0)


def test_a_span_that_is_recorded_and_not_sampled_is_neither_scored_nor_held(exporter: CollectingExporter) -> None:
    class RecordOnly(Sampler):
        def should_sample(
            self, parent_context: Any, trace_id: int, name: str, *rest: Any, **named: Any
        ) -> SamplingResult:
            return SamplingResult(Decision.RECORD_ONLY)

        def get_description(self) -> str:
            return "RecordOnly"

    reader = Reader()
    their_provider(reader, SimpleSpanProcessor(exporter), sampler=RecordOnly())
    sg.configure(metrics=[yes])
    answer("a")
    assert sg.flush(5)
    assert [name.rsplit(".", 1)[-1] for name, _, _ in reader.seen] == ["answer"]
    assert exporter.spans == []
    engine = current_engine()
    assert engine is not None
    assert "yes" not in engine.ledger.snapshot() or scored() == 0


def test_the_decision_of_an_unsampled_root_reaches_spans_of_others_below_it(exporter: CollectingExporter) -> None:
    provider = their_provider(SimpleSpanProcessor(exporter), sampler=ParentBased(TraceIdRatioBased(0.0)))
    sg.configure(metrics=[yes])

    @sg.trace
    def outer() -> Sequence[str]:
        with provider.get_tracer("theirs").start_as_current_span("llm", attributes=CALL):
            return ["done"]

    assert outer() == ["done"]
    assert sg.flush(5)
    assert exporter.spans == []
