"""Forks by whatever does them: the child works for itself, holds up nobody, and costs nothing until it is used."""

import json
import os

import pytest

from .programs import ReceiverProcess, run_program, scored

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")

COMMON = """
import ctypes, json, os, sys, threading, time
import spangrade as sg

@sg.metric
def pid(output):
    return os.getpid()

@sg.trace
def answer(question):
    return question

def child_of(fork, work):
    pid = fork()
    if pid == 0:
        try:
            code = work()
        except BaseException as fault:
            print(repr(fault), file=sys.stderr, flush=True)
            code = 9
        os._exit(code or 0)
    return pid

def end_of(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""

QUEUED = (
    COMMON
    + """
gate = threading.Event()
here = os.getpid()

@sg.metric
def waits(output):
    if os.getpid() == here:
        gate.wait(20)
    return os.getpid()

sg.configure(endpoint=sys.argv[1], metrics=[pid, waits], hold=20)
for n in range(20):
    answer(f"parent {n}")

def child(name):
    for n in range(5):
        answer(f"{name} {n}")
    started = time.monotonic()
    done = sg.flush(10)
    return 0 if done and time.monotonic() - started < 10 else 3

children = [child_of(os.fork, lambda n=n: child(f"child {n}")) for n in range(3)]
codes = [end_of(pid) for pid in children]
gate.set()
print(json.dumps({"codes": codes, "flushed": sg.flush(10), "pid": here, "children": children}))
"""
)


def test_what_is_queued_at_a_fork_is_the_parents_alone(receiver: ReceiverProcess) -> None:
    done = run_program(QUEUED, receiver.base_url)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said = json.loads(done.stdout)
    assert said["codes"] == [0, 0, 0]
    assert said["flushed"]
    calls = scored(receiver)
    of = {f"parent {n}": said["pid"] for n in range(20)}
    of |= {f"child {k} {n}": said["children"][k] for k in range(3) for n in range(5)}
    assert calls == {output: {"pid": process, "waits": process} for output, process in of.items()}


CONNECTED = (
    COMMON
    + """
sg.configure(endpoint=sys.argv[1], metrics=[pid])
answer("parent")
assert sg.flush(10)  # a connection is open now

def child(name):
    for n in range(5):
        answer(f"{name} {n}")
        if not sg.flush(10):
            return 3

children = [child_of(os.fork, lambda n=n: child(f"child {n}")) for n in range(4)]
for n in range(5):
    answer(f"parent {n}")
    assert sg.flush(10)
sys.exit(max(map(end_of, children)))
"""
)


def test_a_childs_exports_do_not_go_by_its_parents_connection(receiver: ReceiverProcess) -> None:
    done = run_program(CONNECTED, receiver.base_url)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(scored(receiver)) == 26


WITHOUT_HOOKS = (
    COMMON
    + """
# As uWSGI does it: fork in C, with the interpreter's lock held, and no hook of Python's is run.
fork = ctypes.PyDLL(None).fork
# Whatever threads there are must be at rest: one that waits for that lock would break the child's interpreter.
from opentelemetry import trace

sg.configure(endpoint=sys.argv[1], metrics=[pid], hold=30)
entry = trace.get_tracer("app").start_span("GET") if sys.argv[2] == "queued" else trace.INVALID_SPAN
with trace.use_span(entry):
    answer("parent before")  # held for the span around it to end; or scored and exported
if sys.argv[2] == "flushed":
    assert sg.flush(10)
threading.Event().wait(0.3)

