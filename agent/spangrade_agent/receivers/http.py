"""OTLP/HTTP in: a bare ASGI application that bounds what it takes, and answers every request as OTLP has it."""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from spangrade import _guard
from spangrade_agent.codec import response, status_body
from spangrade_agent.http_server import Receive, Scope, Send
from spangrade_agent.receivers.inflate import BadGzip, TooLarge, gunzip
from spangrade_agent.receivers.listen import token_fits
from spangrade_agent.receivers.room import Full, Room, Ticket
from spangrade_agent.receivers.rpc import clipped
from spangrade_agent.wire import Answer, Encoding, Ingest, Kind, Signal

PATHS: Final[dict[str, Signal]] = {"/v1/traces": "traces", "/v1/logs": "logs", "/v1/metrics": "metrics"}
_TYPES: Final[dict[bytes, Encoding]] = {b"application/x-protobuf": "protobuf", b"application/json": "json"}
_TYPE_OF: Final[dict[Encoding, bytes]] = {encoding: name for name, encoding in _TYPES.items()}
# HTTP status, and the code of google.rpc.Status in the body
_STATUS: Final = {
    Kind.BAD: (400, 3),
    Kind.TOO_LARGE: (413, 8),
    Kind.UNAUTHORIZED: (401, 16),
    Kind.RETRY: (503, 14),
    Kind.UNIMPLEMENTED: (404, 12),
}
_BUSY: Final = Answer(Kind.RETRY, "the agent is busy", retry_after_s=1.0)
_STOPPING: Final = Answer(Kind.RETRY, "the agent is stopping", retry_after_s=1.0)


class _Gone(Exception):
    """The client went away."""


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    encoding: Encoding
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


def _refusal(status: int, code: int, message: str, encoding: Encoding, *headers: tuple[bytes, bytes]) -> _Reply:
    return _Reply(status, encoding, status_body(encoding, code, message), headers)


