"""`freeze`: a value as it is now, kept for later. Read later it gives what it would have given at once."""

import collections
import copy
import datetime
import enum
import gc
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade._frozen import MAX_PACKED, MAX_TEXT, NotPlain, freeze, thaw
from spangrade.tracing import capture
from spangrade.tracing.lazy.span import Attributes

KINDS = ["llm", "chain", "retriever"]


class Text(str):
    __slots__ = ()


class Items(list[Any]):
    pass


class Pairs(dict[str, Any]):
    pass


class Level(enum.IntEnum):
    LOW = 1


class Fights:
    """Raises at whatever is asked of it, pickling included."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemError(name)

    __reduce__ = __reduce_ex__ = __getstate__ = __iter__ = __len__ = __bool__ = __hash__ = __eq__ = None  # type: ignore[assignment]


class Reduces:
    """Runs when it is pickled."""

    ran: list[str] = []  # noqa: RUF012

    def __reduce__(self) -> Any:
        self.ran.append("reduce")
        return (str, ("reduced",))

    def __getstate__(self) -> Any:
        self.ran.append("state")
        return {}


texts = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates as well
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(2**200), 2**200), st.floats(), texts, st.binary(max_size=20)
)
odd = st.one_of(
    st.builds(Text, texts),
    st.builds(bytearray, st.binary(max_size=9)),
    st.builds(memoryview, st.binary(max_size=9)),
    st.builds(Fights),
    st.builds(Reduces),
    st.sampled_from([Level.LOW, datetime.date(2024, 1, 2), object, len, 1 + 2j, ..., range(3)]),
)
keys = st.one_of(texts, st.integers(), st.booleans(), st.none(), st.floats(), st.tuples(texts))


def containers(inner: Any) -> Any:
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.lists(inner, max_size=4).map(Items),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(texts, inner, max_size=4).map(Pairs),
        st.sets(st.one_of(texts, st.integers()), max_size=1),  # the order of more is nobody's promise
        st.frozensets(texts, max_size=1),
        inner.map(lambda held: [held, held]),  # held twice is no ring
    )


values = st.recursive(st.one_of(scalars, odd), containers, max_leaves=20)
plain_values = st.recursive(scalars, containers, max_leaves=20)


def written(value: Any, kind: str, *, lazily: bool) -> dict[str, Any]:
    """Attributes of an input and an output: as the public way writes them, or kept and written later."""
    sink = Attributes()
    if not lazily:
        capture.write_input(sink, kind, value)  # type: ignore[arg-type]
        capture.write_output(sink, kind, value)  # type: ignore[arg-type]
    elif value is not None:
        given, gave = capture.frozen_input(kind, value)[0], capture.frozen_output(kind, value)[0]
        capture.Written.write_given(sink, kind, given)
        capture.Written.write_gave(sink, kind, gave)
    return sink


@settings(max_examples=300)
@given(values, st.sampled_from(KINDS))
def test_what_is_kept_gives_what_it_would_have_given_at_once(value: Any, kind: str) -> None:
    lazily = written(value, kind, lazily=True)
    assert lazily == written(value, kind, lazily=False)
    for text in lazily.values():
        assert type(text) is str
        text.encode()
    assert Reduces.ran == []


@settings(max_examples=200)
@given(plain_values)
def test_the_value_itself_is_untouched_and_a_later_change_is_not_seen(value: Any) -> None:
    before = repr(value)
    try:
        kept, _ = freeze(value)
    except NotPlain:
        return
    assert repr(value) == before
    if type(value) is list:
        value.append("changed")
    elif type(value) is dict:
        value["changed"] = 1
    assert repr(thaw(kept)) == before
    assert thaw(kept) is not thaw(kept) or type(value) in (str, bytes, int, float, bool, type(None), tuple, frozenset)


def test_sets_are_kept_whole() -> None:
    value = {"set": set(range(50)), "frozen": frozenset(map(str, range(50)))}
    assert thaw(freeze(value)[0]) == value


def ring() -> Any:
    value: list[Any] = [1]
    value.append({"again": value})
    return value


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def laughs() -> Any:
    value: Any = ["lol"] * 10
    for _ in range(9):
        value = [value] * 10
    return value


REFUSED: dict[str, Callable[[], Any]] = {
    "a ring": ring,
    "an object": lambda: [object()],
    "a subclass": lambda: {"a": Text("x")},
    "an ordered dict": lambda: collections.OrderedDict(a=1),
    "far too deep": lambda: nested(100_000),
    "a billion laughs": laughs,
    "a long text": lambda: "x" * (MAX_TEXT + 1),
    "a long text inside": lambda: ["x" * (MAX_PACKED + 1)],
    "a bytearray": lambda: bytearray(b"x"),
    "a memoryview inside": lambda: [memoryview(b"x")],
    "a generator": lambda: (n for n in range(3)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_kept_is_refused_and_read_at_once(name: str) -> None:
    value = REFUSED[name]()
    with pytest.raises(NotPlain):
        freeze(value)
    for kind in KINDS:
        assert written(value, kind, lazily=True) == written(value, kind, lazily=False)


def test_after_a_refusal_the_next_value_is_kept_whole() -> None:
    for refused in (ring(), [object()], {"a": "x" * (MAX_PACKED + 1), "b": [1] * 100}):
        with pytest.raises(NotPlain):
            freeze(refused)
        assert thaw(freeze({"a": [1, "x"]})[0]) == {"a": [1, "x"]}


def test_no_value_that_was_kept_is_held_on_to() -> None:
    class Canary:
        pass

    canary = Canary()
    with pytest.raises(NotPlain):
        freeze([canary])
    gc.collect()
    assert not [held for held in gc.get_referrers(canary) if type(held) is list]


# --- what it may cost ---------------------------------------------------------------------------------------------------------

LARGE: dict[str, Callable[[], Any]] = {
    "image in a message": lambda: [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0K" * 10**6}}]}
    ],
    "30 MB of Greek": lambda: {"a": ["é" * 15_000_000]},
    "30 MB of Chinese": lambda: {"a": {"b": ["漢" * 10_000_000]}},
    "30 MB of emoji": lambda: [["\U0001f600" * 7_500_000]],
    "30 MB of half characters": lambda: ("\ud800" * 10_000_000,),
    "many middling texts": lambda: {str(n): "漢" * 60_000 for n in range(500)},
    "50 MB of bytes": lambda: [b"x" * 50_000_000],
    "a million numbers": lambda: [list(range(1_000_000))],
    "a million keys": lambda: {"a": dict.fromkeys(range(1_000_000))},
    "a billion laughs": laughs,
    "a long number": lambda: [1 << 10_000_000],
    "many rings": lambda: [ring() for _ in range(100_000)],
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_a_large_value_costs_no_more_than_its_bounds(name: str) -> None:
    value = LARGE[name]()

    def once() -> float:
        began = time.process_time()
        written(value, "chain", lazily=True)
        return time.process_time() - began

    assert min(once() for _ in range(3)) < 0.5  # of the processor's time; a whole encoding of all of it takes longer
    tracemalloc.start()
    written(value, "chain", lazily=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80_000_000


@pytest.mark.parametrize("text", ["é", "漢", "\U0001f600", "\ud800"])
def test_after_one_text_that_was_far_too_long_the_next_are_not_even_encoded(text: str) -> None:
    value = {"messages": [{"role": "user", "content": [{"type": "text", "text": text * 10_000_000}]}]}
    with pytest.raises(NotPlain):
        freeze(value)
    assert thaw(freeze({"a": ["small"]})[0]) == {"a": ["small"]}
    tracemalloc.start()
    with pytest.raises(NotPlain):
        freeze(value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_a_dict_that_another_thread_changes_meanwhile_is_recorded_or_named() -> None:
    shared: dict[str, Any] = {str(n): [n] for n in range(200)}
    value, done = {"shared": shared}, threading.Event()

    def change() -> None:
        n = 0
        while not done.is_set():
            n += 1
            shared[f"new{n % 500}"] = [n]
            shared.pop(f"new{(n * 7) % 500}", None)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            assert written(value, "chain", lazily=True)
    finally:
        done.set()
        thread.join()
    assert thaw(freeze({"a": 1})[0]) == {"a": 1}


def test_threads_that_keep_values_at_once_get_each_their_own() -> None:
    wrong: list[Any] = []
    gate = threading.Barrier(4)

    def keep(n: int) -> None:
        gate.wait()
        for i in range(500):
            value = {"thread": n, "items": [i] * 20}
            if thaw(freeze(value)[0]) != value:
                wrong.append(value)

    threads = [threading.Thread(target=keep, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_finalizer_in_the_middle_of_it_harms_nothing() -> None:
    class Ends:
        def __del__(self) -> None:
            freeze({"from": ["a finalizer"]})

    def values() -> Iterator[Any]:
        for n in range(300):
            loop: list[Any] = [Ends()]
            loop.append(loop)
            yield {"n": [n] * 50}

    before = gc.get_threshold()
    gc.set_threshold(5)
    try:
        for value in values():
            assert thaw(freeze(copy.copy(value))[0]) == value
    finally:
        gc.set_threshold(*before)
