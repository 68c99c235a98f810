"""Which returned objects are followed: what gives its items in order and only so. All others are returned as they are."""

import array
import asyncio
import collections
import contextlib
import csv
import dataclasses
import enum
import io
import itertools
import os
import queue
import re
import socket
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock, Mock

import pydantic
import pytest
import wrapt
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s
from spangrade.tracing.streamlike import Way, verdict_of


@sg.trace
def hands_out(make: Callable[[], Any]) -> Any:
    return make()


class Pairs:
    def __iter__(self) -> Iterator[int]:
        yield 1


class Returns:
    """A record that can be unpacked."""

    def __iter__(self) -> Iterator[int]:
        return iter((1, 2))


class ManyMethods(Pairs):
    """A lazy query, as ORMs have it."""

    def filter(self) -> "ManyMethods":
        return self


class Sized(Pairs):
    def __len__(self) -> int:
        return 1


class Indexed(Pairs):
    def __getitem__(self, n: int) -> int:
        return n


class Awaited(Pairs):
    def __await__(self) -> Any:
        yield


class PassesOn(Pairs):
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Steps:
    def __next__(self) -> int:
        raise StopIteration


class AsyncSteps:
    async def __anext__(self) -> int:
        raise StopAsyncIteration


class Cursor(Steps):
    def fetchone(self) -> Any:
        return None


class File(Steps):
    def read(self) -> str:
        return ""


class Connection(AsyncSteps):
    async def send(self, message: str) -> None: ...


class SizedSteps(Steps):
    def __next__(self) -> int:
        raise StopIteration

    def __len__(self) -> int:
        return 0


class Registers(Steps):
    def __init_subclass__(cls) -> None:
        raise AssertionError("code of the application's")


class Meta(type):
    def __hash__(cls) -> int:
        raise AssertionError("code of the application's")

    def __eq__(cls, other: object) -> bool:
        raise AssertionError("code of the application's")

    def __instancecheck__(cls, instance: Any) -> bool:
        raise AssertionError("code of the application's")


class OddClass(Steps, metaclass=Meta):
    pass


class NotIterable(Steps):
    __next__ = None  # type: ignore[assignment]


@dataclasses.dataclass
class Record:
    a: int = 1

    def __iter__(self) -> Iterator[int]:
        yield self.a


class Model(pydantic.BaseModel):
    a: int = 1


class Colour(enum.Enum):
    RED = 1


NOT_FOLLOWED: dict[str, Callable[[], Any]] = {
    "unpacked": Returns,
    "query": ManyMethods,
    "sized": Sized,
    "indexed": Indexed,
    "awaited": Awaited,
    "passes on": PassesOn,
    "cursor": Cursor,
    "file": File,
    "connection": Connection,
    "sized iterator": SizedSteps,
    "registers its subclasses": Registers,
    "dataclass": Record,
    "model": Model,
    "enum": lambda: Colour,
    "class": lambda: Steps,
    "function": lambda: hands_out,
    "exception": lambda: ValueError("x"),
    "mock": Mock,
    "magic mock": MagicMock,
    "async mock": AsyncMock,
    "text file": lambda: io.StringIO("a\nb"),
    "bytes": lambda: io.BytesIO(b"a\nb"),
    "named file": tempfile.NamedTemporaryFile,
    "spooled file": tempfile.SpooledTemporaryFile,
    "csv": lambda: csv.reader(["a,b"]),
    "c cursor": lambda: sqlite3.connect(":memory:").execute("select 1"),
    "scandir": lambda: os.scandir("."),
    "path": Path,
    "socket": socket.socket,
    "queue": queue.Queue,
    "deque": lambda: collections.deque([1]),
    "array": lambda: array.array("i", [1]),
    "keys": {"a": 1}.keys,
    "range": lambda: range(3),
    "set": lambda: {1, 2},
    "counter": collections.Counter,
    "tuple": lambda: (1, 2),
    "number": lambda: 5,
    "none next": NotIterable,
    "match": lambda: re.match("a", "a"),
    "awaitable of an async generator": lambda: agen().asend(None),
    "exit stack": contextlib.ExitStack,
    "stream reader": lambda: asyncio.run(reader()),
    "module": lambda: itertools,
}


async def reader() -> asyncio.StreamReader:
    return asyncio.StreamReader()


async def agen() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("kind", NOT_FOLLOWED)
@pytest.mark.filterwarnings("ignore:unclosed", "ignore:coroutine method", "ignore::ResourceWarning")
def test_what_is_no_stream_is_returned_as_it_is_and_the_call_is_over(kind: str, traced: Spans) -> None:
    made = NOT_FOLLOWED[kind]()
    before = type(made)
    keep = [made]
    got = hands_out(keep.pop)  # which holds it no longer
    del made
    assert type(got) is before
    assert Spans.open() == 0
    assert s.ENDED not in traced.attributes()


FOLLOWED: dict[type, Way] = {
    Steps: Way.ITERATOR,
    AsyncSteps: Way.ITERATOR,
    Pairs: Way.ITERABLE,
    map: Way.BUILTIN,
    itertools.chain: Way.BUILTIN,
    csv.DictReader: Way.ITERATOR,
}


def test_to_judge_a_class_runs_no_code_of_its_metaclass() -> None:
    assert verdict_of(OddClass).way is Way.NOT


@pytest.mark.parametrize("kind", FOLLOWED)
def test_what_is_one_is_known_by_its_class(kind: type) -> None:
    assert verdict_of(kind).way is FOLLOWED[kind]
    assert verdict_of(kind) is verdict_of(kind)


def test_a_proxy_that_adds_steps_to_what_it_stands_for_is_a_stream(traced: Spans) -> None:
    """As instrumentations put around a client's stream: its base class has every special method."""

    class Theirs:
        def __init__(self) -> None:
            self.left = ["a", "b"]

        def __next__(self) -> str:
            if self.left:
                return self.left.pop(0)
            raise StopIteration

    class Proxy(wrapt.ObjectProxy):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return self

        def __next__(self) -> str:
            return next(self.__wrapped__)

    proxy = hands_out(lambda: Proxy(Theirs()))
    assert isinstance(proxy, Theirs)
    assert proxy.left == ["a", "b"]
    assert list(proxy) == ["a", "b"]
    assert type(proxy) is Proxy
    assert traced.attributes()[s.OI_OUTPUT] == "ab"