def child(name):
    threads = [threading.Thread(target=lambda n=n: [answer(f"{name} {n} {k}") for k in range(5)]) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if sys.argv[3] == "flush":
        started = time.monotonic()
        return 0 if sg.flush(10) and time.monotonic() - started < 10 else 3
    sg.shutdown() if sys.argv[3] == "shutdown" else __import__("atexit")._run_exitfuncs()

children = [child_of(fork, lambda n=n: child(f"child {n}")) for n in range(2)]
answer("parent after")
entry.end()
codes = [end_of(pid) for pid in children]
print(json.dumps({"codes": codes, "flushed": sg.flush(10), "children": children}))
"""
)


@pytest.mark.parametrize("before", ["flushed", "queued"])
@pytest.mark.parametrize("end", ["flush", "shutdown", "exit hooks"])
def test_a_fork_that_no_hook_is_told_of_is_found_out(receiver: ReceiverProcess, before: str, end: str) -> None:
    done = run_program(WITHOUT_HOOKS, receiver.base_url, before, end, timeout=40)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["codes"] == [0, 0]
    assert said["flushed"]
    calls = scored(receiver)
    for k, process in enumerate(said["children"]):
        mine = {output: scores["pid"] for output, scores in calls.items() if output.startswith(f"child {k} ")}
        assert mine == {f"child {k} {thread} {n}": process for thread in range(2) for n in range(5)}
    assert set(calls) - {f"child {k} {t} {n}" for k in range(2) for t in range(2) for n in range(5)} == {
        "parent before",
        "parent after",
    }


WEDGED = (
    COMMON
    + """
@sg.metric
def stuck(output):
    threading.Event().wait()

sg.configure(endpoint=sys.argv[1], metrics=[stuck, pid])
answer("parent")

def child():
    answer("child")
    started = time.monotonic()
    done = sg.flush(1)
    took = time.monotonic() - started
    if done:
        print("it said that all is done", file=sys.stderr)
    if took > 3:
        print(f"it took {took} s", file=sys.stderr)

import logging
logging.basicConfig(stream=sys.stdout, format="%(message)s")
sys.exit(end_of(child_of(os.fork, child)))
"""
)


def test_a_flush_in_a_child_ends_in_time_and_says_what_is_left(receiver: ReceiverProcess) -> None:
    done = run_program(WEDGED, receiver.base_url)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = [line for line in done.stdout.splitlines() if "flush" in line]
    assert "pairs={'stuck': 1}" in line
    assert "child" in scored(receiver)  # the span itself has left, with the score that it had
    assert scored(receiver)["child"].keys() == {"pid"}


SDK_THREADS = 1  # that its provider's fork hook starts, for a moment

IDLE = (
    COMMON
    + """
import subprocess

def threads():
    return len(os.listdir("/proc/self/task"))

if sys.argv[2] == "sdk":
    from opentelemetry.sdk.trace import TracerProvider
    provider = TracerProvider()
if sys.argv[2] == "ours":
    sg.configure(endpoint=sys.argv[1], metrics=[pid])
    answer("parent")
    assert sg.flush(10)
most, reader, writer = 0, *os.pipe()
started = time.perf_counter()
for _ in range(200):
    child = os.fork()
    if child == 0:
        os.write(writer, bytes([threads()]))
        os._exit(0)
    os.waitpid(child, 0)
    most = max(most, os.read(reader, 1)[0])
took = time.perf_counter() - started
before = threads()
for _ in range(20):
    subprocess.run(["true"], check=True)
print(json.dumps({"threads_in_child": most, "grown": threads() - before, "ms_per_fork": took * 5}))
"""
)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="no /proc to count threads by")  # noqa: PTH112
def test_a_fork_starts_no_thread_of_ours(receiver: ReceiverProcess) -> None:
    found = {what: json.loads(run_program(IDLE, receiver.base_url, what).stdout) for what in ("bare", "sdk", "ours")}
    print("ms per fork and wait:", {what: round(one["ms_per_fork"], 2) for what, one in found.items()})
    assert found["bare"]["threads_in_child"] == 1
    # The SDK's provider detects its process anew in a child, with a thread that ends at once. We add nothing to that.
    assert found["ours"]["threads_in_child"] <= max(found["sdk"]["threads_in_child"], 1 + SDK_THREADS)
    assert found["ours"]["grown"] == found["bare"]["grown"] == 0
