"""Whatever a stream object can do, and however it is consumed: with tracing its reader and itself see what they see without."""

import asyncio
import copy
import gc
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import spangrade as sg
from spangrade.tracing import call, stand_ins

ITEMS = st.lists(st.sampled_from(["text", "", 7, None, b"bytes", ("a", 1)]), max_size=4)
FAULTS = st.sampled_from([None, None, ValueError("x"), KeyboardInterrupt("y")])
# How `__iter__` gives an iterator: itself; a generator; one that it keeps; a builtin one; by no such method.
ITERATES = st.sampled_from(["self", "generator", "kept", "builtin", "nothing"])
CLOSES = st.sampled_from(["nothing", "plainly", "as a coroutine", "with a fault"])


@dataclass(frozen=True)
class Can:
    """What a class of streams can do."""

    items: list[Any]
    fault: BaseException | None
    asynchronous: bool
    steps: bool
    iterates: str
    closes: str
    enters: bool
    suppresses: bool
    slots: bool
    finalizes: bool
    closes_itself: bool
    sends: bool


CAN = st.builds(
    Can,
    items=ITEMS,
    fault=FAULTS,
    asynchronous=st.booleans(),
    steps=st.booleans(),
    iterates=ITERATES,
    closes=CLOSES,
    enters=st.booleans(),
    suppresses=st.booleans(),
    slots=st.booleans(),
    finalizes=st.booleans(),
    closes_itself=st.booleans(),
    sends=st.booleans(),
)

DOES = st.lists(
    st.sampled_from(
        [
            "step", "step", "step", "iterate", "break", "close", "with", "with a fault", "attributes", "set", "copy",
            "send", "throw", "twice", "class",
        ]
    ),
    max_size=6,
)  # fmt: skip


def stream_class(can: Can, log: list[Any]) -> type:
    """A class that can do that, and keeps a log of what is done to it."""
    body: dict[str, Any] = {}
    if can.slots:
        body["__slots__"] = ("kept", "left")

    def init(self: Any) -> None:
        self.left = list(can.items)
        self.kept = agen(self) if can.asynchronous else gen(self)

    def take(self: Any) -> Any:
        log.append("take")
        if self.left:
            return self.left.pop(0)
        if can.closes_itself and can.closes == "plainly":
            self.close()
        if can.fault is not None:
            raise can.fault
        raise StopAsyncIteration if can.asynchronous else StopIteration

    def gen(self: Any) -> Iterator[Any]:
        while self.left:
            yield self.left.pop(0)

    async def agen(self: Any) -> Any:
        while self.left:
            await asyncio.sleep(0)
            yield self.left.pop(0)

    def iterate(self: Any) -> Any:
        log.append("iterate")
        if can.iterates == "self":
            return self
        if can.iterates == "kept":
            return self.kept
        if can.iterates == "builtin" and not can.asynchronous:
            return iter(self.left)
        return (agen if can.asynchronous else gen)(self)

    async def atake(self: Any) -> Any:
        await asyncio.sleep(0)
        return take(self)

    def close(self: Any) -> str:
        log.append("close")
        if can.closes == "with a fault":
            raise OSError("close")
        return "closed"

    async def aclose(self: Any) -> str:
        await asyncio.sleep(0)
        return close(self)

    def leave(self: Any, *fault: Any) -> bool:
        log.append(("leave", fault[0]))
        if can.closes == "plainly":
            self.close()
        return can.suppresses

    async def aleave(self: Any, *fault: Any) -> bool:
        return leave(self, *fault)

    async def aenter(self: Any) -> Any:
        return self

    body["__init__"] = init
    if can.steps:
        body["__anext__" if can.asynchronous else "__next__"] = atake if can.asynchronous else take
    if can.iterates != "nothing":
        body["__aiter__" if can.asynchronous else "__iter__"] = iterate
    if can.closes != "nothing":
        body["close"] = aclose if can.closes == "as a coroutine" else close
    if can.enters and can.asynchronous:
        body.update({"__aenter__": aenter, "__aexit__": aleave})
    elif can.enters:
        body.update({"__enter__": lambda self: self, "__exit__": leave})
    if can.finalizes:
        body["__del__"] = lambda self: log.append("finalized")
    if can.sends and not can.asynchronous:
        body["send"] = lambda self, value: take(self)
        body["throw"] = lambda self, fault: (_ for _ in ()).throw(fault)
    return type("Stream", (), body)


