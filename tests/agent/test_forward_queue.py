"""The queue before an upstream: everything once, in order, bounded, and counted, whatever the upstream does.

Time is injected: a wait of the queue either passes at once (and is written down) or stands still until it is woken.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade_agent.backoff import Backoff
from spangrade_agent.bodies import PARTIAL, SHUTDOWN, Counts
from spangrade_agent.forward import ForwardQueue
from spangrade_agent.wire import Answer, Kind, Signal

RETRY = Answer(Kind.RETRY, "not now")


class Time:
    """Clock and waiting in one. ``passes`` False: waits stand until the queue is woken."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waited: list[float] = []
        self.passes = True
        self.standing = threading.Semaphore(0)  # released when a wait begins to stand

    def monotonic(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return int(self.now * 1e9)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        self.waited.append(seconds)
        if self.passes:
            self.now += seconds
        else:
            self.standing.release()
            condition.wait()


class Upstream:
    """Answers from a script (then OK), or by a function of the body; a gate holds it while it is closed."""

    def __init__(self, *script: Answer, by: Callable[[bytes], Answer] | None = None) -> None:
        self.script = list(script)
        self.by = by
        self.sent: list[bytes] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)

    def send(self, signal: Signal, body: bytes) -> Answer:
        self.entered.release()
        assert self.gate.wait(20)
        self.sent.append(body)
        if self.script:
            return self.script.pop(0)
        return self.by(body) if self.by else Answer()

    def close(self) -> None:
        pass


class Queue(ForwardQueue):
    """With injected time, no lingering unless asked for, and results kept."""

    def __init__(self, upstream: Upstream, **options: Any) -> None:
        self.time = Time()
        self.results: list[tuple[list[Any], bool, str]] = []
        self.ended = threading.Semaphore(0)  # released when a result has come
        defaults: dict[str, Any] = {"linger_s": 0.0, "chance": lambda: 1.0, "clock": self.time, "wait": self.time.wait}
        super().__init__(upstream, "traces", on_result=self._result, **{**defaults, **options})

    def _result(self, tokens: Sequence[Any], ok: bool, reason: str) -> None:
        self.results.append((list(tokens), ok, reason))
        self.ended.release()


@pytest.fixture
def held() -> Iterator[tuple[Upstream, Queue]]:
    """A queue whose first body (b"0") is on its way and held there, so that what is put next waits together."""
    upstream = Upstream()
    upstream.gate.clear()
    queue = Queue(upstream)
    assert queue.put(b"0", token=0)
    assert upstream.entered.acquire(timeout=10)
    yield upstream, queue
    upstream.gate.set()
    queue.close(10)


def test_a_body_is_sent_once_and_its_token_told() -> None:
    upstream = Upstream()
    queue = Queue(upstream)
    assert queue.put(b"a", items=3, token="t")
    assert queue.flush(10)
    assert upstream.sent == [b"a"]
    assert queue.results == [(["t"], True, "")]
    assert queue.counts() == Counts(queued=3, sent=3)
    assert queue.pending_bytes == 0
    assert queue.close(10)
    assert upstream.sent == [b"a"]


def test_what_waits_together_is_joined_in_order_up_to_the_batch_size(held: tuple[Upstream, Queue]) -> None:
    upstream, queue = held
    queue._max_batch_bytes = 10
    bodies = [b"aaaa", b"bbbb", b"cc", b"d", b"e" * 30, b"f"]
    for body in bodies:
        assert queue.put(body, token=body)
    upstream.gate.set()
    assert queue.flush(10)
    assert upstream.sent == [b"0", b"aaaabbbbcc", b"d", b"e" * 30, b"f"]
    assert [tokens for tokens, _, _ in queue.results] == [[0], bodies[:3], [b"d"], [b"e" * 30], [b"f"]]


