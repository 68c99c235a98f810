"""The SDK's batch processor, with room for everything that a hold may let go at once."""

import os

from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from spangrade._threads import unbound
from spangrade.delivery.hold import MAX_SPANS


def batch(exporter: SpanExporter, schedule_delay_millis: float | None = None) -> BatchSpanProcessor:
    """``OTEL_BSP_*`` as usual; the queue is larger than they say by what the hold can hold, since it would otherwise drop
    the oldest spans when many holds end together."""
    try:
        usual = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE", "2048"))
    except ValueError:
        usual = 2048  # the SDK says what is wrong with it
    size = usual + MAX_SPANS
    return unbound(
        lambda: BatchSpanProcessor(exporter, max_queue_size=size, schedule_delay_millis=schedule_delay_millis)
    )
