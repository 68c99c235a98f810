"""OTLP/gRPC in: raw bytes from the wire to `Ingest`, without a generated servicer (a quarter cheaper, nothing parsed)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NoReturn

import grpc

from spangrade import _guard
from spangrade.errors import ConfigError
from spangrade_agent.codec import response
from spangrade_agent.receivers.inflate import MAGIC, BadGzip, TooLarge, gunzip
from spangrade_agent.receivers.listen import ServerTls, bind, parse_listen, token_fits
from spangrade_agent.receivers.rpc import clipped, status_with_retry
from spangrade_agent.wire import Answer, Ingest, Kind, Signal

METHODS: Final[dict[str, Signal]] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "metrics",
}
_CODES: Final = {
    Kind.BAD: grpc.StatusCode.INVALID_ARGUMENT,
    Kind.TOO_LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,  # without RetryInfo: OTLP's word for "never again"
    Kind.UNAUTHORIZED: grpc.StatusCode.UNAUTHENTICATED,
    Kind.RETRY: grpc.StatusCode.UNAVAILABLE,
    Kind.UNIMPLEMENTED: grpc.StatusCode.UNIMPLEMENTED,
}
_RETRY_S: Final = 1.0  # when the answer does not say
_CONNECTION_STREAMS: Final = 128  # calls open at once on one connection; the client keeps the rest back


class GrpcReceiver:
    """An OTLP/gRPC server for traces, logs and metrics; plain and gzip.

    Args:
        ingest: called on one of ``threads`` threads; what it raises is answered UNAVAILABLE, so the sender keeps its data.
        listen: ``host:port``; port 0 takes any free one.
        tls: certificate and key (and client authority); plaintext without.
        max_bytes: of one message, as sent and inflated; beyond: RESOURCE_EXHAUSTED.
        token: what ``authorization: Bearer`` has to say; not asked for without.
    """

    def __init__(
        self,
        ingest: Ingest,
        listen: str,
        tls: ServerTls | tuple[str, str] | None = None,
        max_bytes: int = 64 * 1024 * 1024,
        *,
        token: str | None = None,
        threads: int = 8,
    ) -> None:
        self._ingest = ingest
        self._listen = listen
        self._tls = ServerTls.of(tls)
        self._max_bytes = max_bytes
        self._token = token
        self._threads = threads
        self._server: grpc.Server | None = None
        self._pool: ThreadPoolExecutor | None = None

    def start(self) -> int:
        """Bind, serve, and return the port.

        Raises:
            ConfigError: the address is in use or no address of this machine, or the TLS files cannot be used.
        """
        host, port = parse_listen(self._listen)
        for probe in bind(self._listen, "the OTLP/gRPC receiver"):  # gRPC itself only says "failed to bind"
            probe.close()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="spangrade-grpc")
        server = grpc.server(self._pool, handlers=[_Methods(self._export)], options=self._options())
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if self._tls is None:
                bound = server.add_insecure_port(address)
            else:
                cert, key, client_ca = self._tls.files()
                self._tls.context()  # says what is wrong with the files; gRPC only logs it
                credentials = grpc.ssl_server_credentials(
                    [(key, cert)], root_certificates=client_ca, require_client_auth=client_ca is not None
                )
                bound = server.add_secure_port(address, credentials)
        except RuntimeError as fault:  # taken between the probe and now
            raise ConfigError(f"the OTLP/gRPC receiver cannot listen on {self._listen!r}: {fault}") from fault
        server.start()
        self._server = server
        return int(bound)

    def stop(self, grace_s: float = 5.0) -> None:
        """Take no more calls, give open ones ``grace_s`` seconds, then cancel them. Again, or unstarted: nothing."""
        server, self._server = self._server, None
        if server is not None:
            server.stop(max(0.0, grace_s)).wait(grace_s + 1.0)
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _options(self) -> list[tuple[str, Any]]:
        return [
            ("grpc.max_receive_message_length", self._max_bytes),
            # gRPC checks the size of what came, not of what it inflates to; so we inflate, within the limit.
            ("grpc.per_message_decompression", 0),
            ("grpc.compression_enabled_algorithms_bitset", 0b101),  # identity and gzip; others: UNIMPLEMENTED
            ("grpc.so_reuseport", 0),  # otherwise a second agent on the port starts, and takes half of the calls
            ("grpc.max_concurrent_streams", _CONNECTION_STREAMS),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),  # Collectors ping every 10 to 30 s when told to
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 1),
        ]

    def _export(self, signal: Signal, body: bytes, context: grpc.ServicerContext) -> bytes:
        if self._token is not None and not self._authorized(context):
            _fail(context, Answer(Kind.UNAUTHORIZED, "a bearer token is needed"))
        answer = self._answer(signal, body)
        if answer.kind is not Kind.OK:
            _fail(context, answer)
        if not answer.rejected and not answer.message:
            return b""
        return response(signal, "protobuf", answer.rejected, clipped(answer.message))

    def _answer(self, signal: Signal, body: bytes) -> Answer:
        try:
            if body.startswith(MAGIC):
                body = gunzip(body, self._max_bytes)
            return self._ingest.ingest(signal, body, "protobuf")
        except TooLarge:
            return Answer(Kind.TOO_LARGE, f"the request is over {self._max_bytes} bytes when inflated")
        except BadGzip as fault:
            return Answer(Kind.BAD, f"gzip: {fault}")
        except Exception as fault:  # noqa: BLE001 - a fault of ours must not cost the sender its data
            _guard.swallowed("receivers.grpc", fault)
            return Answer(Kind.RETRY, "the agent had a fault of its own")

    def _authorized(self, context: grpc.ServicerContext) -> bool:
        assert self._token is not None
        metadata = context.invocation_metadata() or ()
        return any(token_fits(value, self._token) for key, value in metadata if key == "authorization")


class _Methods(grpc.GenericRpcHandler):
    """The three Export methods; without (de)serializers gRPC hands bytes through."""

    def __init__(self, export: Callable[[Signal, bytes, grpc.ServicerContext], bytes]) -> None:
        self._handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            path: grpc.unary_unary_rpc_method_handler(partial(export, signal)) for path, signal in METHODS.items()
        }

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[bytes, bytes] | None":  # not generic when run
        return self._handlers.get(handler_call_details.method)


def _fail(context: grpc.ServicerContext, answer: Answer) -> NoReturn:
    code = _CODES[answer.kind]
    message = clipped(answer.message)
    if answer.kind is Kind.RETRY:
        after = _RETRY_S if answer.retry_after_s is None else answer.retry_after_s
        details = status_with_retry(int(code.value[0]), message, after)
        context.set_trailing_metadata((("grpc-status-details-bin", details),))
    context.abort(code, message or answer.kind.value)
