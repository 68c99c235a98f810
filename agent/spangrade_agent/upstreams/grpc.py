"""OTLP/gRPC out: one call for each body, and what its status means."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import SplitResult

import grpc

from spangrade import _guard
from spangrade_agent.receivers.grpc import METHODS
from spangrade_agent.receivers.rpc import clipped, read_partial_success, read_status
from spangrade_agent.upstreams.address import (
    USER_AGENT,
    ClientTls,
    bracketed,
    checked_headers,
    is_loopback,
    parsed,
    without,
)
from spangrade_agent.wire import Answer, Kind, Signal, Upstream

_GRPC_KINDS: Final = {
    **dict.fromkeys(
        (
            grpc.StatusCode.CANCELLED,
            grpc.StatusCode.DEADLINE_EXCEEDED,
            grpc.StatusCode.ABORTED,
            grpc.StatusCode.OUT_OF_RANGE,
            grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.DATA_LOSS,
        ),
        Kind.RETRY,
    ),
    grpc.StatusCode.RESOURCE_EXHAUSTED: Kind.TOO_LARGE,  # RETRY with RetryInfo
    grpc.StatusCode.UNIMPLEMENTED: Kind.UNIMPLEMENTED,
    grpc.StatusCode.UNAUTHENTICATED: Kind.UNAUTHORIZED,
    grpc.StatusCode.PERMISSION_DENIED: Kind.UNAUTHORIZED,
}


def grpc_upstream(
    endpoint: str,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 10.0,
    gzip: bool = False,
    tls: ClientTls | None = None,
) -> Upstream:
    """OTLP/gRPC; TLS where the URL says https. ``timeout_s`` is the deadline of each call.

    Raises:
        ConfigError: as `make_upstream`.
    """
    return _GrpcUpstream(parsed(endpoint), checked_headers(endpoint, headers), timeout_s, gzip, tls or ClientTls())


class _GrpcUpstream:
    def __init__(self, url: SplitResult, headers: dict[str, str], timeout_s: float, gzip: bool, tls: ClientTls) -> None:
        target = f"{bracketed(url)}:{url.port or (443 if url.scheme == 'https' else 4317)}"
        options: list[tuple[str, Any]] = [
            ("grpc.max_send_message_length", -1),
            ("grpc.primary_user_agent", USER_AGENT),
            # gRPC's own waits grow to two minutes; an upstream that is back should be found sooner.
            ("grpc.initial_reconnect_backoff_ms", 250),
            ("grpc.max_reconnect_backoff_ms", 5000),
            ("grpc.enable_http_proxy", 0 if is_loopback(url) else 1),
        ]
        if url.scheme == "https":
            credentials = grpc.ssl_channel_credentials(tls.read("ca"), tls.read("key"), tls.read("cert"))
            self._channel = grpc.secure_channel(target, credentials, options)
        else:
            self._channel = grpc.insecure_channel(target, options)
        # Without (de)serializers bytes go out and come back as they are.
        self._calls: dict[Signal, grpc.UnaryUnaryMultiCallable[bytes, bytes]] = {
            signal: self._channel.unary_unary(path) for path, signal in METHODS.items()
        }
        self._metadata = tuple((name.lower(), value) for name, value in headers.items())
        self._secrets = tuple(headers.values())
        self._timeout_s = timeout_s
        self._compression = grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression

    def send(self, signal: Signal, body: bytes) -> Answer:
        try:
            answer = self._calls[signal](
                body, timeout=self._timeout_s, metadata=self._metadata, compression=self._compression
            )
            rejected, message = read_partial_success(answer)
            return Answer(Kind.OK, without(self._secrets, message), rejected)
        except grpc.RpcError as fault:
            return _grpc_answer(fault, self._secrets)
        except ValueError as fault:  # the channel is closed
            return Answer(Kind.RETRY, clipped(str(fault)))
        except Exception as fault:  # noqa: BLE001 - "never raises" is the contract
            _guard.swallowed("upstreams.grpc", fault)
            return Answer(Kind.RETRY, "the agent had a fault of its own")

    def close(self) -> None:
        self._channel.close()


def _grpc_answer(fault: Any, secrets: tuple[str, ...]) -> Answer:
    # What a call raises is a Call too, with code(), details() and trailing_metadata(); its type says RpcError only.
    code: grpc.StatusCode = fault.code()
    kind = _GRPC_KINDS.get(code, Kind.BAD)
    retry = None
    if kind in (Kind.RETRY, Kind.TOO_LARGE):
        for name, value in fault.trailing_metadata() or ():
            if name == "grpc-status-details-bin":
                retry = read_status(value)[1]
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and retry is not None:
        kind = Kind.RETRY
    message = f"{code.name}: {clipped(fault.details() or '')}".removesuffix(": ")
    return Answer(kind, without(secrets, message), retry_after_s=retry)
