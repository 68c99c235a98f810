"""OTLP exporters by endpoint and environment, and whether a destination takes logs."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any, Final
from urllib.parse import urlsplit

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spangrade._log import once
from spangrade.delivery.exporter_lines import few_lines, listen
from spangrade.delivery.log_events import NO_LOGS_HERE, GatedExporter
from spangrade.errors import ConfigError
from spangrade.otel.per_process import ProcessLogExporter, ProcessSpanExporter

GRPC: Final = "grpc"
HTTP: Final = "http/protobuf"
MAX_SECONDS: Final = 300.0
_SIGNALS: Final = ("traces", "logs")


def endpoint_of(signal: str, given: str | None) -> str | None:
    """The endpoint said by argument or environment (the signal's own variable wins); None: OTLP's default."""
    return given or _said(signal, "ENDPOINT") or None


def _said(signal: str, what: str) -> str:
    """A variable of the signal's own, else of all signals; empty or blank means unset."""
    return (
        os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_{what}", "").strip()
        or os.environ.get(f"OTEL_EXPORTER_OTLP_{what}", "").strip()
    )


def protocol_of(signal: str, endpoint: str | None) -> str:
    """``grpc`` or ``http/protobuf``: by ``OTEL_EXPORTER_OTLP_PROTOCOL``, else grpc on port 4317, else http/protobuf (the
    specification's default).

    Raises:
        ConfigError: for another protocol.
    """
    said = _said(signal, "PROTOCOL").lower()
    if said:
        if said not in (GRPC, HTTP):
            raise ConfigError(f"OTEL_EXPORTER_OTLP_PROTOCOL {said!r} is not supported here; use grpc or http/protobuf")
        return said
    return GRPC if endpoint and _parsed(endpoint).port == 4317 else HTTP


def checked(signal: str, given: str | None) -> str:
    """The protocol, once what the environment says of exporting a signal is no nonsense: the SDK's exporters take some of
    that in silence and fail at every export, and raise a bare ValueError for the rest.

    Raises:
        ConfigError: a protocol, an endpoint or a time limit that cannot be meant; it names the variable.
    """
    endpoint = endpoint_of(signal, given)
    protocol = protocol_of(signal, endpoint)
    if endpoint is not None:
        _parsed(endpoint)
    said = _said(signal, "TIMEOUT")
    if said and not _is_time(said):
        raise ConfigError(f"OTEL_EXPORTER_OTLP_TIMEOUT, or the one for {signal}: {said!r} is not a number above 0")
    return protocol


def time_limit(signal: str) -> float:
    """Seconds that one request to a destination may take; default 10.

    ``OTEL_EXPORTER_OTLP_TIMEOUT`` is in milliseconds by the specification and in seconds for the Python SDK. It is read as the
    SDK reads it, so that all exporters of a process agree, up to `MAX_SECONDS`; nobody lets an export take longer than that,
    so a larger number is one of milliseconds, which is said once.
    """
    said = float(_said(signal, "TIMEOUT") or 10)
    if said <= MAX_SECONDS:
        return said
    once(
        f"otlp.timeout.{said:g}",
        f"OTEL_EXPORTER_OTLP_TIMEOUT={said:g} is read as {said / 1000:g} seconds: the OpenTelemetry specification counts "
        f"in milliseconds. The Python SDK counts in seconds, so its own exporters would wait {said:g} seconds. Write "
        "seconds up to 300, which is read the same by both",
    )
    return said / 1000


def _is_time(said: str) -> bool:
    try:
        return 0 < float(said) < math.inf
    except ValueError:
        return False


def _parsed(endpoint: str) -> Any:
    try:
        parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
        _ = parts.port
    except ValueError as fault:
        raise ConfigError(f"endpoint {endpoint!r} is not a URL such as http://localhost:4318: {fault}") from fault
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"endpoint {endpoint!r} is not a URL such as http://localhost:4318")
    return parts


def _url(signal: str, given: str | None) -> str | None:
    """The signal's full URL for OTLP/HTTP where an endpoint was given as argument; the exporter reads the environment."""
    if given is None and endpoint_of(signal, None):
        return None
    given = given or "http://localhost:4318"  # not left to the exporter, for which an empty variable is an address
    parts = _parsed(given)
    base = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
    for other in _SIGNALS:
        base = base.removesuffix(f"/v1/{other}")
    return f"{base}/v1/{signal}"


