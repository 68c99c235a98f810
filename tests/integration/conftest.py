"""What the tests of this folder stand on: a real Jaeger, built once per machine, started once per session, asked over its
API; agents and Collectors as processes of their own."""

from __future__ import annotations

import secrets
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

# Relative, so that it works with pytest's importlib mode, which puts no test folder on sys.path.
from . import otlp
from .agent_process import AgentProcess
from .jaeger_build import BuildError, GoMissingError, ensure_jaeger
from .phoenix_process import Phoenix
from .phoenix_process import is_installed as phoenix_is_installed
from .processes import Server, pause, spawn, start, unavailable, up, url

HERE = Path(__file__).parent
CONFIGS = HERE.parents[1] / "collector_config"
CONFIG = CONFIGS / "jaeger.yaml"
PORT_VARIABLES = (
    "JAEGER_OTLP_GRPC_PORT",
    "JAEGER_OTLP_HTTP_PORT",
    "JAEGER_QUERY_HTTP_PORT",
    "JAEGER_QUERY_GRPC_PORT",
    "JAEGER_HEALTH_PORT",
)

JsonObject = dict[str, Any]
TagValue = str | int | float | bool


class Jaeger(Server):
    """A running Jaeger: where it takes OTLP, and what it has stored."""

    name = "Jaeger"

    def __init__(self, process: subprocess.Popen[bytes], ports: Mapping[str, int], log_path: Path) -> None:
        super().__init__(process, ports, log_path)
        self.otlp_grpc = url(ports["JAEGER_OTLP_GRPC_PORT"])
        self.otlp_http = url(ports["JAEGER_OTLP_HTTP_PORT"])
        self.query = url(ports["JAEGER_QUERY_HTTP_PORT"])
        self._health = url(ports["JAEGER_HEALTH_PORT"])
        # A proxy that the environment names is of no use on the loopback.
        self._http = httpx.Client(timeout=5.0, trust_env=False)

    def trace(self, trace_id: str, *, timeout: float = 10.0, min_spans: int = 1) -> JsonObject:
        """The trace as Jaeger's JSON, as soon as it has `min_spans` spans; the test fails if it has not in time."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                response = self._http.get(f"{self.query}/api/traces/{trace_id}")
            except httpx.TransportError as error:
                code = self.process.poll()
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
            pause()

    def settled(self, trace_id: str) -> JsonObject:
        """The trace with every span that had been sent to this Jaeger before this call.

        Spans are stored in the order in which they come: when a span sent now can be found, the earlier ones can.
        """
        marker, body = otlp.marker()
        answer = self._http.post(f"{self.otlp_http}/v1/traces", content=body, headers=otlp.PROTOBUF)
        assert answer.status_code == 200, answer.text
        self.trace(marker)
        return self.trace(trace_id)

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

    def is_up(self) -> bool:
        """True once every part has started."""
        return _healthy(self._http, self._health)

    def stop(self) -> int:
        self._http.close()
        return super().stop()


class Collector(Server):
    """A Collector that stores nothing."""

    name = "Collector"

    def __init__(self, process: subprocess.Popen[bytes], ports: Mapping[str, int], log_path: Path) -> None:
        super().__init__(process, ports, log_path)
        self._health = url(ports["COLLECTOR_HEALTH_PORT"])

    def endpoint(self, protocol: str) -> str:
        """The URL that an application is given."""
        return url(self.ports[f"COLLECTOR_OTLP_{protocol.upper()}_PORT"])

    def is_up(self) -> bool:
        with httpx.Client(timeout=5.0, trust_env=False) as client:
            return _healthy(client, self._health)

    def drain(self) -> None:
        """SIGTERM: whatever it has taken has been sent on when this returns."""
        code = self.stop()
        assert code == 0, f"the Collector ended with exit code {code}:\n{self.log_tail()}"


def _healthy(client: httpx.Client, health: str) -> bool:
    try:
        return client.get(f"{health}/status").status_code == 200
    except httpx.TransportError:
        return False  # not listening yet


@pytest.fixture(scope="session")
def jaeger_binary() -> Path:
    """Jaeger's binary, which is a Collector; without `go` to build it with, the test is skipped."""
    try:
        return ensure_jaeger()
    except GoMissingError as error:
        unavailable(str(error))
    except BuildError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def jaeger(jaeger_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jaeger]:
    """Jaeger with collector_config/jaeger.yaml on free ports of the loopback, empty at the start of the session."""
    command = [str(jaeger_binary), "--config", str(CONFIG)]
    server = start(Jaeger, command, tmp_path_factory.mktemp("jaeger"), PORT_VARIABLES)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def start_jaeger_on(binary: Path, ports: Mapping[str, int], folder: Path) -> Iterator[Jaeger]:
    """Jaeger on ports that somebody has been told of before it runs."""
    env = {name: str(port) for name, port in ports.items()}
    server = spawn(Jaeger, [str(binary), "--config", str(CONFIG)], folder / "jaeger.log", env, ports)
    try:
        assert up(server), server.log_tail()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session", autouse=True)
