"""`configure`, `flush` and `shutdown`: the wiring of the SDK, and its only global state beside the engine."""

import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from opentelemetry import trace as trace_api
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, SynchronousMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from spangrade import _guard, config
from spangrade._log import log, once
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.hold import MAX_SPANS
from spangrade.delivery.log_events import LogEvents
from spangrade.errors import ConfigError
from spangrade.judges.judge import LlmJudge
from spangrade.judges.live import live, place
from spangrade.metrics.catalog import resolve
from spangrade.model.policy import Placed
from spangrade.otel import destinations as otlp
from spangrade.otel import sdk_private
from spangrade.otel.engine import EXIT_BUDGET_S, Engine, bounded, current_engine, set_engine
from spangrade.otel.exit import ExitHook
from spangrade.otel.exporter import SettlingExporter
from spangrade.otel.ids import OwnIdGenerator
from spangrade.otel.instrument import switch_on
from spangrade.otel.processor import SpangradeProcessor
from spangrade.scoring.pipeline import Settings
from spangrade.tracing.call import reread_environment, use_provider

_OFF = ("off", "false", "0", "no")


@dataclass
class _Runtime:
    """What `configure` built, so that a second call joins it instead of stacking another."""

    provider: Any
    processor: SpangradeProcessor
    own_provider: bool
    exporters: list[SpanExporter] = field(default_factory=list)  # those that we made or were given
    otlp_endpoints: list[str | None] = field(default_factory=list)  # where ours go by OTLP; empty: nowhere known


_lock = threading.RLock()
_runtime: _Runtime | None = None


def configure(
    service_name: str | None = None,
    endpoint: str | None = None,
    metrics: Sequence[Any] = (),
    judges: Sequence[Any] = (),
    destinations: Sequence[Any] = (),
    exporter: SpanExporter | None = None,
    tracer_provider: trace_api.TracerProvider | None = None,
    take_over: bool = False,
    score: Literal["here", "agent"] = "here",
    hold: float | None = None,
    redact: Callable[[str], str] | None = None,
    export_content: bool = True,
    instrument: Sequence[str] = (),
    config_file: str | os.PathLike[str] | None = None,
) -> None:
    """Set Spangrade up in this process. May be called again: the last call counts, nothing is stacked.

    Where no tracer provider is set, one is made and set, with an OTLP exporter, and calls are held for their scores. A
    provider that already has somebody's exporter is attached to in late mode: no span is exported by us, and scores
    leave as evaluation spans through that provider (and as log events where an endpoint is said). Which of these it
    does is logged once, at level INFO of the logger ``spangrade``.

    Args:
        service_name: ``service.name`` of a provider that we make; default ``OTEL_SERVICE_NAME``.
        endpoint: OTLP base URL, such as ``http://localhost:4318``; default the ``OTEL_EXPORTER_OTLP_*`` variables. Port
            4317 means gRPC unless ``OTEL_EXPORTER_OTLP_PROTOCOL`` says otherwise.
        metrics: functions, `metric` objects, names of built-ins (``"overlap"``), or ``"module:name"``.
        judges: `LlmJudge` objects with ``live=True``, or ``live(judge, rate=...)``.
        destinations: several places instead of ``endpoint``: ``{"preset": "otlp", "endpoint": ...}`` each.
        exporter: any `SpanExporter` in place of OTLP.
        tracer_provider: attach to this provider and not to the global one.
        take_over: put an existing provider's exporting processors behind ours, so that its spans are held too.
        score: ``here``, or ``agent``: trace only, and leave scoring to the agent that the spans go to.
        hold: seconds a call may wait for its judges, default 5; for metrics at most 1 of these.
        redact: a function of a text, applied before a judge or an exporter of ours sees it.
        export_content: False: users' text is taken off the spans after scoring.
        instrument: existing instrumentations to switch on where they are installed, such as ``["openai"]``.
        config_file: YAML with the same keys, default ``SPANGRADE_CONFIG``; an argument wins over it.

    ``SPANGRADE_DISABLED=true`` makes this do nothing at all; ``SPANGRADE_SCORING=off`` traces without scoring.

    Raises:
        ConfigError: a setting that cannot work. Nothing has been changed then.
    """
    if reread_environment():
        log.info("spangrade is disabled by SPANGRADE_DISABLED or OTEL_SDK_DISABLED")
        return
    said = _merged(locals())
    evaluators = _evaluators(said)
    policy = ContentPolicy(
        said["redact"], export_content=said["export_content"], export_explanations=said["export_explanations"]
    )
    settings = _settings(said["hold"])
    targets = _endpoints(said)
    global _runtime
    with _lock:
        before = _runtime
        runtime = _attach(said, targets, before)
        if runtime is None:
            return
        log_events = _log_events(runtime, targets, policy)
        old = current_engine()
        engine = Engine(evaluators, settings, policy, log_events, old.ledger if old is not None else None)
        set_engine(engine)
        _runtime = runtime
        use_provider(said.get("tracer_provider"))
        _exit.arm()
    if old is not None:
        _retire(old)
    switch_on(said["instrument"], runtime.provider)
    log.info(
        "spangrade is on",
        mode=_mode(runtime),
        evaluators=", ".join(p.evaluator.info.name for p in evaluators) or "none",
    )


