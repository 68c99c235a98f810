"""The one room that touches private parts of the OpenTelemetry SDK. Each has a public fall-back: the caller is told
None or False and does without.

Seen on opentelemetry-sdk 1.40 to 1.45.
"""

from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor


def processors_of(provider: Any) -> tuple[SpanProcessor, ...] | None:
    """The provider's processors in order, or None where that cannot be told."""
    active = getattr(provider, "_active_span_processor", None)
    found = getattr(active, "_span_processors", None)
    return tuple(found) if isinstance(found, tuple) else None


def is_exporting(processor: SpanProcessor) -> bool:
    """Whether a processor exports spans: the SDK's two, and anything that holds an exporter of its own."""
    return isinstance(processor, (BatchSpanProcessor, SimpleSpanProcessor)) or hasattr(processor, "span_exporter")


def replace_processors(provider: Any, change: Callable[[tuple[SpanProcessor, ...]], tuple[SpanProcessor, ...]]) -> bool:
    """Put other processors in the place of a provider's; False where that cannot be done."""
    active = getattr(provider, "_active_span_processor", None)
    lock, found = getattr(active, "_lock", None), getattr(active, "_span_processors", None)
    if active is None or lock is None or not isinstance(found, tuple):
        return False
    with lock:
        active._span_processors = change(active._span_processors)
    return True
