"""A function from request to answer, as an ASGI application: GET and HEAD only, nothing else is needed here.

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


@dataclass(frozen=True, slots=True)
class Request:
    """``query`` is None where it cannot be read. Headers by lower-case name; one that came several times is a list."""

    path: str
    query: Mapping[str, str] | None = field(default_factory=dict)
    headers: Mapping[str, list[str]] = field(default_factory=dict)
    secure: bool = False

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


def application(answer: Callable[[Request], Answer], *, where: str, threaded: bool = False) -> AsgiApp:
    """An ASGI application that answers with ``answer``; a fault in it is a 500, and counted at ``where``.

    ``threaded``: ``answer`` runs off the event loop, for what takes more than a moment.
    """

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] == "http":
            method = scope["method"]
            given = await _answered(answer, scope, where, threaded) if method in METHODS else _not_allowed()
            await _send(given, send, with_body=method != "HEAD")

    return app


async def _answered(
    answer: Callable[[Request], Answer], scope: MutableMapping[str, Any], where: str, threaded: bool
) -> Answer:
    try:
        request = _request(scope)
        return await asyncio.to_thread(answer, request) if threaded else answer(request)
    except Exception as fault:  # noqa: BLE001 - the listener goes on whatever one request does
        swallowed(where, fault)
        return text(500, "this request met a fault in the agent; its log says which")


def _not_allowed() -> Answer:
    return text(405, "only GET and HEAD are answered here", ("allow", ", ".join(METHODS)))


def _request(scope: MutableMapping[str, Any]) -> Request:
    headers: dict[str, list[str]] = {}
    for name, value in scope.get("headers", ()):
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    raw = scope.get("query_string", b"").decode("latin-1")
    query: dict[str, str] | None
    try:
        query = dict(parse_qsl(raw, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:
        query = None
    return Request(scope["path"], query, headers, scope.get("scheme") == "https")


async def _send(answer: Answer, send: Send, *, with_body: bool) -> None:
    headers = [
        ("content-type", answer.content_type),
        ("content-length", str(len(answer.body))),
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
