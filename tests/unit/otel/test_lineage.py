"""What is kept of spans that are open is bounded in number and in age (C110)."""

import pytest

from spangrade.otel import lineage
from spangrade.otel.lineage import MAX_AGE_S, OpenSpans


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def start(spans: OpenSpans, first: int, last: int, kind: str = "chain") -> None:
    for n in range(first, last + 1):
        spans.opened((1, n), None, kind, None)


def is_known(spans: OpenSpans, n: int) -> bool:
    """Whether a call that ends now below span ``n`` is below a call."""
    spans.opened((1, 10**6), (1, n), "llm", None)
    found, _ = spans.ended((1, 10**6), is_call=True)
    return found.under_call


def test_spans_that_never_end_are_forgotten_when_they_are_old_and_others_start(clock: Clock) -> None:
    spans = OpenSpans(clock)
    start(spans, 1, 640)
    clock.now += MAX_AGE_S / 2
    start(spans, 641, 1_280)
    assert len(spans) == 1_280
    clock.now += MAX_AGE_S / 2
    start(spans, 1_281, 1_344)
    assert not is_known(spans, 64)
    assert is_known(spans, 700)
    assert is_known(spans, 1_344)
    clock.now += 2 * MAX_AGE_S
    start(spans, 1_345, 1_472)
    assert 64 <= len(spans) <= 128


def test_what_is_younger_is_kept_whatever_has_ended_before(clock: Clock) -> None:
    spans = OpenSpans(clock)
    for n in range(1, 100_000):
        clock.now += 0.1
        spans.opened((1, n), None, "chain", None)
        if n % 100:
            spans.ended((1, n), is_call=True)
    assert clock.now < MAX_AGE_S
    assert len(spans) == 999
    assert is_known(spans, 100)


def test_the_number_is_bounded_too(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "MAX_OPEN", 100)
    spans = OpenSpans(clock)
    start(spans, 1, 640)
    assert len(spans) == 100
    assert is_known(spans, 640)
    assert not is_known(spans, 500)


def test_the_marks_of_time_are_few(clock: Clock) -> None:
    spans = OpenSpans(clock)
    for n in range(640):
        clock.now += MAX_AGE_S / 100
        start(spans, 64 * n, 64 * n + 63)
    assert len(spans._marks) <= 65
    assert len(spans) <= 64 * 102
