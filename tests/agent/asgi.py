"""One request to an ASGI application, without a server."""

import asyncio
import json
import re
from html import unescape
from typing import Any

from spangrade_agent.page.asgi import AsgiApp


class Reply:
    """What an application sent."""

    def __init__(self, messages: list[Any]) -> None:
        start, body = messages
        self.status: int = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        self.body: str = body["body"].decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """What a reader of the page sees, about."""
        return unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", self.body, flags=re.DOTALL))


def ask(
    app: AsgiApp, target: str = "/", method: str = "GET", host: str | None = "localhost:8080", **more: str
) -> Reply:
    """``more`` are headers."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    path, _, query = target.partition("?")
    headers = [(name.encode(), value.encode()) for name, value in more.items()]
    headers += [(b"host", host.encode())] if host is not None else []
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": headers}
    asyncio.run(app({**scope, "scheme": "http"}, receive, send))
    return Reply(sent)
