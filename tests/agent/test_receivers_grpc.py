"""OTLP/gRPC in, over real sockets: the official exporters, limits, and every answer as OTLP words it."""

import gzip
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)

from spangrade.errors import ConfigError
from spangrade_agent.receivers.grpc import METHODS, GrpcReceiver
from spangrade_agent.receivers.listen import ServerTls
from spangrade_agent.wire import Answer, Encoding, Kind, Signal

from .certificate import make_certificate, needs_openssl
from .recorder import Recorder, assert_all_three_came, send_all_three

TRACES, LOGS, _ = METHODS


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def target(recorder: Recorder) -> Iterator[str]:
    receiver = GrpcReceiver(recorder, "127.0.0.1:0", max_bytes=1_000_000)
    yield f"127.0.0.1:{receiver.start()}"
    receiver.stop(0)


def call(target: str, body: bytes, path: str = TRACES, **options: Any) -> bytes:
    with grpc.insecure_channel(target, [("grpc.max_send_message_length", -1)]) as channel:
        method: Any = channel.unary_unary(path)
        answer: bytes = method(body, timeout=10, **options)
        return answer


def failing(target: str, body: bytes = b"", path: str = TRACES, **options: Any) -> Any:
    with pytest.raises(grpc.RpcError) as caught:
        call(target, body, path, **options)
    return caught.value


def retry_info(fault: Any) -> float | None:
    for key, value in fault.trailing_metadata():
        if key == "grpc-status-details-bin":
            status, info = Status.FromString(value), RetryInfo()
            assert status.code == fault.code().value[0]
            assert status.details[0].Unpack(info)
            return info.retry_delay.ToNanoseconds() / 1e9
    return None


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_the_official_exporters_deliver_all_three_signals(
    recorder: Recorder, target: str, compression: grpc.Compression
) -> None:
    options: dict[str, Any] = {"endpoint": f"http://{target}", "insecure": True, "compression": compression}
    send_all_three(OTLPSpanExporter(**options), OTLPLogExporter(**options), OTLPMetricExporter(**options))
    assert_all_three_came(recorder)


def test_bytes_pass_untouched_and_success_says_nothing(recorder: Recorder, target: str) -> None:
    assert call(target, b"\x0a\x03abc") == b""
    assert call(target, b"") == b""
    assert call(target, b"", LOGS) == b""
    assert recorder.came == [
        ("traces", b"\x0a\x03abc", "protobuf"),
        ("traces", b"", "protobuf"),
        ("logs", b"", "protobuf"),
    ]


def test_partial_success_is_told(recorder: Recorder, target: str) -> None:
    recorder.answer = Answer(Kind.OK, "no trace id", 2)
    partial = ExportTraceServiceResponse.FromString(call(target, b"")).partial_success
    assert (partial.rejected_spans, partial.error_message) == (2, "no trace id")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (Kind.BAD, grpc.StatusCode.INVALID_ARGUMENT),
        (Kind.TOO_LARGE, grpc.StatusCode.RESOURCE_EXHAUSTED),
        (Kind.UNAUTHORIZED, grpc.StatusCode.UNAUTHENTICATED),
        (Kind.UNIMPLEMENTED, grpc.StatusCode.UNIMPLEMENTED),
    ],
)
def test_permanent_answers_carry_no_retry_info(
    recorder: Recorder, target: str, kind: Kind, code: grpc.StatusCode
) -> None:
    recorder.answer = Answer(kind, "because\nof this", retry_after_s=3)
    fault = failing(target)
    assert (fault.code(), fault.details(), retry_info(fault)) == (code, "because of this", None)


def test_retry_names_the_time(recorder: Recorder, target: str) -> None:
    recorder.answer = Answer(Kind.RETRY, "full", retry_after_s=2.5)
    fault = failing(target)
    assert (fault.code(), fault.details(), retry_info(fault)) == (grpc.StatusCode.UNAVAILABLE, "full", 2.5)
    recorder.answer = Answer(Kind.RETRY)
    assert retry_info(failing(target)) == 1.0


def test_a_fault_of_ours_keeps_the_senders_data(
    recorder: Recorder, target: str, swallowed_faults: list[tuple[str, BaseException]]
) -> None:
    recorder.fault = KeyError("secret detail")
    fault = failing(target)
    assert fault.code() is grpc.StatusCode.UNAVAILABLE
    assert "secret" not in fault.details()
    assert retry_info(fault) is not None
    assert [where for where, _ in swallowed_faults] == ["receivers.grpc"]
    swallowed_faults.clear()
    recorder.fault = None
    assert call(target, b"") == b""


