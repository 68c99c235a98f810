"""A real OpenAI-compatible server on the loopback: it replays scripted replies and keeps the requests."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from spangrade.judges.providers.endpoint import VENDORS
from spangrade.judges.providers.openai_compatible import OpenAICompatible
from spangrade.judges.providers.retry import RetryPolicy

ENVIRONMENT = (
    *(f"SPANGRADE_JUDGE_{name}" for name in ("MODEL", "BASE_URL", "API_KEY", "API_KEY_FILE", "PROVIDER", "HEADERS")),
    *(f"SPANGRADE_JUDGE_{name}" for name in ("CA_FILE", "PROXY", "MAX_CONCURRENCY")),
    "LLM_MODEL",
    *(name for vendor in VENDORS.values() for name in (*vendor.keys, *vendor.urls)),
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of this machine reaches a test."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@dataclass
class Reply:
    """One scripted reply; ``drop`` closes the connection without one, ``hang`` waits until the test is over."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    hang: bool = False


def completion(content: Any, finish_reason: str = "stop", model: str | None = "judge-test-1", **message: Any) -> Reply:
    """A 200 with a chat completion."""
    return Reply(
        body={
            "id": "x",
            "object": "chat.completion",
            "model": model,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish_reason,
                    "message": {"role": "assistant", "content": content, **message},
                }
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
    )


def message(*content: Any, stop_reason: str = "end_turn", **usage: Any) -> Reply:
    """A 200 with one of Anthropic's messages; a text stands for a block of it."""
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    return Reply(
        body={
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-test-1",
            "content": blocks,
            "stop_reason": stop_reason,
            "usage": {"input_tokens": 10, "output_tokens": 5, **usage},
        }
    )


def graded(score: Any = 4, reasoning: str = "It answers the question.") -> Reply:
    """A 200 with a verdict on the scale 1-5."""
    return completion(json.dumps({"reasoning": reasoning, "score": score}))


@dataclass
class Received:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    peer: tuple[str, int]


class JudgeServer:
    """Replies in order; the last one repeats. With no script every request gets `graded()`. ``respond``: says the reply to
    each request instead."""

    def __init__(self, tls: ssl.SSLContext | None = None, respond: Callable[[Received], Reply] | None = None) -> None:
        self.script: list[Reply] = []
        self._respond = respond
        self.requests: list[Received] = []
        self.over = threading.Event()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body are two writes: each reply would wait 40 ms for an ACK

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer._answer(self, Received(self.path, headers, body, self.client_address))

            def log_message(self, *_args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self.origin = f"{'http' if tls is None else 'https'}://localhost:{self._http.server_address[1]}"
        self.base_url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def _answer(self, handler: BaseHTTPRequestHandler, received: Received) -> None:
        with self._lock:
            n = len(self.requests)
            self.requests.append(received)
        if self._respond is not None:
            reply = self._respond(received)
        else:
            reply = self.script[min(n, len(self.script) - 1)] if self.script else graded()
        if reply.hang:
            self.over.wait()
        if reply.drop or reply.hang:
            handler.close_connection = True
            return
        data = reply.body if isinstance(reply.body, bytes) else None
        if data is None:
            text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body or {})
            data = text.encode("utf-8", "surrogatepass")
        handler.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def close(self) -> None:
        self.over.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    made = JudgeServer()
    yield made
    made.close()


@dataclass
class FakeTime:
    """A clock that only sleeping moves."""

    now: float = 1_000_000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def policy(self, **changes: Any) -> RetryPolicy:
        return RetryPolicy(sleep=self.sleep, clock=lambda: self.now, now=lambda: self.now, **changes)


@pytest.fixture
def fake_time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def client(server: JudgeServer, fake_time: FakeTime) -> Iterator[OpenAICompatible]:
    """A client for the server, with a key, whose waits take no time."""
    made = OpenAICompatible(server.base_url, "sk-very-secret-key-0001", retry=fake_time.policy())
    yield made
    made.close()
