"""The end of a process, and its standstill: within the budget, quiet, with the exit code it would have had."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

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


@pytest.fixture
def hole() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def refused() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("collector", ["refused", "wedged"])
@pytest.mark.parametrize(("end", "code"), [("code", 7), ("fault", 1)])
def test_a_collector_that_is_away_or_wedged_costs_the_budget_at_most(
    hole: str, protocol: str, collector: str, end: str, code: int
) -> None:
    env = environment(OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
    done = run_program(CODE, hole if collector == "wedged" else refused(), "unjudged", end, env=env)
    took = time.time() - json.loads(done.stdout)
    assert done.returncode == code
    assert done.stderr.count("Traceback") == (end == "fault")
    assert took < BUDGET_S


@pytest.mark.parametrize("collector", ["refused", "wedged"])
def test_where_our_exporter_stands_in_an_applications_own_provider_the_budget_is_the_same(
    hole: str, collector: str
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
    done = run_program(code, hole if collector == "wedged" else refused(), "unjudged", "code")
    took = time.time() - json.loads(done.stdout)
    assert done.returncode == 7
    assert "Traceback" not in done.stderr
    assert took < BUDGET_S


def test_a_judge_in_flight_at_the_exit_is_waited_for(receiver: ReceiverProcess, judge: Judge) -> None:
    judge.delay = 2.0
    done = run_program(CODE, receiver.base_url, "judged", "code")
    took = time.time() - json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (7, "")
    assert took < BUDGET_S
    assert scored(receiver) == {f"call {n}": {"words": 2, "helpful": 1.0} for n in range(3)}


def test_a_judge_that_never_answers_is_not(receiver: ReceiverProcess, judge: Judge) -> None:
    judge.delay = 60.0
    done = run_program(CODE, receiver.base_url, "judged", "code")
    took = time.time() - json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (7, "")
    assert took < BUDGET_S
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


FIRST = """
import os, sys
import spangrade as sg

@sg.metric
def words(output):
    return len(output.split())

@sg.trace
def answer(question):
    return question

sg.configure(endpoint=sys.argv[1], metrics=[words])
answer("first")
print("ready", os.getpid(), flush=True)
for line in sys.stdin:
    answer(line.strip())
    print("ready", os.getpid(), flush=True)
"""


def test_the_first_process_of_a_container_flushes_at_a_sigterm_and_goes_on_tracing(receiver: ReceiverProcess) -> None:
    """The kernel lets it live: it serves until it is killed, some seconds later."""
    inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], check=False).returncode:
        pytest.skip("this machine gives nobody a process namespace of his own (unshare --user --pid)")
    command = [*inside, sys.executable, "-c", FIRST, receiver.base_url]
    env = environment(OTEL_BSP_SCHEDULE_DELAY="60000")
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as outside:
        assert outside.stdin is not None
        assert outside.stdout is not None
        for n in range(3):
            assert outside.stdout.readline() == "ready 1\n"
            children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().split()
            os.kill(int(children[0]), signal.SIGTERM)
            assert len(receiver.spans(after=n, wait=20)) == 1  # only because it was told to
            if n < 2:
                outside.stdin.write(f"call {n}\n")
                outside.stdin.flush()
        outside.stdin.close()
        assert outside.wait(20) == 0
    assert scored(receiver) == {name: {"words": len(name.split())} for name in ("first", "call 0", "call 1")}


STOPPED = """
import sys
import spangrade as sg

@sg.metric
def words(output):
    return len(output.split())

@sg.trace
def answer(question):
    return question

sg.configure(endpoint=sys.argv[1], metrics=[words])
answer("first")
print("flushed", sg.flush(30), flush=True)
answer("second")
print("flushed", sg.flush(30), flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this platform freezes nothing")
def test_a_freeze_in_the_middle_of_an_export_loses_and_doubles_nothing() -> None:
    """As a function's platform does it: the collector has the request, and answers while nobody listens."""
    asked, answer = threading.Event(), threading.Event()
    came: list[str] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path.endswith("/v1/traces"):
                sent = ExportTraceServiceRequest.FromString(body)
                came.extend(
                    attribute.value.string_value
                    for resource in sent.resource_spans
                    for scope in resource.scope_spans
                    for span in scope.spans
                    for attribute in span.attributes
                    if attribute.key == "output.value"
                )
                asked.set()
                answer.wait(30)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with Program.of(STOPPED, f"http://127.0.0.1:{server.server_address[1]}") as program:
                assert asked.wait(20)
                program.kill(signal.SIGSTOP)
                os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
                answer.set()
                program.kill(signal.SIGCONT)
                assert program.end() == 0
                assert program.said == "flushed True\n" * 2
        finally:
            server.shutdown()
    assert came == ["first", "second"]


FROZEN = """
import json, logging, os, signal, sys, time
import spangrade as sg

logging.basicConfig(stream=sys.stdout, format="%(message)s")
judge = sg.live(sg.LlmJudge(name="helpful", criteria="It helps.", scale="binary", live=True), rate=1.0)

@sg.metric
def words(output):
    return len(output.split())

@sg.trace
def handler(event):
    return event

sg.configure(endpoint=sys.argv[1], metrics=[words], judges=[judge])
handler("first")
started = time.monotonic()
done = sg.flush(float(sys.argv[2]))
print("flushed", done, time.monotonic() - started, flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
handler("second")
done = sg.flush(10)
print("thawed", done, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this platform freezes nothing")
@pytest.mark.parametrize(("limit", "whole"), [(1.0, False), (5.0, True)])
def test_before_a_freeze_a_flush_finishes_what_fits_and_says_what_does_not(
    receiver: ReceiverProcess, judge: Judge, limit: float, whole: bool
) -> None:
    judge.delay = 2.0
    with Program.of(FROZEN, receiver.base_url, str(limit)) as program:
        program.wait_for("flushed")
        os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
        line = next(line for line in program.said.splitlines() if line.startswith("flushed"))
        _, done, took = line.split()
        assert done == str(whole)
        assert float(took) < limit + 0.5
        assert scored(receiver) == {"first": {"words": 1, "helpful": 1.0} if whole else {"words": 1}}
        assert ("pairs={'helpful': 1}" in program.said) is not whole
        program.kill(signal.SIGCONT)
        program.wait_for("thawed True")
        assert program.end() == 0
    calls = scored(receiver)
    assert calls["second"] == {"words": 1, "helpful": 1.0}
    assert calls["first"] == {"words": 1, "helpful": 1.0}
