"""Where encoded requests go: OTLP/HTTP or OTLP/gRPC, one attempt each, the outcome told in OTLP's words.

Retries are the queue's (`forward`) or the sender's; nothing is tried twice here.
"""

from collections.abc import Mapping

from spangrade.errors import ConfigError
from spangrade_agent.upstreams.address import ClientTls, parsed
from spangrade_agent.upstreams.grpc import grpc_upstream
from spangrade_agent.upstreams.http import http_upstream
from spangrade_agent.wire import Upstream

__all__ = ["ClientTls", "make_upstream"]


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
    by_grpc = protocol == "grpc" or (protocol is None and parsed(endpoint).port == 4317)
    make = grpc_upstream if by_grpc else http_upstream
    return make(endpoint, headers, timeout_s, gzip, tls)
