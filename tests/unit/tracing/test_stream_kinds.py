"""Stream objects of every kind: iterables, Python's own iterators, classes of all sorts; copies, pickles, changed classes."""

import copy
import gc
import inspect
import itertools
import operator
import pickle
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.unit.tracing.conftest import Spans
from tests.unit.tracing.given_streams import WORDS, Reply, Stream, ended, hands_out

from spangrade import semconv as s


def test_an_iterable_is_followed_by_the_iterator_that_it_gives(traced: Spans) -> None:
    reply = hands_out(Reply)
    assert Spans.open() == 1
    iterator = iter(reply)
    assert inspect.isgenerator(iterator)
    assert list(iterator) == list(WORDS)
    assert type(reply) is Reply
    assert list(reply) == list(WORDS)
    assert ended(traced) == ("one two three", "complete")


def test_a_temporary_iterable_lives_as_long_as_its_iterator(traced: Spans) -> None:
    class Once:
        def __init__(self) -> None:
            self._left = iter(WORDS)

        def __iter__(self) -> Iterator[str]:
            return self._left

        def close(self) -> None:
            pass

    for n, word in enumerate(hands_out(Once)):
        assert word == WORDS[n]
        assert Spans.open() == 1
    assert ended(traced) == ("one two three", "complete")


def test_an_iterator_that_is_broken_off_and_taken_up_again_goes_on(traced: Spans) -> None:
    class Inner(Stream[str]):
        """As OpenAI's: each iterator goes on with the same stream."""

        def __iter__(self) -> Iterator[str]:
            while self._left:
                yield super().__next__()

    stream = hands_out(Inner)
    for _ in stream:
        break
    assert Spans.open() == 1
    assert list(stream) == ["two ", "three"]
    assert ended(traced) == ("one two three", "complete")


def test_an_iterable_that_somebody_else_holds_is_left_alone(traced: Spans) -> None:
    kept = Reply()
    assert hands_out(lambda: kept) is kept
    assert type(kept) is Reply
    assert Spans.open() == 0


BUILTIN: dict[str, Callable[[], Any]] = {
    "map": lambda: map(str, (1, 2)),
    "filter": lambda: filter(None, ["1", "2"]),
    "zip": lambda: zip("12"),
    "enumerate": lambda: enumerate("12"),
    "reversed": lambda: reversed(["2", "1"]),
    "list": lambda: iter(["1", "2"]),
    "dict": lambda: iter({"1": 1, "2": 2}),
    "text": lambda: iter("12"),
    "callable": lambda: iter(iter(["1", "2", "end"]).__next__, "end"),
    "chain": lambda: itertools.chain("1", "2"),
    "islice": lambda: itertools.islice(itertools.count(1), 2),
    "accumulate": lambda: itertools.accumulate([1, 1]),
    "starmap": lambda: itertools.starmap(str, [("1",), ("2",)]),
    "takewhile": lambda: itertools.takewhile(bool, [1, 2, 0]),
}


@pytest.mark.parametrize("kind", BUILTIN)
def test_pythons_own_iterators_are_followed_and_pass_for_themselves(kind: str, traced: Spans) -> None:
    make = BUILTIN[kind]
    iterator = hands_out(make)
    assert isinstance(iterator, type(make()))
    assert isinstance(iterator, Iterator)
    assert iter(iterator) is iterator
    assert operator.length_hint(iterator, 7) == operator.length_hint(make(), 7)
    assert repr(iterator).partition(" at ")[0] == repr(make()).partition(" at ")[0]
    assert list(iterator) == list(make())
    assert next(iterator, "over") == "over"
    assert ended(traced)[1] == "complete"
    assert "1" in ended(traced)[0]
    assert "2" in ended(traced)[0]


def test_a_builtin_iterator_that_is_dropped_or_kept_elsewhere(traced: Spans) -> None:
    kept = iter(["1", "2"])
    assert hands_out(lambda: kept) is kept
    assert next(hands_out(lambda: map(str, (1, 2)))) == "1"
    hands_out(itertools.count)
    assert Spans.open() == 0
    assert [span.attributes.get(s.ENDED) for span in traced.all()] == [None, "closed", "unconsumed"]
    assert list(kept) == ["1", "2"]


def test_copies_and_pickles_are_of_the_class_itself(traced: Spans) -> None:
    stream, listed = hands_out(Stream), hands_out(lambda: iter([1, 2]))
    for other in (copy.copy(stream), copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))):
        assert type(other) is Stream
        assert list(other) in (list(WORDS), [])  # a shallow copy shares the list
        stream._left[:] = list(WORDS)
    assert list(copy.copy(listed)) == [1, 2]
    assert list(stream) == list(WORDS)
    assert list(listed) == [1, 2]
    assert [span.attributes[s.OI_OUTPUT] for span in traced.all()] == ["one two three", "[1,2]"]


def test_one_that_makes_another_of_its_kind_makes_an_untraced_one(traced: Spans) -> None:
    class Forks(Stream[str]):
        def fork(self) -> "Forks":
            return type(self)()

    stream = hands_out(Forks)
    other = stream.fork()
    assert list(other) == list(WORDS)
    assert type(other) is Forks
    assert list(stream) == list(WORDS)
    assert len(traced.all()) == 1


def test_a_class_that_is_changed_by_somebody_else_stays_changed(traced: Spans) -> None:
    class Other(Stream[str]):
        pass

    stream = hands_out(Stream)
    next(stream)
    stream.__class__ = Other
    assert type(stream) is Other
    assert Spans.open() == 0
    assert list(stream) == ["two ", "three"]


def test_abstract_classes_protocols_and_classes_with_slots_are_followed(traced: Spans) -> None:
    class Abstract(ABC):
        @abstractmethod
        def __next__(self) -> str: ...

        def __iter__(self) -> Iterator[str]:
            return self  # type: ignore[return-value]

    @typing.runtime_checkable
    class Proto(typing.Protocol):
        def __next__(self) -> str: ...

    class A(Abstract):
        __slots__ = ("left",)

        def __init__(self) -> None:
            self.left = list(WORDS)

        def __next__(self) -> str:
            if self.left:
                return self.left.pop(0)
            raise StopIteration

    class P(A, Proto):
        pass

    for kind in (A, P):
        stream = hands_out(kind)
        assert isinstance(stream, kind)
        assert list(stream) == list(WORDS)
    assert [span.attributes[s.OI_OUTPUT] for span in traced.all()] == ["one two three"] * 2


def test_a_class_that_goes_leaves_nothing_behind(traced: Spans) -> None:
    from spangrade.tracing import streamlike

    def one() -> None:
        class Gone(Stream[str]):
            pass

        list(hands_out(Gone))

    one()
    gc.collect()
    before = len(streamlike._verdicts)
    for _ in range(20):
        one()
    gc.collect()
    assert len(streamlike._verdicts) == before
    assert [kind for kind in Stream.__subclasses__() if kind.__name__ == "Gone"] == []


def test_many_that_nobody_reads_leave_nothing(traced: Spans) -> None:
    from spangrade.tracing import open_streams, stand_ins

    for _ in range(300):
        hands_out(Stream)
        hands_out(Reply)
        hands_out(lambda: map(str, ()))
    assert Spans.open() == 0
    assert stand_ins._followed == {}
    assert open_streams._Open.streams == {}


def test_nothing_is_followed_where_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_DISABLED", "true")
    assert type(hands_out(Stream)) is Stream
    assert type(hands_out(lambda: map(str, ()))) is map
