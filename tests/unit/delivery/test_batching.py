"""The queue before an exporter: bounded in items and bytes, the oldest go, and whoever waits for it is told the truth."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangrade.delivery.batching import QUEUE_FULL, SHUTDOWN, Batcher, Limits


class Place:
    """Where texts go; `closed` while it keeps whoever exports."""

    def __init__(self, limits: Limits) -> None:
        self.batches: list[list[str]] = []
        self.lost: list[tuple[str, str]] = []
        self._open, self.busy = threading.Event(), threading.Event()
        self._open.set()
        self.batcher = Batcher("test", self._export, lambda text, why: self.lost.append((text, why)), limits, len)

    def _export(self, batch: Sequence[str]) -> None:
        self.busy.set()
        assert self._open.wait(30)
        self.batches.append(list(batch))

    @contextmanager
    def closed(self) -> Iterator[None]:
        """One batch is with the exporter, and stays there."""
        self._open.clear()
        self.batcher.put("first")
        assert not self.batcher.flush(0)
        assert self.busy.wait(30)
        try:
            yield
        finally:
            self._open.set()

    @property
    def arrived(self) -> list[str]:
        return [text for batch in self.batches for text in batch]


@pytest.fixture(name="make")
def _make() -> Iterator[type[Place]]:
    made: list[Place] = []

    class Ended(Place):
        def __init__(self, limits: Limits) -> None:
            super().__init__(limits)
            made.append(self)

    yield Ended
    for one in made:
        one.batcher.close(30)


SLOW = 3_600.0  # nothing leaves for its age


def test_at_the_bound_in_items_the_oldest_go_and_are_told(make: type[Place]) -> None:
    place = make(Limits(queue=3, batch=2, delay_s=SLOW))
    with place.closed():
        for n in range(5):
            place.batcher.put(str(n))
    assert place.batcher.flush(30)
    assert place.arrived == ["first", "2", "3", "4"]
    assert place.lost == [("0", QUEUE_FULL), ("1", QUEUE_FULL)]


def test_at_the_bound_in_bytes_the_oldest_go_and_one_of_any_size_is_kept(make: type[Place]) -> None:
    place = make(Limits(delay_s=SLOW, queue_bytes=100))
    with place.closed():
        for n in range(5):
            place.batcher.put(str(n) * 40)
        assert [text[0] for text, _ in place.lost] == ["0", "1", "2"]
        place.batcher.put("x" * 1_000)
        assert [text[0] for text, _ in place.lost] == ["0", "1", "2", "3", "4"]
    assert place.batcher.flush(30)
    assert place.arrived == ["first", "x" * 1_000]


def test_a_batch_is_bounded_in_bytes_and_goes_as_soon_as_there_is_one(make: type[Place]) -> None:
    """A receiver refuses what is too large as a whole."""
    place = make(Limits(delay_s=SLOW, batch_bytes=100))
    with place.closed():
        for size in (60, 30, 20, 500, 10):
            place.batcher.put("x" * size)
    assert place.batcher.flush(30)
    assert [[len(text) for text in batch] for batch in place.batches] == [[5], [60, 30], [20], [500], [10]]
    place.busy.clear()
    place.batcher.put("y" * 100)
    assert place.busy.wait(30)


def test_a_flush_is_not_done_while_its_batch_is_with_the_exporter_however_many_later_ones_are_lost(
    make: type[Place],
) -> None:
    place = make(Limits(queue=2, batch=2, delay_s=SLOW))
    with place.closed():
        for n in range(20):
            place.batcher.put(str(n))
            assert not place.batcher.flush(0)
    assert place.batcher.flush(30)
    assert place.arrived == ["first", "18", "19"]


def test_what_cannot_be_measured_is_queued_all_the_same(
    make: type[Place], swallowed_faults: list[tuple[str, BaseException]]
) -> None:
    def size(_: str) -> int:
        raise ValueError

    place = make(Limits(delay_s=SLOW))
    place.batcher._size = size
    place.batcher.put("a")
    assert place.batcher.flush(30)
    assert place.arrived == ["a"]
    assert [where for where, _ in swallowed_faults] == ["batch.size"]
    swallowed_faults.clear()


def test_what_comes_after_the_end_is_lost_and_so_is_what_an_exporter_does_not_take_in_time(make: type[Place]) -> None:
    place = make(Limits(queue=10, batch=1, delay_s=SLOW))
    with place.closed():
        place.batcher.put("waits")
        assert not place.batcher.close(0.01)
        place.batcher.put("late")
    assert place.lost == [("waits", SHUTDOWN), ("late", SHUTDOWN)]
    assert place.batcher.flush(30)
    assert place.arrived == ["first"]


@given(
    st.lists(st.integers(0, 60), max_size=40),
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(1, 200),
    st.integers(1, 200),
)
def test_each_item_arrives_once_or_is_told_as_lost_and_no_bound_is_passed(
    sizes: list[int], queue: int, batch: int, queue_bytes: int, batch_bytes: int
) -> None:
    place = Place(Limits(queue, batch, SLOW, queue_bytes, batch_bytes))
    texts = [f"{n:02}" + "x" * size for n, size in enumerate(sizes)]
    with place.closed():
        for text in texts:
            place.batcher.put(text)
            kept = texts[len(place.lost) : texts.index(text) + 1]
            assert len(kept) <= queue
            assert len(kept) == 1 or sum(map(len, kept)) <= queue_bytes
    assert place.batcher.close(30)
    assert place.arrived == ["first", *texts[len(place.lost) :]]
    assert [text for text, _ in place.lost] == texts[: len(place.lost)]
    for one in place.batches:
        assert len(one) <= batch
        assert len(one) == 1 or sum(map(len, one)) <= batch_bytes
