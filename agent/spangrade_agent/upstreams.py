"""Where encoded requests go: OTLP/HTTP or OTLP/gRPC, one attempt each, the outcome told in OTLP's words.

Retries are the queue's (`forward`) or the sender's; nothing is tried twice here.
"""

import base64
import gzip as gzip_module
import ipaddress
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

import grpc
import urllib3

from spangrade import _guard
from spangrade._version import __version__
from spangrade.errors import ConfigError
from spangrade_agent.receivers.grpc import METHODS
from spangrade_agent.receivers.rpc import clipped, read_partial_success, read_status
from spangrade_agent.wire import SIGNALS, Answer, Kind, Signal, Upstream

Protocol = Literal["grpc", "http/protobuf"]
USER_AGENT: Final = f"spangrade-agent/{__version__}"
_MAX_ANSWER: Final = 4 * 1024 * 1024  # OTLP: answers should be no longer
_POOL: Final = 64  # connections kept per upstream: as many as the receivers have threads, and some
_HTTP_KINDS: Final = {
    **dict.fromkeys((429, 502, 503, 504), Kind.RETRY),
    **dict.fromkeys((404, 405, 501), Kind.UNIMPLEMENTED),
    **dict.fromkeys((401, 403), Kind.UNAUTHORIZED),
    413: Kind.TOO_LARGE,
}
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