def test_the_first_body_waits_for_company_until_the_time_or_the_size() -> None:
    upstream = Upstream()
    queue = Queue(upstream, linger_s=0.2, max_batch_bytes=10)
    queue.time.passes = False
    assert queue.put(b"a")
    assert queue.time.standing.acquire(timeout=10)
    assert queue.time.waited == [pytest.approx(0.2)]
    assert queue.put(b"b")
    assert upstream.sent == []
    assert queue.put(b"c" * 8)  # full
    assert upstream.entered.acquire(timeout=10)
    assert queue.flush(10)
    assert queue.put(b"d")
    assert queue.time.standing.acquire(timeout=10)
    assert queue.flush(10)  # a flush does not wait for company
    queue.time.passes = True
    assert queue.put(b"e")
    assert queue.flush(10)
    assert upstream.sent == [b"abcccccccc", b"d", b"e"]
    queue.close(10)


def test_an_upstream_that_is_down_gets_the_same_bytes_again_with_growing_waits() -> None:
    upstream = Upstream(*[RETRY] * 8)
    queue = Queue(upstream)
    assert queue.put(b"a", items=2, token="t")
    assert queue.ended.acquire(timeout=10)  # not a flush, which would cut a wait short
    assert upstream.sent == [b"a"] * 9
    assert queue.time.waited == [1, 2, 4, 8, 16, 30, 30, 30]
    assert queue.results == [(["t"], True, "")]
    assert queue.counts() == Counts(queued=2, sent=2, retried=16)
    queue.close(10)


def test_the_upstreams_own_time_is_waited_in_full() -> None:
    backoff = Backoff()
    assert backoff.delay(1, 7.0, 0.0) == 7.0
    assert backoff.delay(9, 7.0, 1.0) == pytest.approx(7.7)
    assert backoff.delay(1, 86_400.0, 0.0) == 600.0
    assert backoff.delay(3, 0.0, 1.0) == backoff.delay(3, None, 1.0) == 4.0
    assert backoff.delay(3, None, 0.0) == 2.0
    assert backoff.delay(10_000, None, 1.0) == 30.0


def test_a_flush_cuts_our_own_wait_short_but_not_the_upstreams() -> None:
    upstream = Upstream(RETRY, Answer(Kind.RETRY, retry_after_s=50.0))
    queue = Queue(upstream)
    queue.time.passes = False
    assert queue.put(b"a")
    assert queue.time.standing.acquire(timeout=10)
    assert not queue.flush(0)
    assert queue.time.standing.acquire(timeout=10)  # tried again, and told to come later
    assert len(upstream.sent) == 2
    assert not queue.flush(0)
    assert queue.time.standing.acquire(timeout=10)  # woken, and waiting still
    assert len(upstream.sent) == 2
    queue.time.now += 60
    assert queue.flush(10)
    assert len(upstream.sent) == 3
    queue.close(10)


def test_too_large_is_halved_until_it_fits_in_order_and_what_never_fits_is_dropped(
    held: tuple[Upstream, Queue],
) -> None:
    upstream, queue = held
    upstream.by = lambda body: Answer(Kind.TOO_LARGE) if len(body) > 5 else Answer()
    bodies = [b"aa", b"bb", b"cc", b"d" * 6, b"ee"]
    for body in bodies:
        assert queue.put(body, items=len(body), token=body)
    upstream.gate.set()
    assert queue.flush(10)
    taken = [body for body in upstream.sent if len(body) <= 5]
    assert b"".join(taken) == b"0aabbccee"
    assert [tokens for tokens, ok, reason in queue.results if not ok and reason == "too_large"] == [[b"d" * 6]]
    assert queue.counts() == Counts(queued=15, sent=9, dropped={"too_large": 6})


def test_one_bad_body_does_not_cost_the_others_theirs(held: tuple[Upstream, Queue]) -> None:
    upstream, queue = held
    upstream.by = lambda body: Answer(Kind.BAD, "no") if b"X" in body else Answer()
    for body in (b"a", b"b", b"X", b"c", b"d"):
        assert queue.put(body, token=body)
    upstream.gate.set()
    assert queue.flush(10)
    assert b"".join(body for body in upstream.sent if b"X" not in body) == b"0abcd"
    assert queue.counts() == Counts(queued=6, sent=5, dropped={"bad": 1})
    assert ([b"X"], False, "bad") in queue.results


