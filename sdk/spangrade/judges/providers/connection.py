"""Connections to one endpoint: bounded in time and size, of this process alone, and silent about keys."""

import os
import secrets
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from spangrade.errors import JudgeError

MAX_BODY: Final = 4 * 1024 * 1024
CONNECT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came back: a status with headers and body, or the kind of fault."""

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    data: bytes = b""
    fault: type[httpx.HTTPError] = httpx.HTTPError


class Connection:
    """Posts JSON to one address. Threads share it; a fork gets connections of its own.

    Args:
        url: the whole address.
        ca_file: PEM file of the authorities to trust, in place of the usual ones.
        proxy: address of an HTTP proxy. Without it, ``HTTPS_PROXY`` and ``ALL_PROXY`` count, as do ``SSL_CERT_FILE`` and
            ``NO_PROXY``, as httpx reads them.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        url: httpx.URL,
        *,
        ca_file: str | None = None,
        proxy: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._ca_file = ca_file
        self._proxy = proxy
        self._clock = clock
        self.shown = f"{url.scheme}://{url.netloc.decode('ascii')}"  # no userinfo, no query
        # By process id: a forked child must not write to its parent's sockets, and must not close them either. A plain
        # dict, since a lock could be held by a thread that does not exist in the child.
        self._clients: dict[int, httpx.Client] = {}

    def close(self) -> None:
        """Close this process's connections; the next exchange opens new ones."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def post(self, body: Mapping[str, Any], headers: Mapping[str, str], deadline: float) -> Exchange:
        """One exchange. An HTTP fault is a value: chained to what is raised it would show the request, and the key.

        Raises:
            JudgeError: kind unparseable for a reply of more than `MAX_BODY` bytes, or configuration.
        """
        try:
            return self._post(body, headers, deadline)
        except httpx.HTTPError as fault:
            return Exchange(None, fault=type(fault))

    def _post(self, body: Mapping[str, Any], headers: Mapping[str, str], deadline: float) -> Exchange:
        """Bounded in time by the deadline (checked between chunks) and in size by `MAX_BODY`."""
        left = deadline - self._clock()
        if left <= 0:
            raise httpx.ReadTimeout("out of time")
        # Unsampled: whoever stands between here and the model sees a trace that is not to be recorded (no echo).
        sent = {**headers, "traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"}
        timeout = httpx.Timeout(left, connect=min(left, CONNECT_S))
        data = bytearray()
        with self._http().stream("POST", self._url, json=body, headers=sent, timeout=timeout) as response:
            for chunk in response.iter_bytes(65_536):
                data += chunk
                if len(data) > MAX_BODY:
                    raise JudgeError("unparseable", f"the reply of {self.shown} is longer than {MAX_BODY} bytes")
                if self._clock() > deadline:
                    raise httpx.ReadTimeout("out of time")
            return Exchange(response.status_code, response.headers, bytes(data))

    def _http(self) -> httpx.Client:
        pid = os.getpid()
        client = self._clients.get(pid)
        if client is None:
            made = self._made()
            client = self._clients.setdefault(pid, made)
            if client is not made:  # another thread was faster
                made.close()
        return client

    def _made(self) -> httpx.Client:
        try:
            verify = ssl.create_default_context(cafile=self._ca_file) if self._ca_file is not None else True
        except (OSError, ssl.SSLError) as fault:
            raise JudgeError(
                "configuration", f"the judge's ca_file {self._ca_file!r} cannot be used: {type(fault).__name__}"
            ) from None
        try:
            return httpx.Client(
                limits=httpx.Limits(max_connections=256, max_keepalive_connections=64),
                verify=verify,
                proxy=self._proxy,
            )
        except (OSError, ValueError, ImportError, httpx.InvalidURL) as fault:
            kind = type(fault).__name__  # not its text: a proxy's address may hold a password
            raise JudgeError(
                "configuration",
                f"no HTTP client for the judge ({kind}); look at its proxy, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
            ) from None
