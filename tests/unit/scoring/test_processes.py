"""Metrics in worker processes: what hangs, crashes or prints there costs its own pair, and nothing outlives its host."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from spangrade.errors import ConfigError, EvaluatorError
from spangrade.metrics.local import LocalMetric, metric
from spangrade.model.outcome import Outcome
from spangrade.model.sample import Sample
from spangrade.model.score import Skip
from spangrade.scoring import worker_process
from spangrade.scoring.evaluators import placed_evaluators
from spangrade.scoring.processes import START_S, Processes, Remote
from spangrade.scoring.worker_process import interpreter
from spangrade.testing import FakeClock

from .conftest import call_span

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this platform cannot wait for a stranger's end")

MODULE = """
import asyncio, os, sys, threading

import spangrade as sg
from spangrade import _suppress
from spangrade.tracing import call

print("printed at the import")
sg.configure(metrics=["overlap"])  # as an application's module may


class Mine:
    pass


@sg.metric(process=True)
def looks_round(output):
    print("printed by a metric", file=sys.stderr)
    print(input() if False else sys.stdin.read())
    return {
        "pid": os.getpid(),
        "length": len(output),
        "quiet": _suppress.active(),
        "failed": object(),
        "none": None,
        "kept": sg.Score(1, explanation="why", metadata={"mine": Mine()}),
    }


@sg.metric(process=True)
async def later(output):
    await asyncio.sleep(0)
    return os.getpid()


@sg.metric(process=True)
def skips(output):
    return None, "nothing to say"


@sg.metric(process=True)
def raises(output):
    raise LookupError("no such thing")


@sg.metric(process=True)
def leaves(output):
    sys.exit(3)


@sg.metric(process=True)
def dies(output):
    os._exit(7)


@sg.metric(process=True)
def hangs(output):
    if output != "fine":
        with open(output, "w") as told:
            told.write(str(os.getpid()))
        while True:
            pass
    return 1


@sg.metric(process=True)
def traces(output):
    @sg.trace
    def inner():
        return "traced"

    return sg.Score(label=inner(), metadata={"configured": str(call.current())}) if False else inner() == "traced"
"""


@pytest.fixture
def metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module of an application, importable here and in a worker."""
    (tmp_path / "app_metrics.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SPANGRADE_DISABLED", "true")  # the module configures; here that is no test's business
    import app_metrics

    monkeypatch.delenv("SPANGRADE_DISABLED")
    yield app_metrics
    del sys.modules["app_metrics"]


@pytest.fixture
def pool() -> Iterator[Any]:
    made: list[Processes] = []

    def make(count: int = 1) -> Processes:
        made.append(Processes(count, FakeClock()))
        return made[-1]

    yield make
    for one in made:
        one.close()
        assert one._all == []


def graded(pool: Processes, given: LocalMetric, output: Any = "four") -> Any:
    return pool.evaluate(Remote.of(given), Sample(output=output))


def pid_told(pipe: Path) -> int:
    """The pid that a hanging metric writes into a named pipe; it fails when none does."""
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as told:
        assert select.select([told], [], [], 60)[0], "the metric did not begin"
        return int(told.read())


