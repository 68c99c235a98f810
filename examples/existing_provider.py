"""An application that already has its own TracerProvider and exporter gets scores, and keeps both.

    python examples/existing_provider.py                  # late: the application's spans leave as always
    python examples/existing_provider.py --take-over      # the exporter moves behind Spangrade

Spangrade exports no span of a provider that is not its own. So by default (late mode) the application's spans go out
untouched and at once, and each score follows as a small evaluation span of its own, through the same exporter. With
`take_over=True` the exporter stands behind Spangrade: spans wait briefly for their scores and carry them as events.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import spangrade as sg


class PrintingExporter(SpanExporter):
    """Stands for the exporter that the application has had all along. Prints a span and its events as they leave."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            print(f"  exported: {span.name}{score_in(span.attributes or {})}")
            for event in span.events:
                print(f"      event {event.name}{score_in(event.attributes or {})}")
        return SpanExportResult.SUCCESS


def score_in(attributes: Mapping[str, Any]) -> str:
    """The score among the attributes of an evaluation span or event, in words."""
    name = attributes.get("gen_ai.evaluation.name")
    if name is None:
        return ""
    value = attributes.get("gen_ai.evaluation.score.value")
    return f": {name} = {value:.2f} ({attributes.get('gen_ai.evaluation.score.label')})"


@sg.metric(threshold=0.5)
def polite(answer: str) -> sg.Score:
    """Whether the answer greets."""
    greets = answer.lower().startswith(("hello", "good"))
    return sg.Score(1.0 if greets else 0.0, explanation="it greets" if greets else "it does not greet")


@sg.trace(kind="chain")
def reply(message: str) -> str:
    """The application's work. No model is needed to see where scores go."""
    return f"Hello! You asked: {message}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Spangrade beside an existing TracerProvider.")
    parser.add_argument("--take-over", action="store_true", help="put the application's exporter behind Spangrade")
    take_over: bool = parser.parse_args().take_over

    # What the application did before it had heard of Spangrade.
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(PrintingExporter()))
    trace.set_tracer_provider(provider)

    # The one line that is new.
    sg.configure(metrics=[polite], take_over=take_over)

    print("take_over=True: the scores are events on the span" if take_over else "late mode: the scores follow the span")
    with trace.get_tracer("shop").start_as_current_span("GET /chat"):
        reply("Do you ship to Norway?")

    sg.flush(timeout=5)  # waits until everything is scored
    provider.shutdown()  # and the application ends its provider as it always did


if __name__ == "__main__":
    main()
