"""What stands in somebody else's provider: processors inside vendors' wrappers, and which of them may send spans on."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.trace import Tracer, TracerProvider

from spangrade.otel import sdk_private
from spangrade.otel.processor import SpangradeProcessor
from spangrade.semconv import SCOPE

_MAX_PARTS: Final = 256
_MAX_PROXIES: Final = 4


class Placed:
    """A provider's processors. ``known`` is False where they cannot be told; ``parts`` are they and what is in them."""

    def __init__(self, provider: Any) -> None:
        processors = None
        for _ in range(_MAX_PROXIES):
            processors = sdk_private.processors_of(provider)
            if processors is not None:
                break
            provider = getattr(provider, "provider", None)  # Logfire's, in front of the provider that it has made
        self.known = processors is not None
        self.parts = [part for one in processors or () for part in parts_of(one)]


def parts_of(processor: Any) -> Iterator[Any]:
    """A processor, then the processors and exporters inside it (vendors wrap what they are given), each once.

    What stands behind a processor of ours is not its part: it gets what ours lets through.
    """
    waiting: list[Any] = [processor]
    seen: set[int] = set()
    while waiting and len(seen) < _MAX_PARTS:
        part = waiting.pop(0)
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if not isinstance(part, SpangradeProcessor):
            waiting += inside(part)


def inside(part: Any) -> list[Any]:
    """Processors and exporters that are attributes of ``part``, or in a list that is one."""
    found = []
    values = list(getattr(part, "__dict__", {}).values())
    with suppress(Exception):  # a property of the SDK's batch processor, and maybe one of a vendor's that raises
        values.append(part.span_exporter)
    for value in values:
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, (SpanProcessor, SpanExporter)):
                found.append(one)
    return found


def exports(processor: Any) -> bool:
    """Whether a processor, or one inside it, exports spans."""
    return any(isinstance(part, SpanExporter) or sdk_private.is_exporting(part) for part in parts_of(processor))


def reads_ended(part: Any) -> bool:
    """Whether a processor looks at ended spans itself, so may send them by a way of its own, as Sentry's does.

    One that only puts attributes on starting spans does not; one with others inside passes them on.
    """
    if isinstance(part, SpanExporter) or inside(part):
        return False
    on_end = getattr(type(part), "on_end", None)
    return on_end is not None and on_end is not SpanProcessor.on_end


class KnownTracer(TracerProvider):
    """A provider's tracer for evaluation spans, asked for when we attach and not when a score is there.

    Logfire's provider flushes its processors, ours too, under the lock that `get_tracer` takes: a score that asked then
    would wait for the flush, and the flush for the score.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer(SCOPE)

    def get_tracer(self, *_: Any, **__: Any) -> Tracer:
        """The same tracer always."""
        return self._tracer