def ended(pid: int) -> bool:
    """Wait until a process has ended; False when it lives on."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(watch, "rb") as told:
        return bool(select.select([told], [], [], 20)[0])


def test_a_verdict_comes_back_from_another_process_with_what_failed_in_it_and_nothing_is_printed(
    pool: Any, metrics: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    one = pool()
    verdict = graded(one, metrics.looks_round)
    values = {g.name: g.value for g in verdict.scores}
    assert values.pop("looks_round.pid") != os.getpid()
    assert values == {"looks_round.length": 4.0, "looks_round.quiet": 1.0, "looks_round.kept": 1.0}
    assert [(f.name, f.kind) for f in verdict.failures] == [("looks_round.failed", "ReturnError")]
    (kept,) = [g for g in verdict.scores if g.name == "looks_round.kept"]
    assert (kept.explanation, type(kept.metadata["mine"])) == ("why", str)  # the application's classes stay there
    assert graded(one, metrics.traces).scores[0].value == 1.0
    assert capfd.readouterr() == ("", "")


def test_one_worker_serves_several_metrics_and_async_ones_too(pool: Any, metrics: ModuleType) -> None:
    one = pool()
    first = graded(one, metrics.later).scores[0].value
    assert graded(one, metrics.later, "again").scores[0].value == first
    (pid,) = [g.value for g in graded(one, metrics.looks_round).scores if g.name == "looks_round.pid"]
    assert pid == first != os.getpid()


def test_what_a_metric_raises_there_is_its_error_here(pool: Any, metrics: ModuleType) -> None:
    one = pool()
    with pytest.raises(Skip, match="nothing to say"):
        graded(one, metrics.skips)
    for given, kind, message in ((metrics.raises, "LookupError", "no such thing"), (metrics.leaves, "SystemExit", "3")):
        with pytest.raises(EvaluatorError, match=message) as caught:
            graded(one, given)
        assert caught.value.kind == kind
    with pytest.raises(EvaluatorError, match="the sample cannot be sent to a worker process") as caught:
        graded(one, metrics.raises, threading.Lock())
    assert caught.value.kind == "not_picklable"
    assert len(one._all) == 1  # none of these costs a worker


def test_a_worker_that_ends_costs_its_pair_and_the_next_gets_another(pool: Any, metrics: ModuleType) -> None:
    one = pool()
    before = graded(one, metrics.later).scores[0].value
    with pytest.raises(EvaluatorError, match="ended with exit code 7 before it answered") as caught:
        graded(one, metrics.dies)
    assert caught.value.kind == "worker_died"
    assert graded(one, metrics.later).scores[0].value != before
    one._all[0].process.kill()  # while it has nothing to do
    one._all[0].process.wait()
    assert graded(one, metrics.later).scores[0].value > 0


def test_a_metric_that_runs_out_of_time_is_ended_with_its_worker(
    pool: Any, metrics: ModuleType, tmp_path: Path
) -> None:
    one, caught = pool(), []
    assert graded(one, metrics.hangs, "fine").scores[0].value == 1

    def hang() -> None:
        with pytest.raises(EvaluatorError, match="gave no result within 5 s; its worker process was ended") as fault:
            graded(one, metrics.hangs, str(tmp_path / "pid"))
        caught.append(fault.value.kind)

    os.mkfifo(tmp_path / "pid")
    thread = threading.Thread(target=hang)
    thread.start()
    pid = pid_told(tmp_path / "pid")
    assert one.check(one._clock.monotonic()) == one._clock.monotonic() + 5
    one._clock.advance(5.0)
    assert one.check(one._clock.monotonic()) is None
    thread.join(20)
    assert caught == ["timeout"]
    assert ended(pid)
    assert graded(one, metrics.hangs, "fine").scores[0].value == 1


def test_a_module_that_only_the_worker_cannot_import_is_the_pairs_error(
    pool: Any, metrics: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "app_metrics.py").unlink()
    with pytest.raises(EvaluatorError, match="No module named 'app_metrics'") as caught:
        graded(pool(), metrics.later)
    assert caught.value.kind == "ModuleNotFoundError"


def test_a_worker_that_cannot_start_is_an_error_that_says_so(
    pool: Any, metrics: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "_BOOT", "import sys; sys.exit({path!r} and 9)")
    with pytest.raises(EvaluatorError, match="could not start: it ended with exit code 9") as caught:
        graded(pool(), metrics.later)
    assert caught.value.kind == "worker_failed"
    monkeypatch.setattr(worker_process, "interpreter", lambda: "/nowhere/python")
    with pytest.raises(EvaluatorError, match="could not start: FileNotFoundError"):
        graded(pool(), metrics.later)
    monkeypatch.setattr(worker_process, "interpreter", lambda: None)
    with pytest.raises(EvaluatorError, match="no Python interpreter is known"):
        graded(pool(), metrics.later)


def test_closing_ends_workers_in_the_middle_of_their_work(pool: Any, metrics: ModuleType, tmp_path: Path) -> None:
    one, over = pool(), threading.Event()

    def hang() -> None:
        with pytest.raises(EvaluatorError):
            graded(one, metrics.hangs, str(tmp_path / "pid"))
        over.set()

    os.mkfifo(tmp_path / "pid")
    threading.Thread(target=hang).start()
    pid = pid_told(tmp_path / "pid")
    one.close()
    assert ended(pid)
    assert over.wait(20)
    with pytest.raises(EvaluatorError, match="scoring has ended"):
        graded(one, metrics.later)


# --- in the pipeline -----------------------------------------------------------------------------------------------------


def test_the_pipeline_sends_such_a_metric_away_and_the_others_do_not_wait_for_it(
    harness: Any, metrics: ModuleType
) -> None:
    here = LocalMetric(lambda sample: os.getpid(), name="here")
    h = harness(metrics.later, metrics.dies, here, metric_processes=2)
    for n in range(1, 4):
        h.send(call_span(n))
    assert h.pipeline.drain(60, judges=True)
    values = {r.graded.name: r.graded.value for r in h.sink.records if r.error_type is None}
    assert values["here"] == os.getpid() != values["later"]
    assert h.counts("later").of(Outcome.SCORED) == h.counts("here").of(Outcome.SCORED) == 3
    assert h.counts("dies").outcomes == {(Outcome.ERROR, "worker_died"): 3}
    h.send(call_span(4))  # each time it costs a process: after three it is paused, as after three time-outs
    assert h.pipeline.drain(60, judges=True)
    assert h.counts("dies").outcomes[Outcome.DROPPED, "paused"] == 1
    assert h.counts("later").of(Outcome.SCORED) == 4


def test_no_worker_is_started_before_there_is_something_to_grade(harness: Any, metrics: ModuleType) -> None:
    h = harness(metrics.later, LocalMetric(lambda sample: None, name="here"))
    assert h.pipeline._jobs._processes._all == []


def test_shutdown_in_the_middle_ends_the_worker_and_counts_the_pair(
    harness: Any, metrics: ModuleType, tmp_path: Path
) -> None:
    from spangrade import semconv as s

    os.mkfifo(tmp_path / "pid")
    h = harness(metrics.hangs)
    h.send(call_span(**{s.OI_OUTPUT: str(tmp_path / "pid")}))
    pid = pid_told(tmp_path / "pid")
    assert not h.pipeline.shutdown(0.1)
    assert ended(pid)
    assert h.counts("hangs").outcomes == {(Outcome.DROPPED, "shutdown"): 1}


# --- the host ----------------------------------------------------------------------------------------------------------


HOST = """
import os, signal, sys, threading
import app_metrics
from spangrade.model.sample import Sample
from spangrade.scoring.clock import SystemClock
from spangrade.scoring.processes import Processes, Remote

