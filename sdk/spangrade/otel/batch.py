"""Spans that leave in batches."""

import os
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter

from spangrade._log import once
from spangrade.delivery import evaluation_span
from spangrade.delivery.batching import Batcher, Limits
from spangrade.delivery.hold import MAX_SPANS
from spangrade.delivery.span_copy import ScoredSpan
from spangrade.errors import ConfigError
from spangrade.otel.adapter import content_size
from spangrade.otel.engine import last_engine

CLOSE_S: Final = 30.0  # as the SDK's own; whoever is in a hurry waits for less


def check_batching(family: str) -> None:
    """``OTEL_BSP_*`` (spans) or ``OTEL_BLRP_*`` (logs): the SDK raises a bare ValueError for some nonsense in them.

    Raises:
        ConfigError: what is no whole number above 0; it names the variable.
    """
    for what in ("MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE", "SCHEDULE_DELAY", "EXPORT_TIMEOUT"):
        name = f"OTEL_{family}_{what}"
        said = os.environ.get(name, "").strip()
        if said and not (said.isascii() and said.isdigit() and int(said) > 0):
            raise ConfigError(f"{name} {said!r} is not a whole number above 0")


class SpanBatch(SpanProcessor):
    """In the place of the SDK's `BatchSpanProcessor`: nothing starts before the first span of a process, a flush keeps to
    its limit, and the scores of a span that is dropped are counted as undelivered."""

    def __init__(self, exporter: SpanExporter, limits: Limits) -> None:
        self.span_exporter = exporter
        # Elsewhere a score counts as delivered when its span is handed on, or by another exporter's answer.
        self._settles = bool(getattr(exporter, "settle", False))
        self._batches: Batcher[ReadableSpan] = Batcher(
            "export", exporter.export, self._lost, limits, content_size, _began
        )
        self._ended = False

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a sampled span."""
        context = span.get_span_context()
        if context is not None and context.trace_flags.sampled:
            self._batches.put(span)

    def shutdown(self) -> None:
        """Export what is queued, end the exporter."""
        if self._ended:
            return
        self._ended = True
        self._batches.close(CLOSE_S)
        self.span_exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Export what is queued; False when that takes longer."""
        return self._batches.flush(timeout_millis / 1000)

    def _lost(self, span: ReadableSpan, reason: str) -> None:
        once(f"batch:{reason}", "spans are dropped before their export", reason=reason)
        engine = last_engine()
        if not self._settles or engine is None:
            return
        if isinstance(span, ScoredSpan):
            engine.sink.exported(span.pairs, reason)
        else:
            evaluation_span.exported(span, reason)


def _began() -> None:
    engine = last_engine()
    if engine is not None:
        engine.in_use()


def batch(exporter: SpanExporter, schedule_delay_millis: float | None = None) -> SpanBatch:
    """``OTEL_BSP_*`` as usual; the queue is larger than they say by what the hold can hold, since it would otherwise drop
    spans when many holds end together.

    Raises:
        ConfigError: see `check_batching`.
    """
    check_batching("BSP")
    delay_s = None if schedule_delay_millis is None else schedule_delay_millis / 1000
    return SpanBatch(exporter, Limits.said("OTEL_BSP", MAX_SPANS, delay_s))
