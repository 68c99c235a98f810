"""The limiter of an endpoint: places, pauses, the circuit, retries; no place is lost, and none is there twice."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangrade.errors import JudgeError
from spangrade.judges.breaker import FAILURES, OPEN_S
from spangrade.judges.limiter import Limiter, Place
from spangrade.judges.limiters import shared_limiter
from spangrade.judges.providers.base import JudgeRequest, Message
from spangrade.judges.providers.openai_compatible import OpenAICompatible
from spangrade.judges.providers.resets import reset_wait

from .conftest import FakeTime, JudgeServer, Reply

REQUEST = JudgeRequest("m", (Message("system", "s"), Message("user", "u")))


def limiter(time: FakeTime, most: int = 200) -> Limiter:
    return Limiter("host", most, clock=lambda: time.now, sleep=time.sleep)


def nothing() -> None: ...


ACTIONS = st.sampled_from(["enter", "leave", "answered", "refused", "failed", "pause", "time"])


@given(most=st.integers(1, 40), actions=st.lists(ACTIONS, max_size=200))
def test_places_stay_within_the_limit_and_the_limit_within_its_bounds(most: int, actions: list[str]) -> None:
    time = FakeTime()
    made = limiter(time, most)
    held: list[Place] = []
    for action in actions:
        before = made.state()
        if action == "enter":
            place = made.enter(nothing)
            if place is not None:
                assert before.in_flight < before.limit
                assert not before.paused_s
                held.append(place)
        elif action == "leave" and held:
            place = held.pop()
            place.release()
            place.release()  # does nothing
        elif action == "answered" and held:
            made.answered(held[-1], "m", time.now - 1)
        elif action == "refused":
            made.refused(time.now)
        elif action == "failed":
            made.failed("status 503")
        elif action == "pause":
            made.pause(2.0)
        else:
            time.now += 1.0
        state = made.state()
        assert state.in_flight == len(held)
        assert 1 <= state.limit <= most


def test_a_lane_that_found_no_place_is_woken_when_there_is_one() -> None:
    made = limiter(FakeTime(), 1)
    woken: list[str] = []
    place = made.enter(nothing)
    assert place is not None
    assert made.enter(lambda: woken.append("a")) is None
    assert woken == []
    place.release()
    assert woken == ["a"]
    assert made.enter(nothing) is not None


def test_many_threads_that_wait_all_get_a_place_and_never_too_many_at_once() -> None:
    made = Limiter("host", 3)
    lock, now, most, done = threading.Lock(), 0, 0, 0
    start = threading.Barrier(24)

    def work() -> None:
        nonlocal now, most, done
        start.wait()
        for _ in range(20):
            place = made.place(1e12)
            with lock:
                now += 1
                most = max(most, now)
            with lock:
                now -= 1
                done += 1
            place.release()

    threads = [threading.Thread(target=work) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (done, made.state().in_flight) == (480, 0)
    assert most <= 3


def test_refusals_of_one_round_cut_once_and_success_grows_by_one_a_round() -> None:
    time = FakeTime()
    made = limiter(time)
    for _ in range(10):
        made.refused(time.now - 1)
    assert made.state().limit == 8  # half of 16, once: all were sent before the cut
    time.now += 1
    places = [made.enter(nothing) for _ in range(8)]
    for place in places:
        assert place is not None
        made.answered(place, "m", time.now)
    assert made.state().limit in (8, 9)


def test_a_slow_endpoint_gets_less() -> None:
    time = FakeTime()
    made = limiter(time)
    place = made.enter(nothing)
    assert place is not None
    for seconds in (1.0, 5.0):
        for _ in range(16):
            sent = time.now
            time.now += seconds
            made.answered(place, "m", sent)
    assert made.state().limit == 14


def test_the_circuit_opens_lets_one_probe_through_and_closes() -> None:
    time = FakeTime()
    made = limiter(time)
    for _ in range(FAILURES):
        made.failed("connection")
    assert made.state().circuit == "open"
    assert made.shut()
    assert made.enter(nothing) is None
    with pytest.raises(JudgeError, match="host does not work \\(connection\\)") as refused:
        made.place(time.now + 60)
    assert refused.value.kind == "circuit_open"
    time.now += OPEN_S
    probe = made.enter(nothing)
    assert probe is not None
    assert probe.probe
    assert made.enter(nothing) is None
    assert made.shut()
    made.answered(probe, "m", time.now)
    assert made.state().circuit == "closed"
    assert made.enter(nothing) is not None


def test_retries_are_a_tenth_of_the_calls_past_the_reserve() -> None:
    time = FakeTime()
    made = limiter(time)
    place = made.enter(nothing)
    assert place is not None
    assert [made.may_retry() for _ in range(11)] == [True] * 10 + [False]
    for _ in range(11):
        made.answered(place, "m", None)
    assert [made.may_retry() for _ in range(2)] == [True, False]


def test_clients_of_one_endpoint_and_key_share_a_limiter() -> None:
    base = "http://127.0.0.1:9/v1"
    first = shared_limiter(base, "key-1")
    assert shared_limiter(base + "/", "key-1") is first
    assert shared_limiter(base + "/chat/completions", "key-1") is first
    assert shared_limiter(base, "key-2") is not first
    assert OpenAICompatible(base, "key-1").limiter is first
    assert "key" not in first.state().host


def test_a_pause_that_one_caller_is_asked_for_is_everybodys(server: JudgeServer, fake_time: FakeTime) -> None:
    policy = fake_time.policy(retries=0)
    one, other = (OpenAICompatible(server.base_url, "k", retry=policy) for _ in range(2))
    server.script = [Reply(429, {"error": {}}, {"Retry-After": "7"}), Reply(429, {"error": {}})]
    with pytest.raises(JudgeError):
        one.complete(REQUEST)
    assert fake_time.slept == []
    with pytest.raises(JudgeError):
        other.complete(REQUEST)
    assert fake_time.slept == [pytest.approx(7.0)]
    one.close()
    other.close()


@pytest.mark.parametrize(
    ("headers", "refused", "wait"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, False, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, False, 0.02),
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "1s"}, False, None),
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "1s"}, True, 1.0),
        ({"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "1970-01-01T00:01:40Z"}, False, 90.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "soon"}, True, None),
        ({}, True, None),
    ],
)  # fmt: skip
def test_reset_headers_are_read(headers: dict[str, str], refused: bool, wait: Any) -> None:
    found = reset_wait(headers, 10.0, refused=refused)
    assert found == (None if wait is None else pytest.approx(wait))
