"""Whose provider it is: one that we make, one that we join, or one that is taken over. What exports stands at its end."""

import threading
import weakref
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import trace as trace_api
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, SynchronousMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter

from spangrade._log import once
from spangrade._threads import unbound
from spangrade.delivery.log_events import LogEvents
from spangrade.otel import destinations as otlp
from spangrade.otel import sdk_private, theirs
from spangrade.otel.batch import batch, check_batching
from spangrade.otel.cleaning import Cleaned
from spangrade.otel.exporter import ScoringExporter, SettlingExporter
from spangrade.otel.ids import OwnIdGenerator
from spangrade.otel.processor import SpangradeProcessor
from spangrade.otel.said import Said


@dataclass
class Runtime:
    """What `configure` built, so that a second call joins it instead of stacking another."""

    provider: Any
    processor: SpangradeProcessor | None  # None: a ScoringExporter does it
    own_provider: bool
    exporters: list[SpanExporter] = field(default_factory=list)  # those that we made or were given
    otlp_endpoints: list[str | None] = field(default_factory=list)  # where ours go by OTLP; empty: nowhere known
    given: Any = None  # the provider that `configure` was given, which calls are traced through
    settling: list[SettlingExporter] = field(default_factory=list)  # those of `exporters`, whose failures count
    retiring: list[threading.Thread] = field(default_factory=list)  # chains of before that are still exporting
    logs: bool = False  # scores leave as log events too


_made: weakref.WeakSet[TracerProvider] = weakref.WeakSet()  # by us: only these are ours to shut down


def attach(said: Said, before: Runtime | None) -> Runtime | None:
    """Make, join or take over a provider; the runtime of the call before where it is the same one. None: impossible.

    Raises:
        ConfigError: what the environment says of exporting cannot be meant. Nothing has been changed then.
    """
    _check_logs(said)
    runtime = _attach(said, before)
    if runtime is not None and said.tracer_provider is not None:
        runtime.given = said.tracer_provider
    return runtime


def _attach(said: Said, before: Runtime | None) -> Runtime | None:
    """Make, join or take over a provider; the runtime of the call before where it is the same one."""
    given = said.tracer_provider or trace_api.get_tracer_provider()
    if before is not None and not _still_there(before):
        before = None
    if before is not None and (said.tracer_provider is None or before.provider is given):
        if before.own_provider or before.exporters:
            _rechain(before, said)
        elif said.take_over and before.processor is not None and before.processor.next is None:
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


def _still_there(runtime: Runtime) -> bool:
    """False when the processor that we placed has been shut down with its provider, or replaced together with it."""
    mine = runtime.processor
    if mine is None:
        return True  # a ScoringExporter: whoever placed it knows
    placed = theirs.Placed(runtime.provider)
    return not mine.ended and (not placed.known or any(part is mine for part in placed.parts))


def _own_provider(said: Said) -> Runtime:
    resource = Resource.create({SERVICE_NAME: said.service_name} if said.service_name else {})
    runtime = Runtime(None, None, True)
    chain = _chain(runtime, said)
    runtime.provider = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=OwnIdGenerator())
    _made.add(runtime.provider)
    _place(runtime, chain)
    if said.tracer_provider is None:
        trace_api.set_tracer_provider(runtime.provider)
    return runtime


def _place(runtime: Runtime, chain: SpanProcessor) -> None:
    """A processor of ours with ``chain`` behind it into the runtime's provider."""
    runtime.processor = SpangradeProcessor(chain)
    runtime.processor.ours_behind, runtime.processor.provider = True, theirs.KnownTracer(runtime.provider)
    runtime.provider.add_span_processor(runtime.processor)


def _chain(runtime: Runtime, said: Said) -> SpanProcessor:
    """Batches and exporters; ``runtime`` keeps the exporters and their OTLP endpoints (none for a given exporter, whose
    destination is its own business). With several destinations the first one's answers are what counts as delivered."""
    exporter = said.exporter
    runtime.exporters = [exporter] if exporter is not None else [otlp.span_exporter(e) for e in said.endpoints]
    runtime.otlp_endpoints = [] if exporter is not None else said.endpoints
    cleaned = Cleaned()
    runtime.settling = [
        SettlingExporter(one, settle=n == 0, cleaned=cleaned) for n, one in enumerate(runtime.exporters)
    ]
    if len(runtime.settling) == 1:
        return batch(runtime.settling[0])
    several = SynchronousMultiSpanProcessor()  # type: ignore[no-untyped-call]
    for one in runtime.settling:
        several.add_span_processor(batch(one))
    return several


