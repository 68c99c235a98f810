"""A lazily filled span is the SDK's span for everybody who looks: the same program gives the same spans with and without."""

import contextvars
import cProfile
import gc
import json
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags
from tests.unit.tracing.conftest import by_public_api

import spangrade as sg
from spangrade.testing import CollectingExporter
from spangrade.tracing import call, lazy
from spangrade.tracing.lazy.span import LazySpan

ELSEWHERE = SpanContext(0xABC, 0xDEF, True, TraceFlags(1))


@pytest.fixture(autouse=True)
def both_ways() -> None:
    """Here each test says which way."""


@sg.trace
def plain(question: str) -> str:
    return question.upper()


@sg.trace(kind="llm")
def says_much(messages: Any) -> Any:
    span = trace_api.get_current_span()
    span.set_attribute("a", 1)
    span.set_attributes({"b": [1, 2], "c": "x" * 100})
    span.add_event("seen", {"n": 1})
    span.add_link(ELSEWHERE, {"why": "test"})
    span.update_name("renamed")
    return [{"role": "assistant", "content": "hello"}]


@sg.trace
def too_much() -> str:
    span = trace_api.get_current_span()
    for n in range(40):
        span.set_attribute(f"k{n}", "v" * n)
        span.add_event(f"e{n}", {f"x{m}": m for m in range(12)})
        span.add_link(ELSEWHERE, {"n": n})
    return "out"


@sg.trace
def fails() -> None:
    trace_api.get_current_span().record_exception(KeyError("handled"))
    raise ValueError("no")


@sg.trace
def is_fine() -> None:
    trace_api.get_current_span().set_status(Status(StatusCode.OK))
    raise ValueError("said to be fine before")


@sg.trace(kind="retriever")
def search(query: str) -> Any:
    return [{"content": "one", "score": 0.5}, {"content": "two", "id": "d2"}]


@sg.trace
def nests(question: str) -> str:
    search(question)
    with trace_api.get_tracer("other").start_as_current_span("inner", attributes={"z": 1}):
        plain("deeper")
    sg.set_session("s1", user="u1")
    sg.set_metadata(tenant="t")
    sg.set_context(seen=True)
    sg.set_input("said better")
    return "done"


@sg.trace
def ends_itself() -> str:
    trace_api.get_current_span().end()
    return "late"


@sg.trace
def counts(n: int) -> Iterator[Any]:
    yield from map(str, range(n))


PROGRAMS: dict[str, Callable[[], Any]] = {
    "plain": lambda: plain("a"),
    "several arguments and kinds of values": lambda: sg.trace(lambda a, b=None, *c, **d: {"a": a, "d": d})(
        1, {2: (3, {4})}, b"5", d=[None, True, 0.5]
    ),
    "attributes, events, links, name": lambda: says_much([{"role": "user", "content": "hi"}]),
    "beyond the limits": too_much,
    "an exception": lambda: _raises(fails),
    "an exception after OK": lambda: _raises(is_fine),
    "nested with others": lambda: nests("q"),
    "ended by the application": ends_itself,
    "a stream": lambda: list(counts(3)),
    "a block": lambda: _block(),  # noqa: PLW0108 - defined below
}


def _raises(program: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"^(no|said to be fine before)$"):
        program()


def _block() -> None:
    with sg.trace(name="block", kind="tool") as traced_call:
        traced_call.span.set_attribute("mine", 1)


def told(span: ReadableSpan) -> Any:
    """What a span says, without what differs from run to run."""
    said = json.loads(span.to_json())
    for key in ("context", "parent_id", "start_time", "end_time"):
        del said[key]
    for event in said["events"]:
        del event["timestamp"]
        event["attributes"].pop("exception.stacktrace", None)
    said["attributes"].pop("gen_ai.response.time_to_first_chunk", None)
    said["attributes"] = sorted(said["attributes"].items())
    said["dropped"] = (span.dropped_attributes, span.dropped_events, span.dropped_links)
    context, parent = span.get_span_context(), span.parent
    assert context is not None
    assert context.is_valid
    said["flags"] = (int(context.trace_flags), context.is_remote)
    said["parent"] = None if parent is None else (parent.trace_id == context.trace_id, parent.is_remote)
    said["scope"] = str(span.instrumentation_scope)
    assert (span.end_time or 0) >= (span.start_time or 0) > 0
    return said


