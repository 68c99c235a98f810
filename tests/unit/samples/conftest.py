"""Calls made by hand, the case files' spans, and a guard that hides nothing."""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
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


@pytest.fixture(scope="session")
def otlp_json() -> Any:
    """The helper beside this file (test modules are not on the import path)."""
    spec = importlib.util.spec_from_file_location("samples_otlp_json", Path(__file__).with_name("otlp_json.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def case_calls(otlp_json: Any) -> Callable[[str], dict[str, Call]]:
    """The calls of a case file by span id in hex; spans that are no call are left out."""

    def read(name: str) -> dict[str, Call]:
        found = {key: extract(span) for key, span in otlp_json.case_spans(name).items()}
        return {key: call for key, call in found.items() if call is not None}

    return read


@pytest.fixture
def span_of() -> Callable[..., SpanData]:
    """Makes a span from attributes."""

    def make(attributes: dict[str, Any], **more: Any) -> SpanData:
        given = {
            "trace_id": 1,
            "span_id": 1,
            "parent_span_id": None,
            "name": "span",
            "start_ns": 1_000,
            "end_ns": 2_000,
        }
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
