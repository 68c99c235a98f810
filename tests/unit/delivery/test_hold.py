"""The hold: every span leaves exactly once, whatever happens in between."""

import threading

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from spangrade.delivery.hold import BURST, PAUSE_S, Held, Hold


def held(span: object = "s", size: int = 10, deadline: float = 5.0) -> Held:
    return Held(span, None, size, deadline)


def test_a_span_leaves_when_nothing_is_waited_for() -> None:
    out: list[Held] = []
    hold = Hold(out.append)
    one = held()
    hold.put(one)
    hold.expect(one, 2)
    hold.settle(one)
    hold.settle(one)
    assert out == []
    assert hold.add(one, ())
    hold.settle(one)
    assert out == [one]
    assert not hold.add(one, ())
    assert (len(hold), hold.bytes) == (0, 0)


def test_a_span_whose_time_is_up_leaves_with_what_it_has() -> None:
    out: list[Held] = []
    hold = Hold(out.append)
    first, second = held(deadline=5), held(deadline=9)
    hold.put(first)
    hold.put(second)
    assert hold.expire(4.9) == 5
    assert hold.expire(5.0) == 9
    assert out == [first]
    hold.settle(first)
    assert out == [first]


def test_at_the_bounds_the_oldest_leaves_first() -> None:
    out: list[Held] = []
    hold = Hold(out.append, max_spans=2, max_bytes=100)
    spans = [held(n) for n in range(4)]
    for one in spans:
        hold.put(one)
    assert out == spans[:2]
    hold.put(held(size=95))
    assert out == spans[:4]
    assert hold.evicted == 4


def test_many_deadlines_at_once_are_released_in_bursts() -> None:
    out: list[Held] = []
    hold = Hold(out.append)
    for n in range(BURST + 10):
        hold.put(held(n))
    again = hold.expire(5.0)
    assert (len(out), again) == (BURST, 5.0 + PAUSE_S)
    assert hold.expire(5.0 + PAUSE_S) is None
    assert len(out) == BURST + 10


def test_a_span_larger_than_the_whole_bound_still_leaves() -> None:
    out: list[Held] = []
    hold = Hold(out.append, max_bytes=100)
    huge = held(size=10**9)
    hold.put(huge)
    assert out == [huge]
    assert hold.bytes == 0


def test_after_the_end_nothing_waits() -> None:
    out: list[Held] = []
    hold = Hold(out.append)
    before, after = held(1), held(2)
    hold.put(before)
    hold.release_all(close=True)
    hold.put(after)
    assert out == [before, after]


class HoldMachine(RuleBasedStateMachine):
    """Any sequence of calls: no span is lost, doubled, or held beyond the bounds."""

    def __init__(self) -> None:
        super().__init__()
        self.out: list[int] = []
        self.hold = Hold(lambda h: self.out.append(id(h)), max_spans=5, max_bytes=1_000)
        self.all: list[Held] = []
        self.now = 0.0

    @rule(size=st.integers(0, 400), wait=st.floats(0, 10))
    def put(self, size: int, wait: float) -> None:
        one = held(len(self.all), size, self.now + wait)
        self.all.append(one)
        self.hold.put(one)

    @rule(data=st.data(), n=st.integers(0, 3))
    def expect(self, data: st.DataObject, n: int) -> None:
        if self.all:
            self.hold.expect(data.draw(st.sampled_from(self.all)), n)

    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        if self.all:
            self.hold.settle(data.draw(st.sampled_from(self.all)))

    @rule(seconds=st.floats(0, 5))
    def expire(self, seconds: float) -> None:
        self.now += seconds
        self.hold.expire(self.now)

    @rule()
    def release_all(self) -> None:
        self.hold.release_all()

    @invariant()
    def each_once_and_bounded(self) -> None:
        assert len(self.out) == len(set(self.out))
        assert len(self.out) + len(self.hold) == len(self.all)
        assert len(self.hold) <= 5
        assert self.hold.bytes <= 1_000
        assert self.hold.bytes == sum(h.bytes for h in self.all if not h.gone)


TestHoldMachine = HoldMachine.TestCase
TestHoldMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(st.integers(2, 6))
@settings(max_examples=10, deadline=None)
def test_threads_that_settle_and_expire_at_once_release_once(threads: int) -> None:
    out: list[Held] = []
    hold = Hold(out.append)
    spans = [held(n, deadline=1.0) for n in range(200)]
    for one in spans:
        hold.put(one)
        hold.expect(one, threads - 2)
    barrier = threading.Barrier(threads)

    def settle() -> None:
        barrier.wait()
        for one in spans:
            hold.settle(one)

    def expire() -> None:
        barrier.wait()
        hold.expire(2.0)

    running = [threading.Thread(target=settle) for _ in range(threads - 1)] + [threading.Thread(target=expire)]
    for t in running:
        t.start()
    for t in running:
        t.join()
    assert sorted(map(id, out)) == sorted(map(id, spans))