def run(program: Callable[[], Any], limits: SpanLimits | None = None) -> list[Any]:
    seen = InMemorySpanExporter()
    provider = TracerProvider(span_limits=limits)
    provider.add_span_processor(SimpleSpanProcessor(seen))
    call.use_provider(provider)
    trace_api._TRACER_PROVIDER = provider
    program()
    return [told(span) for span in seen.get_finished_spans()]


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_foreign_exporter_sees_the_same_spans_as_from_the_sdk(
    program: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lazily = run(program)
    by_public_api(monkeypatch)
    assert lazily == run(program)


def test_small_limits_hold_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = SpanLimits(
        max_span_attributes=8, max_events=3, max_links=2, max_event_attributes=2, max_attribute_length=5
    )

    def program() -> None:
        too_much()
        plain("a long question")
        nests("q")

    lazily = run(program, limits)
    by_public_api(monkeypatch)
    usual = run(program, limits)
    assert [span["dropped"] for span in lazily] == [span["dropped"] for span in usual]
    assert [(span["name"], span["events"], span["links"]) for span in lazily] == [
        (span["name"], span["events"], span["links"]) for span in usual
    ]
    assert all(len(span["attributes"]) <= 8 for span in lazily)


class Reads(SpanProcessor):
    """Looks at everything at every moment, and writes at the start."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        assert span.is_recording()
        span.set_attribute("seen.at", dict(span.attributes or {}).get("openinference.span.kind", "?"))

    def on_end(self, span: ReadableSpan) -> None:
        assert isinstance(span, ReadableSpan)
        span.to_json()
        self.ended.append(span)


def test_a_processor_may_read_and_write_from_the_start(exporter: CollectingExporter) -> None:
    provider, reads = TracerProvider(), Reads()
    provider.add_span_processor(reads)
    sg.configure(tracer_provider=provider, exporter=exporter)
    plain("a")
    (span,) = reads.ended
    assert isinstance(span, LazySpan)
    assert dict(span.attributes or {})["seen.at"] == "CHAIN"
    assert dict(span.attributes or {})["output.value"] == "A"


def test_two_threads_may_read_at_once_and_see_the_same(exporter: CollectingExporter) -> None:
    sg.configure(exporter=exporter)

    @sg.trace
    def talks(value: Any) -> Any:
        return value

    for _ in range(50):
        talks({"list": list(range(200))})
    assert sg.flush(10)
    for exported in exporter.spans:
        span = exported
        gate, found = threading.Barrier(3), []

        def read(span: Any = span, gate: Any = gate, found: Any = found) -> None:
            gate.wait()
            found.append((span.attributes.copy(), span.events, span.links, span.get_span_context()))

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found[0] == found[1] == found[2]
        assert "input.value" in found[0][0]


def test_one_thread_may_write_while_another_reads(exporter: CollectingExporter) -> None:
    sg.configure(exporter=exporter)
    failed: list[BaseException] = []

    @sg.trace
    def busy(n: int) -> None:
        span: Any = trace_api.get_current_span()
        gate = threading.Barrier(2)

        def read() -> None:
            try:
                gate.wait()
                for _ in range(30):
                    dict(span.attributes)
                    span.to_json()
            except BaseException as fault:
                failed.append(fault)

        thread = threading.Thread(target=read)
        thread.start()
        gate.wait()
        for m in range(30):
            span.set_attribute(f"k{m}", m)
            span.add_event("e")
        thread.join()

    for n in range(20):
        busy(n)
    assert failed == []
    assert sg.flush(10)
    assert all(len([k for k in span.attributes or {} if k.startswith("k")]) == 30 for span in exporter.spans)


def test_a_callers_later_change_is_not_seen(exporter: CollectingExporter) -> None:
    sg.configure(exporter=exporter)

    @sg.trace
    def keeps(question: dict[str, Any]) -> dict[str, Any]:
        question["q"].append("changed")
        return question

    given = {"q": ["as it was"]}
    got = keeps(given)
    got["q"].append("changed again")
    assert sg.flush(5)
    attributes = dict(exporter.spans[0].attributes or {})
    assert json.loads(str(attributes["input.value"])) == {"q": ["as it was"]}
    assert json.loads(str(attributes["output.value"])) == {"q": ["as it was", "changed"]}


@pytest.mark.parametrize(
    "sampler",
    [
        sampling.ALWAYS_OFF,
        sampling.ParentBased(sampling.ALWAYS_OFF),
        sampling.ParentBased(sampling.TraceIdRatioBased(0)),
        sampling.TraceIdRatioBased(0),
    ],
)
def test_what_the_sampler_drops_is_not_recorded_nor_what_is_below_it(sampler: Any) -> None:
    seen = InMemorySpanExporter()
    provider = TracerProvider(sampler=sampler)
    provider.add_span_processor(SimpleSpanProcessor(seen))
    call.use_provider(provider)

    @sg.trace
    def below() -> SpanContext:
        return trace_api.get_current_span().get_span_context()

    @sg.trace
    def root() -> Any:
        here = trace_api.get_current_span().get_span_context()
        return here, below()

    here, under = root()
    assert seen.get_finished_spans() == ()
    assert here.is_valid
    assert not here.trace_flags.sampled
    assert under.trace_id == here.trace_id
    assert not under.trace_flags.sampled


def test_a_samplers_attributes_and_state_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Adds(sampling.Sampler):
        def should_sample(self, *args: Any, **kwargs: Any) -> sampling.SamplingResult:
            attributes = {**(args[4] or {}), "sampler.says": "yes"}
            state = trace_api.TraceState([("vendor", "1")])
            return sampling.SamplingResult(sampling.Decision.RECORD_AND_SAMPLE, attributes, state)

        def get_description(self) -> str:
            return "adds"

    def states() -> list[Any]:
        seen = InMemorySpanExporter()
        provider = TracerProvider(sampler=Adds())
        provider.add_span_processor(SimpleSpanProcessor(seen))
        call.use_provider(provider)
        plain("a")
        (span,) = seen.get_finished_spans()
        assert span.context is not None
        return [span.context.trace_state.to_header(), dict(span.attributes or {})]

    lazily = states()
    assert lazily[0] == "vendor=1"
    assert lazily[1]["sampler.says"] == "yes"
    by_public_api(monkeypatch)
    assert lazily == states()


def test_only_recorded_spans_are_scored_by_nobody(exporter: CollectingExporter) -> None:
    class RecordsOnly(sampling.Sampler):
        def should_sample(self, *args: Any, **kwargs: Any) -> sampling.SamplingResult:
            return sampling.SamplingResult(sampling.Decision.RECORD_ONLY)

        def get_description(self) -> str:
            return "records only"

    ended: list[ReadableSpan] = []

    class Keeps(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            ended.append(span)

    provider = TracerProvider(sampler=RecordsOnly())
    provider.add_span_processor(Keeps())
    sg.configure(tracer_provider=provider, metrics=["overlap"])
    plain("a")
    (span,) = ended
    assert span.context is not None
    assert not span.context.trace_flags.sampled
    assert sg.flush(5)
    assert len(ended) == 1


def test_a_processor_that_is_added_or_moved_during_a_call_gets_its_end_once() -> None:
    first, second = InMemorySpanExporter(), InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(first))
    call.use_provider(provider)

    @sg.trace
    def adds() -> None:
        provider.add_span_processor(SimpleSpanProcessor(second))

    adds()
    assert len(first.get_finished_spans()) == len(second.get_finished_spans()) == 1


@pytest.mark.parametrize(
    ("version", "tried"),
    [
        ("1.40.0", True),
        ("1.45.2", True),
        ("1.39.1", False),
        ("1.46.0", False),
        ("2.0.0", False),
        ("1.45.0rc1", False),
        ("x", False),
    ],
)
def test_only_versions_that_were_tried_take_this_path(version: str, tried: bool) -> None:
    assert lazy.usable(version) is tried


def function_calls(run: Callable[[], Any]) -> int:
    profile = cProfile.Profile()
    profile.enable()
    run()
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats()) - 1


def test_a_traced_and_scored_call_takes_at_most_60_function_calls(exporter: CollectingExporter) -> None:
    # The SDK's tracer asks its provider whether it is enabled, and counts each span, up to 1.40; later only if told to.
    most = 60 if hasattr(TracerProvider().get_tracer("t"), "_tracer_config") else 120
    sg.configure(metrics=["overlap"], exporter=exporter)

    @sg.trace
    def answers(question: Any) -> str:
        return "yes"

    question = {"question": "?", "history": [{"role": "user", "content": "x"}] * 3}
    for _ in range(3):
        answers(question)
    assert sg.flush(5)
    assert function_calls(lambda: answers(question)) <= most


def test_a_chain_of_calls_of_which_each_starts_the_next_keeps_none_of_those_before(
    exporter: CollectingExporter,
) -> None:
    sg.configure(exporter=exporter)
    contexts: list[Any] = [contextvars.copy_context()]
    seen: list[Any] = []

    @sg.trace
    def polls(n: int) -> None:
        span = trace_api.get_current_span()
        assert isinstance(span, LazySpan)
        seen.append(weakref.ref(span))
        contexts.append(contextvars.copy_context())

    for n in range(20):
        contexts.pop(0).run(polls, n)
    assert sg.flush(5)
    parents = [span.parent for span in exporter.spans]
    assert sum(parent is None for parent in parents) == 1
    ids = {span.context.span_id for span in exporter.spans if span.context}
    assert all(parent.span_id in ids for parent in parents if parent is not None)
    exporter._spans.clear()
    gc.collect()
    assert sum(one() is not None for one in seen) <= 2  # the one that the last context holds


def test_what_a_call_gave_counts_for_its_size_whoever_wrote_to_it_before(exporter: CollectingExporter) -> None:
    sg.configure(exporter=exporter)

    @sg.trace
    def answers(question: str) -> str:
        sg.set_session("s")
        seen.append(trace_api.get_current_span())
        return "x" * 50_000

    seen: list[Any] = []
    answers("q")
    assert seen[0].size > 50_000
