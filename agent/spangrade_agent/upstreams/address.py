"""What is known of an upstream before anything is sent: its URL, headers, proxy and TLS files, and what is secret of it."""

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

from spangrade._version import __version__
from spangrade.errors import ConfigError

USER_AGENT: Final = f"spangrade-agent/{__version__}"


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


def parsed(endpoint: str) -> SplitResult:
    """``endpoint`` as a URL; ``http`` where it has no scheme.

    Raises:
        ConfigError: it is none. Its password and query are not shown.
    """
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


def checked_headers(endpoint: str, given: Mapping[str, str] | None) -> dict[str, str]:
    """``given``, with the URL's user and password as basic authorization.

    Raises:
        ConfigError: a name or value that no header may have; the value is not shown.
    """
    headers = dict(given or {})
    url = parsed(endpoint)
    if url.username and not any(name.lower() == "authorization" for name in headers):
        pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    for name, value in headers.items():
        if not name or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in name):
            raise ConfigError(f"header name {name!r} cannot be sent; use letters, digits, - _ and .")
        if not isinstance(value, str) or not (value.isascii() and (value.isprintable() or not value)):
            raise ConfigError(f"the value of header {name!r} cannot be sent; it must be one line of ASCII text")
    return headers


def without(secrets: tuple[str, ...], message: str) -> str:
    """An upstream may repeat what it was sent; keys do not go into our messages."""
    for secret in secrets:
        for part in {secret, secret.rpartition(" ")[2]}:
            if len(part) >= 4:
                message = message.replace(part, "***")
    return message


def bracketed(url: SplitResult) -> str:
    """The host, an IPv6 address in its brackets."""
    host = url.hostname or ""
    return f"[{host}]" if ":" in host else host


def is_loopback(url: SplitResult) -> bool:
    """Whether the URL is on this machine."""
    host = (url.hostname or "").lower()
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def proxy_for(url: SplitResult) -> str | None:
    """The environment's proxy for ``url``; never for this machine itself, whatever NO_PROXY says."""
    if is_loopback(url) or proxy_bypass_environment(url.netloc.rpartition("@")[2]):
        return None
    proxies: dict[str, str] = getproxies_environment()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    return proxy if proxy is None or "://" in proxy else f"http://{proxy}"
