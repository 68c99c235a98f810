"""An application's calls, and what others put into a provider."""

from typing import Any

from opentelemetry import trace as trace_api
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import (
    Sampler,
)

import spangrade as sg
from spangrade import semconv as s
from spangrade.model.outcome import Outcome
from spangrade.otel.engine import current_engine

CALL = {s.OI_KIND: "LLM", s.OI_INPUT: "q", s.OI_OUTPUT: "Paris."}


@sg.trace
def answer(question: str) -> str:
    return f"answer to {question}"


def yes(sample: sg.Sample) -> bool:
    return True


def scored(evaluator: str = "yes") -> int:
    engine = current_engine()
    assert engine is not None
    return engine.ledger.snapshot()[evaluator].of(Outcome.SCORED)


def their_provider(*processors: Any, sampler: Sampler | None = None) -> TracerProvider:
    provider = TracerProvider(sampler=sampler)
    for one in processors:
        provider.add_span_processor(one)
    trace_api.set_tracer_provider(provider)
    return provider


class Reader(SpanProcessor):
    """A vendor's processor that sends by a way of its own, as Sentry's does: no exporter to be seen."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, dict[str, Any]]] = []
        self.shut = False

    def shutdown(self) -> None:
        self.shut = True

    def on_end(self, span: ReadableSpan) -> None:
        self.seen.append((span.name, len(span.events), dict(span.attributes or {})))


class Baggage(SpanProcessor):
    """Puts something on spans as they start, and has no other business."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        span.set_attribute("tenant", "a")


class Duck:
    """Looks like a processor of an older SDK: no base class, no `_on_ending`."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing."""

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span.name)

    def shutdown(self) -> None:
        """Nothing."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True
