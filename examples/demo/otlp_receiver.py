"""A small OTLP/HTTP receiver: what an application exports can be looked at as plain JSON.

    python -m examples.demo.otlp_receiver [--port 0]

Prints one JSON line when it is ready: {"base_url": ...}. It serves until its stdin closes or a SIGTERM or SIGINT
arrives. It speaks OTLP over HTTP with protobuf bodies, plain or gzip:

    POST   /v1/traces, /v1/logs     what an OpenTelemetry exporter sends
    GET    /spans, /logs            everything kept so far, oldest first, as a JSON list
    GET    /spans?after=N&wait=S    only what came after item number N ("number" in each item), waiting up to S seconds
    DELETE /                        forget everything

Memory is bounded: past the limit the oldest items go.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from examples.demo.child import announce, claim_stdout, end_with_parent
from examples.demo.otlp_json import JsonObject, logs_of, spans_of

PROTOBUF = "application/x-protobuf"
MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_KEPT_BYTES = 64 * 1024 * 1024
LONGEST_WAIT_SECONDS = 60.0


# --- what is kept ----------------------------------------------------------------------------------------------------


class Shelf:
    """The items received of one kind, in order, numbered from 1, within a bound of bytes.

    Items are kept as the JSON text that a reader will get, so that the bound counts what memory really holds.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._items: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last_number = 0
        self._changed = threading.Condition()

    def add(self, items: Iterable[JsonObject]) -> None:
        with self._changed:
            for item in items:
                self._last_number += 1
                text = json.dumps({"number": self._last_number, **item}).encode()
                self._items.append((self._last_number, text))
                self._bytes += len(text)
            while self._bytes > self._max_bytes:
                self._bytes -= len(self._items.popleft()[1])
            self._changed.notify_all()

    def clear(self) -> None:
        """Forget the items. Numbers go on counting, so a reader's `after` stays right."""
        with self._changed:
            self._items.clear()
            self._bytes = 0

    def read(self, after: int, wait: float) -> bytes:
        """A JSON list of the items numbered higher than `after`; waits up to `wait` seconds for the first of them."""
        deadline = time.monotonic() + wait
        with self._changed:
            while not (self._items and self._items[-1][0] > after) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return b"[" + b",\n".join(text for number, text in self._items if number > after) + b"]"


# --- HTTP ------------------------------------------------------------------------------------------------------------


class RefusedError(Exception):
    """A request that gets an error response."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def gunzip(body: bytes) -> bytes:
    """Unpack, but never further than the limit: a few bytes of gzip can stand for gigabytes."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(body, MAX_BODY_BYTES + 1)
    except zlib.error as error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"the body is not gzip: {error}") from error
    if len(plain) > MAX_BODY_BYTES:
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY_BYTES} bytes when unpacked")
    if not unpacker.eof:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the gzip body is cut short")
    return plain


class Receiver(ThreadingHTTPServer):
    """The server and its two shelves."""

    daemon_threads = True

    def __init__(self, port: int, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.spans = Shelf(max_kept_bytes)
        self.logs = Shelf(max_kept_bytes)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # exporters keep their connection
    server: Receiver

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        try:
            body = self._body()
            if path == "/v1/traces":
                traces = ExportTraceServiceRequest()
                traces.ParseFromString(body)
                self.server.spans.add(spans_of(traces))
                answer = ExportTraceServiceResponse().SerializeToString()
            elif path == "/v1/logs":
                logs = ExportLogsServiceRequest()
                logs.ParseFromString(body)
                self.server.logs.add(logs_of(logs))
                answer = ExportLogsServiceResponse().SerializeToString()
            else:
                raise RefusedError(HTTPStatus.NOT_FOUND, f"nothing is received at {path}")
        except RefusedError as error:
            self._refuse(error)
        except DecodeError:
            self._refuse(RefusedError(HTTPStatus.BAD_REQUEST, "the body is not an OTLP protobuf request"))
        else:
            self._send(HTTPStatus.OK, PROTOBUF, answer)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        shelf = {"/spans": self.server.spans, "/logs": self.server.logs}.get(url.path)
        if shelf is None:
            self._send_text(HTTPStatus.NOT_FOUND, "look at /spans or /logs")
            return
        query = parse_qs(url.query)
        try:
            after = int(query.get("after", ["0"])[0])
            wait = min(float(query.get("wait", ["0"])[0]), LONGEST_WAIT_SECONDS)
        except ValueError:
            self._send_text(HTTPStatus.BAD_REQUEST, "after and wait are numbers")
            return
        self._send(HTTPStatus.OK, "application/json", shelf.read(after, wait))

    def do_DELETE(self) -> None:
        if urlsplit(self.path).path != "/":
            self._send_text(HTTPStatus.NOT_FOUND, "DELETE / forgets everything")
            return
        self.server.spans.clear()
        self.server.logs.clear()
        self._send(HTTPStatus.NO_CONTENT)

    def log_message(self, *_: object) -> None:
        """Say nothing about requests that went well; the errors are in the answers."""

    def _body(self) -> bytes:
        """The request's protobuf bytes. Read before anything is refused, or the connection could not be used again."""
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            self.close_connection = True
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "send a Content-Length") from None
        if not 0 <= length <= MAX_BODY_BYTES:
            self.close_connection = True
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY_BYTES} bytes")
        body = self.rfile.read(length)
        if urlsplit(self.path).path not in ("/v1/traces", "/v1/logs"):
            return body  # refused as not found, whatever it is
        if self.headers.get_content_type() != PROTOBUF:
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send {PROTOBUF}")
        encoding = self.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding == "gzip":
            return gunzip(body)
        if encoding != "identity":
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the body plain or as gzip")
        return body

    def _refuse(self, error: RefusedError) -> None:
        """OTLP wants a google.rpc.Status as the body of every error answer."""
        self._send(error.status, PROTOBUF, Status(message=str(error)).SerializeToString())

    def _send_text(self, status: HTTPStatus, text: str) -> None:
        self._send(status, "text/plain; charset=utf-8", text.encode())

    def _send(self, status: HTTPStatus, content_type: str | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        if content_type is not None:
            self.send_header("Content-Type", content_type)
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


def main() -> int:
    parser = argparse.ArgumentParser(description="Receive OTLP over HTTP and show it as JSON.")
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free port")
    port: int = parser.parse_args().port

    announcements = claim_stdout()
    end_with_parent()
    with Receiver(port) as receiver:
        announce(announcements, base_url=f"http://127.0.0.1:{receiver.server_port}")
        receiver.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
