"""What upstreams answer, and what we make of it: a scripted HTTP server and a scripted gRPC server, on real sockets."""

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from spangrade.errors import ConfigError
from spangrade_agent.http_server import HttpServer
from spangrade_agent.receivers.grpc import METHODS, GrpcReceiver
from spangrade_agent.receivers.http import otlp_app
from spangrade_agent.receivers.listen import ServerTls
from spangrade_agent.upstreams import ClientTls, make_upstream
from spangrade_agent.upstreams.grpc import grpc_upstream
from spangrade_agent.upstreams.http import http_upstream
from spangrade_agent.wire import Answer, Kind, Upstream

from .certificate import make_certificate, needs_openssl
from .recorder import Recorder

PROTOBUF, JSON = "application/x-protobuf", "application/json"
Keep = Callable[[Upstream], Upstream]


# --- HTTP ----------------------------------------------------------------------------------------------------------


class Backend(ThreadingHTTPServer):
    """Answers with what it is told to, keeps requests and counts connections. ``answer`` None: hangs up."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: tuple[int, dict[str, str], bytes] | None = (200, {}, b"")
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections = 0
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """A client that goes away in the middle of an answer is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: Backend
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        if self.server.answer is None:
            self.close_connection = True
            return
        status, headers, answer = self.server.answer
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(answer))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def backend() -> Iterator[Backend]:
    server = Backend()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def upstream(backend: Backend) -> Iterator[Upstream]:
    made = make_upstream(backend.url, headers={"api-key": "very-secret"})
    yield made
    made.close()


@pytest.fixture
def closed_after() -> Iterator[Keep]:
    """For an upstream that is made within a test."""
    with ExitStack() as stack:

        def add(made: Upstream) -> Upstream:
            stack.callback(made.close)
            return made

        yield add


def test_a_body_goes_out_untouched_to_its_signals_path(backend: Backend, upstream: Upstream) -> None:
    for signal in METHODS.values():
        assert upstream.send(signal, b"\x0a\x01" + signal.encode()) == Answer()
    assert [path for path, _, _ in backend.requests] == ["/v1/traces", "/v1/logs", "/v1/metrics"]
    _, headers, body = backend.requests[0]
    assert body == b"\x0a\x01traces"
    assert (headers["content-type"], headers["api-key"]) == (PROTOBUF, "very-secret")
    assert headers["user-agent"].startswith("spangrade-agent/")
    assert backend.connections == 1


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        ("{}/", "/v1/traces"),
        ("{}/otlp", "/otlp/v1/traces"),
        ("{}/v1/logs", "/v1/traces"),
        ("{}?team=a", "/v1/traces?team=a"),
    ],
)
def test_the_endpoints_path_and_query_are_kept(backend: Backend, endpoint: str, path: str, closed_after: Keep) -> None:
    closed_after(http_upstream(endpoint.format(backend.url))).send("traces", b"")
    assert backend.requests[0][0] == path


def test_gzip_and_the_urls_password(backend: Backend, closed_after: Keep) -> None:
    made = closed_after(http_upstream(backend.url.replace("//", "//me:p%40ss@"), gzip=True))
    assert made.send("traces", b"x" * 1000).kind is Kind.OK
    _, headers, body = backend.requests[0]
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == b"x" * 1000
    assert headers["authorization"] == "Basic bWU6cEBzcw=="
    assert "p%40ss" not in repr(made)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(200, Kind.OK), (202, Kind.OK), (204, Kind.OK)]
    + [(status, Kind.RETRY) for status in (429, 502, 503, 504)]
    + [(status, Kind.UNIMPLEMENTED) for status in (404, 405, 501)]
    + [(413, Kind.TOO_LARGE), (401, Kind.UNAUTHORIZED), (403, Kind.UNAUTHORIZED)]
    + [(status, Kind.BAD) for status in (301, 307, 400, 408, 415, 422, 500, 505)],
)
def test_http_statuses_are_read_as_otlp_has_them(backend: Backend, upstream: Upstream, status: int, kind: Kind) -> None:
    backend.answer = (status, {"Location": f"{backend.url}/elsewhere"}, b"")
    answer = upstream.send("traces", b"")
    assert (answer.kind, answer.rejected, answer.retry_after_s) == (kind, 0, None)
    assert len(backend.requests) == 1  # neither retried nor redirected


