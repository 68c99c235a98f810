"""`configure`, `flush` and `shutdown`: the wiring of the SDK, and its only global state beside the engine."""

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace.export import SpanExporter

from spangrade import _guard
from spangrade._log import log, seldom
from spangrade._switches import disabled, sdk_disabled
from spangrade._threads import unbound
from spangrade.delivery.hold import FOREIGN_MAX_SPANS, MAX_SPANS
from spangrade.judges.providers import close_connections
from spangrade.otel.ending import end_exports, failures, flush_exports
from spangrade.otel.engine import EXIT_BUDGET_S, EXPORT_S, Engine, bounded, current_engine, set_engine
from spangrade.otel.exit import ExitHook
from spangrade.otel.exporter import live_exporters
from spangrade.otel.flushing import flush_provider
from spangrade.otel.instrument import switch_on
from spangrade.otel.log_records import listen
from spangrade.otel.providers import Runtime, attach, log_pipeline, mode_of
from spangrade.otel.said import Arguments, check
from spangrade.otel.sigterm import TermHook
from spangrade.otel.worker_exit import WorkerExit
from spangrade.tracing.call import use_provider
from spangrade.tracing.open_streams import any_open, end_open_streams

_lock = threading.RLock()
_ending = threading.RLock()
_runtime: Runtime | None = None
_earlier: list[Runtime] = []  # of other providers, which an earlier `configure` was about: their spans go on as well


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
        redact: a function of a text, applied once to every text of a span before it leaves through us, to scores and their
            explanations, and to what a judge sees; metrics see the text itself. It runs on our threads, except before a
            processor of the application's own. Where it raises, the text is withheld.
        export_content: False: users' text is taken off the spans after scoring.
            In late mode neither touches the spans, which somebody else exports: only the scores.
        instrument: libraries, such as ``["openai", "anthropic"]``, whose existing instrumentation is switched on where
            it is installed. One for each: what is on already, else OpenInference's, else another that captures text,
            else OpenTelemetry's own (which captures text only with
            ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY``; said if not). A package's name asks for
            just that one. What is missing is logged once, with the command that installs it.
        config_file: YAML with the same keys, default ``SPANGRADE_CONFIG``; an argument wins over it.

    A provider that the application sets after this call is refused by OpenTelemetry, with its own warning: call
    `configure` after whoever sets one. Spans that a head sampler drops are not scored.

    What instrumentations say in log records is read from the application's logger provider, and scored with the call that it
    belongs to. Where none of both providers is set, and ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` says
    ``true``, ``EVENT_ONLY`` or ``SPAN_AND_EVENT``, one is made and set, which exports nothing.

    ``SPANGRADE_DISABLED=true`` makes this do nothing at all; ``SPANGRADE_SCORING=off`` traces without scoring.

    Raises:
        ConfigError: a setting that cannot work. Nothing has been changed then.
    """
    if disabled() or sdk_disabled():
        log.info("spangrade is disabled by SPANGRADE_DISABLED or OTEL_SDK_DISABLED")
        return
    said = check(
        Arguments(
            service_name,
            endpoint,
            metrics,
            judges,
            destinations,
            exporter,
            tracer_provider,
            take_over,
            score,
            hold,
            redact,
            export_content,
            instrument,
            config_file,
        )
    )
    global _runtime
    with _lock:
        given = said.tracer_provider
        before = next((one for one in _earlier if given is not None and one.provider is given), _runtime)
        runtime = attach(said, before)
        if runtime is None:
            return
        _keep(runtime)
        old = current_engine()
        log_events = log_pipeline(runtime, said)
        ledger = old.ledger if old is not None else None
        foreign = runtime.processor is not None and not runtime.processor.ours_behind
        held = FOREIGN_MAX_SPANS if foreign else MAX_SPANS
        engine = Engine(said.evaluators, said.settings, said.policy, log_events, ledger, held)
        _runtime = runtime
        _start(engine)
        listen(make=runtime.own_provider)
        use_provider(runtime.given)
    if old is not None:
        _retire(old)
    switch_on(said.instrument, runtime.provider)
    names = ", ".join(placed.evaluator.info.name for placed in said.evaluators)
    log.info("spangrade is on", mode=mode_of(runtime), evaluators=names or "none")


def _keep(runtime: Runtime) -> None:
    """Another runtime than this one is not forgotten: its provider is flushed with this one's, and ended with it."""
    others = [one for one in _runtimes() if one is not runtime and one.provider is not runtime.provider]
    _earlier[:] = [one for one in others if one.processor is None or not one.processor.ended]


def _runtimes() -> list[Runtime]:
    return [*_earlier, *([] if _runtime is None else [_runtime])]


def ensure_engine() -> None:
    """For set-ups without a call to `configure` (the exporter's entry point): evaluators from ``SPANGRADE_CONFIG``."""
    if current_engine() is None and not disabled() and not sdk_disabled():
        said = check(Arguments())
        _start(Engine(said.evaluators, said.settings, said.policy, None))


def _start(engine: Engine) -> None:
    """Make it the current one; and see to it that what it does is finished when this process, or a child of it, ends."""
    engine.on_use += (_arm, listen)  # again: the application may have set its logger provider since
    engine.on_fork.append(_forked)
    set_engine(engine)
    _arm()
    # Hooks run in reverse order, and a provider that was made since has one of its own, which keeps to no limit.
    atexit.unregister(_exit.run)
    atexit.register(_exit.run)


def _arm() -> None:
    _exit.arm()
    _worker_exit.arm()
    _sigterm.arm()


def _forked() -> None:
    """In a child: the parent's threads are not here, and whatever it was about to do is its own."""
    global _lock, _ending
    _lock, _ending = threading.RLock(), threading.RLock()
    _retiring.clear()
    for runtime in _runtimes():
        runtime.retiring.clear()
    _sigterm.disarm()


# --- the end ---------------------------------------------------------------------------------------------------------


_retiring: list[Engine] = []


def _retire(engine: Engine) -> None:
    """An engine that a later `configure` replaced finishes its work in the background; `flush` and `shutdown` wait for it."""
    _retiring.append(engine)

    def finish() -> None:
        with _guard.guard("bootstrap.retire"):
            engine.finish()
        if engine in _retiring:
            _retiring.remove(engine)

    try:
        unbound(threading.Thread(target=finish, name="spangrade-retire", daemon=True).start)
    except RuntimeError:
        finish()


def flush(timeout: float = 30.0) -> bool:
    """Wait until everything traced so far has its metrics, its chosen judges, and is exported.

    In this order, within ``timeout`` seconds: metrics, judges, export; some of the time is kept for the export. Calls that
    still wait for an entry span (an HTTP handler that is running) are scored as they are. Returns True when all of it is
    done, False when something is left or an export failed; what that is, is logged in one line (at most one a minute), and goes
    on in the background. Never raises.
    """
    end = time.monotonic() + timeout
    done = True

    def left() -> float:
        return max(0.0, end - time.monotonic())

    with _guard.guard("flush"):
        engine, runtime, runtimes = current_engine(), _runtime, _runtimes()
        if engine is not None:
            engine.pipeline.check_fork()
        failed = failures(runtimes)
        # Where a ScoringExporter scores, its spans still stand in the batch before it. Not where a processor of ours does:
        # what it holds for a judge would leave without.
        if live_exporters() and runtime is not None and runtime.processor is None:
            bounded(lambda: flush_provider(runtime.provider, left()), left() * 0.3)
        for old in list(_retiring):
            done = old.wait_finished(left() * 0.5) and done
        if engine is not None:
            # What is ready must be exported even when a judge takes its time.
            done = engine.flush(left() - min(EXPORT_S, left() * 0.3)) and done
        for exporter in live_exporters():
            done = bounded(lambda exporter=exporter: exporter.force_flush(int(left() * 1000)), left()) and done  # type: ignore[misc]
        done = flush_exports(runtimes, left()) and done
        lost = failures(runtimes) - failed
        done = done and not lost
        if not done and engine is not None:
            seldom("flush", "spangrade's flush ended with work left", **engine.left(), failed_exports=lost)
    return done


def shutdown() -> None:
    """Score and export what can be within 5 seconds, count the rest, end all threads. Runs by itself at exit, and when
    SIGTERM ends a process that does not handle it.

    In a worker process, too: those of multiprocessing, Celery, gunicorn and uvicorn. Where a process ends by `os._exit`
    without any of them, or a pool's workers are killed, call ``spangrade.flush(5)`` at the end of the work.
    """
    ending = _ending
    if not ending.acquire(timeout=EXIT_BUDGET_S):  # somebody is at it
        return
    try:
        _shutdown()
    finally:
        ending.release()


def _shutdown() -> None:
    global _runtime
    with _lock:
        runtime, runtimes = _runtime, _runtimes()
        _runtime = None
        _earlier.clear()
        engine = current_engine()
    _exit.disarm()
    _sigterm.disarm()
    if engine is None:
        return
    end = time.monotonic() + EXIT_BUDGET_S
    end_open_streams()  # those half read are scored and exported with what came
    with _guard.guard("shutdown"):
        try:
            scoring_exporters = live_exporters()
            if scoring_exporters and (runtime is None or runtime.processor is None):  # as in `flush`
                provider: Any = runtime.provider if runtime is not None else trace_api.get_tracer_provider()
                bounded(lambda: flush_provider(provider, EXIT_BUDGET_S * 0.3), EXIT_BUDGET_S * 0.3)
            for old in list(_retiring):
                old.wait_finished(EXIT_BUDGET_S * 0.3)
            engine.finish(max(0.5, end - time.monotonic()))
            for exporter in scoring_exporters:
                bounded(exporter.force_flush, max(0.2, end - time.monotonic()))
            end_exports(runtimes, end)
        finally:
            engine.close_accounts()
            set_engine(None)
            close_connections()


def _end() -> None:
    """`shutdown` at the end of a process; there is nothing to end in a child that has done nothing of ours."""
    engine = current_engine()
    if engine is not None and (not engine.idle or any_open()):
        shutdown()


_exit = ExitHook(_end, EXIT_BUDGET_S + 0.5, lambda: flush(EXIT_BUDGET_S))
_worker_exit = WorkerExit(_exit.run)
_sigterm = TermHook(_exit.run_behind, _exit.flush_behind)
