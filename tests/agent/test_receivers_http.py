"""OTLP/HTTP in, over real sockets: the official exporters, the edges of case C097, bounds, and the server itself."""

import gzip
import http.client
import json
import queue
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from spangrade.errors import ConfigError
from spangrade_agent.http_server import HttpServer
from spangrade_agent.receivers.http import OtlpApp, otlp_app
from spangrade_agent.receivers.listen import ServerTls
from spangrade_agent.wire import Answer, Encoding, Kind, Signal

from .certificate import make_certificate, needs_openssl
from .recorder import Recorder as Scripted
from .recorder import assert_all_three_came, send_all_three

C097 = Path(__file__).parents[3] / "shared/cases/inputs/C097_otlp_http_edges.py"
PROTOBUF, JSON = "application/x-protobuf", "application/json"


class Recorder(Scripted):
    """Refuses what cannot be read, as the relay does."""

    def ingest(self, signal: Signal, body: bytes, encoding: Encoding) -> Answer:
        answer = super().ingest(signal, body, encoding)
        try:
            if encoding == "json":
                json.loads(body)
            else:
                ExportTraceServiceRequest.FromString(body)
        except Exception as fault:
            return Answer(Kind.BAD, f"cannot be read: {fault}")
        return answer


class Running:
    """An application that is being served; `post` asks it over a connection of its own."""

    def __init__(self, app: OtlpApp, tls: Any = None) -> None:
        self.app = app
        self.server = HttpServer(app, "127.0.0.1:0", "otlp-http", tls)
        self.port = self.server.start()

    def close(self) -> None:
        self.server.stop(2)
        self.app.close()

    def ask(
        self, body: Any, headers: dict[str, str] | None = None, path: str = "/v1/traces", method: str = "POST"
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def post(self, body: Any, kind: str = PROTOBUF, coding: str | None = None, path: str = "/v1/traces") -> int:
        headers = {"Content-Type": kind} | ({"Content-Encoding": coding} if coding else {})
        return self.ask(body, headers, path)[0].status


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def running(recorder: Recorder) -> Iterator[Running]:
    served = Running(otlp_app(recorder, max_bytes=8_000_000))
    yield served
    served.close()


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_the_official_exporters_deliver_all_three_signals(
    recorder: Recorder, running: Running, compression: Compression
) -> None:
    def options(signal: str) -> dict[str, Any]:
        return {"endpoint": f"http://127.0.0.1:{running.port}/v1/{signal}", "compression": compression}

    send_all_three(
        OTLPSpanExporter(**options("traces")),
        OTLPLogExporter(**options("logs")),
        OTLPMetricExporter(**options("metrics")),
    )
    assert_all_three_came(recorder)


def test_answers_have_the_requests_encoding(recorder: Recorder, running: Running) -> None:
    recorder.answer = Answer(Kind.OK, "why", 3)
    response, body = running.ask(b"", {"Content-Type": PROTOBUF}, "/v1/logs")
    partial = ExportLogsServiceResponse.FromString(body).partial_success
    assert (response.getheader("content-type"), partial.rejected_log_records) == (PROTOBUF, 3)
    response, body = running.ask(b"{}", {"Content-Type": "application/JSON; charset=utf-8"})
    assert response.getheader("content-type") == JSON
    assert json.loads(body) == {"partialSuccess": {"rejectedSpans": "3", "errorMessage": "why"}}
    recorder.answer = Answer()
    assert running.ask(b"", {"Content-Type": PROTOBUF})[1] == b""
    assert running.ask(b"{}", {"Content-Type": JSON})[1] == b"{}"


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        (Kind.BAD, 400, 3),
        (Kind.TOO_LARGE, 413, 8),
        (Kind.UNAUTHORIZED, 401, 16),
        (Kind.RETRY, 503, 14),
        (Kind.UNIMPLEMENTED, 404, 12),
    ],
)
def test_errors_carry_a_status_in_the_requests_encoding(
    recorder: Recorder, running: Running, kind: Kind, status: int, code: int
) -> None:
    recorder.answer = Answer(kind, "because\r\nof this")
    response, body = running.ask(b"", {"Content-Type": PROTOBUF})
    said = Status.FromString(body)
    assert (response.status, said.code, said.message) == (status, code, "because of this")
    response, body = running.ask(b"{}", {"Content-Type": JSON})
    assert (response.status, json.loads(body)) == (status, {"code": code, "message": "because of this"})
    assert (response.getheader("retry-after") == "1") is (kind is Kind.RETRY)