def phoenix_ahead(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix | None]:
    """Phoenix, started while the other tests run, if it is wanted and installed: it takes longest by far."""
    wanted = any("phoenix" in getattr(item, "fixturenames", ()) for item in request.session.items)
    if not (wanted and phoenix_is_installed()):
        yield None
        return
    server = Phoenix.begin(tmp_path_factory.mktemp("phoenix"))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def phoenix(phoenix_ahead: Phoenix | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    """Arize Phoenix on free ports, empty at the start of the session."""
    server = (phoenix_ahead or Phoenix.begin(tmp_path_factory.mktemp("phoenix"))).wait()
    try:
        yield server
    finally:
        server.stop()


MakeAgent = Callable[..., AgentProcess]
MakeCollector = Callable[[AgentProcess], Collector]


@pytest.fixture
def agent(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MakeAgent]:
    """Runs agents, each a process of its own, until the test's end: `agent(forward=URL, metrics=[...])`."""
    with ExitStack() as running:

        def make(**options: Any) -> AgentProcess:
            one = AgentProcess.start(tmp_path / secrets.token_hex(4), **options)
            running.callback(one.stop)
            watch(request.node, one)
            return one

        yield make


@pytest.fixture(scope="module")
def jaeger_after(jaeger_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jaeger]:
    """The Collector behind the agent, which is a Jaeger with collector_config/collector-after-agent.yaml."""
    command = [str(jaeger_binary), "--config", str(CONFIGS / "collector-after-agent.yaml")]
    server = start(Jaeger, command, tmp_path_factory.mktemp("collector-after"), PORT_VARIABLES)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def collector_before(jaeger_binary: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MakeCollector]:
    """Runs Collectors with collector_config/collector-before-agent.yaml in front of an agent, until the test's end."""
    command = [str(jaeger_binary), "--config", str(CONFIGS / "collector-before-agent.yaml")]
    with ExitStack() as running:

        def make(agent: AgentProcess) -> Collector:
            ports = ("COLLECTOR_OTLP_GRPC_PORT", "COLLECTOR_OTLP_HTTP_PORT", "COLLECTOR_HEALTH_PORT")
            one = start(Collector, command, tmp_path, ports, {"AGENT_OTLP_GRPC": agent.grpc})
            running.callback(one.stop)
            watch(request.node, one)
            return one

        yield make


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
    # Last what needs Phoenix, which starts meanwhile.
    items.sort(key=lambda item: "phoenix" in getattr(item, "fixturenames", ()))


WATCHED = pytest.StashKey[list[Server]]()


def watch(item: pytest.Item, server: Server) -> None:
    """If this test fails it shows the end of the server's log."""
    item.stash.setdefault(WATCHED, []).append(server)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that used servers and failed shows the ends of their logs."""
    report = yield
    if report.failed:
        given = [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, Server)]
        for server in [*given, *item.stash.get(WATCHED, [])]:
            report.sections.append((f"end of {server.log_path}", server.log_tail()))
    return report
