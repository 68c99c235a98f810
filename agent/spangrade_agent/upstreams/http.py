"""OTLP/HTTP out: one POST for each body, and what its answer means."""

import gzip as gzip_module
import json
import math
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import SplitResult

import urllib3

from spangrade import _guard
from spangrade_agent.receivers.rpc import clipped, read_partial_success, read_status
from spangrade_agent.upstreams.address import USER_AGENT, ClientTls, checked_headers, parsed, proxy_for, without
from spangrade_agent.wire import SIGNALS, Answer, Kind, Signal, Upstream

_MAX_ANSWER: Final = 4 * 1024 * 1024  # OTLP: answers should be no longer
_POOL: Final = 64  # connections kept per upstream: as many as the receivers have threads, and some
_HTTP_KINDS: Final = {
    **dict.fromkeys((429, 502, 503, 504), Kind.RETRY),
    **dict.fromkeys((404, 405, 501), Kind.UNIMPLEMENTED),
    **dict.fromkeys((401, 403), Kind.UNAUTHORIZED),
    413: Kind.TOO_LARGE,
}


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
    return _HttpUpstream(parsed(endpoint), checked_headers(endpoint, headers), timeout_s, gzip, tls or ClientTls())


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
        proxy = proxy_for(url)
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
            return Answer(Kind.RETRY, without(self._secrets, clipped(f"no answer: {_cause(fault)}")))
        except Exception as fault:  # noqa: BLE001 - "never raises" is the contract
            _guard.swallowed("upstreams.http", fault)
            return Answer(Kind.RETRY, "the agent had a fault of its own")

    def close(self) -> None:
        self._pool.clear()


def _http_answer(status: int, headers: Mapping[str, str], body: bytes, secrets: tuple[str, ...]) -> Answer:
    as_json = headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
    if 200 <= status < 300:
        rejected, message = _json_partial(body) if as_json else read_partial_success(body)
        return Answer(Kind.OK, without(secrets, message), rejected)
    kind = _HTTP_KINDS.get(status, Kind.BAD)
    message = (_json_message(body) if as_json else read_status(body)[0]) or clipped(body)
    retry = _retry_after(headers.get("retry-after"), time.time) if kind is Kind.RETRY else None
    return Answer(kind, without(secrets, f"HTTP {status}: {message}".removesuffix(": ")), retry_after_s=retry)


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


def _cause(fault: BaseException) -> str:
    # urllib3's own texts may name the URL, whose query may hold a key; what it wraps does not.
    wrapped = (*fault.args, getattr(fault, "reason", None), fault.__cause__)
    inner = next((each for each in wrapped if isinstance(each, Exception) and each is not fault), None)
    if inner is None or isinstance(inner, urllib3.exceptions.HTTPError):
        return type(fault).__name__
    return f"{type(fault).__name__}: {getattr(inner, 'strerror', None) or inner}"
