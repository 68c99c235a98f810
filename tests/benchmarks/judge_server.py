"""A judge's endpoint in a process of its own: every reply takes so long, and more than so many at once get 429. It ends with
the process that started it, however that ends: then there is nobody at the other end of its standard input.

``GET /stats`` gives what it has done: replies, refusals, the most requests that it had at once; and when, by its own clock, since
the answer may be a while on its way to a process that is busy.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_REPLY = {
    "id": "x",
    "object": "chat.completion",
    "model": "bench",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": '{"reasoning": "It answers.", "score": 4}'},
        }
    ],
    "usage": {"prompt_tokens": 300, "completion_tokens": 20},
}


def _response(status: str, body: object) -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


class Server:
    """``delay``: seconds for a reply; ``limit``: requests at once, 0 for any number."""

    def __init__(self, delay: float, limit: int) -> None:
        self._delay, self._limit = delay, limit
        self._now = 0
        self._done: Counter[str] = Counter()
        self._ok, self._refused = _response("200 OK", _REPLY), _response("429 Too Many Requests", {"error": {}})

    async def serve(self) -> None:
        """Print the port, and serve until standard input ends."""
        asyncio.get_running_loop().add_reader(0, lambda: None if os.read(0, 1024) else os._exit(0))
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
                await reader.readexactly(length)
                writer.write(self._stats() if head.startswith(b"GET") else await self._reply())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _stats(self) -> bytes:
        return _response("200 OK", {**self._done, "at": time.monotonic()})

    async def _reply(self) -> bytes:
        if self._limit and self._now >= self._limit:
            self._done["refused"] += 1
            return self._refused
        self._now += 1
        self._done["most"] = max(self._done["most"], self._now)
        await asyncio.sleep(self._delay)
        self._now -= 1
        self._done["replies"] += 1
        return self._ok


@contextmanager
def serving(delay: float, limit: int = 0) -> Iterator[str]:
    """The origin of such a server, while the block runs."""
    command = [sys.executable, "-m", "tests.benchmarks.judge_server", str(delay), str(limit)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@dataclass(frozen=True, slots=True)
class Stats:
    """``at``: seconds, by the server's clock."""

    at: float
    replies: int = 0
    refused: int = 0
    most: int = 0


def stats(origin: str) -> Stats:
    """What the server has done so far."""
    with urllib.request.urlopen(f"{origin}/stats", timeout=10) as answer:
        return Stats(**json.load(answer))


if __name__ == "__main__":
    asyncio.run(Server(float(sys.argv[1]), int(sys.argv[2])).serve())