@dataclass(frozen=True, slots=True)
class ClientTls:
    """PEM files for https: ``ca`` in place of the machine's authorities; ``cert`` and ``key`` where the server asks (mTLS)."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise ConfigError("tls: cert and key go together; give both or neither")
        for name in ("ca", "cert", "key"):
            self.read(name)

    def read(self, name: str) -> bytes | None:
        """The content of one of the files. ConfigError when it cannot be read."""
        path = getattr(self, name)
        try:
            return None if path is None else Path(path).read_bytes()
        except OSError as fault:
            raise ConfigError(f"tls.{name} {path!r} cannot be read: {fault.strerror}; give a PEM file") from fault


def make_upstream(
    endpoint: str,
    protocol: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 10.0,
    gzip: bool = False,
    tls: ClientTls | None = None,
) -> Upstream:
    """An upstream for ``endpoint`` (a URL; ``http`` where it has no scheme).

    ``protocol``: ``grpc`` or ``http/protobuf``; without, gRPC on port 4317 and HTTP elsewhere.

    Raises:
        ConfigError: no URL, another protocol, a header that cannot be sent, a TLS file that cannot be read.
    """
    if protocol not in (None, "grpc", "http", "http/protobuf"):
        raise ConfigError(f"protocol {protocol!r} is not supported; use grpc or http/protobuf")
    by_grpc = protocol == "grpc" or (protocol is None and _parsed(endpoint).port == 4317)
    make = grpc_upstream if by_grpc else http_upstream
    return make(endpoint, headers, timeout_s, gzip, tls)


def http_upstream(
    endpoint: str,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 10.0,
    gzip: bool = False,
    tls: ClientTls | None = None,
) -> Upstream:
    """OTLP/HTTP, protobuf, to ``{endpoint}/v1/<signal>``. ``timeout_s`` bounds connecting, and each wait for the answer.

    Raises:
        ConfigError: as `make_upstream`.
    """
    return _HttpUpstream(_parsed(endpoint), _headers(endpoint, headers), timeout_s, gzip, tls or ClientTls())


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
    return _GrpcUpstream(_parsed(endpoint), _headers(endpoint, headers), timeout_s, gzip, tls or ClientTls())


class _HttpUpstream:
    def __init__(self, url: SplitResult, headers: dict[str, str], timeout_s: float, gzip: bool, tls: ClientTls) -> None:
        path = url.path.rstrip("/")
        for signal in SIGNALS:  # a whole signal's URL is taken too, as it stands in many a manual
            path = path.removesuffix(f"/v1/{signal}")
        host = url.netloc.rpartition("@")[2]
        query = f"?{url.query}" if url.query else ""
        self._urls = {signal: f"{url.scheme}://{host}{path}/v1/{signal}{query}" for signal in SIGNALS}
        self._secrets = tuple(headers.values())
        self._headers = {"user-agent": USER_AGENT, **headers, "content-type": "application/x-protobuf"}
        self._gzip = gzip
        if gzip:
            self._headers["content-encoding"] = "gzip"
        options: dict[str, Any] = {
            "maxsize": _POOL,
            "retries": False,
            "timeout": urllib3.Timeout(connect=timeout_s, read=timeout_s),
        }
        if url.scheme == "https":
            options |= {"ca_certs": tls.ca, "cert_file": tls.cert, "key_file": tls.key}
        proxy = _proxy(url)
        self._pool = urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)

    def send(self, signal: Signal, body: bytes) -> Answer:
        try:
            sent = gzip_module.compress(body, 1, mtime=0) if self._gzip else body
            response = self._pool.request(
                "POST",
                self._urls[signal],
                body=sent,
                headers=self._headers,
                redirect=False,  # a POST that is sent elsewhere is a setting to be put right
                preload_content=False,
            )
            try:
                answer = response.read(_MAX_ANSWER, decode_content=True)
            except BaseException:
                response.close()  # what is left in it must not be read as the next answer
                raise
            (response.drain_conn if len(answer) < _MAX_ANSWER else response.close)()
            response.release_conn()
            return _http_answer(response.status, response.headers, answer, self._secrets)
        except (urllib3.exceptions.HTTPError, OSError) as fault:
            return Answer(Kind.RETRY, _without(self._secrets, clipped(f"no answer: {_cause(fault)}")))
        except Exception as fault:  # noqa: BLE001 - "never raises" is the contract
            _guard.swallowed("upstreams.http", fault)
            return Answer(Kind.RETRY, "the agent had a fault of its own")

    def close(self) -> None:
        self._pool.clear()


def _http_answer(status: int, headers: Mapping[str, str], body: bytes, secrets: tuple[str, ...]) -> Answer:
    as_json = headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
    if 200 <= status < 300:
        rejected, message = _json_partial(body) if as_json else read_partial_success(body)
        return Answer(Kind.OK, _without(secrets, message), rejected)
    kind = _HTTP_KINDS.get(status, Kind.BAD)
    message = (_json_message(body) if as_json else read_status(body)[0]) or clipped(body)
    retry = _retry_after(headers.get("retry-after"), time.time) if kind is Kind.RETRY else None
    return Answer(kind, _without(secrets, f"HTTP {status}: {message}".removesuffix(": ")), retry_after_s=retry)


def _retry_after(value: str | None, now: Callable[[], float]) -> float | None:
    """Seconds until the time that ``Retry-After`` names, as a number or a date; None where it names none."""
    if value is None:
        return None
    try:
        seconds = float(value) if value.strip()[:1].isdigit() else parsedate_to_datetime(value).timestamp() - now()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _json_partial(body: bytes) -> tuple[int, str]:
    partial = _json(body).get("partialSuccess")
    if not isinstance(partial, dict):
        return 0, ""
    counts = (str(partial.get(key, "")) for key in ("rejectedSpans", "rejectedLogRecords", "rejectedDataPoints"))
    message = partial.get("errorMessage")
    rejected = next((int(count) for count in counts if count.isdecimal() and len(count) < 20), 0)
    return rejected, clipped(message) if isinstance(message, str) else ""


def _json_message(body: bytes) -> str:
    message = _json(body).get("message")
    return clipped(message) if isinstance(message, str) else ""


def _json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class _GrpcUpstream:
    def __init__(self, url: SplitResult, headers: dict[str, str], timeout_s: float, gzip: bool, tls: ClientTls) -> None:
        target = f"{_bracketed(url)}:{url.port or (443 if url.scheme == 'https' else 4317)}"
        options: list[tuple[str, Any]] = [
            ("grpc.max_send_message_length", -1),
            ("grpc.primary_user_agent", USER_AGENT),
            # gRPC's own waits grow to two minutes; an upstream that is back should be found sooner.
            ("grpc.initial_reconnect_backoff_ms", 250),
            ("grpc.max_reconnect_backoff_ms", 5000),
            ("grpc.enable_http_proxy", 0 if _loopback(url) else 1),
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
            return Answer(Kind.OK, _without(self._secrets, message), rejected)
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
    return Answer(kind, _without(secrets, message), retry_after_s=retry)


def _parsed(endpoint: str) -> SplitResult:
    try:
        parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
        _ = parts.port
    except ValueError as fault:
        raise ConfigError(
            f"endpoint {_shown(endpoint)!r} is not a URL such as http://localhost:4318: {fault}"
        ) from fault
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"endpoint {_shown(endpoint)!r} is not a URL such as http://localhost:4318")
    return parts


def _shown(endpoint: str) -> str:
    scheme, there, rest = endpoint.rpartition("://")
    return f"{scheme}{there}{rest.rpartition('@')[2].partition('?')[0]}"  # no password, no key in the query


def _headers(endpoint: str, given: Mapping[str, str] | None) -> dict[str, str]:
    """``given``, with the URL's user and password as basic authorization.

    Raises:
        ConfigError: a name or value that no header may have; the value is not shown.
    """
    headers = dict(given or {})
    url = _parsed(endpoint)
    if url.username and not any(name.lower() == "authorization" for name in headers):
        pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    for name, value in headers.items():
        if not name or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in name):
            raise ConfigError(f"header name {name!r} cannot be sent; use letters, digits, - _ and .")
        if not isinstance(value, str) or not (value.isascii() and (value.isprintable() or not value)):
            raise ConfigError(f"the value of header {name!r} cannot be sent; it must be one line of ASCII text")
    return headers


def _without(secrets: tuple[str, ...], message: str) -> str:
    """An upstream may repeat what it was sent; keys do not go into our messages."""
    for secret in secrets:
        for part in {secret, secret.rpartition(" ")[2]}:
            if len(part) >= 4:
                message = message.replace(part, "***")
    return message


def _cause(fault: BaseException) -> str:
    # urllib3's own texts may name the URL, whose query may hold a key; what it wraps does not.
    wrapped = (*fault.args, getattr(fault, "reason", None), fault.__cause__)
    inner = next((each for each in wrapped if isinstance(each, Exception) and each is not fault), None)
    if inner is None or isinstance(inner, urllib3.exceptions.HTTPError):
        return type(fault).__name__
    return f"{type(fault).__name__}: {getattr(inner, 'strerror', None) or inner}"


def _bracketed(url: SplitResult) -> str:
    host = url.hostname or ""
    return f"[{host}]" if ":" in host else host


def _loopback(url: SplitResult) -> bool:
    host = (url.hostname or "").lower()
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _proxy(url: SplitResult) -> str | None:
    """The environment's proxy for ``url``; never for this machine itself, whatever NO_PROXY says."""
    if _loopback(url) or proxy_bypass_environment(url.netloc.rpartition("@")[2]):
        return None
    proxies: dict[str, str] = getproxies_environment()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    return proxy if proxy is None or "://" in proxy else f"http://{proxy}"
