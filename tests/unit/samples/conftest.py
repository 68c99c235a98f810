"""Calls made by hand, and a guard that hides nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spangrade import _guard, _log
from spangrade.model.span import SpanData
from spangrade.samples.extract import extract
from spangrade.samples.reading import Call


@pytest.fixture(autouse=True)
def nothing_swallowed() -> Iterator[None]:
    """A fault that `_guard` stopped in the code under test fails the test."""
    faults: list[BaseException] = []
    remove = _guard.observe(lambda _where, fault: faults.append(fault))
    _log.forget_said()
    yield
    remove()
    if faults:
        raise faults[0]


@pytest.fixture
def span_of() -> Callable[..., SpanData]:
    """Makes a span from attributes."""

    def make(attributes: dict[str, Any], **more: Any) -> SpanData:
        given = {"trace_id": 1, "span_id": 1, "parent_span_id": None, "name": "span", "start_ns": 1_000, "end_ns": 2_000}
        return SpanData(attributes=attributes, **{**given, **more})

    return make


@pytest.fixture
def call_of(span_of: Callable[..., SpanData]) -> Callable[..., Call]:
    """Makes the call that a span with these attributes is."""

    def make(attributes: dict[str, Any], **more: Any) -> Call:
        call = extract(span_of(attributes, **more))
        assert call is not None
        return call

    return make
