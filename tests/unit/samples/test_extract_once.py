"""What is kept between spans says nothing of any of them; a dialect that fails costs what it says and no more."""

from collections.abc import Callable
from typing import Any

import pytest

from spangrade.model.span import SpanData
from spangrade.samples import extract as room
from spangrade.samples.dialects import DIALECTS, plain
from spangrade.samples.extract import extract
from spangrade.samples.reading import Reading

SpanOf = Callable[..., SpanData]


@pytest.fixture(autouse=True)
def nothing_swallowed() -> None:
    """The whole suite's guard is enough here: one test injects a fault, and clears it."""


def test_claims_go_by_keys_alone() -> None:
    """Else what was kept of one span would be wrong of the next."""
    keys = {key for dialect in DIALECTS for key in (*dialect.kind_marks, *dialect.content_keys)}
    for dialect in DIALECTS:
        for key in keys:
            assert dialect.claims({key: "x"}) == dialect.claims({key: None}) == dialect.claims({key: ("a",)}), (
                dialect.name,
                key,
            )


def test_spans_with_the_same_keys_share_no_reading(span_of: SpanOf) -> None:
    one, two = (extract(span_of({"input": text, "output": text})) for text in ("a", "b"))
    assert one is not None
    assert two is not None
    assert (one.reading.input, two.reading.input) == ("a", "b")
    assert one.reading is not two.reading


@pytest.mark.parametrize("keys", [{f"k{n}": 1 for n in range(100)}, {"k" * 10_000: 1}, {5: 1}])
def test_keys_of_an_attacker_are_not_kept(span_of: SpanOf, keys: dict[Any, int]) -> None:
    """Many, long, or no text."""
    before = room._claimed.cache_info().currsize
    assert extract(span_of({"input": "x", **keys})) is not None
    assert room._claimed.cache_info().currsize == before


def test_a_dialect_that_fails_costs_what_it_says(
    span_of: SpanOf, monkeypatch: pytest.MonkeyPatch, swallowed_faults: list[tuple[str, BaseException]]
) -> None:
    """The others are heard, and the fault is told."""

    def broken(span: SpanData) -> Reading:
        raise ZeroDivisionError

    monkeypatch.setattr(plain, "read", broken)
    call = extract(span_of({"input": "x", "openinference.span.kind": "CHAIN", "input.value": "heard"}))
    assert call is not None
    assert call.reading.input == "heard"
    assert [where for where, _ in swallowed_faults] == ["samples.plain"]
    swallowed_faults.clear()