@pytest.mark.parametrize(("after", "said"), [(None, "1"), (0.0, "1"), (0.2, "1"), (2.1, "3"), (30, "30")])
def test_retry_after_is_in_whole_seconds(recorder: Recorder, running: Running, after: float | None, said: str) -> None:
    recorder.answer = Answer(Kind.RETRY, retry_after_s=after)
    assert running.ask(b"", {"Content-Type": PROTOBUF})[0].getheader("retry-after") == said


def test_a_fault_of_ours_keeps_the_senders_data(
    recorder: Recorder, running: Running, swallowed_faults: list[tuple[str, BaseException]]
) -> None:
    recorder.fault = KeyError("secret detail")
    response, body = running.ask(b"", {"Content-Type": PROTOBUF})
    assert (response.status, response.getheader("retry-after")) == (503, "1")
    assert b"secret" not in body
    assert [where for where, _ in swallowed_faults] == ["receivers.http"]
    swallowed_faults.clear()


def test_what_is_not_asked_for_is_refused(recorder: Recorder, running: Running) -> None:
    for path in ("/", "/v1/nothing", "/v1/traces/", "/v1development/profiles"):
        assert running.post(b"", path=path) == 404
    for method in ("GET", "PUT", "HEAD", "OPTIONS"):
        response, _ = running.ask(None, method=method)
        assert (response.status, response.getheader("allow")) == (405, "POST")
    for kind in ("", "text/plain", "application/json2"):
        response, body = running.ask(b"{}", {"Content-Type": kind})
        assert response.status == 415
        assert json.loads(body)["message"].startswith("Content-Type must be")
    for coding in ("br", "deflate", "gzip, gzip"):
        assert running.post(b"{}", JSON, coding) == 415
    assert recorder.came == []


def test_gzip_is_inflated_within_the_limit(recorder: Recorder, running: Running) -> None:
    two = gzip.compress(b'{"a":') + gzip.compress(b"1}")
    assert running.post(two, JSON, "gzip") == 200
    assert running.post(b"{}", JSON, "identity") == 200
    assert [body for _, body, _ in recorder.came] == [b'{"a":1}', b"{}"]
    assert running.post(two[:-6], JSON, "gzip") == 400
    assert running.post(b"{}", JSON, "gzip") == 400
    assert running.post(gzip.compress(b" " * 8_000_001), JSON, "gzip") == 413
    assert len(recorder.came) == 2


def test_bodies_over_the_limit_are_refused_with_and_without_a_length(recorder: Recorder, running: Running) -> None:
    body = b" " * 8_000_001
    assert running.post(body, JSON) == 413
    assert running.post(iter([body[:4_000_000], body[4_000_000:]]), JSON) == 413  # chunked
    assert recorder.came == []
    assert running.post(iter([b'{"a"', b":1}"]), JSON) == 200
    assert recorder.came[0][1] == b'{"a":1}'


def test_a_connection_is_kept_after_an_early_refusal(running: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    statuses = []
    for body, path in ((b" " * 8_000_001, "/v1/traces"), (b" " * 7_000_000, "/nowhere"), (b"{}", "/v1/traces")):
        connection.request("POST", path, body, {"Content-Type": JSON})
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
    connection.close()
    assert statuses == [413, 404, 200]


def test_a_client_that_goes_away_is_forgotten(recorder: Recorder, running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.port)) as client:
        client.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
        client.sendall(b"Content-Length: 1000\r\n\r\n{")
    assert running.post(b"{}", JSON) == 200
    running.close()  # waits for open requests; the one that broke off is none
    assert [body for _, body, _ in recorder.came] == [b"{}"]
    assert running.app._room.held == (0, 0)


