"""The SDK's batch processor, with room for everything that a hold may let go at once."""

import os

from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from spangrade._threads import unbound
from spangrade.delivery.hold import MAX_SPANS
from spangrade.errors import ConfigError


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


def batch(exporter: SpanExporter, schedule_delay_millis: float | None = None) -> BatchSpanProcessor:
    """``OTEL_BSP_*`` as usual; the queue is larger than they say by what the hold can hold, since it would otherwise drop
    the oldest spans when many holds end together.

    Raises:
        ConfigError: see `check_batching`.
    """
    check_batching("BSP")
    size = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE", "").strip() or 2048) + MAX_SPANS
    return unbound(
        lambda: BatchSpanProcessor(exporter, max_queue_size=size, schedule_delay_millis=schedule_delay_millis)
    )
