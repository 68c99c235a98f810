"""The agent, wired: the only place that knows every room.

Started downstream first (queues, pipeline) and upstream last (receivers); ended the other way round, so that nothing is
acknowledged that could not be sent on any more.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spangrade import _guard
from spangrade._log import log
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.sink import SpanSink
from spangrade.errors import ConfigError
from spangrade.judges.providers import close_connections
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.policy import Placed
from spangrade.samples.bounds import DEFAULT, bounds_of
from spangrade.scoring.clock import SystemClock
from spangrade.scoring.evaluators import redact_by_patterns, scoring_off
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.pipeline import Pipeline, Settings
from spangrade_agent.api.routes import Api
from spangrade_agent.bodies import OnResult
from spangrade_agent.carriers import AgentCarriers
from spangrade_agent.config import AgentConfig, Tls
from spangrade_agent.evaluators import evaluators_of
from spangrade_agent.forward import ForwardQueue
from spangrade_agent.health import Gauge, admin_app
from spangrade_agent.held_gauges import assembly_gauges, queue_gauges, span_gauges, spool_gauges, store_gauges
from spangrade_agent.http_server import HttpServer
from spangrade_agent.judge_gauges import judge_gauges
from spangrade_agent.page.app import page_app
from spangrade_agent.page.settings import PageSettings
from spangrade_agent.receivers.grpc import GrpcReceiver
from spangrade_agent.receivers.http import otlp_app
from spangrade_agent.registered import RegisteredJudges
from spangrade_agent.registry import Registry
from spangrade_agent.relay import Relay
from spangrade_agent.spool.engine import Spool
from spangrade_agent.spool.spooled import Spooled
from spangrade_agent.store import SampleStore
from spangrade_agent.upstreams import make_upstream
from spangrade_agent.wire import Signal, Upstream

METRIC_HOLD_S: Final = 1.0
JUDGE_HOLD_S: Final = 10.0
DRAIN_S: Final = 20.0
IN_MEMORY: Final = 16 * 2**20  # of what is on its way; the rest of it is in the spool only
LOGS_S: Final = 5.0  # an SDK sends spans and log records in batches of their own, each up to so late


@dataclass
class Addresses:
    """Where a running agent listens; None: it does not."""

    grpc: str | None = None
    http: str | None = None
    admin: str | None = None
    page: str | None = None


class Agent:
    """One agent. `start` binds and serves, `stop` drains; neither blocks longer than it must. ``dry``: it leaves every file as
    it is, and is not started.

    Raises:
        ConfigError: from the constructor and `start`: a setting, a metric or an address that cannot work.
    """

    def __init__(self, config: AgentConfig, *, dry: bool = False) -> None:
        self.config = config
        self._dry = dry
        self.addresses = Addresses()
        self._stopped = threading.Event()
        self._receiving: list[Any] = []  # things with stop(grace_s)
        self._showing: list[Any] = []
        self._closing: list[Callable[[], None]] = []
        self._ready = False
        redact = redact_by_patterns(config.redact)
        self._policy = ContentPolicy(
            redact, export_content=config.export_content, export_explanations=config.export_explanations
        )
        self.ledger = Ledger()
        self.placed = self._evaluators()
        clock = SystemClock()
        self.store: SampleStore | None = None
        if config.store is not False:
            kept = config.store
            self.store = SampleStore(kept.max_samples, kept.max_bytes, kept.max_age, kept.content, redact, clock)
        self._upstream = self._make_upstream()
        self._spooled = self._make_spool()
        self.carriers = AgentCarriers(self._policy, tap=config.mode == "tap", spooled=self._spooled)
        self._queues: list[ForwardQueue] = []
        if self._upstream is not None:
            traces = self._queue(self._upstream, "traces", self.carriers.traces_sent)
            logs = self._queue(self._upstream, "logs", self.carriers.logs_sent)
            self.carriers.connect(traces, logs)
            self._queues = [traces, logs]
        self.sink = SpanSink(self.ledger, self.carriers, noted=self.carriers.noted if self._spooled else None)
        self.carriers.sink = self.sink
        hold = JUDGE_HOLD_S if config.hold is None else config.hold
        settings = Settings(
            metric_hold=min(METRIC_HOLD_S, hold),
            judge_hold=hold,
            budget_store=config.budget_store,
            assembly=bounds_of(config.assembly, replace(DEFAULT, logs=LOGS_S)),
        )
        self.pipeline = Pipeline(
            self.placed, self.sink, settings, clock, self.ledger, self._policy.redact, watcher=self.store
        )
        self.registered = self._registry()
        self.relay = Relay(self.pipeline, self.sink, self.carriers, self._upstream, config.mode, self._spooled)

    def _evaluators(self) -> list[Placed]:
        if scoring_off() or self.config.score == "agent":  # relay only; "agent" names the next hop
            return []
        return evaluators_of(self.config)

    def _registry(self) -> RegisteredJudges | None:
        settings = self.config.registry
        if settings is False:
            return None
        if self.config.page is False:
            raise ConfigError(
                "registry: judges are registered over the page's listener, which page: false switches off"
            )
        registry = Registry(settings.path, settings.max_evaluators, dry=self._dry)
        place = None if scoring_off() or self.config.score == "agent" else self.pipeline.place
        try:
            kept = self.config.budget_store
            return RegisteredJudges(registry, settings, self.config.judge_endpoints, self.placed, place, kept)
        except BaseException:
            registry.close()
            raise

    def _make_spool(self) -> Spooled | None:
        settings = self.config.spool
        if settings is None or self._dry:
            return None
        if self._upstream is None or self.config.mode == "tap":
            raise ConfigError(
                "spool: it keeps what is on its way to a destination, and this agent sends no spans on; leave it out, or give "
                "a destination and mode: relay"
            )
        return Spooled(Spool(settings.path, settings.max_bytes, fsync=settings.durability == "fsync"))

    def _queue(self, upstream: Upstream, signal: Signal, on_result: OnResult) -> ForwardQueue:
        keep = None if self._spooled is None else self._spooled.keep(signal)
        if keep is None:
            return ForwardQueue(upstream, signal, on_result=on_result)
        return ForwardQueue(upstream, signal, max_bytes=IN_MEMORY, on_result=on_result, keep=keep)

    def _infos(self) -> list[EvaluatorInfo]:
        return [placed.evaluator.info for placed in self.pipeline.placed]

    def _make_upstream(self) -> Upstream | None:
        found = self._destinations()
        if len(found) > 1:
            raise ConfigError(
                f"destinations: {len(found)} are given; this release of the agent sends to one (put a Collector behind it "
                "for several)"
            )
        if not found and self.config.mode == "tap":
            raise ConfigError(
                "mode: tap sends scores only, so it needs a destination (--forward URL, or destinations:)"
            )
        # As in the SDK: port 4317 means gRPC, unless the variable says otherwise.
        protocol = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or None
        return make_upstream(found[0], protocol) if found else None

    # --- life ----------------------------------------------------------------------------------------------------------

    def start(self) -> Addresses:
        """Listen. What was started before a listener fails is stopped again."""
        try:
            self._serve()
        except BaseException:
            self.stop(0.0)
            raise
        self._ready = True
        log.info("the agent is ready", mode=self.config.mode, **vars(self.addresses))
        return self.addresses

    def _serve(self) -> None:
        """Admin first, so that a start can be watched; the page after the receivers, whose addresses it shows. An
        address of the file with port 0 gets its real one."""
        config = self.config
        self.relay.restore()
        if self.registered is not None:
            self.registered.start()
        if config.admin is not False:
            app = admin_app(self.ledger, self._gauges(), self._is_ready)
            self.addresses.admin = self._http(app, config.admin.listen, "admin")
        if config.receivers.http is not None:
            http = config.receivers.http
            otlp = otlp_app(self.relay)
            self._closing.append(otlp.close)
            self.addresses.http = self._http(otlp, http.listen, "otlp-http", http.tls)
        if config.receivers.grpc is not None:
            grpc = config.receivers.grpc
            receiver = GrpcReceiver(self.relay, grpc.listen, _files(grpc.tls))
            port = receiver.start()
            self._receiving.append(receiver)
            self.addresses.grpc = f"{grpc.listen.rpartition(':')[0]}:{port}"
        if config.page is not False:
            page = PageSettings(
                listen=config.page.listen,
                token=config.page.token,
                hosts=tuple(config.page.hosts),
                mode=config.mode,
                destinations=self._destinations(),
                receivers=self._receivers(),
                evaluators=self._infos,
            )
            programs = Api(self.registered, self._policy.redact)
            app = page_app(self.store, self.ledger, page, programs=programs, placed=lambda: self.pipeline.placed)
            self.addresses.page = self._http(app, config.page.listen, "page")

    def _destinations(self) -> tuple[str, ...]:
        named = [entry.endpoint for entry in self.config.destinations]
        return tuple([*named, self.config.endpoint] if self.config.endpoint else named)

    def _http(self, app: Any, listen: str, name: str, tls: Tls | None = None) -> str:
        server = HttpServer(app, listen, name, _files(tls))
        port = server.start()
        (self._receiving if name.startswith("otlp") else self._showing).append(server)
        return f"{listen.rpartition(':')[0]}:{port}"

    def _receivers(self) -> Mapping[str, str]:
        found = {"grpc": self.addresses.grpc, "http": self.addresses.http}
        return {name: address for name, address in found.items() if address is not None}

    def stop(self, drain_s: float = DRAIN_S) -> bool:
        """Stop receiving, score what is here within ``drain_s``, send everything on, end. True when nothing was left."""
        if self._stopped.is_set():
            return True
        self._stopped.set()
        self._ready = False
        end = time.monotonic() + drain_s
        for server in self._receiving:  # first of all: what they have taken is still scored
            with _guard.guard("agent.stop"):
                server.stop(min(5.0, drain_s))
        for close in self._closing:
            with _guard.guard("agent.close"):
                close()
        done = self.pipeline.shutdown(max(0.0, (end - time.monotonic()) * 0.6))
        self.sink.hold.release_all(close=True)
        if self._spooled is not None:
            with _guard.guard("agent.spool"):
                self._spooled.spool.flush()  # what has just left is queued only when it is durable
        for queue in self._queues:
            done = queue.close(max(0.1, end - time.monotonic())) and done
        self.sink.close_accounts("not_exported")
        for server in self._showing:
            with _guard.guard("agent.stop"):
                server.stop(1.0)
        if self.store is not None:
            self.store.close(1.0)
        if self.registered is not None:
            with _guard.guard("agent.registry"):
                self.registered.close()
        if self._upstream is not None:
            self._upstream.close()
        if self._spooled is not None:
            done = self._spooled.spool.close() and done
        with _guard.guard("agent.judges"):
            close_connections()
        return done

    # --- what the admin listener shows ---------------------------------------------------------------------------------

    def _is_ready(self) -> bool | str:
        if not self._ready:
            return "starting or stopping"
        if self.carriers.full():
            return "the queue to the destination is full"
        if self._spooled is not None and (spool := self._spooled.spool).broken is not None:
            return f"the spool cannot be written: {spool.broken}"
        if self._spooled is not None and self._spooled.spool.full():
            return "the spool is full"
        return True

    def _gauges(self) -> Sequence[Gauge]:
        queues = dict(zip(("traces", "logs"), self._queues, strict=False))
        return [
            *span_gauges(self.relay, self.sink.hold),
            *queue_gauges(queues),
            *spool_gauges(self._spooled),
            *store_gauges(self.store),
            *assembly_gauges(self.pipeline),
            *judge_gauges(self.ledger),
        ]


def _files(tls: Tls | None) -> tuple[str, str] | None:
    return (tls.cert, tls.key) if tls is not None else None