async def consumed(stream: Any, kind: type, can: Can, does: list[str]) -> list[Any]:
    """What its reader sees."""
    seen: list[Any] = []
    for what in does:
        try:
            seen.append((what, await _do(what, stream, kind, can)))
        except (Exception, KeyboardInterrupt) as fault:
            message = str(fault) if isinstance(fault, (ValueError, KeyboardInterrupt, OSError, LookupError)) else ""
            seen.append((what, type(fault), message))
    return seen


async def _do(what: str, stream: Any, kind: type, can: Can) -> Any:
    if what == "step":
        return await anext(stream) if can.asynchronous else next(stream)
    if what in ("iterate", "break", "twice"):
        times = 2 if what == "twice" else 1
        return [await _items(stream, can, 1 if what == "break" else 99) for _ in range(times)]
    if what == "close":
        closing = stream.close()
        return await closing if inspect.isawaitable(closing) else closing
    if what in ("with", "with a fault"):
        return await _with(stream, can, what == "with a fault")
    if what == "attributes":
        methods = [name for name in ("close", "send", "__next__", "__anext__", "__iter__") if hasattr(stream, name)]
        kinds = [inspect.iscoroutinefunction(getattr(stream, name)) for name in methods]
        return methods, kinds, list(stream.left), getattr(stream, "missing", "none"), hasattr(stream, "__dict__")
    if what == "set":
        stream.new = 1
        return stream.new
    if what == "copy":
        other = copy.copy(stream)
        return type(other) is kind, other.left is stream.left
    if what == "send":
        return stream.send(1)
    if what == "throw":
        return stream.throw(LookupError("thrown"))
    return isinstance(stream, kind), stream.__class__ is kind, type(stream).__name__, callable(stream), bool(stream)


async def _items(stream: Any, can: Can, most: int) -> list[Any]:
    got: list[Any] = []
    if can.asynchronous:
        async for item in stream:
            got.append(item)
            if len(got) == most:
                break
    else:
        for item in stream:
            got.append(item)
            if len(got) == most:
                break
    return got


async def _with(stream: Any, can: Can, fails: bool) -> Any:
    got: Any = None
    if can.asynchronous:
        async with stream as same:
            got = same is stream
            if fails:
                raise LookupError("body")
    else:
        with stream as same:
            got = same is stream
            if fails:
                raise LookupError("body")
    return got


def observed(decorate: Callable[[Any], Any], can: Can, does: list[str], held: bool) -> tuple[list[Any], list[Any]]:
    """What its reader and itself see of one that a function returns. ``held``: somebody else has it as well."""
    log: list[Any] = []
    kind = stream_class(can, log)
    others: list[Any] = []

    def make() -> Any:
        made = kind()
        if held:
            others.append(made)
        return made

    async def main() -> list[Any]:
        stream = decorate(make)()
        seen = await consumed(stream, kind, can, does)
        seen.append(not held or others[0] is stream)
        return seen

    seen = asyncio.run(main())
    others.clear()
    gc.collect()
    return seen, log


@given(can=CAN, does=DOES, held=st.booleans())
def test_a_stream_object_is_the_same_with_and_without_tracing(can: Can, does: list[str], held: bool) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    plain = observed(lambda make: make, can, does, held)
    call.use_provider(provider)
    try:
        assert observed(sg.trace, can, does, held) == plain
    finally:
        call.use_provider(None)
    assert len(exporter.get_finished_spans()) == 1  # whatever happened, the call has ended, once
    assert stand_ins._followed == {}