class OtlpApp:
    """``POST /v1/traces``, ``/v1/logs``, ``/v1/metrics``. Made by `otlp_app`; `close` ends its threads."""

    def __init__(
        self, ingest: Ingest, max_bytes: int, threads: int, max_waiting: int, max_held_bytes: int, token: str | None
    ) -> None:
        self._ingest = ingest
        self._max_bytes = max_bytes
        self._token = token
        self._room = Room(threads + max_waiting, max_held_bytes)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="spangrade-otlp-http")

    def close(self) -> None:
        """Take no more work; what runs may end. To be called when the server has stopped."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        ticket = self._room.ticket()
        try:
            reply = await self._reply(scope, receive, ticket)
        except _Gone:
            return
        finally:
            ticket.done_reading()
        headers = [
            (b"content-type", _TYPE_OF[reply.encoding]),
            (b"content-length", str(len(reply.body)).encode()),
            *reply.headers,
        ]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})

    async def _reply(self, scope: Scope, receive: Receive, ticket: Ticket) -> _Reply:
        headers = dict(scope["headers"])
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        encoding = _TYPES.get(kind, "json")  # who sends an unknown type gets an error, in the one a person can read
        signal = PATHS.get(scope["path"])
        if signal is None:
            return _refusal(404, 5, f"not found; there are {', '.join(PATHS)}", encoding)
        if scope["method"] != "POST":
            return _refusal(405, 12, "OTLP is sent with POST", encoding, (b"allow", b"POST"))
        if self._token is not None and not token_fits(headers.get(b"authorization"), self._token):
            return _answered(Answer(Kind.UNAUTHORIZED, "a bearer token is needed"), signal, encoding)
        if kind not in _TYPES:
            return _refusal(415, 3, "Content-Type must be application/x-protobuf or application/json", encoding)
        coding = headers.get(b"content-encoding", b"").strip().lower()
        if coding not in (b"", b"identity", b"gzip", b"x-gzip"):
            return _refusal(415, 3, "Content-Encoding must be gzip, or not there", encoding)
        if self._room.full:  # said before the body is read: it may be large, and the sender keeps it
            return _answered(_BUSY, signal, encoding)
        try:
            pieces = await self._read(headers.get(b"content-length", b""), receive, ticket)
            answer = await self._work(signal, pieces, encoding, coding in (b"gzip", b"x-gzip"), ticket)
        except TooLarge:
            answer = self._too_large("")
        except Full:
            answer = _BUSY
        return _answered(answer, signal, encoding)

    async def _read(self, length: bytes, receive: Receive, ticket: Ticket) -> list[bytes]:
        """The body in pieces, at most ``max_bytes``. What is refused is left to the server, which throws it away."""
        if length.isdigit() and int(length) > self._max_bytes:
            raise TooLarge
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            piece = message.get("body", b"")
            if piece:
                size += len(piece)
                if size > self._max_bytes:
                    raise TooLarge
                ticket.charge(len(piece))
                pieces.append(piece)
            if not message.get("more_body", False):
                return pieces

    async def _work(
        self, signal: Signal, pieces: list[bytes], encoding: Encoding, gzipped: bool, ticket: Ticket
    ) -> Answer:
        def work() -> Answer:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            return self._answer(signal, body, encoding, gzipped, ticket.charge)

        ticket.enter()
        try:
            future: Future[Answer] = self._pool.submit(work)
        except RuntimeError:  # closed while the body was read
            ticket.leave()
            return _STOPPING
        future.add_done_callback(lambda _: ticket.leave())  # also when it is cancelled before it ran
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:  # the server stops, and would answer 500: "never again"
            return _STOPPING

    def _answer(
        self, signal: Signal, body: bytes, encoding: Encoding, gzipped: bool, charge: Callable[[int], None]
    ) -> Answer:
        try:
            if gzipped:
                body = gunzip(body, self._max_bytes, charge)
            if not body and encoding == "json":
                return Answer(Kind.BAD, "the body is empty, which is no JSON")
            return self._ingest.ingest(signal, body, encoding)
        except TooLarge:
            return self._too_large(" when inflated")
        except BadGzip as fault:
            return Answer(Kind.BAD, f"gzip: {fault}")
        except Full:
            return _BUSY
        except Exception as fault:  # noqa: BLE001 - a fault of ours must not cost the sender its data
            _guard.swallowed("receivers.http", fault)
            return Answer(Kind.RETRY, "the agent had a fault of its own")

    def _too_large(self, when: str) -> Answer:
        return Answer(Kind.TOO_LARGE, f"the request is over {self._max_bytes} bytes{when}")


def _answered(answer: Answer, signal: Signal, encoding: Encoding) -> _Reply:
    message = clipped(answer.message)
    if answer.kind is Kind.OK:
        return _Reply(200, encoding, response(signal, encoding, answer.rejected, message))
    status, code = _STATUS[answer.kind]
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if answer.kind is Kind.RETRY:
        after = max(1, math.ceil(answer.retry_after_s or 1.0))
        headers = ((b"retry-after", str(after).encode()),)
    elif answer.kind is Kind.UNAUTHORIZED:
        headers = ((b"www-authenticate", b"Bearer"),)
    return _refusal(status, code, message or answer.kind.value, encoding, *headers)


def otlp_app(
    ingest: Ingest,
    max_bytes: int = 64 * 1024 * 1024,
    *,
    threads: int = 32,
    max_waiting: int = 256,
    max_held_bytes: int | None = None,
    token: str | None = None,
) -> OtlpApp:
    """The ASGI application of OTLP/HTTP, for `HttpServer`.

    Args:
        ingest: called on one of ``threads`` threads, never on the event loop; what it raises is answered 503, so the
            sender keeps its data.
        max_bytes: of one body, as sent and inflated; beyond: 413.
        max_waiting: requests that may wait for a thread; beyond: 503 at once.
        max_held_bytes: of all bodies held at once, four times ``max_bytes`` by default; beyond: 503.
        token: what ``Authorization: Bearer`` has to say; not asked for without.
    """
    held = 4 * max_bytes if max_held_bytes is None else max_held_bytes
    return OtlpApp(ingest, max_bytes, threads, max_waiting, held, token)
