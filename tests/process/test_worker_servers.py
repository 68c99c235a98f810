"""Real worker servers: each traced call arrives once, scored once, by the worker that it ran in, whatever ends the worker."""

import os
import signal
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .programs import Program, ReceiverProcess, environment, free_port, run_program, scored

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")

COMMON = """
import os
import spangrade as sg

@sg.metric
def pid(output):
    return os.getpid()

@sg.trace
def answer(question):
    return question

sg.configure(service_name="workers", metrics=[pid])
"""

WSGI = (
    COMMON
    + """
answer(f"at import in {os.getpid()}")

def application(environ, start_response):
    answer(environ["PATH_INFO"])
    start_response("200 OK", [("content-type", "text/plain")])
    return [str(os.getpid()).encode()]
"""
)

ASGI = (
    COMMON
    + """
from fastapi import FastAPI

application = FastAPI()

@sg.trace(name="reply")
async def reply(question):
    return question

@application.get("/{what}")
async def serve(what: str):
    await reply("/" + what)
    return os.getpid()
"""
)

CALLS = 20


def get(port: int, path: str) -> int:
    """The process id that the application answers with."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}{path}", timeout=30) as reply:
        return int(reply.read())


def call_all(port: int, workers: int = 1) -> dict[str, int]:
    """Requests from several threads at once, until so many workers have answered; the worker that each of them met.

    A worker that has answered is ready for signals. One that is told to end while it boots may never hear of it: that is
    gunicorn's own, which then waits half a minute before it kills it.
    """
    met: dict[str, int] = {}
    for turn in range(50):
        paths = [f"/{turn}-{n}" for n in range(CALLS)]
        with ThreadPoolExecutor(8) as pool:
            met |= zip(paths, pool.map(lambda path: get(port, path), paths), strict=True)
        if len(set(met.values())) >= workers:
            break
    return met


def assert_scored_by_their_workers(receiver: ReceiverProcess, workers: dict[str, int]) -> None:
    calls = scored(receiver)
    missing = set(workers) - set(calls)
    assert not missing, f"{len(missing)} of {len(workers)} calls did not arrive"
    assert {path: calls[path] for path in workers} == {path: {"pid": worker} for path, worker in workers.items()}


@pytest.fixture
def folder(tmp_path: Path, receiver: ReceiverProcess, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a program's modules go; its telemetry goes to the receiver."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.base_url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")  # nothing leaves by the way: only because somebody ends it
    return tmp_path


@pytest.mark.parametrize("kind", ["sync", "gthread", "gevent", "uvicorn_worker.UvicornWorker"])
@pytest.mark.parametrize("preload", [True, False])
def test_gunicorns_workers_flush_when_they_are_told_to_end(
    receiver: ReceiverProcess, folder: Path, kind: str, preload: bool
) -> None:
    (folder / "app.py").write_text(ASGI if "uvicorn" in kind else WSGI)
    port = free_port()
    threads = ["--threads", "4"] if kind == "gthread" else []
    command = [sys.executable, "-m", "gunicorn", "app:application", "--workers", "2", "--worker-class", kind, *threads]
    command += ["--bind", f"127.0.0.1:{port}", *(["--preload"] if preload else []), "--no-control-socket"]
    with Program(command, environment(folder), folder) as gunicorn:
        gunicorn.wait_for("Booting worker", times=2)
        workers = call_all(port, 2)
        gunicorn.kill(signal.SIGTERM)
        assert gunicorn.end() == 0
        assert "Traceback" not in gunicorn.said
        assert "Exception" not in gunicorn.said
    assert_scored_by_their_workers(receiver, workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_uvicorns_workers_flush_when_they_are_told_to_end(
    receiver: ReceiverProcess, folder: Path, workers: int
) -> None:
    (folder / "app.py").write_text(ASGI)
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "app:application", "--workers", str(workers), "--port", str(port)]
    with Program(command, environment(folder), folder) as uvicorn:
        uvicorn.wait_for("Application startup complete", times=workers)
        uvicorn.wait_for("Uvicorn running on")
        met = call_all(port)
        uvicorn.kill(signal.SIGTERM)
        code = uvicorn.end()
        assert code in (0, -signal.SIGTERM)  # uvicorn's own: a single process raises the signal again
        assert "Traceback" not in uvicorn.said
    assert_scored_by_their_workers(receiver, met)


CELERY = (
    COMMON
    + """
from celery import Celery

application = Celery("tasks")
application.conf.update(
    broker_url="filesystem://",
    broker_transport_options={"data_folder_in": "queue", "data_folder_out": "queue", "control_folder": "control"},
    task_ignore_result=True,
    worker_hijack_root_logger=False,
)

@application.task
def work(n):
    answer(f"task {n}")
"""
)

SEND = """
import app
for n in range(10):
    app.work.delay(n)
"""


@pytest.mark.parametrize("recycled", [True, False])
def test_celerys_children_lose_no_task_when_they_are_recycled_or_ended(
    receiver: ReceiverProcess, folder: Path, recycled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "app.py").write_text(CELERY)
    (folder / "queue").mkdir()
    (folder / "control").mkdir()
    command = [sys.executable, "-m", "celery", "-A", "app:application", "worker", "--pool", "prefork"]
    command += ["--concurrency", "2", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
    command += ["--max-tasks-per-child", "1"] if recycled else []
    monkeypatch.chdir(folder)
    sent = run_program(SEND, env=environment(folder))
    assert sent.returncode == 0, sent.stderr
    with Program(command, environment(folder), folder) as celery:
        celery.wait_for("succeeded in", times=10, timeout=60)
        celery.kill(signal.SIGTERM)
        assert celery.end() == 0
        assert "Traceback" not in celery.said, celery.said
    calls = scored(receiver)
    assert len(calls) == 10
    assert all(set(scores) == {"pid"} for scores in calls.values())


POOL = (
    COMMON
    + """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor

def work(n):
    return answer(f"task {n}")

if __name__ == "__main__":
    how, start, calls = *sys.argv[1:3], range(int(sys.argv[3]))
    context = multiprocessing.get_context(start)
    answer("before the fork")
    if how == "pool":
        pool = context.Pool(2, maxtasksperchild=1)
        pool.map(work, calls, chunksize=1)
        pool.close()
        pool.join()
    elif how == "with pool":  # which ends its workers by SIGTERM
        with context.Pool(2) as pool:
            pool.map(work, calls, chunksize=1)
    elif how == "executor":
        with ProcessPoolExecutor(2, mp_context=context) as executor:
            list(executor.map(work, calls))
    else:
        for n in calls:
            one = context.Process(target=work, args=(n,))
            one.start()
            one.join()
            assert one.exitcode == 0
"""
)


@pytest.mark.parametrize(
    ("how", "start", "calls"),
    [
        ("pool", "fork", 10),
        ("with pool", "fork", 10),
        ("executor", "fork", 10),
        ("process", "fork", 10),
        ("pool", "spawn", 3),
        ("with pool", "spawn", 10),
        ("process", "forkserver", 3),
    ],
)
def test_multiprocessings_children_lose_nothing_at_their_end(
    receiver: ReceiverProcess, folder: Path, how: str, start: str, calls: int
) -> None:
    (folder / "program.py").write_text(POOL)
    with Program([sys.executable, "program.py", how, start, str(calls)], environment(folder), folder) as program:
        assert program.end(60) == 0, program.said
        assert program.said == ""
    found = scored(receiver)
    found.pop("before the fork")
    assert set(found) == {f"task {n}" for n in range(calls)}
    assert all(set(scores) == {"pid"} for scores in found.values())
