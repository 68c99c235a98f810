"""A child process that is started, waited for, and stopped for certain."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
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


_lock = threading.Lock()
_running: list[ChildProcess] = []  # in the order of their start
_ending = False


def stop_all() -> str:
    """Stop every child and start no more; names those that would not end, which is none.

    For the main thread, while another one uses the children: it may just be starting or stopping one.
    """
    global _ending
    with _lock:
        _ending = True
        running = list(_running)
    for child in running:  # all at once: none of them has anything to wait for
        child.ask_to_end()
    for child in running:
        child.stop()
    return ", ".join(child.name for child in _running)


class ChildProcess:
    """A Python module run as a process of its own, which prints one JSON line when it is ready.

    Entering the context starts it and waits for that line, at most `ready_within` seconds. While waiting, `on_wait` is
    called about four times a second with the seconds passed so far. Its stderr goes to `log_file`; without one, to a
    temporary file that is removed again at the end. `environment` is added to this process's own.
    """

    def __init__(
        self,
        module: str,
        *args: str,
        ready_within: float = 30.0,
        log_file: Path | None = None,
        on_wait: Callable[[float], None] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = module
        self._command = [sys.executable, "-m", module, *args]
        self._ready_within = ready_within
        self._log_file = log_file
        self._on_wait = on_wait
        self._environment = environment or {}
        self._stopping = threading.Lock()
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

    def check(self) -> None:
        """Raise a ChildError if it is not running any more although nobody stopped it."""
        process = self._process
        if process is not None and process.poll() is not None:
            raise self._failure(f"it ended with code {process.returncode}")

    def ask_to_end(self) -> None:
        """Close its stdin, which it takes as the word to end."""
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()

    def stop(self) -> None:
        """Ask it to end, then insist. Safe to call twice, from two threads, and before it was started."""
        with self._stopping:
            process, self._process = self._process, None
            if process is not None and end_process(process):
                with _lock:
                    _running.remove(self)
                if process.stdout is not None:
                    process.stdout.close()
            if self._log is not None:
                self._log.close()
                self._log = None

    def _start(self) -> None:
        self._log = self._log_file.open("ab+") if self._log_file else tempfile.TemporaryFile()  # noqa: SIM115
        with _lock:
            if _ending:
                raise ChildError(f"{self.name} is not started: everything is being stopped.", None)
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                cwd=REPOSITORY,
                env={**os.environ, **self._environment},
                # A group of its own: Ctrl-C in the terminal then reaches only the parent, which stops its children.
                start_new_session=True,
            )
            _running.append(self)

    def _wait_until_ready(self) -> JsonObject:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        ready = threading.Event()
        threading.Thread(
            target=_pass_on_lines, args=(process.stdout, arrived, ready), name="ready-lines", daemon=True
        ).start()

        started = time.monotonic()
        lines: list[str] = []
        facts: JsonObject | None = None
        while facts is None:
            waited = time.monotonic() - started
            if waited > self._ready_within:
                raise self._failure(f"it was not ready within {self._ready_within:.0f} s")
            if self._on_wait is not None:
                self._on_wait(waited)
            try:
                line = arrived.get(timeout=0.25)
            except queue.Empty:
                continue
            if not line:  # the child closed its stdout: it has ended or is about to
                try:
                    process.wait(timeout=STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    raise self._failure("it closed its output before it was ready") from None
                raise self._failure(f"it ended with code {process.returncode} before it was ready")
            lines.append(line.decode(errors="replace"))
            facts = self._read_facts(lines)
        ready.set()
        return facts

    def _read_facts(self, lines: Sequence[str]) -> JsonObject | None:
        """What the lines that it has printed so far say; None while that is not all."""
        facts: JsonObject = json.loads(lines[0])
        return facts

    def _failure(self, what: str) -> ChildError:
        assert self._process is not None
        assert self._log is not None
        self._log.flush()
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 2000))
        said = self._log.read().decode(errors="replace").strip()
        return ChildError(f"{self.name}: {what}." + (f" It said: {said}" if said else ""), self._process.poll())


def _pass_on_lines(stdout: IO[bytes], arrived: queue.SimpleQueue[bytes], ready: threading.Event) -> None:
    """Pass lines on until the child is ready, then read and forget them: nobody else would empty the pipe."""
    try:
        for line in stdout:
            if not ready.is_set():
                arrived.put(line)
    except (OSError, ValueError):  # closed under us by stop()
        pass
    arrived.put(b"")


def end_process(process: subprocess.Popen[bytes]) -> bool:
    """End one process that we started: a closed stdin first, then SIGTERM, then SIGKILL, each with a bounded wait."""
    if process.stdin is not None:
        process.stdin.close()
    for insist in (process.terminate, process.kill, None):
        try:
            process.wait(timeout=STOP_SECONDS)
            return True
        except subprocess.TimeoutExpired:
            if insist is not None:
                insist()
    return False
