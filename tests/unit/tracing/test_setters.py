"""Setters on a call, and on a span of another instrumentation: beside what is there, never over it."""

import json
import threading
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s


def foreign(**attributes: Any) -> Any:
    return trace_api.get_tracer("theirs").start_as_current_span("chat", attributes=attributes)


SETTERS = pytest.mark.parametrize(
    ("setter", "key"), [(sg.set_metadata, s.OI_METADATA), (sg.set_context, s.CONTEXT)], ids=["metadata", "context"]
)


@SETTERS
def test_calls_on_a_foreign_span_add_to_each_other_and_to_what_it_holds(setter: Any, key: str, traced: Spans) -> None:
    with foreign(**{key: '{"theirs": 1, "both": 1}'}):
        setter(a=1)
        setter({"b": 2, "both": 2})
    assert json.loads(traced.attributes()[key]) == {"theirs": 1, "both": 2, "a": 1, "b": 2}


@SETTERS
def test_what_the_application_put_on_a_traced_call_itself_stays(setter: Any, key: str, traced: Spans) -> None:
    with sg.trace("block"):
        trace_api.get_current_span().set_attribute(key, '{"by hand": [1]}')
        setter(a=1)
        setter(b=2)
    assert json.loads(traced.attributes()[key]) == {"by hand": [1], "a": 1, "b": 2}


@SETTERS
@pytest.mark.parametrize("theirs", ["just text", "[1]", 7, True, ("x", "y")])
def test_what_is_no_json_object_is_kept_under_its_own_word(theirs: Any, setter: Any, key: str, traced: Spans) -> None:
    with foreign(**{key: theirs}):
        setter(a=1)
        setter(b=2)
    kept = list(theirs) if isinstance(theirs, tuple) else theirs
    assert json.loads(traced.attributes()[key]) == {key.rpartition(".")[2]: kept, "a": 1, "b": 2}


def test_an_object_that_a_limit_has_cut_is_begun_anew(traced: Spans) -> None:
    with foreign(metadata='{"theirs": "cut off he'):
        sg.set_metadata(a=1)
    assert json.loads(traced.attributes()[s.OI_METADATA]) == {"a": 1}


def test_threads_that_set_at_once_lose_nothing(traced: Spans) -> None:
    ready = threading.Barrier(8)

    def work(span: Any, n: int) -> None:
        with trace_api.use_span(span):
            ready.wait()
            for i in range(20):
                sg.set_metadata({f"{n}.{i}": i})

    with foreign():
        span = trace_api.get_current_span()
        threads = [threading.Thread(target=work, args=(span, n)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(json.loads(traced.attributes()[s.OI_METADATA])) == 160


def test_a_huge_mapping_is_cut_before_it_is_copied(traced: Spans) -> None:
    huge = dict.fromkeys(map(str, range(1_000_000)), "x")
    with foreign():
        sg.set_metadata(huge)
    assert len(traced.attributes()[s.OI_METADATA]) < 1_000_000