pool = Processes(2, SystemClock())
busy = threading.Thread(
    target=lambda: pool.evaluate(Remote.of(app_metrics.hangs), Sample(output=sys.argv[1])), daemon=True
)
busy.start()
with open(sys.argv[1]) as told:
    pids = [int(told.read())]
pids.append(int(pool.evaluate(Remote.of(app_metrics.later), Sample(output="a")).scores[0].value))
if "forked" in sys.argv[2]:  # the child holds copies of the pipes, and lives on
    pids.append(os.fork())
    if pids[-1] == 0:
        if sys.argv[2] == "forked":
            pool.after_fork()
        os.close(1)
        os.close(2)
        signal.pause()
print(*pids, flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""  # and nobody calls shutdown


@pytest.mark.parametrize("how", ["killed", "ends", "forked", "forked behind our back"])
def test_workers_end_with_their_host(metrics: ModuleType, tmp_path: Path, how: str) -> None:
    os.mkfifo(tmp_path / "pid")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HOST, str(tmp_path / "pid"), how],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SPANGRADE_DISABLED": "true"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    busy, idle, *child = [int(word) for word in done.stdout.split() if word.isdigit()]
    try:
        assert busy != idle
        assert ended(busy)
        assert ended(idle)
        assert done.stderr == ""
    finally:
        for pid in child:
            os.kill(pid, signal.SIGKILL)


# --- what is refused ----------------------------------------------------------------------------------------------------


def test_what_a_worker_could_not_import_is_refused_when_scoring_is_configured() -> None:
    with pytest.raises(
        ConfigError, match=r"metric '<lambda>': process=True needs a metric .* it is a lambda; define it"
    ):
        placed_evaluators([metric(process=True)(lambda output: 1)], [])


def test_a_program_without_an_interpreter_is_told_so(monkeypatch: pytest.MonkeyPatch, metrics: ModuleType) -> None:
    assert interpreter() == sys.executable
    monkeypatch.setattr(sys, "executable", "/usr/bin/uwsgi")
    found = interpreter()
    assert found is not None
    assert Path(found).parent == Path(sys.prefix, "bin")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert interpreter() is None
    with pytest.raises(ConfigError, match="process=True needs a Python interpreter to start; this program is none"):
        placed_evaluators([metrics.later], [])


def test_the_time_for_a_start_is_not_the_metrics_own(pool: Any, metrics: ModuleType) -> None:
    """A module may import a model for longer than its metric may take."""
    one = pool()
    seen: list[float] = []
    until = one._until
    one._until = lambda worker, seconds: (seen.append(seconds), until(worker, seconds))
    graded(one, metrics.later)
    assert seen == [START_S, START_S, 5.0]
