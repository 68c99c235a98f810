"""A real Jaeger for the tests of this folder: built once per machine, started once per session, asked over its API."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

# Relative, so that it works with pytest's importlib mode, which puts no test folder on sys.path.
from .jaeger_build import BuildError, GoMissingError, ensure_jaeger

HERE = Path(__file__).parent
CONFIG = HERE.parents[1] / "collector_config" / "jaeger.yaml"
# Set by CI, where an integration test that is skipped is a failure.
REQUIRE = "SPANGRADE_REQUIRE_INTEGRATION"
PORT_VARIABLES = (
    "JAEGER_OTLP_GRPC_PORT",
    "JAEGER_OTLP_HTTP_PORT",
    "JAEGER_QUERY_HTTP_PORT",
    "JAEGER_QUERY_GRPC_PORT",
    "JAEGER_HEALTH_PORT",
)
START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0
POLL_INTERVAL = 0.05

JsonObject = dict[str, Any]
TagValue = str | int | float | bool


class Jaeger:
    """A running Jaeger: where it takes OTLP, and what it has stored."""

    def __init__(self, process: subprocess.Popen[bytes], ports: dict[str, int], log_path: Path) -> None:
        self.otlp_grpc = _url(ports["JAEGER_OTLP_GRPC_PORT"])
        self.otlp_http = _url(ports["JAEGER_OTLP_HTTP_PORT"])
        self.query = _url(ports["JAEGER_QUERY_HTTP_PORT"])
        self.log_path = log_path
        self._health = _url(ports["JAEGER_HEALTH_PORT"])
        self._process = process
        # A proxy that the environment names is of no use on the loopback.
        self._http = httpx.Client(timeout=5.0, trust_env=False)

    def trace(self, trace_id: str, *, timeout: float = 10.0, min_spans: int = 1) -> JsonObject:
        """The trace as Jaeger's JSON, as soon as it has `min_spans` spans; the test fails if it has not in time."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                response = self._http.get(f"{self.query}/api/traces/{trace_id}")
            except httpx.TransportError as error:
                code = self._process.poll()
                state = "is running" if code is None else f"has ended with exit code {code}"
                raise AssertionError(f"Jaeger {state} and does not answer: {error}") from None
            # 404 is how Jaeger says "not yet"; anything else but 200 will not get better.
            assert response.status_code in (200, 404), f"Jaeger: {response.status_code} {response.text}"
            found: JsonObject = response.json()["data"][0] if response.status_code == 200 else {"spans": []}
            if len(found["spans"]) >= min_spans:
                return found
            if time.monotonic() >= deadline:
                names = sorted(span["operationName"] for span in found["spans"])
                raise AssertionError(f"trace {trace_id}: after {timeout} s Jaeger has {len(names)} spans {names}")
            _pause()

    @staticmethod
    def span(trace: JsonObject, operation_name: str) -> JsonObject:
        """The one span of that name; the test fails if there is none, or more than one."""
        names = [span["operationName"] for span in trace["spans"]]
        assert names.count(operation_name) == 1, f"expected one span {operation_name!r} in {names}"
        found: JsonObject = trace["spans"][names.index(operation_name)]
        return found

    @staticmethod
    def tags(span: JsonObject) -> dict[str, TagValue]:
        """The span's attributes. Lists are JSON text here: that is how this API gives them."""
        return _values(span["tags"])

    @staticmethod
    def logs(span: JsonObject, event: str | None = None) -> list[dict[str, TagValue]]:
        """The span's events, or those of one name, in time order: each its attributes, and its name as `event`."""
        entries = sorted(span["logs"], key=lambda entry: int(entry["timestamp"]))
        fields = [_values(entry["fields"]) for entry in entries]
        return [each for each in fields if event is None or each.get("event") == event]

    @staticmethod
    def resource(trace: JsonObject, span: JsonObject) -> dict[str, TagValue]:
        """The span's resource attributes, `service.name` among them."""
        process = trace["processes"][span["processID"]]
        return {**_values(process["tags"]), "service.name": process["serviceName"]}

    def log_tail(self, lines: int = 30) -> str:
        return "\n".join(self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def wait_until_healthy(self) -> bool:
        """True once every part has started, False when the process has ended instead."""
        deadline = time.monotonic() + START_TIMEOUT
        while self._process.poll() is None:
            try:
                if self._http.get(f"{self._health}/status").status_code == 200:
                    return True
            except httpx.TransportError:
                pass  # not listening yet
            if time.monotonic() >= deadline:
                pytest.fail(f"Jaeger was not healthy after {START_TIMEOUT} s:\n{self.log_tail()}", pytrace=False)
            _pause()
        return False

    def stop(self) -> None:
        self._http.close()
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@pytest.fixture(scope="session")
def jaeger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jaeger]:
    """Jaeger with collector_config/jaeger.yaml on free ports of the loopback, empty at the start of the session."""
    try:
        binary = ensure_jaeger()
    except GoMissingError as error:
        if os.environ.get(REQUIRE) == "1":
            pytest.fail(f"{REQUIRE}=1, but {error}", pytrace=False)
        pytest.skip(str(error))
    except BuildError as error:
        pytest.fail(str(error), pytrace=False)
    server = _start(binary, tmp_path_factory.mktemp("jaeger"))
    try:
        yield server
    finally:
        server.stop()


def _start(binary: Path, folder: Path, attempts: int = 3) -> Jaeger:
    """A free port may be taken by another process before Jaeger has it; then other ports are tried."""
    for attempt in range(1, attempts + 1):
        ports = _free_ports()
        log_path = folder / f"jaeger-{attempt}.log"
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [str(binary), "--config", str(CONFIG)],
                env={**os.environ, **{name: str(port) for name, port in ports.items()}},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        server = Jaeger(process, ports, log_path)
        with ExitStack() as on_failure:
            on_failure.callback(server.stop)
            if server.wait_until_healthy():
                on_failure.pop_all()
                return server
        if "address already in use" not in server.log_tail():
            break
    pytest.fail(f"Jaeger ended at its start with exit code {process.returncode}:\n{server.log_tail()}", pytrace=False)


def _free_ports() -> dict[str, int]:
    # All are held at once, so that no two are the same.
    with ExitStack() as held:
        ports = {}
        for name in PORT_VARIABLES:
            listener = held.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            ports[name] = int(listener.getsockname()[1])
    return ports


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _pause() -> None:
    threading.Event().wait(POLL_INTERVAL)


def _values(entries: list[JsonObject]) -> dict[str, TagValue]:
    return {str(entry["key"]): _value(entry) for entry in entries}


def _value(entry: JsonObject) -> TagValue:
    """The value with the type it was sent with: the API gives 1.0 as 1, and integers above 2**53 as text."""
    value: TagValue = entry["value"]
    match entry["type"]:
        case "int64":
            return int(value)
        case "float64":
            return float(value)
        case _:
            return value


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "integration: needs a real Jaeger; run by `make test-integration`")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # pytest hands every collected test to this hook, also those of other folders.
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.integration)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that used Jaeger and failed shows the end of Jaeger's log."""
    report = yield
    server = getattr(item, "funcargs", {}).get("jaeger")
    if report.failed and isinstance(server, Jaeger):
        report.sections.append((f"end of {server.log_path}", server.log_tail()))
    return report