def test_other_methods_are_unimplemented(target: str) -> None:
    for path in ("/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", "/x/y"):
        assert failing(target, path=path).code() is grpc.StatusCode.UNIMPLEMENTED


def test_too_large_as_sent_and_as_inflated_is_refused_for_good(recorder: Recorder, target: str) -> None:
    for body, compression in (
        (b"\x0a" + b"x" * 1_000_000, grpc.Compression.NoCompression),
        (b"\x0a" + b"0" * 200_000_000, grpc.Compression.Gzip),
    ):
        fault = failing(target, body, compression=compression)
        assert fault.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert retry_info(fault) is None
    assert recorder.came == []
    assert call(target, b"\x0a" + b"x" * 999_999) == b""


def test_cut_gzip_is_bad_and_other_codings_are_unimplemented(recorder: Recorder, target: str) -> None:
    # Sent uncompressed, so that the bytes are ours to break; to the receiver they look like any gzip.
    assert failing(target, gzip.compress(b"hello")[:-3]).code() is grpc.StatusCode.INVALID_ARGUMENT
    fault = failing(target, b"x" * 5000, compression=grpc.Compression.Deflate)
    assert fault.code() is grpc.StatusCode.UNIMPLEMENTED
    assert recorder.came == []


def test_sixteen_megabytes_are_taken_by_default(recorder: Recorder) -> None:
    receiver = GrpcReceiver(recorder, "127.0.0.1:0")
    try:
        assert call(f"127.0.0.1:{receiver.start()}", b"\x0a" * (16 << 20)) == b""
    finally:
        receiver.stop(0)
    assert len(recorder.came[0][1]) == 16 << 20


def test_a_busy_port_is_named(target: str) -> None:
    with pytest.raises(ConfigError, match=f"OTLP/gRPC.*{target}.*in use"):
        GrpcReceiver(Recorder(), target).start()


def test_a_token_is_asked_for(recorder: Recorder) -> None:
    receiver = GrpcReceiver(recorder, "127.0.0.1:0", token="let me in")
    try:
        target = f"127.0.0.1:{receiver.start()}"
        assert failing(target).code() is grpc.StatusCode.UNAUTHENTICATED
        wrong = failing(target, metadata=(("authorization", "Bearer no"),))
        assert wrong.code() is grpc.StatusCode.UNAUTHENTICATED
        assert recorder.came == []
        assert call(target, b"", metadata=(("authorization", "Bearer let me in"),)) == b""
    finally:
        receiver.stop(0)


def test_stop_lets_an_open_call_end_and_refuses_new_ones() -> None:
    entered, release = threading.Event(), threading.Event()

    class Slow(Recorder):
        def ingest(self, signal: Signal, body: bytes, encoding: Encoding) -> Answer:
            entered.set()
            assert release.wait(10)
            return Answer(Kind.OK, "late")

    receiver = GrpcReceiver(Slow(), "127.0.0.1:0")
    target = f"127.0.0.1:{receiver.start()}"
    answers: list[bytes] = []
    caller = threading.Thread(target=lambda: answers.append(call(target, b"")))
    caller.start()
    assert entered.wait(10)
    stopper = threading.Thread(target=receiver.stop, args=(10,))
    stopper.start()
    release.set()
    stopper.join(10)
    caller.join(10)
    assert ExportTraceServiceResponse.FromString(answers[0]).partial_success.error_message == "late"
    assert failing(target).code() is grpc.StatusCode.UNAVAILABLE
    receiver.stop(0)  # again: nothing


@needs_openssl
def test_tls_with_and_without_a_client_certificate(recorder: Recorder, tmp_path: Path) -> None:
    made = make_certificate(tmp_path)
    one_way: Any = (made.cert, made.key)
    cert, key = Path(made.cert), Path(made.key)
    for tls, client_key, works in (
        (one_way, None, True),
        (ServerTls(*one_way, made.cert), None, False),
        (ServerTls(*one_way, made.cert), key, True),
    ):
        receiver = GrpcReceiver(recorder, "127.0.0.1:0", tls)
        port = receiver.start()
        try:
            own = (key.read_bytes(), cert.read_bytes()) if client_key else (None, None)
            credentials = grpc.ssl_channel_credentials(cert.read_bytes(), *own)
            with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
                method: Any = channel.unary_unary(TRACES)
                if works:
                    assert method(b"", timeout=10) == b""
                else:
                    with pytest.raises(grpc.RpcError):
                        method(b"", timeout=10)
        finally:
            receiver.stop(0)
