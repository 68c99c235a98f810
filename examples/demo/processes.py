"""Child processes that are started, waited for, and stopped for certain.

`ReceiverProcess` is useful in a test too:

    with ReceiverProcess() as receiver:
        ...                                # export to receiver.base_url
        spans = receiver.spans()
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

REPOSITORY = Path(__file__).resolve().parents[2]
STOP_SECONDS = 3.0

JsonObject = dict[str, Any]


class ChildError(Exception):
    """A child process did not become ready. The message ends with what the child itself said."""

    def __init__(self, message: str, exit_code: int | None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ChildProcess:
    """A Python module run as a process of its own, which prints one JSON line when it is ready.

    Entering the context starts it and waits for that line, at most `ready_within` seconds. While waiting, `on_wait` is
    called about four times a second with the seconds passed so far. Its stderr goes to `log_file`; without one, to a
    temporary file that is removed again at the end.
    """

    def __init__(
        self,
        module: str,
        *args: str,
        ready_within: float = 30.0,
        log_file: Path | None = None,
        on_wait: Callable[[float], None] | None = None,
    ) -> None:
        self._command = [sys.executable, "-m", module, *args]
        self._ready_within = ready_within
        self._log_file = log_file
        self._on_wait = on_wait
        self._log: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.facts: JsonObject = {}

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def base_url(self) -> str:
        return str(self.facts["base_url"])

    def __enter__(self) -> Self:
        try:
            self._start()
            self.facts = self._wait_until_ready()
        except BaseException:  # Ctrl-C while waiting must not leave the child behind either
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ask it to end by closing its stdin, then insist. Safe to call twice, and before it was started."""
        process, self._process = self._process, None
        if process is not None:
            try:
                end_process(process)
            finally:
                for pipe in (process.stdin, process.stdout):
                    if pipe is not None:
                        pipe.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _start(self) -> None:
        self._log = self._log_file.open("ab+") if self._log_file else tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=REPOSITORY,
            # A group of its own: Ctrl-C in the terminal then reaches only the parent, which stops its children.
            start_new_session=True,
        )

    def _wait_until_ready(self) -> JsonObject:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        first_line: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        reader = threading.Thread(
            target=_pass_on_first_line, args=(process.stdout, first_line), name="ready-line", daemon=True
        )
        reader.start()

        started = time.monotonic()
        line: bytes | None = None
        while line is None:
            waited = time.monotonic() - started
            if waited > self._ready_within:
                raise self._failure(f"it was not ready within {self._ready_within:.0f} s")
            if self._on_wait is not None:
                self._on_wait(waited)
            try:
                line = first_line.get(timeout=0.25)
            except queue.Empty:
                continue
        if not line:  # the child closed its stdout: it has ended or is about to
            try:
                process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                raise self._failure("it closed its output before it was ready") from None
            raise self._failure(f"it ended with code {process.returncode} before it was ready")
        facts: JsonObject = json.loads(line)
        return facts

    def _failure(self, what: str) -> ChildError:
        assert self._process is not None
        assert self._log is not None
        self._log.flush()
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 2000))
        said = self._log.read().decode(errors="replace").strip()
        module = self._command[2]
        return ChildError(f"{module}: {what}." + (f" It said: {said}" if said else ""), self._process.poll())


def _pass_on_first_line(stdout: IO[bytes], destination: queue.SimpleQueue[bytes]) -> None:
    try:
        destination.put(stdout.readline())
    except (OSError, ValueError):  # closed under us by stop()
        destination.put(b"")


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End one process that we started: a closed stdin first, then SIGTERM, then SIGKILL, each with a bounded wait."""
    if process.stdin is not None:
        process.stdin.close()
    for insist in (process.terminate, process.kill, None):
        try:
            process.wait(timeout=STOP_SECONDS)
            return
        except subprocess.TimeoutExpired:
            if insist is not None:
                insist()


class LlmProcess(ChildProcess):
    """The local model. Exit code 3 in a ChildError means that this machine cannot run it."""

    def __init__(
        self,
        *,
        ready_within: float = 90.0,
        log_file: Path | None = None,
        on_wait: Callable[[float], None] | None = None,
    ) -> None:
        super().__init__("examples.demo.local_llm", ready_within=ready_within, log_file=log_file, on_wait=on_wait)

    @property
    def model(self) -> str:
        return str(self.facts["model"])


class ReceiverProcess(ChildProcess):
    """An OTLP/HTTP receiver. `base_url` is what an exporter's endpoint is set to."""

    def __init__(self, *, port: int = 0, ready_within: float = 30.0, log_file: Path | None = None) -> None:
        super().__init__(
            "examples.demo.otlp_receiver", "--port", str(port), ready_within=ready_within, log_file=log_file
        )

    def spans(self, *, after: int = 0, wait: float = 0.0) -> list[JsonObject]:
        """Spans received, oldest first. With `wait`, blocks up to that many seconds for one numbered above `after`."""
        return self._read("spans", after, wait)

    def logs(self, *, after: int = 0, wait: float = 0.0) -> list[JsonObject]:
        """Log records received, oldest first. `after` and `wait` as for `spans`."""
        return self._read("logs", after, wait)

    def clear(self) -> None:
        """Forget everything received so far."""
        self._request("DELETE", "/", timeout=10.0)

    def _read(self, what: str, after: int, wait: float) -> list[JsonObject]:
        items: list[JsonObject] = json.loads(
            self._request("GET", f"/{what}?after={after}&wait={wait}", timeout=wait + 10.0)
        )
        return items

    def _request(self, method: str, path: str, timeout: float) -> bytes:
        request = urllib.request.Request(self.base_url + path, method=method)
        # No proxy: an HTTP_PROXY in the environment must not come between us and the loopback.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=timeout) as response:
            body: bytes = response.read()
        return body
