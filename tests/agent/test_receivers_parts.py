"""The receivers' small parts: inflating within a limit, addresses, google.rpc on the wire, the shared bound."""

import gzip
import socket
import zlib

import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import DebugInfo, RetryInfo
from google.rpc.status_pb2 import Status
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from spangrade.errors import ConfigError
from spangrade_agent.receivers.inflate import BadGzip, TooLarge, gunzip
from spangrade_agent.receivers.listen import ServerTls, bind, parse_listen, token_fits
from spangrade_agent.receivers.room import Full, Room
from spangrade_agent.receivers.rpc import clipped, read_partial_success, read_status, status_with_retry

# --- gzip ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=5), st.booleans())
def test_gunzip_reads_what_gzip_wrote_in_one_member_or_several(parts: list[bytes], padded: bool) -> None:
    body = b"".join(gzip.compress(part) for part in parts) + (b"\0" * 30 if padded else b"")
    assert gunzip(body, 100_000) == b"".join(parts)


def test_gunzip_takes_large_bodies_whose_pieces_do_not_fall_on_boundaries() -> None:
    plain = zlib.compress(bytes(range(256)) * 20_000, 0) * 2  # ten megabytes that compress badly
    body = gzip.compress(plain[:3_333_333], 1) + gzip.compress(plain[3_333_333:], 9)
    assert gunzip(body, len(plain)) == plain


@pytest.mark.parametrize("over", [0, 1])
def test_the_limit_is_exact(over: int) -> None:
    body = gzip.compress(b"x" * 5_000_000)
    if over:
        with pytest.raises(TooLarge):
            gunzip(body, 5_000_000 - over)
    else:
        assert len(gunzip(body, 5_000_000)) == 5_000_000


def test_a_bomb_that_lies_about_its_size_is_charged_for_no_more_than_the_limit() -> None:
    bomb = bytearray(gzip.compress(b"0" * 50_000_000))
    bomb[-4:] = (10).to_bytes(4, "little")
    charged: list[int] = []
    with pytest.raises(TooLarge):
        gunzip(bytes(bomb), 4_000_000, charged.append)
    assert sum(charged) <= 4_000_000


def test_what_charge_raises_ends_it() -> None:
    def full(_size: int) -> None:
        raise Full

    with pytest.raises(Full):
        gunzip(gzip.compress(b"x"), 10, full)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        gzip.compress(b"hello")[:-10],
        gzip.compress(b"hello")[:-1],
        gzip.compress(b"hello")[:5],
        gzip.compress(b"hello") + b"trailing",
        gzip.compress(b"hello")[:-8] + b"\0" * 8,
        b"\x1f\x8b" + b"\xff" * 50,
        gzip.compress(b"") * 3000,
    ],
    ids=["empty", "json", "cut", "cut by one", "head", "trailing", "bad crc", "noise", "thousands of members"],
)
def test_what_is_no_gzip_says_so(body: bytes) -> None:
    with pytest.raises(BadGzip):
        gunzip(body, 1000)


@given(st.binary(max_size=200), st.integers(0, 40))
def test_corrupt_gzip_never_raises_anything_else(noise: bytes, at: int) -> None:
    good = gzip.compress(b"some text to begin with")
    try:
        assert len(gunzip(good[:at] + noise + good[at:], 1000)) <= 1000
    except (BadGzip, TooLarge):
        pass


# --- addresses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listen", "host", "port"),
    [("127.0.0.1:4317", "127.0.0.1", 4317), ("[::1]:0", "::1", 0), (":4318", "0.0.0.0", 4318), ("a.b:1", "a.b", 1)],
)
def test_addresses_are_read(listen: str, host: str, port: int) -> None:
    assert parse_listen(listen) == (host, port)


@pytest.mark.parametrize("listen", ["", "4317", "localhost", "host:port", "::1:4317", "h:70000", "h:-1", "http://h:1"])
def test_what_is_no_address_is_named_with_what_would_be_right(listen: str) -> None:
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:4318") as caught:
        parse_listen(listen)
    assert repr(listen) in str(caught.value)


def test_a_busy_address_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ConfigError, match="in use") as caught:
            bind(listen, "the page")
    assert listen in str(caught.value)
    assert "the page" in str(caught.value)


