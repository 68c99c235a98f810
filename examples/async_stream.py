"""A streamed answer is scored once, as a whole, when the stream has ended.

    python examples/async_stream.py

The caller gets every piece at the moment it is produced. When the stream ends, the span gets the joined text as its
output and the metrics run on that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

import spangrade as sg


class ScorePrinter(SpanExporter):
    """Any SpanExporter can stand in place of OTLP. This one prints the scores that a span carries."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            print(f"\nspan {span.name!r}, output: {(span.attributes or {}).get('output.value')!r}")
            for event in span.events:
                found = event.attributes or {}
                label = found.get("gen_ai.evaluation.score.label", "no verdict")
                print(
                    f"  {found.get('gen_ai.evaluation.name')}: {found.get('gen_ai.evaluation.score.value')}, {label} "
                    f"({found.get('gen_ai.evaluation.explanation')})"
                )
        return SpanExportResult.SUCCESS


@sg.metric(threshold=1.0)
def ends_its_sentence(output: str) -> sg.Score:
    """A stream that was cut short ends in the middle of a sentence."""
    complete = output.rstrip().endswith((".", "!", "?"))
    return sg.Score(1.0 if complete else 0.0, explanation=f"ends with {output.rstrip()[-1:]!r}")


@sg.metric(verdict=False)
def length(output: str) -> sg.Score:
    """A measurement without a verdict: so many words."""
    return sg.Score(float(len(output.split())), explanation="words in the whole answer")


@sg.trace
async def stream_answer(question: str) -> AsyncIterator[str]:
    """Stands for a model that streams. It gives way to others between its pieces, as real streams do."""
    del question
    for piece in ("Standard shipping ", "takes three to ", "five working days", "."):
        await asyncio.sleep(0)
        yield piece


async def main() -> None:
    print("streamed: ", end="")
    async for piece in stream_answer("How long does shipping take?"):
        print(f"[{piece}]", end="", flush=True)
    print()


if __name__ == "__main__":
    sg.configure(service_name="stream-example", metrics=[ends_its_sentence, length], exporter=ScorePrinter())
    asyncio.run(main())
    sg.shutdown()  # scores what is left and hands every span to the exporter