class Blocking(Recorder):
    """Holds every request until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Semaphore(0)
        self.release = threading.Event()

    def ingest(self, signal: Signal, body: bytes, encoding: Encoding) -> Answer:
        self.entered.release()
        assert self.release.wait(20)
        return Answer()


def test_more_than_may_wait_are_sent_away_at_once_and_the_loop_stays_free() -> None:
    ingest = Blocking()
    running = Running(otlp_app(ingest, threads=1, max_waiting=1))
    answers: queue.Queue[tuple[int, str | None]] = queue.Queue()

    def sender() -> None:
        response, _ = running.ask(b"", {"Content-Type": PROTOBUF})
        answers.put((response.status, response.getheader("retry-after")))

    senders = [threading.Thread(target=sender) for _ in range(3)]
    senders[0].start()
    assert ingest.entered.acquire(timeout=10)
    for other in senders[1:]:  # one waits, the other has no place
        other.start()
    assert answers.get(timeout=10) == (503, "1")
    assert running.post(b"", path="/nowhere") == 404
    ingest.release.set()
    assert [answers.get(timeout=10)[0] for _ in range(2)] == [200, 200]
    for each in senders:
        each.join(10)
    assert running.post(b"") == 200
    running.close()
    assert running.app._room.held == (0, 0)


def test_bytes_of_all_requests_together_are_bounded(recorder: Recorder) -> None:
    running = Running(otlp_app(recorder, max_held_bytes=1000))
    try:
        assert running.post(b" " * 2000, JSON) == 503
        assert running.post(gzip.compress(b" " * 2000), JSON, "gzip") == 503
        assert recorder.came == []
        assert running.post(b"{}" + b" " * 900, JSON) == 200
        assert running.app._room.held == (0, 0)
    finally:
        running.close()


def test_a_token_is_asked_for(recorder: Recorder) -> None:
    running = Running(otlp_app(recorder, token="let me in"))
    try:
        response, _ = running.ask(b"", {"Content-Type": PROTOBUF})
        assert (response.status, response.getheader("www-authenticate")) == (401, "Bearer")
        assert recorder.came == []
        right = {"Content-Type": PROTOBUF, "Authorization": "Bearer let me in"}
        assert running.ask(b"", right)[0].status == 200
    finally:
        running.close()


@pytest.mark.skipif(not C097.exists(), reason="the shared cases are not here")
def test_the_edges_of_case_c097(recorder: Recorder) -> None:
    running = Running(otlp_app(recorder))
    try:
        done = subprocess.run(
            [sys.executable, str(C097), str(running.port)], capture_output=True, text=True, check=True, timeout=120
        )
    finally:
        running.close()
    lines = done.stdout.splitlines()
    assert len(lines) == 20
    for line in lines:
        status = line.split(" got ")[1].split()[0]
        wanted = line.split("  wanted ")[1].split("  then good request: ")[0]
        # Whether JSON is OTLP is the relay's to say: this Recorder takes any.
        assert status in wanted or line.startswith("invalid UTF-8"), line
        assert "then good request: 200" in line, line


# --- the server ----------------------------------------------------------------------------------------------------


def test_a_busy_address_is_named(running: Running) -> None:
    with pytest.raises(ConfigError, match=f"the page cannot listen on '127.0.0.1:{running.port}': .*in use"):
        HttpServer(running.app, f"127.0.0.1:{running.port}", "the page").start()


def test_stop_lets_an_open_request_end() -> None:
    ingest = Blocking()
    running = Running(otlp_app(ingest))
    statuses: list[int] = []
    sender = threading.Thread(target=lambda: statuses.append(running.post(b"")))
    sender.start()
    assert ingest.entered.acquire(timeout=10)
    stopper = threading.Thread(target=running.server.stop, args=(10,))
    stopper.start()
    ingest.release.set()
    sender.join(10)
    stopper.join(10)
    assert statuses == [200]
    with pytest.raises(ConnectionError):
        running.post(b"")
    running.close()  # again: nothing


def test_stop_does_not_wait_longer_than_its_grace_and_what_it_breaks_off_is_sent_again() -> None:
    ingest = Blocking()
    running = Running(otlp_app(ingest))
    statuses: list[int] = []
    sender = threading.Thread(target=lambda: statuses.append(running.post(b"")))
    sender.start()
    assert ingest.entered.acquire(timeout=10)
    running.server.stop(0)
    sender.join(10)
    assert statuses == [503]
    ingest.release.set()
    running.app.close()


def test_an_unstarted_server_stops() -> None:
    HttpServer(otlp_app(Recorder()), "127.0.0.1:0", "x").stop()


@needs_openssl
def test_tls_with_and_without_a_client_certificate(recorder: Recorder, tmp_path: Path) -> None:
    made = make_certificate(tmp_path)
    cert, key = made.cert, made.key
    for tls, with_own, works in (
        ((cert, key), False, True),
        (ServerTls(cert, key, cert), False, False),
        (ServerTls(cert, key, cert), True, True),
    ):
        running = Running(otlp_app(recorder), tls)
        context = ssl.create_default_context(cafile=cert)
        if with_own:
            context.load_cert_chain(cert, key)
        connection = http.client.HTTPSConnection("localhost", running.port, timeout=10, context=context)
        try:
            try:
                connection.request("POST", "/v1/traces", b"", {"Content-Type": PROTOBUF})
                assert connection.getresponse().status == 200
                assert works
            except (OSError, http.client.HTTPException):
                assert not works
        finally:
            connection.close()
            running.close()