def test_partial_success_is_read_in_either_encoding(backend: Backend, upstream: Upstream) -> None:
    partial = ExportTraceServiceResponse()
    partial.partial_success.rejected_spans = 3
    partial.partial_success.error_message = "why"
    for kind, body in (
        (PROTOBUF, partial.SerializeToString()),
        (JSON, b'{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "why"}}'),
        (JSON + "; charset=utf-8", b'{"partialSuccess": {"rejectedLogRecords": 3, "errorMessage": "why"}}'),
    ):
        backend.answer = (200, {"Content-Type": kind}, body)
        assert upstream.send("traces", b"") == Answer(Kind.OK, "why", 3)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON, b"{}"),
        (JSON, b'{"partialSuccess": null}'),
        (JSON, b'{"partialSuccess": {}}'),
        (JSON, b'{"partialSuccess": {"rejectedSpans": -1}}'),
        (JSON, b"[" * 100_000),
        (JSON, b"\xff"),
        (PROTOBUF, ExportTraceServiceResponse(partial_success={}).SerializeToString()),
        (PROTOBUF, b"not protobuf"),
        ("text/html", b"<h1>ok</h1>"),
    ],
)
def test_a_success_that_says_nothing_is_a_success(backend: Backend, upstream: Upstream, kind: str, body: bytes) -> None:
    backend.answer = (200, {"Content-Type": kind}, body)
    assert upstream.send("traces", b"") == Answer()


def test_retry_after_is_read_in_seconds_and_as_a_date(backend: Backend, upstream: Upstream) -> None:
    def after(value: str) -> float | None:
        backend.answer = (503, {"Retry-After": value}, b"")
        return upstream.send("traces", b"").retry_after_s

    assert (after("7"), after("0"), after("1.5")) == (7.0, 0.0, 1.5)
    soon = after(format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True))
    assert soon is not None
    assert 95 < soon < 101
    assert after(format_datetime(datetime.now(UTC) - timedelta(seconds=100), usegmt=True)) == 0.0
    assert [after(value) for value in ("soon", "-3", "Mon, 99 Foo", "1e999")] == [None] * 4


def test_errors_are_told_in_the_upstreams_words_without_our_keys(backend: Backend, upstream: Upstream) -> None:
    for kind, body in (
        (PROTOBUF, Status(code=3, message="key very-secret\nis bad").SerializeToString()),
        (JSON, json.dumps({"code": 3, "message": "key very-secret\nis bad"}).encode()),
        ("text/plain", b"key very-secret\nis bad"),
    ):
        backend.answer = (400, {"Content-Type": kind}, body)
        assert upstream.send("traces", b"") == Answer(Kind.BAD, "HTTP 400: key *** is bad")


def test_no_answer_means_again(backend: Backend, upstream: Upstream, closed_after: Keep) -> None:
    backend.answer = None
    answer = upstream.send("traces", b"x")
    assert (answer.kind, answer.retry_after_s) == (Kind.RETRY, None)
    assert len(backend.requests) == 1
    backend.answer = (200, {"Content-Length": "100"}, b"cut")
    backend.requests.clear()
    slow = closed_after(http_upstream(backend.url, timeout_s=0.05))
    assert slow.send("traces", b"").kind is Kind.RETRY  # the rest of the answer does not come
    backend.answer = (200, {}, b"")
    assert upstream.send("traces", b"") == Answer()


def test_nobody_there_means_again(closed_after: Keep) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        for made in (http_upstream(f"http://127.0.0.1:{port}"), grpc_upstream(f"http://127.0.0.1:{port}")):
            answer = made.send("traces", b"")
            assert (answer.kind, answer.rejected) == (Kind.RETRY, 0)
            made.close()
    assert closed_after(http_upstream("http://no.such.host.invalid:1")).send("traces", b"").kind is Kind.RETRY


def test_a_very_long_answer_is_not_read_to_its_end(backend: Backend, upstream: Upstream) -> None:
    backend.answer = (400, {"Content-Type": "text/plain"}, b"x" * 10_000_000)
    assert len(upstream.send("traces", b"").message) < 400
    backend.answer = (200, {}, b"")
    assert upstream.send("traces", b"") == Answer()


