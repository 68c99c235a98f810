"""A function from request to answer, as an ASGI application. GET and HEAD; more methods, with a body, where they are named.

Source: ASGI 3.0, HTTP message format 2.3.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from spangrade._guard import swallowed

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

TEXT: Final = "text/plain; charset=utf-8"
METHODS: Final = ("GET", "HEAD")
_MAX_FIELDS: Final = 32
_BODY_S: Final = 30.0  # for a whole body to come in


@dataclass(frozen=True, slots=True)
class Request:
    """``query`` is None where it cannot be read. Headers by lower-case name; one that came several times is a list.
    ``body`` is None where it was longer than is taken."""

    path: str
    query: Mapping[str, str] | None = field(default_factory=dict)
    headers: Mapping[str, list[str]] = field(default_factory=dict)
    secure: bool = False
    method: str = "GET"
    body: bytes | None = b""

    def header(self, name: str) -> str | None:
        """The header's one value; None when it is absent or came more than once."""
        values = self.headers.get(name, [])
        return values[0] if len(values) == 1 else None


@dataclass(frozen=True, slots=True)
class Answer:
    """``headers`` beside content type and length. Values are ours: no caller's text may reach them unquoted."""

    status: int = 200
    body: bytes = b""
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()


def text(status: int, said: str, *headers: tuple[str, str]) -> Answer:
    """A plain sentence."""
    return Answer(status, f"{said}\n".encode("utf-8", "replace"), TEXT, headers)


def application(
    answer: Callable[[Request], Answer],
    *,
    where: str,
    threaded: bool = False,
    takes: Callable[[str], int | None] = lambda _path: None,
) -> AsgiApp:
    """An ASGI application that answers with ``answer``; a fault in it is a 500, and counted at ``where``.

    ``threaded``: ``answer`` runs off the event loop, for what takes more than a moment. ``takes``: of a path whose ``answer``
    looks at the method itself, the most bytes that a body may have; None for all others, which are GET and HEAD.
    """

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] == "http":
            method, most = scope["method"], takes(scope["path"])
            body: bytes | None = b""
            if method not in METHODS and most is not None:
                try:
                    async with asyncio.timeout(_BODY_S):
                        body = await _body(scope, receive, most)
                except (TimeoutError, _Gone):
                    body = None
            if method in METHODS or most is not None:
                given = await _answered(answer, scope, body, where, threaded)
            else:
                given = _not_allowed()
            await _send(given, send, with_body=method != "HEAD")

    return app


class _Gone(Exception):
    """The caller has left."""


async def _body(scope: MutableMapping[str, Any], receive: Receive, most: int) -> bytes | None:
    """The request's body; None for one of more than ``most`` bytes, of which no more is read."""
    said = next((value for name, value in scope.get("headers", ()) if name.lower() == b"content-length"), b"0")
    if said.isdigit() and int(said[:20]) > most:
        return None
    parts = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _Gone
        parts += message.get("body", b"")
        if len(parts) > most:
            return None
        if not message.get("more_body", False):
            return bytes(parts)


async def _answered(
    answer: Callable[[Request], Answer], scope: MutableMapping[str, Any], body: bytes | None, where: str, threaded: bool
) -> Answer:
    try:
        request = _request(scope, body)
        return await asyncio.to_thread(answer, request) if threaded else answer(request)
    except Exception as fault:  # noqa: BLE001 - the listener goes on whatever one request does
        swallowed(where, fault)
        return text(500, "this request met a fault in the agent; its log says which")


def _not_allowed() -> Answer:
    return text(405, "only GET and HEAD are answered here", ("allow", ", ".join(METHODS)))


def _request(scope: MutableMapping[str, Any], body: bytes | None) -> Request:
    headers: dict[str, list[str]] = {}
    for name, value in scope.get("headers", ()):
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    raw = scope.get("query_string", b"").decode("latin-1")
    query: dict[str, str] | None
    try:
        query = dict(parse_qsl(raw, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:
        query = None
    secure = scope.get("scheme") == "https"
    return Request(scope["path"], query, headers, secure, scope["method"], body)


async def _send(answer: Answer, send: Send, *, with_body: bool) -> None:
    of_body = [("content-type", answer.content_type), ("content-length", str(len(answer.body)))]
    headers = [
        *(of_body if answer.status != 204 else ()),  # which has neither
        ("x-content-type-options", "nosniff"),
        *answer.headers,
    ]
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": answer.body if with_body else b""})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