def _rechain(runtime: Runtime, said: Said) -> None:
    """A later `configure` where what exports is ours: what it says of that replaces what was said before."""
    assert runtime.processor is not None
    same = said.exporter is not None and said.exporter in runtime.exporters
    if same or (said.exporter is None and said.endpoints == [None] and runtime.exporters):
        return  # nothing new was said of it
    old = runtime.processor.next
    runtime.processor.next = _chain(runtime, said)
    if old is not None:
        thread = threading.Thread(target=old.shutdown, name="spangrade-retire-exporter", daemon=True)
        runtime.retiring.append(thread)
        unbound(thread.start)


def _foreign_provider(provider: Any, said: Said) -> Runtime:
    placed = theirs.Placed(provider)
    for existing in placed.parts:
        if isinstance(existing, SpangradeProcessor):  # one of ours from before, or the application placed one itself
            if existing.ended and not existing.ours_behind:
                continue  # what stands behind it was shut down with it
            existing.provider = theirs.KnownTracer(provider)
            runtime = Runtime(provider, existing, False)
            if existing.ended:
                existing.revive()
                existing.next = _chain(runtime, said)
                runtime.own_provider = provider in _made
            return runtime
    if any(isinstance(part, ScoringExporter) for part in placed.parts):
        return Runtime(provider, None, False)  # scoring happens there; a processor beside it would do it again
    if placed.known and not _is_somebodys(placed, said):
        # Nobody exports these spans: they are ours to hold and send.
        runtime = Runtime(provider, None, False)
        _place(runtime, _chain(runtime, said))
        return runtime
    processor = SpangradeProcessor(None)
    processor.provider = theirs.KnownTracer(provider)
    runtime = Runtime(provider, processor, False)
    if not (said.take_over and _take_over(runtime)):
        provider.add_span_processor(processor)
    return runtime


def _is_somebodys(placed: theirs.Placed, said: Said) -> bool:
    """Whether the spans of a provider are exported already; one that may send them by a way of its own counts, too,
    unless we were told where to: what somebody else traces goes to no new place unasked."""
    if any(map(theirs.exports, placed.parts)):
        return True
    told = said.exporter is not None or any(otlp.endpoint_of("traces", each) for each in said.endpoints)
    return not told and any(map(theirs.reads_ended, placed.parts))


def _take_over(runtime: Runtime) -> bool:
    """The provider's exporting processors go behind ours; False (said once) where its processors cannot be moved."""
    mine = runtime.processor
    assert mine is not None
    behind = SynchronousMultiSpanProcessor()  # type: ignore[no-untyped-call]

    def change(found: tuple[SpanProcessor, ...]) -> tuple[SpanProcessor, ...]:
        moved = [p for p in found if p is not mine and theirs.exports(p)]
        for one in moved:
            behind.add_span_processor(one)
        mine.next = behind
        return (*(p for p in found if p is not mine and p not in moved), mine)

    if sdk_private.replace_processors(runtime.provider, change):
        return True
    once("take_over", "take_over=True: this provider's processors cannot be moved; its scores leave in late mode")
    return False


def _check_logs(said: Said) -> None:
    """Before anything is changed, since `log_pipeline` is asked only when a provider is there."""
    if otlp.logs_wanted() and (said.exporter is None or said.endpoints != [None] or otlp.endpoint_of("logs", None)):
        otlp.checked("logs", said.endpoints[0])
        check_batching("BLRP")


def log_pipeline(runtime: Runtime, said: Said) -> LogEvents | None:
    """A logs pipeline where the destination is known: our own OTLP, or an endpoint that was said."""
    runtime.logs = False
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
    runtime.logs = True
    resource = getattr(runtime.provider, "resource", None)
    return unbound(lambda: LogEvents(otlp.log_exporter(where), resource or Resource.create({}), said.policy))


def mode_of(runtime: Runtime) -> str:
    """What `configure` says it does, in a few words."""
    if runtime.processor is None:
        return "a ScoringExporter holds calls for their scores"
    if runtime.own_provider:
        return "own provider: calls are held for their scores, then exported"
    if runtime.exporters:
        return "existing provider, which nobody else exports: calls are held for their scores, then exported"
    if runtime.processor.next is not None:
        return "existing provider: calls are held for their scores, then go on to its exporters"
    logs = " and as log events" if runtime.logs else ""
    return f"late: the existing provider exports its spans; scores leave as evaluation spans through it{logs}"
