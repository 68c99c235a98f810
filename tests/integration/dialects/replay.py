"""Model APIs on the loopback that say what they once said: the exchanges of ../shared/data/cassettes, by name.

A client is given ``replay.place().base("openai", "test_chat_completion_with_content") + "/v1"`` as its base URL and asks as
usual. A cassette of several exchanges gives one after another, and then the first again. What a test needs and no cassette
has (embeddings), it says itself, in the API's shape: ``place.say("embeddings", "/v1/embeddings", {...})``, base URL
``place.base("made", "embeddings")``. Event streams go out event by event.
"""

from __future__ import annotations

import gzip
import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import yaml

from ..processes import unavailable
from ..serving import Request, Response, serve

CASSETTES: Final = Path(__file__).parents[4] / "shared" / "data" / "cassettes"
MADE: Final = "made"
# Of the connection that was recorded, not of this one.
_CONNECTION: Final = frozenset({"transfer-encoding", "content-length", "content-encoding", "connection", "set-cookie"})


@dataclass(frozen=True)
class Exchange:
    """A question's path, and its answer."""

    path: str
    response: Response


@dataclass(frozen=True)
class Asked:
    """What a client asked: of whom, and the request's body."""

    provider: str
    name: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class Place:
    """One test's own: its turn in each cassette, what it asked, what it says itself."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    made: dict[str, list[Exchange]] = field(default_factory=dict)
    _turns: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def base(self, provider: str, cassette: str) -> str:
        """The base URL by which a client of that provider gets that cassette's answers."""
        return f"{self.url}/{provider}/{cassette}"

    def say(self, name: str, path: str, *answers: Any) -> None:
        """Answers of the test's own to what is asked at ``path`` of ``base("made", name)``: each a value that goes as JSON,
        or a list of events, which go as a stream of server-sent events. In order, then from the beginning."""
        self.made.setdefault(name, []).extend(Exchange(path, _made(answer)) for answer in answers)

    def answer(self, provider: str, name: str, path: str, request: Request) -> Response:
        exchanges = self.made.get(name, []) if provider == MADE else cassette(provider, name)
        fitting = [one for one in exchanges if path.endswith(one.path)]
        with self._lock:
            self.asked.append(Asked(provider, name, path, request.headers, json.loads(request.body or b"null")))
            turn = self._turns[provider, name, path]
            self._turns[provider, name, path] += 1
        if not fitting:
            known = sorted({one.path for one in exchanges})
            return _json(400, {"error": {"message": f"{provider}/{name} answers {known}, not {path}"}})
        return fitting[turn % len(fitting)].response


class Replay:
    """The running server."""

    def __init__(self) -> None:
        self.url = ""
        self._places: dict[str, Place] = {}
        self._numbers = itertools.count(1)

    def place(self) -> Place:
        """A place for one test's program."""
        number = str(next(self._numbers))
        return self._places.setdefault(number, Place(f"{self.url}/{number}"))

    def answer(self, request: Request) -> Response:
        number, provider, name, path = unquote(request.path).removeprefix("/").split("/", 3)
        return self._places[number].answer(provider, name, f"/{path}", request)


@contextmanager
def replaying() -> Iterator[Replay]:
    """The server, until the end of the block; without the cassettes the test is skipped."""
    if not CASSETTES.is_dir():
        unavailable("../shared/data/cassettes, the recorded answers of model APIs, is not beside the repository")
    replay = Replay()
    with serve(replay.answer) as replay.url:
        yield replay


@cache
def cassette(provider: str, name: str) -> list[Exchange]:
    """The exchanges of a cassette; its name may leave out a test's parameters (``[content_mode0]``)."""
    folder = CASSETTES / provider
    file = next((f for f in (folder / f"{name}.yaml", folder / f"{name}[content_mode0].yaml") if f.is_file()), None)
    if file is None:
        raise FileNotFoundError(f"no cassette {name} in {folder}: the names are those of its files, without .yaml")
    recorded = yaml.safe_load(file.read_text(encoding="utf-8"))["interactions"]
    return [Exchange(urlsplit(one["request"]["uri"]).path, _recorded(one["response"])) for one in recorded]


def _recorded(response: Mapping[str, Any]) -> Response:
    body = response["body"]["string"]
    body = body.encode() if isinstance(body, str) else body
    if body[:2] == b"\x1f\x8b":
        body = gzip.decompress(body)
    headers = {name.lower(): values[0] for name, values in response["headers"].items()}
    kept = {name: value for name, value in headers.items() if name not in _CONNECTION}
    return Response(int(response["status"]["code"]), _pieces(body, kept.get("content-type", "")), kept)


def _made(answer: Any) -> Response:
    if not isinstance(answer, list):
        return _json(200, answer)
    events = [event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n" for event in answer]
    kind = "text/event-stream"
    return Response(200, _pieces("".join(events).encode(), kind), {"content-type": kind})


def _json(status: int, value: Any) -> Response:
    return Response(status, (json.dumps(value).encode(),), {"content-type": "application/json"})


def _pieces(body: bytes, content_type: str) -> tuple[bytes, ...]:
    if "event-stream" not in content_type:
        return (body,)
    return tuple(event + b"\n\n" for event in body.replace(b"\r\n", b"\n").split(b"\n\n") if event.strip())