def test_a_proxy_of_the_environment_is_used_elsewhere_but_not_on_this_machine(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, closed_after: Keep
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "grpc_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{unused.getsockname()[1]}")
        assert closed_after(http_upstream(backend.url)).send("traces", b"") == Answer()
        assert closed_after(http_upstream(f"http://localhost:{backend.server_port}")).send("traces", b"") == Answer()
        with Scripted() as scripted:
            assert closed_after(grpc_upstream(scripted.target)).send("traces", b"") == Answer()
        monkeypatch.setenv("http_proxy", backend.url)
        backend.requests.clear()
        assert closed_after(http_upstream("http://backend.invalid:9")).send("traces", b"") == Answer()
        assert backend.requests[0][0] == "http://backend.invalid:9/v1/traces"
        monkeypatch.setenv("no_proxy", "backend.invalid")
        assert closed_after(http_upstream("http://backend.invalid:9")).send("traces", b"").kind is Kind.RETRY


# --- gRPC ----------------------------------------------------------------------------------------------------------


class Scripted(grpc.GenericRpcHandler):
    """Answers every method with what it is told to."""

    def __init__(self) -> None:
        self.code: grpc.StatusCode | None = None
        self.answer = b""
        self.trailers: Sequence[tuple[str, str | bytes]] = ()
        self.came: list[tuple[str, bytes, dict[str, Any]]] = []
        self.server = grpc.server(ThreadPoolExecutor(2), handlers=[self])
        self.target = f"http://127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> "Scripted":
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop(0).wait()

    def service(self, details: Any) -> Any:
        def handle(body: bytes, context: grpc.ServicerContext) -> bytes:
            self.came.append((details.method, body, dict(context.invocation_metadata())))
            if self.code is not None:
                context.set_trailing_metadata(tuple(self.trailers))
                context.abort(self.code, "key very-secret is bad")
            return self.answer

        return grpc.unary_unary_rpc_method_handler(handle)


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with Scripted() as server:
        yield server


@pytest.fixture
def by_grpc(scripted: Scripted) -> Iterator[Upstream]:
    made = make_upstream(scripted.target, "grpc", headers={"API-Key": "very-secret"})
    yield made
    made.close()


@pytest.mark.parametrize("compressed", [False, True])
def test_a_body_goes_out_untouched_to_its_signals_method(scripted: Scripted, compressed: bool) -> None:
    made = grpc_upstream(scripted.target, {"API-Key": "very-secret"}, gzip=compressed)
    for signal in METHODS.values():
        assert made.send(signal, b"\x0a\x01" + signal.encode() * 100) == Answer()
    made.close()
    assert [method for method, _, _ in scripted.came] == list(METHODS)
    _, body, metadata = scripted.came[0]
    assert body == b"\x0a\x01" + b"traces" * 100
    assert metadata["api-key"] == "very-secret"
    assert metadata["user-agent"].startswith("spangrade-agent/")


_RETRYABLE = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS,
}
_OTHER = {
    grpc.StatusCode.RESOURCE_EXHAUSTED: Kind.TOO_LARGE,
    grpc.StatusCode.UNIMPLEMENTED: Kind.UNIMPLEMENTED,
    grpc.StatusCode.UNAUTHENTICATED: Kind.UNAUTHORIZED,
    grpc.StatusCode.PERMISSION_DENIED: Kind.UNAUTHORIZED,
}


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_grpc_codes_are_read_as_otlp_has_them(scripted: Scripted, by_grpc: Upstream, code: grpc.StatusCode) -> None:
    scripted.code = code
    kind = Kind.RETRY if code in _RETRYABLE else _OTHER.get(code, Kind.BAD)
    assert by_grpc.send("traces", b"") == Answer(kind, f"{code.name}: key *** is bad")
    assert len(scripted.came) == 1


@pytest.mark.parametrize("code", [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE])
def test_retry_info_is_honoured(scripted: Scripted, by_grpc: Upstream, code: grpc.StatusCode) -> None:
    status = Status(code=code.value[0])
    status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=4)))
    scripted.code, scripted.trailers = code, (("grpc-status-details-bin", status.SerializeToString()),)
    answer = by_grpc.send("traces", b"")
    assert (answer.kind, answer.retry_after_s) == (Kind.RETRY, 4.0)