def ensure_engine() -> None:
    """For set-ups without a call to `configure` (the exporter's entry point): evaluators from ``SPANGRADE_CONFIG``."""
    if current_engine() is None and not reread_environment():
        said = _merged({"config_file": None})
        policy = ContentPolicy(
            said["redact"], export_content=said["export_content"], export_explanations=said["export_explanations"]
        )
        set_engine(Engine(_evaluators(said), _settings(said["hold"]), policy, None))
        _exit.arm()


# --- settings --------------------------------------------------------------------------------------------------------


def _merged(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments over the file over the defaults."""
    path = arguments.get("config_file") or os.environ.get("SPANGRADE_CONFIG")
    file = config.load(path) if path else config.FileConfig()
    said = dict(arguments)
    for key in ("metrics", "judges", "destinations", "instrument"):
        if isinstance(arguments.get(key), str):
            raise ConfigError(f"{key} is a list; for one of them write {key}=[{arguments[key]!r}]")
    said["service_name"] = arguments.get("service_name") or file.service_name
    said["endpoint"] = arguments.get("endpoint") or file.endpoint
    said["metrics"] = list(arguments.get("metrics") or ()) or list(file.metrics)
    said["judges"] = list(arguments.get("judges") or ()) or [_judge(j) for j in file.judges]
    said["destinations"] = list(arguments.get("destinations") or ()) or list(file.destinations)
    said["take_over"] = bool(arguments.get("take_over")) or file.take_over
    said["score"] = file.score if arguments.get("score", "here") == "here" else arguments["score"]
    said["hold"] = arguments["hold"] if arguments.get("hold") is not None else file.hold
    said["redact"] = arguments.get("redact") or _patterns(file.redact)
    said["export_content"] = bool(arguments.get("export_content", True)) and file.export_content
    said["export_explanations"] = file.export_explanations
    said["instrument"] = list(arguments.get("instrument") or ()) or list(file.instrument)
    if said["score"] not in ("here", "agent"):
        raise ConfigError(f"score {said['score']!r} is not 'here' or 'agent'")
    if said["redact"] is not None and not callable(said["redact"]):
        raise ConfigError(f"redact {said['redact']!r} is not a function of a text that returns a text")
    return said


def _metric(given: Any) -> Placed:
    if isinstance(given, config.MetricEntry):
        return Placed(resolve(given.use), match=given.match)
    return Placed(resolve(given))


def _judge(entry: config.JudgeEntry) -> Placed:
    given = entry.model_dump(exclude={"live", "match"}, exclude_none=True)
    if isinstance(given.get("fields"), list):
        given["fields"] = tuple(given["fields"])
    given["examples"] = tuple(given["examples"])
    if isinstance(entry.live, config.LiveEntry):
        placed = live(LlmJudge(**given), **entry.live.model_dump(exclude_none=True))
    else:
        placed = place(LlmJudge(**given, live=entry.live))
    return replace(placed, match=entry.match)


def _patterns(entry: config.RedactEntry | None) -> Callable[[str], str] | None:
    if entry is None:
        return None
    try:
        patterns = [re.compile(pattern) for pattern in entry.patterns]
    except re.error as fault:
        raise ConfigError(f"redact.patterns: {fault.pattern!r} is not a regular expression: {fault}") from fault

    def redact(text: str) -> str:
        for pattern in patterns:
            text = pattern.sub(entry.replacement, text)
        return text

    return redact


def _evaluators(said: Mapping[str, Any]) -> list[Placed]:
    found = [_metric(given) for given in said["metrics"]] + [place(given) for given in said["judges"]]
    seen: set[str] = set()
    for placed in found:
        info = placed.evaluator.info
        if info.key in seen:
            raise ConfigError(f"two evaluators are named {info.name!r} with the same config; rename one, or drop it")
        seen.add(info.key)
    if said["score"] == "agent" or os.environ.get("SPANGRADE_SCORING", "").strip().lower() in _OFF:
        return []
    return found


def _settings(hold: float | None) -> Settings:
    if hold is None:
        return Settings()
    if isinstance(hold, bool) or not isinstance(hold, (int, float)) or not 0 <= hold <= 600:
        raise ConfigError(f"hold {hold!r} is not a number of seconds from 0 to 600")
    return Settings(metric_hold=min(1.0, hold), judge_hold=float(hold))


def _endpoints(said: Mapping[str, Any]) -> list[str | None]:
    found: list[str | None] = []
    for given in said["destinations"]:
        entry = given
        if not isinstance(given, config.DestinationEntry):
            try:
                entry = config.DestinationEntry.model_validate(given)
            except ValueError:
                raise ConfigError(
                    f"destinations: {given!r} is not like {{'preset': 'otlp', 'endpoint': 'http://localhost:4318'}}"
                ) from None
        found.append(entry.endpoint)
    if found and said["endpoint"]:
        raise ConfigError("give either endpoint or destinations, not both")
    return found or [said["endpoint"]]


# --- the provider ----------------------------------------------------------------------------------------------------


def _attach(said: Mapping[str, Any], targets: list[str | None], before: _Runtime | None) -> _Runtime | None:
    """Make, join or take over a provider; the runtime of the call before where it is the same one."""
    given = said.get("tracer_provider") or trace_api.get_tracer_provider()
    if before is not None and (said.get("tracer_provider") is None or before.provider is given):
        if before.own_provider:
            _rechain(before, said, targets)
        elif said["take_over"] and before.processor.next is None:
            _take_over(before)
        return before
    if isinstance(given, trace_api.ProxyTracerProvider):
        return _own_provider(said, targets)
    if not hasattr(given, "add_span_processor"):
        once(
            f"provider:{type(given).__name__}",
            "the tracer provider takes no span processor, so nothing can be scored here; "
            "call spangrade.configure() before it is set, or send its spans to the agent",
            provider=type(given).__name__,
        )
        return None
    return _foreign_provider(given, said, targets)


def _own_provider(said: Mapping[str, Any], targets: list[str | None]) -> _Runtime:
    resource = Resource.create({SERVICE_NAME: said["service_name"]} if said["service_name"] else {})
    chain, exporters, endpoints = _chain(said, targets)
    provider = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=OwnIdGenerator())
    processor = SpangradeProcessor(chain)
    processor.settles, processor.provider = True, provider
    provider.add_span_processor(processor)
    if said.get("tracer_provider") is None:
        trace_api.set_tracer_provider(provider)
    return _Runtime(provider, processor, True, exporters, endpoints)


_Chain = tuple[SpanProcessor, list[SpanExporter], list[str | None]]


def _chain(said: Mapping[str, Any], targets: list[str | None]) -> _Chain:
    """Batches, exporters, and their OTLP endpoints (none for a given exporter, whose destination is its own business).

    With several destinations the first one's answers are what counts as delivered.
    """
    exporter = said.get("exporter")
    if exporter is not None and not isinstance(exporter, SpanExporter):
        raise ConfigError(f"exporter {type(exporter).__name__} is not an opentelemetry.sdk SpanExporter")
    exporters = [exporter] if exporter is not None else [otlp.span_exporter(target) for target in targets]
    endpoints = [] if exporter is not None else targets
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


def _rechain(runtime: _Runtime, said: Mapping[str, Any], targets: list[str | None]) -> None:
    """A later `configure` of our own provider: what it says of exporting replaces what was said before."""
    if said.get("exporter") is None and targets == [None] and runtime.exporters:
        return  # nothing was said of it
    old = runtime.processor.next
    runtime.processor.next, runtime.exporters, runtime.otlp_endpoints = _chain(said, targets)
    if old is not None:
        threading.Thread(target=old.shutdown, name="spangrade-retire", daemon=True).start()


def _foreign_provider(provider: Any, said: Mapping[str, Any], targets: list[str | None]) -> _Runtime:
    processors = sdk_private.processors_of(provider)
    for existing in processors or ():
        if isinstance(existing, SpangradeProcessor):  # the application placed one itself
            existing.provider = provider
            return _Runtime(provider, existing, False)
    if processors is not None and not any(map(sdk_private.is_exporting, processors)):
        # Nobody exports these spans (an empty provider): they are ours to hold and send.
        chain, exporters, endpoints = _chain(said, targets)
        processor = SpangradeProcessor(chain)
        processor.settles, processor.provider = True, provider
        provider.add_span_processor(processor)
        return _Runtime(provider, processor, False, exporters, endpoints)
    processor = SpangradeProcessor(None)
    processor.provider = provider
    runtime = _Runtime(provider, processor, False)
    if not (said["take_over"] and _take_over(runtime)):
        provider.add_span_processor(processor)
    return runtime


def _take_over(runtime: _Runtime) -> bool:
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


def _log_events(runtime: _Runtime, targets: list[str | None], policy: ContentPolicy) -> LogEvents | None:
    """A logs pipeline where the destination is known: our own OTLP, or an endpoint that was said."""
    if not otlp.logs_wanted():
        return None
    if targets != [None]:
        where = targets[0]
    elif runtime.otlp_endpoints:
        where = runtime.otlp_endpoints[0]
    elif not runtime.exporters and otlp.endpoint_of("logs", None) is not None:
        where = None  # late mode: the environment says where
    else:
        return None
    resource = getattr(runtime.provider, "resource", None)
    return LogEvents(otlp.log_exporter(where), resource or Resource.create({}), policy)


def _mode(runtime: _Runtime) -> str:
    if runtime.own_provider:
        return "own provider: calls are held for their scores, then exported"
    if runtime.processor.next is not None:
        return "existing provider: calls are held for their scores, then go on to its exporters"
    return "late: the existing provider exports its spans; scores leave as evaluation spans through it"


# --- the end ---------------------------------------------------------------------------------------------------------


def _retire(engine: Engine) -> None:
    """An engine that a later `configure` replaced finishes its work in the background."""

    def finish() -> None:
        with _guard.guard("bootstrap.retire"):
            engine.finish()

    try:
        threading.Thread(target=finish, name="spangrade-retire", daemon=True).start()
    except RuntimeError:
        finish()


def flush(timeout: float = 30.0) -> bool:
    """Wait until everything traced so far has its metrics, its chosen judges, and is exported.

    Calls that still wait for an entry span (an HTTP handler that is running) are scored as they are. Returns True when
    all of it is done within ``timeout`` seconds, False when something is left; never raises.
    """
    end = time.monotonic() + timeout
    done = True
    with _guard.guard("flush"):
        engine, runtime = current_engine(), _runtime
        if engine is not None:
            done = engine.flush(timeout * 0.8)  # what is ready must still be exported when a judge takes all the time
        if runtime is not None:
            left = max(0.0, end - time.monotonic())
            done = bounded(lambda: _force_flush(runtime, left), left) and done
    return done


def _force_flush(runtime: _Runtime, left: float) -> bool:
    return bool(runtime.provider.force_flush(int(left * 1000)))


def shutdown() -> None:
    """Score and export what can be within 5 seconds, count the rest, end all threads. Runs by itself at exit."""
    global _runtime
    with _lock:
        runtime, _runtime = _runtime, None
        engine = set_engine(None)
    _exit.disarm()
    if engine is None:
        return
    end = time.monotonic() + EXIT_BUDGET_S
    with _guard.guard("shutdown"):
        set_engine(engine)  # the processor's and exporter's last spans still need it
        try:
            engine.finish()
            if runtime is not None:
                _end_exports(runtime, end)
        finally:
            engine.ledger.close("not_exported")
            set_engine(None)


def _end_exports(runtime: _Runtime, end: float) -> None:
    if not runtime.own_provider:
        bounded(lambda: _force_flush(runtime, end - time.monotonic()), max(0.2, end - time.monotonic()))
        return
    done = bounded(runtime.provider.shutdown, max(0.5, end - time.monotonic() - 0.5))
    if not done:  # an exporter that retries into the void listens to its own shutdown
        for exporter in runtime.exporters:
            bounded(exporter.shutdown, 0.3)


_exit = ExitHook(shutdown, EXIT_BUDGET_S + 0.5)
