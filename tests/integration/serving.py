"""A loopback HTTP server on a free port, until the end of a block: what it says is one function."""

from __future__ import annotations

import gzip
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .processes import url


@dataclass(frozen=True)
class Request:
    """``path`` without the query; ``headers`` by their names in lower case; ``body`` as it was before gzip."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Response:
    """A body of several pieces goes out in as many chunks."""

    status: int
    pieces: tuple[bytes, ...]
    headers: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def serve(answer: Callable[[Request], Response]) -> Iterator[str]:
    """Answers POST and GET; the server's URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.body()
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.reply(answer(Request(self.path.partition("?")[0], headers, body)))

        def do_GET(self) -> None:
            self.do_POST()

        def body(self) -> bytes:
            if self.headers.get("transfer-encoding", "").lower() != "chunked":  # as Node sends it
                return self.rfile.read(int(self.headers.get("content-length", 0)))
            pieces = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def reply(self, response: Response) -> None:
            chunked = len(response.pieces) > 1
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            if chunked:
                self.send_header("transfer-encoding", "chunked")
            else:
                self.send_header("content-length", str(sum(map(len, response.pieces))))
            self.end_headers()
            for piece in response.pieces:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                self.wfile.flush()
            if chunked:
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: object) -> None:
            """Nothing on the test's output."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A program that ends does not close its connections; any other fault is the test's to see."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)  # type: ignore[arg-type]

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield url(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
