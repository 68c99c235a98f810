"""Calls that came back together are not started together again, and nobody is held up who is no burst."""

from hypothesis import given
from hypothesis import strategies as st

from spangrade.judges.limiter import Limiter, Place
from spangrade.judges.pacing import BURST, LEAST, LOOK_S, Pacer

from .conftest import FakeTime


def nothing() -> None: ...


def start(limiter: Limiter, most: int) -> list[Place]:
    """As many as it lets start now."""
    places: list[Place] = []
    while len(places) < most and (place := limiter.enter(nothing)) is not None:
        places.append(place)
    return places


def known(limit: int, seconds: float) -> tuple[Limiter, FakeTime, list[Place]]:
    """A limiter whose limit is found and in use, at an endpoint that takes so long."""
    time = FakeTime()
    limiter = Limiter("host", limit, clock=lambda: time.now, sleep=time.sleep)
    limiter._aimd._limit, limiter._aimd._usual = float(limit), {"m": seconds}
    places: list[Place] = []
    while len(places) < limit:
        places += start(limiter, limit)
        time.now += LOOK_S
    return limiter, time, places


def test_two_hundred_that_come_back_at_once_start_again_over_half_a_round_and_are_spread_then() -> None:
    limiter, time, places = known(200, 2.0)
    for place in places:
        limiter.answered(place, "m", time.now - 2.0)
        place.release()
    starts: list[int] = []
    while limiter.state().in_flight < 200:
        starts.append(len(start(limiter, 200)))
        time.now += LOOK_S
    assert sum(starts) == 200
    assert max(starts) <= 30  # of 200: BURST that are none, and what gathers between two looks
    assert len(starts) * LOOK_S <= 1.0 + LOOK_S  # half of what a reply takes


def test_at_the_rate_that_keeps_all_places_in_use_nobody_waits() -> None:
    limiter, time, places = known(200, 2.0)
    for place in places:
        time.now += 0.01
        limiter.answered(place, "m", time.now - 2.0)
        place.release()
        assert limiter.enter(nothing) is not None


@given(limit=st.integers(1, 8), seconds=st.floats(0.001, 100.0))
def test_few_calls_are_never_held_up(limit: int, seconds: float) -> None:
    limiter, time, places = known(limit, seconds)
    for place in places:
        limiter.answered(place, "m", time.now - seconds)
        place.release()
    assert len(start(limiter, limit)) == limit


@given(waits=st.lists(st.floats(0.0, 1.0), max_size=40), limit=st.integers(9, 200), usual=st.floats(0.01, 60.0))
def test_no_more_start_than_the_rate_and_one_burst_allow(waits: list[float], limit: int, usual: float) -> None:
    pacer, now, started = Pacer(), 0.0, 0
    pacer.may_start(now, limit, limit, usual)
    rate = max(2 * limit / usual, LEAST)
    for wait in waits:
        now += wait
        while pacer.may_start(now, limit, limit, usual):
            pacer.started()
            started += 1
    assert started <= max(BURST, rate * LOOK_S) + rate * now + 1e-6