@pytest.mark.parametrize("kind", [Kind.BAD, Kind.UNAUTHORIZED, Kind.UNIMPLEMENTED, Kind.TOO_LARGE])
def test_a_refusal_drops_and_counts_and_the_next_is_tried(kind: Kind) -> None:
    upstream = Upstream(Answer(kind))
    queue = Queue(upstream)
    assert queue.put(b"a", items=2, token="a")
    assert queue.flush(10)
    assert queue.put(b"b", token="b")
    assert queue.flush(10)
    assert upstream.sent == [b"a", b"b"]
    assert queue.results == [(["a"], False, kind.value), (["b"], True, "")]
    assert queue.counts() == Counts(queued=3, sent=1, dropped={kind.value: 2})
    queue.close(10)


def test_partial_success_is_counted_and_never_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    upstream = Upstream(*[Answer(Kind.OK, "why", 2)] * 3, Answer(Kind.OK, "no more than there were", 99))
    queue = Queue(upstream)
    with caplog.at_level("WARNING", "spangrade"):
        for number in range(4):
            queue.time.now += 61 if number == 2 else 0
            assert queue.put(b"a", items=5, token=number)
            assert queue.flush(10)
    assert len(upstream.sent) == 4
    assert queue.results[0] == ([0], True, PARTIAL)
    assert queue.counts() == Counts(queued=20, sent=9, rejected=11)
    said = [record.getMessage() for record in caplog.records if "refused items" in record.getMessage()]
    assert len(said) == 2  # once in a while
    assert "why" in said[0]
    queue.close(10)


def test_at_the_bound_the_new_body_is_refused_and_what_is_there_stays(held: tuple[Upstream, Queue]) -> None:
    upstream, queue = held
    queue._max_bytes = 10
    assert queue.put(b"a" * 9)
    assert queue.full()
    assert not queue.put(b"b", items=7)
    assert queue.put(b"c" * 5, force=True)
    assert queue.pending_bytes == 15
    upstream.gate.set()
    assert queue.flush(10)
    assert not queue.full()
    assert queue.put(b"d")
    assert queue.flush(10)
    assert b"".join(upstream.sent) == b"0" + b"a" * 9 + b"c" * 5 + b"d"
    assert queue.counts() == Counts(queued=4, sent=4, refused=7)


def test_flush_gives_up_at_its_time_and_loses_nothing(held: tuple[Upstream, Queue]) -> None:
    upstream, queue = held
    assert not queue.flush(0.01)
    upstream.gate.set()
    assert queue.flush(10)
    assert upstream.sent == [b"0"]


def test_flush_waits_for_what_was_put_before_it_only() -> None:
    upstream = Upstream()
    queue = Queue(upstream)
    assert queue.flush(0)
    assert queue.put(b"a")
    assert queue.flush(10)
    assert queue.flush(0)
    queue.close(10)


def test_close_sends_what_is_there_and_takes_nothing_more(held: tuple[Upstream, Queue]) -> None:
    upstream, queue = held
    assert queue.put(b"a")
    closer = threading.Thread(target=queue.close, args=(10,))
    closer.start()
    upstream.gate.set()
    closer.join(10)
    assert upstream.sent == [b"0", b"a"]
    assert not queue.put(b"b")
    assert queue.full()
    assert queue.close(0)
    assert queue.counts() == Counts(queued=2, sent=2, refused=1)


def test_close_before_anything_was_put() -> None:
    queue = Queue(Upstream())
    assert queue.close(0)
    assert not queue.put(b"a")


def test_close_tries_a_waiting_body_once_more_at_once_whatever_time_the_upstream_named() -> None:
    upstream = Upstream(Answer(Kind.RETRY, retry_after_s=500.0))
    queue = Queue(upstream)
    queue.time.passes = False
    assert queue.put(b"a")
    assert queue.time.standing.acquire(timeout=10)
    assert queue.close(10)
    assert upstream.sent == [b"a", b"a"]


def test_close_drops_and_counts_what_an_upstream_that_is_down_does_not_take() -> None:
    upstream = Upstream(by=lambda body: RETRY)
    queue = Queue(upstream)
    queue.time.passes = False
    assert queue.put(b"a", items=2, token="a")
    assert queue.put(b"b", items=3, token="b")
    assert queue.time.standing.acquire(timeout=10)
    queue.time.passes = True
    queue.close(5)  # five seconds of the injected clock, which pass at once
    thread = queue._thread
    assert thread is not None
    thread.join(10)
    assert not thread.is_alive()
    assert queue.counts().dropped == {SHUTDOWN: 5}
    assert sorted(token for tokens, ok, reason in queue.results for token in tokens if reason == SHUTDOWN) == ["a", "b"]
    assert queue.pending_bytes == 0
    assert len(upstream.sent) > 2  # it went on trying meanwhile


