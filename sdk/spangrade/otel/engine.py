"""The running pipeline of this process, and the one global that holds it."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry import metrics as metrics_api
from opentelemetry.sdk.trace import SpanLimits

from spangrade import _guard
from spangrade._threads import unbound
from spangrade.delivery.carriers import OtelCarriers
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.hold import MAX_SPANS
from spangrade.delivery.instruments import OutcomeInstruments
from spangrade.delivery.log_events import LogEvents
from spangrade.delivery.sink import SpanSink
from spangrade.model.policy import Placed
from spangrade.otel.lineage import forget_open_spans
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.pipeline import Pipeline, Settings

EXIT_BUDGET_S: Final = 4.0  # with what a process needs beside it, the exit takes at most 5
EXPORT_S: Final = 1.0  # of a budget, kept for the export, however long judges take


class Engine:
    """A pipeline with its sink, log events and content policy."""

    def __init__(
        self,
        placed: Sequence[Placed],
        settings: Settings,
        policy: ContentPolicy,
        log_events: LogEvents | None,
        ledger: Ledger | None = None,
        max_held: int = MAX_SPANS,
    ) -> None:
        self.policy = policy
        self.log_events = log_events
        known = ledger is not None
        self.ledger = ledger or Ledger()
        self.sink = SpanSink(self.ledger, OtelCarriers(policy, log_events, SpanLimits().max_events or 128), max_held)
        self.pipeline = Pipeline(
            placed,
            self.sink,
            settings,
            ledger=self.ledger,
            redact=policy.redact,
            on_fork=self._forked,
            on_use=self.in_use,
        )
        self.on_finish: list[Callable[[float], None]] = []  # given the seconds that are left
        self.on_use: list[Callable[[], None]] = []  # called at the first use in each process
        self.on_fork: list[Callable[[], None]] = []  # called in a forked child, for what else belongs to a process
        self._made_by = os.getpid()
        self._used_by = 0
        self._finished = False
        self._done = threading.Event()
        self._lock = threading.Lock()
        if not known:
            with _guard.guard("engine.instruments"):
                OutcomeInstruments(self.ledger, metrics_api.get_meter_provider())

    def in_use(self) -> None:
        """Something of ours begins to work in this process. Costs next to nothing the second time."""
        pid = os.getpid()
        if self._used_by != pid:
            self._used_by = pid
            for hook in self.on_use:
                with _guard.guard("engine.on_use"):
                    hook()

    @property
    def idle(self) -> bool:
        """True in a forked child that has done nothing of ours: what is there is its parent's."""
        return os.getpid() not in (self._made_by, self._used_by)

    def flush(self, timeout: float) -> bool:
        """Metrics, then judges, then held spans and log events: everything that is not an exporter's. True when all of it
        is out. What is ready leaves even when a judge takes all the time."""
        end = time.monotonic() + timeout
        log_events = self.log_events
        some = 0.0 if log_events is None or not log_events.open else min(EXPORT_S / 2, timeout * 0.15)
        done = self.pipeline.drain(timeout - some, judges=True)
        # Bounded: what a slow next hop takes for each span must not hold up whoever flushes.
        done = bounded(self.sink.hold.release_all, max(0.1, end - time.monotonic())) and done
        if log_events is not None and log_events.open:
            left = max(0.1, end - time.monotonic())
            done = bounded(lambda: log_events.force_flush(int(left * 1000)), left) and done
        return done

    def left(self) -> dict[str, object]:
        """What has not been done yet: pairs by evaluator, and spans that wait for them."""
        pending = {counts.name: counts.pending for counts in self.ledger.snapshot().values() if counts.pending}
        return {"pairs": pending, "held_spans": len(self.sink.hold)}

    def finish(self, budget: float = EXIT_BUDGET_S) -> None:
        """Score what can be scored within ``budget`` seconds, count the rest, let every span go. Safe to call twice."""
        with self._lock:
            if self._finished:
                return
            self._finished = True
        end = time.monotonic() + budget
        # Judges in flight get most of the budget; the exporters behind need the rest.
        scoring = max(budget * 0.5, budget - EXPORT_S)
        bounded(lambda: self.pipeline.shutdown(scoring), scoring + 0.1)
        bounded(lambda: self.sink.hold.release_all(close=True), max(0.1, end - time.monotonic()))
        for hook in self.on_finish:
            with _guard.guard("engine.on_finish"):
                hook(max(0.0, end - time.monotonic()))
        log_events = self.log_events
        if log_events is not None:
            # Half of what is left: the spans' exporter is wedged just as well, if this one is.
            bounded(log_events.shutdown, max(0.2, (end - time.monotonic()) / 2))
        self._done.set()

    def wait_finished(self, timeout: float) -> bool:
        """Wait for a `finish` that runs elsewhere; past the time its spans go as they are."""
        done = self._done.wait(timeout)
        if not done:
            self.sink.hold.release_all(close=True)
        return done

    def close_accounts(self) -> None:
        """Nothing is counted any more: what is still on its way ends as not exported."""
        self.sink.close_accounts("not_exported")

    def after_fork(self) -> None:
        """In a forked child: nothing of the parent's is ours."""
        self.pipeline.after_fork()  # which calls `_forked`; a fork that no hook is told of is found by its pid

    def _forked(self) -> None:
        self._lock = threading.Lock()
        self._done = threading.Event()
        self.sink.hold.after_fork()
        if self.log_events is not None:
            self.log_events.after_fork()
        forget_open_spans()
        for hook in self.on_fork:
            with _guard.guard("engine.on_fork"):
                hook()


def bounded(work: Callable[[], object], timeout: float) -> bool:
    """Run ``work`` on a daemon thread for at most ``timeout`` seconds: the SDK's own flush and shutdown keep to no limit.

    True when it ended in time, without a fault, and did not return False.
    """
    result: list[bool] = []

    def run() -> None:
        with _guard.guard("engine.bounded"):
            result.append(work() is not False)

    thread = threading.Thread(target=run, name="spangrade-flush", daemon=True)
    try:
        unbound(thread.start)
    except RuntimeError:  # the interpreter is shutting down: inline, or not at all
        run()
        return bool(result and result[0])
    thread.join(timeout)
    return bool(result and result[0])


class _Engines:
    """The engines of this process."""

    current: Engine | None = None
    last: Engine | None = None


engines: Final = _Engines()


def current_engine() -> Engine | None:
    """The engine that `configure` made last, or None."""
    return engines.current


def last_engine() -> Engine | None:
    """The current engine or, after its end, the one that was: what is exported late still leaves by its content policy."""
    return engines.last


def set_engine(engine: Engine | None) -> Engine | None:
    """Make ``engine`` the current one; returns the one before."""
    before, engines.current = engines.current, engine
    engines.last = engine or engines.last
    return before


def _after_fork() -> None:
    engine = engines.current
    if engine is not None:
        with _guard.guard("engine.after_fork"):
            engine.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
