"""Whose provider it is: one that we make, one that we join, or one that is taken over. What exports stands at its end."""

import os
import threading
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import trace as trace_api
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, SynchronousMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from spangrade._log import once
from spangrade.delivery.hold import MAX_SPANS
from spangrade.delivery.log_events import LogEvents
from spangrade.otel import destinations as otlp
from spangrade.otel import sdk_private
from spangrade.otel.exporter import SettlingExporter
from spangrade.otel.ids import OwnIdGenerator
from spangrade.otel.processor import SpangradeProcessor
from spangrade.otel.said import Said


@dataclass
class Runtime:
    """What `configure` built, so that a second call joins it instead of stacking another."""

    provider: Any
    processor: SpangradeProcessor
    own_provider: bool
    exporters: list[SpanExporter] = field(default_factory=list)  # those that we made or were given
    otlp_endpoints: list[str | None] = field(default_factory=list)  # where ours go by OTLP; empty: nowhere known


def attach(said: Said, before: Runtime | None) -> Runtime | None:
    """Make, join or take over a provider; the runtime of the call before where it is the same one."""
    given = said.tracer_provider or trace_api.get_tracer_provider()
    if before is not None and (said.tracer_provider is None or before.provider is given):
        if before.own_provider:
            _rechain(before, said)
        elif said.take_over and before.processor.next is None:
            _take_over(before)
        return before
    if isinstance(given, trace_api.ProxyTracerProvider):
        return _own_provider(said)
    if not hasattr(given, "add_span_processor"):
        once(
            f"provider:{type(given).__name__}",
            "the tracer provider takes no span processor, so nothing can be scored here; "
            "call spangrade.configure() before it is set, or send its spans to the agent",
            provider=type(given).__name__,
        )
        return None
    return _foreign_provider(given, said)


def _own_provider(said: Said) -> Runtime:
    resource = Resource.create({SERVICE_NAME: said.service_name} if said.service_name else {})
    chain, exporters, endpoints = _chain(said)
    provider = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=OwnIdGenerator())
    processor = SpangradeProcessor(chain)
    processor.settles, processor.provider = True, provider
    provider.add_span_processor(processor)
    if said.tracer_provider is None:
        trace_api.set_tracer_provider(provider)
    return Runtime(provider, processor, True, exporters, endpoints)


_Chain = tuple[SpanProcessor, list[SpanExporter], list[str | None]]


def _chain(said: Said) -> _Chain:
    """Batches, exporters, and their OTLP endpoints (none for a given exporter, whose destination is its own business).

    With several destinations the first one's answers are what counts as delivered.
    """
    exporter = said.exporter
    exporters = [exporter] if exporter is not None else [otlp.span_exporter(target) for target in said.endpoints]
    endpoints = [] if exporter is not None else said.endpoints
    chain = _batch(SettlingExporter(exporters[0]))
    if len(exporters) == 1:
        return chain, exporters, endpoints
    several = SynchronousMultiSpanProcessor()  # type: ignore[no-untyped-call]
    several.add_span_processor(chain)
    for other in exporters[1:]:
        several.add_span_processor(_batch(SettlingExporter(other, settle=False)))
    return several, exporters, endpoints


def _batch(exporter: SpanExporter) -> BatchSpanProcessor:
    """The SDK's batches, with room for everything that the hold may let go at once beside what the environment says."""
    try:
        usual = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE", "2048"))
    except ValueError:
        usual = 2048  # the SDK says what is wrong with it
    return BatchSpanProcessor(exporter, max_queue_size=usual + MAX_SPANS)


def _rechain(runtime: Runtime, said: Said) -> None:
    """A later `configure` of our own provider: what it says of exporting replaces what was said before."""
    if said.exporter is None and said.endpoints == [None] and runtime.exporters:
        return  # nothing was said of it
    old = runtime.processor.next
    runtime.processor.next, runtime.exporters, runtime.otlp_endpoints = _chain(said)
    if old is not None:
        threading.Thread(target=old.shutdown, name="spangrade-retire", daemon=True).start()


def _foreign_provider(provider: Any, said: Said) -> Runtime:
    processors = sdk_private.processors_of(provider)
    for existing in processors or ():
        if isinstance(existing, SpangradeProcessor):  # the application placed one itself
            existing.provider = provider
            return Runtime(provider, existing, False)
    if processors is not None and not any(map(sdk_private.is_exporting, processors)):
        # Nobody exports these spans (an empty provider): they are ours to hold and send.
        chain, exporters, endpoints = _chain(said)
        processor = SpangradeProcessor(chain)
        processor.settles, processor.provider = True, provider
        provider.add_span_processor(processor)
        return Runtime(provider, processor, False, exporters, endpoints)
    processor = SpangradeProcessor(None)
    processor.provider = provider
    runtime = Runtime(provider, processor, False)
    if not (said.take_over and _take_over(runtime)):
        provider.add_span_processor(processor)
    return runtime


def _take_over(runtime: Runtime) -> bool:
    """The provider's exporting processors go behind ours; False (said once) where its processors cannot be moved."""
    mine = runtime.processor
    behind = SynchronousMultiSpanProcessor()  # type: ignore[no-untyped-call]

    def change(found: tuple[SpanProcessor, ...]) -> tuple[SpanProcessor, ...]:
        moved = [p for p in found if p is not mine and sdk_private.is_exporting(p)]
        for one in moved:
            behind.add_span_processor(one)
        mine.next = behind
        return (*(p for p in found if p is not mine and p not in moved), mine)

    if sdk_private.replace_processors(runtime.provider, change):
        return True
    once("take_over", "take_over=True: this provider's processors cannot be moved; its scores leave in late mode")
    return False


def log_pipeline(runtime: Runtime, said: Said) -> LogEvents | None:
    """A logs pipeline where the destination is known: our own OTLP, or an endpoint that was said."""
    if not otlp.logs_wanted():
        return None
    if said.endpoints != [None]:
        where = said.endpoints[0]
    elif runtime.otlp_endpoints:
        where = runtime.otlp_endpoints[0]
    elif not runtime.exporters and otlp.endpoint_of("logs", None) is not None:
        where = None  # late mode: the environment says where
    else:
        return None
    resource = getattr(runtime.provider, "resource", None)
    return LogEvents(otlp.log_exporter(where), resource or Resource.create({}), said.policy)


def mode_of(runtime: Runtime) -> str:
    if runtime.own_provider:
        return "own provider: calls are held for their scores, then exported"
    if runtime.processor.next is not None:
        return "existing provider: calls are held for their scores, then go on to its exporters"
    return "late: the existing provider exports its spans; scores leave as evaluation spans through it"
