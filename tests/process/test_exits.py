"""The end of a process: within the budget, quiet, with the exit code it would have had."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping

import pytest

from .programs import Judge, Program, ReceiverProcess, environment, run_program, scored

BUDGET_S = 5.0  # documented: what an exit may take longer because of us

CODE = """
import json, logging, os, signal, sys, threading, time
import spangrade as sg

@sg.metric
def words(output):
    return len(output.split())

@sg.trace
def answer(question):
    return question

endpoint, judged, end = sys.argv[1:4]
judges = [sg.live(sg.LlmJudge(name="helpful", criteria="It helps.", scale="binary", live=True), rate=1.0)]
sg.configure(endpoint=endpoint, metrics=[words], judges=judges if judged == "judged" else [])
for n in range(3):
    answer(f"call {n}")
print(json.dumps(time.time()), flush=True)
if end == "code":
    sys.exit(7)
if end == "fault":
    raise ZeroDivisionError("the application's own")
if end == "term":
    threading.Event().wait(30)
"""


def ends_in_time(code: str, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run it; from what it prints to its end it takes the budget at most.

    On top of what it takes by itself, for which its start stands: that knows how much else the machine has to do.
    """
    started = time.time()
    done = run_program(code, *arguments, env=env)
    ended = time.time()
    said = float(json.loads(done.stdout))
    assert ended - said < BUDGET_S + (said - started)
    return done


@pytest.fixture
def hole() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def refused() -> Iterator[str]:
    """Nobody listens there, and nobody else may."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("collector", ["refused", "wedged"])
@pytest.mark.parametrize(("end", "code"), [("code", 7), ("fault", 1)])
def test_a_collector_that_is_away_or_wedged_costs_the_budget_at_most(
    hole: str, refused: str, protocol: str, collector: str, end: str, code: int
) -> None:
    env = environment(OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
    done = ends_in_time(CODE, hole if collector == "wedged" else refused, "unjudged", end, env=env)
    assert done.returncode == code
    assert done.stderr.count("Traceback") == (end == "fault")


@pytest.mark.parametrize("collector", ["refused", "wedged"])
def test_where_our_exporter_stands_in_an_applications_own_provider_the_budget_is_the_same(
    hole: str, refused: str, collector: str
) -> None:
    """That provider ends its processors at exit, and keeps to no limit; one more `configure` doubles nothing."""
    theirs = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
"""
    code = theirs + CODE.replace(
        "for n in range(3)", "sg.configure(endpoint=endpoint, tracer_provider=TracerProvider())\nfor n in range(3)"
    )
    done = ends_in_time(code, hole if collector == "wedged" else refused, "unjudged", "code")
    assert done.returncode == 7
    assert "Traceback" not in done.stderr


def test_a_judge_in_flight_at_the_exit_is_waited_for(receiver: ReceiverProcess, judge: Judge) -> None:
    judge.delay = 1.0
    done = ends_in_time(CODE, receiver.base_url, "judged", "code")
    assert (done.returncode, done.stderr) == (7, "")
    assert scored(receiver) == {f"call {n}": {"words": 2, "helpful": 1.0} for n in range(3)}


def test_a_judge_that_never_answers_is_not(receiver: ReceiverProcess, judge: Judge) -> None:
    judge.delay = 60.0
    done = ends_in_time(CODE, receiver.base_url, "judged", "code")
    assert (done.returncode, done.stderr) == (7, "")
    assert scored(receiver) == {f"call {n}": {"words": 2} for n in range(3)}


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this platform has no SIGTERM to speak of")
@pytest.mark.parametrize("twice", [False, True])
def test_sigterm_ends_a_process_that_does_not_handle_it_but_after_its_work(
    receiver: ReceiverProcess, judge: Judge, twice: bool
) -> None:
    judge.delay = 60.0 if twice else 1.0
    with Program.of(CODE, receiver.base_url, "judged", "term") as program:
        program.wait_for("\n")
        assert judge.asked.wait(10)
        sent = time.monotonic()
        program.kill(signal.SIGTERM)
        if twice:
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline and _sigterm_caught(program.pid):
                os.sched_yield()
            program.kill(signal.SIGTERM)
        assert program.end(20) == -signal.SIGTERM
        assert time.monotonic() - sent < (2 if twice else BUDGET_S)
        assert "Traceback" not in program.said
    if not twice:
        assert scored(receiver) == {f"call {n}": {"words": 2, "helpful": 1.0} for n in range(3)}


def _sigterm_caught(pid: int) -> bool:
    with open(f"/proc/{pid}/status") as status:  # noqa: PTH123
        mask = next(line for line in status if line.startswith("SigCgt")).split()[1]
    return bool(int(mask, 16) >> (signal.SIGTERM - 1) & 1)


INTERRUPTED = """
import atexit, sys
import spangrade as sg

sg.configure(endpoint=sys.argv[1])
with sg.trace("call"):
    sg.set_output("a")
atexit.register(print, "exiting", flush=True)
"""


def test_who_interrupts_the_exit_gets_it_without_a_word_of_ours() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        with Program.of(INTERRUPTED, f"http://127.0.0.1:{listener.getsockname()[1]}") as program:
            program.wait_for("exiting")
            exporting, _ = listener.accept()  # and never answered: the exit waits for us
            with exporting:
                program.kill(signal.SIGINT)
                assert program.end() == 0
        assert program.said == "exiting\n"