def test_close_does_not_wait_for_an_upstream_that_hangs_and_counts_each_body_once(
    held: tuple[Upstream, Queue],
) -> None:
    upstream, queue = held
    assert queue.put(b"a", token=1)
    assert not queue.close(0.01)
    assert queue.results == [([0, 1], False, SHUTDOWN)]
    upstream.gate.set()  # the answer comes after all
    thread = queue._thread
    assert thread is not None
    thread.join(10)
    assert upstream.sent == [b"0"]
    assert queue.results == [([0, 1], False, SHUTDOWN)]
    assert queue.counts() == Counts(queued=2, dropped={SHUTDOWN: 2})


def test_an_upstream_or_callback_that_raises_does_not_end_the_queue(
    swallowed_faults: list[tuple[str, BaseException]],
) -> None:
    class Raising(Upstream):
        def send(self, signal: Signal, body: bytes) -> Answer:
            answer = super().send(signal, body)
            if len(self.sent) == 1:
                raise RuntimeError("not to the contract")
            return answer

    upstream = Raising()
    queue = Queue(upstream)
    queue._on_result = lambda *_: 1 / 0  # type: ignore[assignment]
    assert queue.put(b"a", token="a")
    assert queue.flush(10)
    assert queue.put(b"b", token="b")
    assert queue.flush(10)
    assert upstream.sent == [b"a", b"a", b"b"]
    assert [where for where, _ in swallowed_faults] == ["forward.send", "forward.on_result", "forward.on_result"]
    swallowed_faults.clear()
    queue.close(10)


def test_a_callback_may_put_again() -> None:
    upstream = Upstream()
    queue = Queue(upstream)
    queue._on_result = lambda tokens, ok, reason: queue.put(b"again") if tokens == ["first"] else None  # type: ignore[assignment]
    assert queue.put(b"a", token="first")
    assert queue.flush(10)
    assert queue.flush(10)
    assert upstream.sent == [b"a", b"again"]
    queue.close(10)


def test_many_threads_put_and_everything_is_sent_once() -> None:
    upstream = Upstream()
    queue = Queue(upstream, max_batch_bytes=64)
    bodies = [[b"<%d.%d>" % (thread, number) for number in range(200)] for thread in range(8)]
    putters = [threading.Thread(target=lambda own=own: [queue.put(body) for body in own]) for own in bodies]
    for putter in putters:
        putter.start()
    for putter in putters:
        putter.join(20)
    assert queue.flush(20)
    sent = b"".join(upstream.sent)
    assert sorted(sent.split(b">")[:-1]) == sorted(body[:-1] for own in bodies for body in own)
    for own in bodies:  # each sender's order is kept
        places = [sent.index(body) for body in own]
        assert places == sorted(places)
    queue.close(10)


_KINDS = st.sampled_from([Kind.OK, Kind.OK, Kind.RETRY, Kind.TOO_LARGE, Kind.BAD, Kind.UNAUTHORIZED])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=15),
    st.lists(st.builds(Answer, _KINDS, st.just(""), st.integers(0, 4)), max_size=20),
    st.booleans(),
)
def test_conservation_whatever_the_upstream_answers(sizes: list[int], script: list[Answer], closes: bool) -> None:
    upstream = Upstream(*script)
    queue = Queue(upstream, max_batch_bytes=12, max_bytes=60)
    accepted = [number for number, size in enumerate(sizes) if queue.put(bytes([65 + number]) * size, size, number)]
    assert queue.close(20) if closes else queue.flush(20)
    counts = queue.counts()
    assert counts.queued == sum(sizes[number] for number in accepted)
    assert counts.queued == counts.sent + counts.rejected + sum(counts.dropped.values())
    assert counts.queued + counts.refused == sum(sizes)
    assert [token for tokens, _, _ in queue.results for token in tokens] == accepted
    assert queue.pending_bytes == 0
    queue.close(20)