@pytest.mark.parametrize(
    ("listen", "why"), [("192.0.2.1:0", "not an address of this machine"), ("no.such.host.invalid:0", "not known")]
)
def test_an_address_of_elsewhere_is_named(listen: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        bind(listen, "the page")


def test_localhost_is_bound_in_every_family_on_one_port() -> None:
    sockets = bind("localhost:0", "the page")
    try:
        assert len({sock.getsockname()[1] for sock in sockets}) == 1
        assert len({sock.family for sock in sockets}) == len(sockets)
    finally:
        for sock in sockets:
            sock.close()


def test_tls_files_that_are_missing_are_named(tmp_path: object) -> None:
    with pytest.raises(ConfigError, match=r"tls\.cert '/nowhere/cert\.pem'"):
        ServerTls("/nowhere/cert.pem", "/nowhere/key.pem").context()


def test_tls_files_that_hold_something_else_are_named() -> None:
    with pytest.raises(ConfigError, match="not a PEM certificate"):
        ServerTls(__file__, __file__).context()


def test_a_token_fits_whatever_the_case_of_its_scheme() -> None:
    assert token_fits(b"Bearer secret", "secret")
    assert token_fits("bearer  secret ", "secret")
    for wrong in (None, b"", b"secret", b"Basic secret", b"Bearer secre", b"Bearer", "Bearer \udcff"):
        assert not token_fits(wrong, "secret")


# --- google.rpc ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 16), st.text(max_size=50), st.floats(0, 1e6))
def test_status_with_retry_is_google_rpc(code: int, message: str, seconds: float) -> None:
    status = Status.FromString(status_with_retry(code, message, seconds))
    info = RetryInfo()
    assert (status.code, status.message) == (code, message.encode("utf-8", "replace").decode())
    assert status.details[0].Unpack(info)
    assert info.retry_delay.ToNanoseconds() / 1e9 == pytest.approx(seconds, abs=1e-9)


def test_status_is_read_among_other_details() -> None:
    status = Status(code=8, message="slow down\nplease")
    status.details.add().Pack(DebugInfo(detail="x"))
    assert read_status(status.SerializeToString()) == ("slow down please", None)
    status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=2, nanos=500_000_000)))
    assert read_status(status.SerializeToString()) == ("slow down please", 2.5)


def test_a_retry_info_without_or_with_negative_delay_means_at_once() -> None:
    for info in (RetryInfo(), RetryInfo(retry_delay=Duration(seconds=-5))):
        status = Status(code=14)
        status.details.add().Pack(info)
        assert read_status(status.SerializeToString())[1] == 0.0


def test_partial_success_of_every_signal_is_read() -> None:
    traces, logs, metrics = ExportTraceServiceResponse(), ExportLogsServiceResponse(), ExportMetricsServiceResponse()
    traces.partial_success.rejected_spans = 3
    logs.partial_success.rejected_log_records = 3
    metrics.partial_success.rejected_data_points = 3
    for answer in (traces, logs, metrics):
        answer.partial_success.error_message = "too old"
        assert read_partial_success(answer.SerializeToString()) == (3, "too old")
    assert read_partial_success(b"") == (0, "")
    traces.partial_success.rejected_spans = -1
    assert read_partial_success(traces.SerializeToString())[0] == 0


@given(st.binary(max_size=100))
def test_noise_is_no_answer_and_no_fault(noise: bytes) -> None:
    rejected, message = read_partial_success(noise)
    assert rejected >= 0
    assert isinstance(message, str)
    assert isinstance(read_status(noise)[0], str)


def test_a_peers_words_are_short_and_on_one_line() -> None:
    assert clipped(b"a\r\n\x1b[31mb\xff") == "a [31mb\ufffd"
    assert len(clipped("x" * 10_000)) == 300


# --- the shared bound ----------------------------------------------------------------------------------------------


def test_a_ticket_gives_back_what_it_took_once() -> None:
    room = Room(1, 100)
    read, worked = room.ticket(), room.ticket()
    read.charge(60)
    worked.charge(40)
    with pytest.raises(Full):
        worked.charge(1)
    worked.enter()
    assert room.full
    with pytest.raises(Full):
        read.enter()
    read.done_reading()
    worked.done_reading()
    assert room.held == (1, 40)
    worked.leave()
    worked.done_reading()
    assert room.held == (0, 0)
