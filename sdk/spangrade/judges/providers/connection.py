"""Connections to one endpoint: bounded in time and size, of this process alone, and silent about keys."""

import os
import secrets
import ssl
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from spangrade.errors import JudgeError

MAX_BODY: Final = 4 * 1024 * 1024
CONNECT_S: Final = 10.0
IDLE_S: Final = 30.0  # a connection that is not used for so long is closed
_ONE: Final = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=IDLE_S)


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came back: a status with headers (names in lower case) and body, or the kind of fault."""

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
        self._pools: dict[int, _Pool] = {}

    def close(self) -> None:
        """Close this process's connections; the next exchange opens new ones. Those in use are closed when they come back."""
        pool = self._pools.pop(os.getpid(), None)
        if pool is not None:
            pool.close()

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
        ids = secrets.token_hex(24)
        sent = {**headers, "traceparent": f"00-{ids[:32]}-{ids[32:]}-00"}
        timeout = httpx.Timeout(left, connect=min(left, CONNECT_S))
        data = bytearray()
        with (
            self._pool().client() as http,
            http.stream("POST", self._url, json=body, headers=sent, timeout=timeout) as response,
        ):
            for chunk in response.iter_bytes(65_536):
                data += chunk
                if len(data) > MAX_BODY:
                    fault = JudgeError("unparseable", f"the reply of {self.shown} is longer than {MAX_BODY} bytes")
                    fault.unanswered = 1
                    raise fault
                if self._clock() > deadline:
                    raise httpx.ReadTimeout("out of time")
            # A dict: httpx's headers take as long for one look as for all, and there are a dozen looks for rate limits.
            return Exchange(response.status_code, dict(response.headers.items()), bytes(data))

    def _pool(self) -> "_Pool":
        pid = os.getpid()
        pool = self._pools.get(pid)
        if pool is None:  # of two threads that come at once, one has made its pool in vain: it holds nothing yet
            pool = self._pools.setdefault(pid, _Pool(self._ca_file, self._proxy))
        return pool


class _Pool:
    """HTTP clients with one connection each; the last one used goes first, so that those which are too many grow old.

    One client with many connections would do the same, at a price: for each request httpcore asks the system about each of
    its idle connections. With 200 calls at once that was 14 ms of CPU per call, and 1.3 ms this way (measured on the same machine).
    """

    def __init__(self, ca_file: str | None, proxy: str | None) -> None:
        self._ca_file = ca_file
        self._proxy = proxy
        self._context: ssl.SSLContext | None = (
            None  # made once: it takes 40 ms to read all authorities that are trusted
        )
        self._making = threading.Lock()
        self._idle: deque[tuple[float, httpx.Client]] = deque()  # since when; the last one used is at the right
        self._closed = False

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """A client for one exchange."""
        try:
            _, found = self._idle.pop()
        except IndexError:
            found = self._made()
        try:
            yield found
        finally:
            now = time.monotonic()
            self._idle.append((now, found))
            self._close_idle(now + 1.0 if self._closed else now - IDLE_S, 2)

    def close(self) -> None:
        """Close what is idle now, and what comes back later."""
        self._closed = True
        self._close_idle(float("inf"))

    def _close_idle(self, before: float, most: int = sys.maxsize) -> None:
        """Close clients that are idle since ``before``, the oldest first. Without a lock: two threads may each take one."""
        for _ in range(most):
            try:
                since, oldest = self._idle.popleft()
            except IndexError:
                return
            if since >= before:
                self._idle.appendleft((since, oldest))
                return
            oldest.close()

    def _made(self) -> httpx.Client:
        try:
            with self._making:
                if self._context is None and self._ca_file is not None:
                    self._context = ssl.create_default_context(cafile=self._ca_file)
        except (OSError, ssl.SSLError) as fault:
            raise JudgeError(
                "configuration", f"the judge's ca_file {self._ca_file!r} cannot be used: {type(fault).__name__}"
            ) from None
        try:
            with self._making:  # of a pool, and so of a process: no fork's child waits for it
                if self._context is None:
                    self._context = httpx.create_ssl_context()
            return httpx.Client(limits=_ONE, verify=self._context, proxy=self._proxy)
        except (OSError, ValueError, ImportError, httpx.InvalidURL) as fault:
            kind = type(fault).__name__  # not its text: a proxy's address may hold a password
            raise JudgeError(
                "configuration",
                f"no HTTP client for the judge ({kind}); look at its proxy, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
            ) from None
