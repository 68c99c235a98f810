"""Programs that tests run as processes of their own, and what their spans and scores look like at the receiver."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spangrade import semconv as s

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))
from examples.demo.processes import ReceiverProcess  # noqa: E402

__all__ = ["REPOSITORY", "Judge", "Program", "ReceiverProcess", "environment", "free_port", "run_program", "scored"]


def environment(*paths: Path, **extra: str) -> dict[str, str]:
    """This process's environment with the SDK on the path, and ``paths`` before it."""
    path = os.pathsep.join([*map(str, paths), str(REPOSITORY / "sdk")])
    return {**os.environ, "PYTHONPATH": path, **extra}


def run_program(
    code: str, *arguments: str, timeout: float = 60, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``code`` to its end, at most ``timeout`` seconds."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, env=env or environment(), capture_output=True, text=True, timeout=timeout, check=False
    )


def free_port() -> int:
    """A port that was free a moment ago, for servers that cannot be asked which one they took.

    It is below those that the system gives to whoever asks for any, as the tests beside this one do all the time.
    """
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("a hundred ports were tried, and none was free")


class Program:
    """A program that runs beside the test, in a process group of its own that ends with the ``with`` block."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        self._command = list(command)
        self._env = dict(env or environment())
        self._cwd = cwd
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []
        self._lines: list[str] = []
        self._more = threading.Condition()

    @classmethod
    def of(cls, code: str, *arguments: str, env: Mapping[str, str] | None = None) -> Self:
        """A Python program."""
        return cls([sys.executable, "-u", "-c", code, *arguments], env)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def said(self) -> str:
        """All that it has printed so far."""
        with self._more:
            return "".join(self._lines)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            env=self._env,
            cwd=self._cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        self._readers.append(reader)
        return self

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._more:
                self._lines.append(line)
                self._more.notify_all()

    def wait_for(self, text: str, times: int = 1, timeout: float = 30) -> None:
        """Wait until it has printed ``text`` so many times."""
        with self._more:
            found = self._more.wait_for(lambda: "".join(self._lines).count(text) >= times, timeout)
        assert found, f"it did not say {text!r} {times} times within {timeout} s, but: {self.said}"

    def kill(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def end(self, timeout: float = 30) -> int:
        """Wait for its end; returns its exit code."""
        assert self._process is not None
        code = self._process.wait(timeout)
        for reader in self._readers:
            reader.join(10)
        return code

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        try:
            os.killpg(self._process.pid, signal.SIGKILL)  # its own session: it and what it has started, nothing else
        except ProcessLookupError:
            pass
        self._process.wait(10)
        for reader in self._readers:
            reader.join(10)
        if self._process.stdout is not None:
            self._process.stdout.close()


class Judge(ThreadingHTTPServer):
    """An OpenAI-compatible endpoint: a real socket, scripted answers, requests kept.

    ``delay``: seconds that it takes to answer. ``gate``: it answers once that is set. ``asked`` is set by a request.
    """

    daemon_threads = True

    def __init__(self, verdict: str = "pass", gate: threading.Event | None = None, delay: float = 0.0) -> None:
        self.requests: list[dict[str, Any]] = []
        self.asked = threading.Event()
        self.verdict = verdict
        self.gate = gate
        self.delay = delay
        super().__init__(("127.0.0.1", 0), _JudgeHandler)
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def variables(self) -> dict[str, str]:
        """What tells a process to use it."""
        return {
            "SPANGRADE_JUDGE_MODEL": "judge-1",
            "SPANGRADE_JUDGE_BASE_URL": self.base_url,
            "SPANGRADE_JUDGE_API_KEY": "sk-not-to-be-seen",
        }

    def stop(self) -> None:
        if self.gate is not None:
            self.gate.set()
        self.shutdown()
        self.server_close()


class _JudgeHandler(BaseHTTPRequestHandler):
    server: Judge
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append({"headers": dict(self.headers), "body": body})
        self.server.asked.set()
        if self.server.gate is not None:
            self.server.gate.wait()
        if self.server.delay:
            threading.Event().wait(self.server.delay)
        content = json.dumps({"reasoning": "it answers the question", "verdict": self.server.verdict})
        reply = {
            "model": "judge-1-2026",
            "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
            "usage": {"prompt_tokens": 300, "completion_tokens": 12},
        }
        data = json.dumps(reply).encode()
        try:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # whoever asked has gone
            self.close_connection = True

    def log_message(self, *_: Any) -> None: ...


def scored(receiver: ReceiverProcess, wait_for: int = 0) -> dict[str, dict[str, Any]]:
    """Received calls by output: evaluator → value (or ``error.type``), of events and late log events together.

    Fails on a span, an event or a log event that arrived twice. ``wait_for`` so many spans, at most 30 s
    for each.
    """
    spans = receiver.spans(wait=30 if wait_for else 0)
    while len(spans) < wait_for:
        more = receiver.spans(after=spans[-1]["number"] if spans else 0, wait=30)
        if not more:
            break
        spans += more
    calls = [span for span in spans if s.OI_OUTPUT in span["attributes"]]
    _once(((span["trace_id"], span["span_id"]) for span in spans), "span")
    found: dict[str, dict[str, Any]] = {}
    by_id: dict[str, dict[str, Any]] = {}
    _once((span["attributes"][s.OI_OUTPUT] for span in calls), "output")
    for span in calls:
        scores = [event["attributes"] for event in span["events"] if s.EVALUATION_NAME in event["attributes"]]
        _once((one[s.EVALUATION_NAME] for one in scores), f"event on {span['attributes'][s.OI_OUTPUT]}")
        mine = {one[s.EVALUATION_NAME]: _value(one) for one in scores}
        found[span["attributes"][s.OI_OUTPUT]] = by_id[span["span_id"]] = mine
    logs = [log for log in receiver.logs() if s.EVALUATION_NAME in log["attributes"]]
    _once(((log["span_id"], log["attributes"][s.EVALUATION_NAME]) for log in logs), "log event")
    for log in logs:
        if log["span_id"] in by_id:
            by_id[log["span_id"]].setdefault(log["attributes"][s.EVALUATION_NAME], _value(log["attributes"]))
    return found


def _value(attributes: Mapping[str, Any]) -> Any:
    return attributes.get(s.SCORE_VALUE, attributes.get(s.ERROR_TYPE))


def _once(keys: Iterable[Any], what: str) -> None:
    twice = {key: n for key, n in Counter(keys).items() if n > 1}
    assert not twice, f"{what} received more than once: {twice}"
