"""What the page is told of its agent, checked when it is built."""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from spangrade.errors import ConfigError
from spangrade.model.evaluator import EvaluatorInfo

MIN_TOKEN: Final = 16
_TOKEN: Final = re.compile(r"[\x21-\x7e]+\Z")


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Attributes:
        listen: ``host:port`` that the page's listener is bound to.
        token: what a caller must show; required when ``listen`` is not on the loopback.
        hosts: more names by which the page may be called (``page.hosts``), without port.
        mode: ``relay`` or ``tap``.
        destinations: where scores go, for people to read. User names, passwords and queries of URLs are not shown.
        receivers: ``grpc`` and ``http`` to ``host:port``, or to a URL (with TLS: ``https://agent:4318``).
        evaluators: what scores here, now, in the order of the configuration.

    Raises:
        ConfigError: a token that is missing where one is needed, too short, or not fit for a header.
    """

    listen: str = "127.0.0.1:8080"
    token: str | None = field(default=None, repr=False)
    hosts: Sequence[str] = ()
    mode: str = "relay"
    destinations: Sequence[str] = ()
    receivers: Mapping[str, str] = field(default_factory=dict)
    evaluators: Sequence[EvaluatorInfo] | Callable[[], Sequence[EvaluatorInfo]] = ()

    def __post_init__(self) -> None:
        if self.token is None:
            if not is_loopback(self.listen_host):
                raise ConfigError(
                    f"page.token is not set, and page.listen {self.listen!r} is not on the loopback: the page shows what "
                    "users wrote; set page.token (openssl rand -hex 16 makes one), or listen on 127.0.0.1"
                )
            return
        # The message never holds the token itself.
        if not _TOKEN.match(self.token):
            raise ConfigError("page.token is empty or has blanks or non-ASCII characters in it; it goes into a header")
        if len(self.token) < MIN_TOKEN and not is_loopback(self.listen_host):
            raise ConfigError(
                f"page.token is {len(self.token)} characters long; at least {MIN_TOKEN} "
                "(openssl rand -hex 16 makes a good one)"
            )

    @property
    def listen_host(self) -> str:
        """The host of ``listen``, lower case, without brackets."""
        return host_of(self.listen)

    def shown_destinations(self) -> list[str]:
        """``destinations`` without secrets."""
        return [_without_secrets(destination) for destination in self.destinations]


def host_of(authority: str) -> str:
    """``Name:8080`` → ``name``, ``[::1]:80`` → ``::1``, ``::1`` → ``::1``; a root dot at the end is left out."""
    text = authority.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    if text.count(":") == 1:
        text = text.partition(":")[0]
    return text.removesuffix(".")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``."""
    if host == "localhost":
        return True
    address = as_address(host)
    return address is not None and address.is_loopback


def as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that ``host`` is, or None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _without_secrets(destination: str) -> str:
    try:
        parts = urlsplit(destination)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "(a URL that cannot be read)"
    if not parts.scheme or not host:
        return destination.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"
