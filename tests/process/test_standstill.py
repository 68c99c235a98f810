"""What stops a process, or should have ended it, and does not: it goes on where it was, and nothing is lost or doubled."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from .programs import Judge, Program, ReceiverProcess, environment, scored

COMMON = """
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
"""

FIRST = (
    COMMON
    + """
print("ready", os.getpid(), flush=True)
for line in sys.stdin:
    answer(line.strip())
    print("ready", os.getpid(), flush=True)
"""
)


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
        last = max((span["number"] for span in receiver.spans()), default=0)  # others use the receiver, too
        for n in range(3):
            assert outside.stdout.readline() == "ready 1\n"
            children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().split()
            os.kill(int(children[0]), signal.SIGTERM)
            (span,) = receiver.spans(after=last, wait=20)  # only because it was told to
            last = span["number"]
            if n < 2:
                outside.stdin.write(f"call {n}\n")
                outside.stdin.flush()
        outside.stdin.close()
        assert outside.wait(20) == 0
    assert scored(receiver) == {name: {"words": len(name.split())} for name in ("first", "call 0", "call 1")}


STOPPED = (
    COMMON
    + """
print("flushed", sg.flush(30), flush=True)
answer("second")
print("flushed", sg.flush(30), flush=True)
"""
)


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