def test_partial_success_over_grpc(scripted: Scripted, by_grpc: Upstream) -> None:
    partial = ExportTraceServiceResponse()
    partial.partial_success.rejected_spans = 3
    partial.partial_success.error_message = "why"
    scripted.answer = partial.SerializeToString()
    assert by_grpc.send("traces", b"") == Answer(Kind.OK, "why", 3)


def test_a_closed_channel_means_again(by_grpc: Upstream) -> None:
    by_grpc.close()
    assert by_grpc.send("traces", b"").kind is Kind.RETRY


# --- choosing, and what cannot work ----------------------------------------------------------------------------------


def test_the_protocol_is_chosen_by_port_unless_it_is_said() -> None:
    names = [
        type(make_upstream(endpoint, protocol)).__name__
        for endpoint, protocol in (
            ("http://h:4317", None),
            ("h:4317", None),
            ("http://h:4318", None),
            ("https://h", None),
            ("http://h:4317", "http/protobuf"),
            ("http://h:4318", "grpc"),
        )
    ]
    assert [name.strip("_")[:4] for name in names] == ["Grpc", "Grpc", "Http", "Http", "Http", "Grpc"]


@pytest.mark.parametrize("endpoint", ["", "ftp://h:1", "http://", "http://h:port", "http://[::1"])
def test_what_is_no_url_is_named(endpoint: str) -> None:
    with pytest.raises(ConfigError, match=r"http://localhost:4318"):
        make_upstream(endpoint)


def test_settings_that_cannot_work_are_named_without_their_secrets() -> None:
    with pytest.raises(ConfigError, match=r"http/json.*use grpc or http/protobuf"):
        make_upstream("http://h", "http/json")
    with pytest.raises(ConfigError, match="'api-key'") as caught:
        make_upstream("http://h", headers={"api-key": "secret\n"})
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match="header name"):
        make_upstream("http://h", headers={"api key": "x"})
    with pytest.raises(ConfigError) as caught:
        make_upstream("ftp://me:secret@h?key=secret")
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"tls\.ca '/nowhere'"):
        ClientTls(ca="/nowhere")
    with pytest.raises(ConfigError, match="go together"):
        ClientTls(cert=__file__)


# --- our own two ends together -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_an_answer_passes_from_agent_to_agent_as_it_was(protocol: str) -> None:
    ends = Recorder()
    receiver: Any = GrpcReceiver(ends, "127.0.0.1:0") if protocol == "grpc" else None
    receiver = receiver or HttpServer(otlp_app(ends), "127.0.0.1:0", "otlp-http")
    made = make_upstream(f"http://127.0.0.1:{receiver.start()}", protocol)
    try:
        for answer in (
            Answer(),
            Answer(Kind.OK, "two were bad", 2),
            Answer(Kind.BAD, "x"),
            Answer(Kind.TOO_LARGE, "x"),
            Answer(Kind.UNAUTHORIZED, "x"),
            Answer(Kind.UNIMPLEMENTED, "x"),
            Answer(Kind.RETRY, "x", retry_after_s=3.0),
        ):
            ends.answer = answer
            got = made.send("traces", b"")
            assert (got.kind, got.rejected, got.retry_after_s) == (answer.kind, answer.rejected, answer.retry_after_s)
            assert got.message.endswith(answer.message)
    finally:
        made.close()
        receiver.stop(0)


@needs_openssl
@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_tls_on_both_sides(tmp_path: Path, protocol: str) -> None:
    made = make_certificate(tmp_path)
    cert, key = made.cert, made.key
    tls = ServerTls(cert, key, cert)
    receiver: Any = GrpcReceiver(Recorder(), "127.0.0.1:0", tls) if protocol == "grpc" else None
    receiver = receiver or HttpServer(otlp_app(Recorder()), "127.0.0.1:0", "otlp-http", tls)
    url = f"https://localhost:{receiver.start()}"
    try:
        for client, kind in (
            (ClientTls(cert, cert, key), Kind.OK),
            (ClientTls(cert), Kind.RETRY),
            (None, Kind.RETRY),
        ):
            upstream = make_upstream(url, protocol, tls=client)
            assert upstream.send("traces", b"").kind is kind
            upstream.close()
    finally:
        receiver.stop(0)
