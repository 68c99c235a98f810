"""Processes that the tests of this folder start: a log of their own, free ports, bounded waits, ended by their id."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

# Set by CI, where an integration test that is skipped is a failure.
REQUIRE = "SPANGRADE_REQUIRE_INTEGRATION"
STOP_TIMEOUT = 30.0
POLL_INTERVAL = 0.05

Found = TypeVar("Found")


class Server:
    """A running process and its log. What runs in it says when it is up."""

    name = "server"
    start_timeout = 30.0

    def __init__(self, process: subprocess.Popen[bytes], ports: Mapping[str, int], log_path: Path) -> None:
        self.process = process
        self.ports = ports
        self.log_path = log_path

    def is_up(self) -> bool:
        """Asked again and again after the start."""
        raise NotImplementedError

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def log_tail(self, lines: int = 30) -> str:
        return "\n".join(self.log().splitlines()[-lines:])

    def wait_until_up(self) -> bool:
        """True once it is up, False when the process has ended instead."""
        deadline = time.monotonic() + self.start_timeout
        while self.process.poll() is None:
            if self.is_up():
                return True
            if time.monotonic() >= deadline:
                pytest.fail(f"{self.name} was not up after {self.start_timeout} s:\n{self.log_tail()}", pytrace=False)
            pause()
        return False

    def stop(self) -> int:
        """End it, at first with SIGTERM; its exit code. Safe to call twice."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


AnyServer = TypeVar("AnyServer", bound=Server)


def start(
    kind: type[AnyServer],
    command: Sequence[str],
    folder: Path,
    port_variables: Sequence[str],
    env: Mapping[str, str] | None = None,
    attempts: int = 3,
) -> AnyServer:
    """Start it with a free port in each variable, and wait until it is up.

    A free port may be taken by another process before ours has it; then other ports are tried.
    """
    for attempt in range(1, attempts + 1):
        ports = free_ports(port_variables)
        log_path = folder / f"{kind.name.lower()}-{attempt}.log"
        server = spawn(
            kind, command, log_path, {**(env or {}), **{name: str(port) for name, port in ports.items()}}, ports
        )
        if up(server):
            return server
        if "address already in use" not in server.log_tail():
            break
    end = f"{kind.name} ended at its start with exit code {server.process.returncode}:\n{server.log_tail()}"
    pytest.fail(end, pytrace=False)


def spawn(
    kind: type[AnyServer],
    command: Sequence[str],
    log_path: Path,
    env: Mapping[str, str],
    ports: Mapping[str, int] | None = None,
    stdout: Path | None = None,
) -> AnyServer:
    """Start it; ``stdout`` goes to the log too unless it has a file of its own."""
    with ExitStack() as files:
        log = files.enter_context(log_path.open("wb"))
        process = subprocess.Popen(
            command,
            env={**_environment(), **env},
            stdin=subprocess.DEVNULL,
            stdout=files.enter_context(stdout.open("wb")) if stdout is not None else log,
            stderr=log,
        )
    return kind(process, ports or {}, log_path)


def _environment() -> dict[str, str]:
    """The developer's, without settings that would change what is tested."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SPANGRADE_"))}


def up(server: Server) -> bool:
    """`Server.wait_until_up`; one that does not come up does not stay either."""
    with ExitStack() as on_failure:
        on_failure.callback(server.stop)
        if server.wait_until_up():
            on_failure.pop_all()
            return True
    return False


def free_ports(names: Sequence[str]) -> dict[str, int]:
    """A free port of the loopback for each name."""
    # All are held at once, so that no two are the same.
    with ExitStack() as held:
        ports = {}
        for name in names:
            listener = held.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            ports[name] = int(listener.getsockname()[1])
    return ports


def url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def pause() -> None:
    threading.Event().wait(POLL_INTERVAL)


def eventually(ask: Callable[[], Found], holds: Callable[[Found], bool], what: str, timeout: float = 10.0) -> Found:
    """The first answer that holds; the test fails with the last one if there is none in time."""
    deadline = time.monotonic() + timeout
    while not holds(answer := ask()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what}: not after {timeout} s, but {answer!r}")
        pause()
    return answer


def unavailable(sentence: str) -> NoReturn:
    """Skip the test because the machine lacks something; where CI requires the tests, fail it."""
    if os.environ.get(REQUIRE) == "1":
        pytest.fail(f"{REQUIRE}=1, but {sentence}", pytrace=False)
    pytest.skip(sentence)
