"""A call that is made when the stack is nearly used up: the application gets what it would without us."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import _guard
from spangrade import semconv as s
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter

VALUE = {"a": [1, {"b": "c"}], "d": (object(),)}
OVERFLOW = "RecursionError"
OWN_FRAMES = 2  # what our wrapper itself takes


def leaf(value: Any) -> str:
    return "yes"


def fails(value: Any) -> str:
    raise ValueError("no")


def parts(value: Any) -> Iterator[int]:
    yield 1
    yield 2


async def awaited(value: Any) -> str:
    return "yes"


def stepped(coroutine: Any) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    finally:
        coroutine.close()


def caught(fn: Callable[..., Any]) -> Any:
    try:
        return fn(VALUE)
    except ValueError:
        return "ValueError"


USES: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "plain": (leaf, lambda fn: fn(VALUE)),
    "raises": (fails, caught),
    "generator": (parts, lambda fn: list(fn(VALUE))),
    "coroutine": (awaited, lambda fn: stepped(fn(VALUE))),
}


def height() -> int:
    frame: Any = sys._getframe()
    levels = 0
    while frame is not None:
        frame, levels = frame.f_back, levels + 1
    return levels


def with_left(left: int, use: Callable[[Any], Any], fn: Any) -> Any:
    """What ``use(fn)`` gives when about ``left`` levels of the stack are left."""

    def down(levels: int) -> Any:
        if levels > 0:
            return down(levels - 1)
        try:
            return use(fn)
        except RecursionError:
            return OVERFLOW

    try:
        return down(sys.getrecursionlimit() - left - height() - 1)
    except RecursionError:
        return OVERFLOW


def yes(sample: sg.Sample) -> bool:
    return True


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("use", USES)
def test_whatever_is_left_of_the_stack_the_result_is_the_functions_own(use: str, exporter: CollectingExporter) -> None:
    sg.configure(metrics=[yes], exporter=exporter)
    fn, how = USES[use]
    traced = sg.trace(fn)
    how(traced)
    bare = {left: with_left(left, how, fn) for left in range(100)}
    for left in range(OWN_FRAMES, 100):
        found = with_left(left, how, traced)
        assert found == bare[left] or (found == bare[left - OWN_FRAMES] == OVERFLOW), left
        assert trace_api.get_current_span() is trace_api.INVALID_SPAN
    assert sg.flush(10)
    engine = current_engine()
    assert engine is not None
    (counts,) = engine.ledger.snapshot().values()
    assert counts.pending == 0
    assert len(exporter.spans) == len({span.get_span_context().span_id for span in exporter.spans})  # type: ignore[union-attr]
    assert len(exporter.spans) >= counts.met > 50
    assert Spans.open() == 0


def test_with_40_levels_left_a_call_is_traced_in_full(traced: Spans) -> None:
    def f(value: Any) -> Any:
        sg.set_metadata(a=1)
        with sg.trace("block"):
            return value

    assert with_left(40, lambda fn: fn(VALUE), sg.trace(f)) == VALUE
    block, call = traced.all()
    assert block.parent.span_id == call.context.span_id
    assert {"input.value", "output.value", "metadata"} <= set(call.attributes)


def test_a_block_and_the_setters_ask_for_no_more_of_the_stack_than_a_few_calls(traced: Spans) -> None:
    def says(_: Any) -> int:
        with sg.trace("block"):
            return 1

    for left in range(30, 100):
        with sg.trace("outer"):
            assert with_left(left, says, None) == 1
            assert with_left(left, lambda _: sg.set_metadata(a=1), None) is None
            assert with_left(left, sg.set_input, None) is None
    assert {span.name for span in traced.all()} == {"outer", "block"}
    assert Spans.open() == 0


def test_the_applications_own_endless_recursion_is_no_fault_of_ours(traced: Spans) -> None:
    @sg.trace
    def endless(n: int) -> int:
        return endless(n + 1)

    before = _guard.count()
    with pytest.raises(RecursionError):
        endless(0)
    assert _guard.count() == before
    assert trace_api.get_current_span() is trace_api.INVALID_SPAN
    spans = traced.all()
    assert len(spans) > 100
    assert Spans.open() == 0


def test_an_endless_recursion_of_ours_would_be_told(swallowed_faults: list[Any]) -> None:
    def endless() -> None:
        endless()

    with _guard.guard("test"):
        endless()
    assert [where for where, _ in swallowed_faults] == ["test"]
    swallowed_faults.clear()


class Counting:
    """A stream object."""

    def __init__(self) -> None:
        self.n = 0

    def __iter__(self) -> "Counting":
        return self

    def __next__(self) -> dict[str, int]:
        self.n += 1
        return {"n": self.n}


class HandsOut:
    """One that hands out an iterator."""

    def __iter__(self) -> Iterator[dict[str, int]]:
        return Counting()

    def close(self) -> None: ...


@pytest.mark.parametrize("make", [Counting, HandsOut])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_stream_that_is_stepped_there_loses_no_item(make: Callable[[], Any], traced: Spans) -> None:
    @sg.trace
    def hands_out() -> Any:
        return make()

    streams = [iter(hands_out())]
    seen: list[int] = []

    def deeper() -> None:
        try:
            seen.append(next(streams[0])["n"])
            deeper()
            seen.append(next(streams[0])["n"])
        except RecursionError:
            pass

    deeper()
    assert len(seen) > 100
    assert seen == list(range(1, len(seen) + 1))
    streams.clear()
    assert traced.only().attributes[s.ENDED] == "closed"