def span_exporter(endpoint: str | None) -> SpanExporter:
    """OTLP for spans; without an endpoint that was said in code, another exporter if ``OTEL_TRACES_EXPORTER`` names one.

    Raises:
        ConfigError: ``OTEL_TRACES_EXPORTER`` names an exporter that is not installed, or several; or see `checked`.
    """
    named = os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() or "otlp"
    if endpoint is None and named not in ("otlp", "spangrade"):  # ours is OTLP with scores, which this is already
        return _named_exporter(named)
    if checked("traces", endpoint) == GRPC:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

        arguments = _grpc_arguments("traces", endpoint)
        with _in_words():
            return _SpanExporter(lambda: GrpcExporter(**arguments))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    url, limit = _url("traces", endpoint), time_limit("traces")
    with _in_words():
        return _SpanExporter(lambda: OTLPSpanExporter(endpoint=url, timeout=limit))


class _SpanExporter(ProcessSpanExporter):
    def __init__(self, make: Callable[[], SpanExporter]) -> None:
        super().__init__(make)
        listen()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with few_lines():
            return super().export(spans)

    def shutdown(self) -> None:
        with few_lines():
            super().shutdown()


class _LogExporter(ProcessLogExporter):
    def __init__(self, make: Callable[[], LogRecordExporter]) -> None:
        super().__init__(make)
        listen()

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        with few_lines():
            return super().export(batch)

    def shutdown(self) -> None:
        with few_lines():
            super().shutdown()


@contextmanager
def _in_words() -> Iterator[None]:
    """What else an exporter of the SDK refuses when it is made (a compression, a certificate that is not there)."""
    try:
        yield
    except Exception as fault:
        raise ConfigError(f"OTEL_EXPORTER_OTLP_*: the exporter refuses what the environment says: {fault}") from fault


def _named_exporter(name: str) -> SpanExporter:
    if name == "none":
        return _NoExporter()
    found = list(entry_points(group="opentelemetry_traces_exporter", name=name))
    if not found:
        raise ConfigError(f"OTEL_TRACES_EXPORTER {name!r} is not an installed exporter; use otlp, console or none")
    exporter: SpanExporter = found[0].load()()
    return exporter


class _NoExporter(SpanExporter):
    """``OTEL_TRACES_EXPORTER=none``: spans end here."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002
        return SpanExportResult.SUCCESS


def logs_wanted() -> bool:
    """False for ``OTEL_LOGS_EXPORTER=none``: no log events then."""
    return os.environ.get("OTEL_LOGS_EXPORTER", "otlp").strip().lower() != "none"


def _grpc_arguments(signal: str, endpoint: str | None) -> dict[str, Any]:
    limit = time_limit(signal)
    if endpoint is None and endpoint_of(signal, None):
        return {"timeout": limit}  # the rest the exporter reads itself, with all that the environment says beside it
    # Not left to the exporter, for which an empty variable is an address.
    parts = _parsed(endpoint or "http://localhost:4317")
    return {"endpoint": f"{parts.scheme}://{parts.netloc}", "insecure": parts.scheme != "https", "timeout": limit}


def log_exporter(endpoint: str | None) -> GatedExporter:
    """OTLP for score log events, behind a gate that closes where no logs are taken."""
    where = endpoint_of("logs", endpoint)
    if checked("logs", endpoint) == GRPC:
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcExporter

        arguments = _grpc_arguments("logs", endpoint)
        with _in_words():
            inner = _LogExporter(lambda: GrpcExporter(**arguments))
        return GatedExporter(inner, lambda: _grpc_takes_logs(where or "http://localhost:4317"))

    import requests
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

    last: list[int] = [0]
    url, limit = _url("logs", endpoint), time_limit("logs")

    def make() -> LogRecordExporter:
        session = requests.Session()  # the exporter takes one; its hook is the public way to see a status
        session.hooks["response"].append(lambda response, **_: last.__setitem__(0, response.status_code))
        return OTLPLogExporter(endpoint=url, session=session, timeout=limit)

    with _in_words():
        exporter = _LogExporter(make)
    return GatedExporter(exporter, lambda: last[0] not in NO_LOGS_HERE)


def _grpc_takes_logs(endpoint: str) -> bool:
    """Ask with an empty request (which OTLP answers with success): UNIMPLEMENTED means that no logs are taken here."""
    import grpc

    parts = _parsed(endpoint)
    secure = parts.scheme == "https"
    channel = (
        grpc.secure_channel(parts.netloc, grpc.ssl_channel_credentials())
        if secure
        else grpc.insecure_channel(parts.netloc)
    )
    try:
        export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
        )
        export(b"", timeout=2.0)
    except grpc.RpcError as fault:
        return bool(fault.code() is not grpc.StatusCode.UNIMPLEMENTED)
    finally:
        channel.close()
    return True
