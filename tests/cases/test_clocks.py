"""C122, C123, C125: repeated ids, odd times in process and through the agent, and a wall clock that steps back."""

import json
import random
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from tests.cases.conftest import Product

import spangrade as sg
from spangrade import semconv as s
from spangrade.testing import CollectingExporter, event_scores
from spangrade_agent.app import Agent
from spangrade_agent.config import AgentConfig

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))
from examples.demo.processes import ReceiverProcess  # noqa: E402

C123 = REPOSITORY.parent / "shared" / "cases" / "inputs" / "C123_odd_timestamps.otlp.json"


def through_agent(receiver: ReceiverProcess, requests: list[bytes]) -> list[Any]:
    """Post OTLP/JSON to an agent in front of ``receiver``, let it end, and give what it answered."""
    anywhere = {"listen": "127.0.0.1:0"}
    listeners = {"receivers": {"grpc": anywhere, "http": anywhere}, "admin": anywhere, "page": anywhere}
    settings = {**listeners, "endpoint": receiver.base_url, "metrics": ["length_words"]}
    agent = Agent(AgentConfig.model_validate(settings))
    agent.start()
    told = []
    try:
        for body in requests:
            posted = urllib.request.Request(
                f"http://{agent.addresses.http}/v1/traces", body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(posted, timeout=10) as answer:
                told.append(json.loads(answer.read()))
    finally:
        assert agent.stop(20)
    return told


# --- C122 ------------------------------------------------------------------------------------------------------------


@sg.trace(kind="retriever")
def retrieve(n: int) -> list[str]:
    return [f"document {n}"]


@sg.trace
def request(n: int) -> str:
    retrieve(n)
    return f"answer {n}"


def joined(provider: TracerProvider, exporter: CollectingExporter, product: Product) -> None:
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    product.configure(tracer_provider=provider)


def taken_over(provider: TracerProvider, exporter: CollectingExporter, product: Product) -> None:
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    product.configure(tracer_provider=provider, take_over=True)


def by_exporter(provider: TracerProvider, exporter: CollectingExporter, product: Product) -> None:
    provider.add_span_processor(SimpleSpanProcessor(sg.ScoringExporter(exporter)))
    product.configure(tracer_provider=provider)


@pytest.mark.parametrize(
    ("set_up", "flushed"),
    [
        (joined, True),
        (joined, False),
        (taken_over, True),
        (taken_over, False),
        (by_exporter, True),
        (by_exporter, False),
    ],
)
def test_c122_repeated_ids_of_somebody_elses_provider_merge_no_samples_of_different_times(
    set_up: Callable[..., None], flushed: bool, product: Product
) -> None:
    """The application seeds before each request, so that every trace and span id comes again."""
    sg.shutdown()
    provider, exporter = TracerProvider(shutdown_on_exit=False), CollectingExporter()
    set_up(provider, exporter, product)
    before = random.getstate()
    try:
        for n in range(5):
            random.seed(42)
            assert request(n) == f"answer {n}"
            if flushed:
                assert sg.flush(10)
    finally:
        random.setstate(before)
    found = [(sample.input, sample.output, sample.documents[0]["content"]) for sample in product.samples]
    assert found == [(n, f"answer {n}", f"document {n}") for n in range(5)]
    assert len({span.context.trace_id for span in exporter.spans if span.context}) == 1
    assert len([span for span in exporter.spans if span.name == "request"]) == 5


def test_c122_our_own_ids_neither_repeat_nor_move_the_applications_numbers(product: Product) -> None:
    """Threads and streams included."""
    before = random.getstate()
    try:
        drawn = []
        for n in range(50):
            random.seed(7)
            request(n)
            drawn.append(random.random())
    finally:
        random.setstate(before)
    assert len(set(drawn)) == 1
    ids = [(span.context.trace_id, span.context.span_id) for span in product.spans if span.context]
    assert len({trace for trace, _ in ids}) == 50
    assert len({span for _, span in ids}) == 100


def test_c122_the_agent_loses_no_call_whose_ids_were_there_before() -> None:
    """One that is really sent again stays one."""

    def sent(n: int) -> bytes:
        start = 1_750_000_000 + n
        said = [{"key": s.OI_OUTPUT, "value": {"stringValue": f"answer {n}"}}]
        span = {
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": "b7ad6b7169203331",
            "name": "call",
            "startTimeUnixNano": f"{start}000000000",
            "endTimeUnixNano": f"{start}500000000",
            "attributes": said,
        }
        return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()

    with ReceiverProcess() as receiver:
        through_agent(receiver, [sent(0), sent(0), sent(1), sent(2)])
        outputs = sorted(span["attributes"][s.OI_OUTPUT] for span in receiver.spans())
    assert outputs == ["answer 0", "answer 1", "answer 2"]


# --- C123 ------------------------------------------------------------------------------------------------------------

S = 1_000_000_000
TIMES = {
    "zero": (0, 0),
    "reversed": (1_750_000_001 * S, 1_750_000_000 * S),
    "endzero": (1_750_000_000 * S, 0),
    "year1970": (1, 2 * S),
    "future": (9_000_000_000 * S, 9_000_000_001 * S),
    "millis": (1_750_000_000_000, 1_750_000_001_000),
    "maxu64": (1_750_000_000 * S, 2**64 - 1),
    "negative": (-5, -1),
    "control": (1_750_000_000 * S, 1_750_000_001 * S),
}


@pytest.mark.parametrize("at_once", [True, False])
def test_c123_odd_times_in_process_each_span_goes_once_with_its_score(at_once: bool, product: Product) -> None:
    """Whatever its times, alone or among the others: the hold and the window go by arrival."""
    tracer = trace_api.get_tracer("app")
    for name, (start, end) in TIMES.items():
        span = tracer.start_span(name, start_time=start, attributes={s.OI_INPUT: name, s.OI_OUTPUT: name})
        span.end(end_time=end)
        if not at_once:
            assert set(event_scores(product.spans[-1])) == {"seen"}
    assert sorted(span.name for span in product.spans) == sorted(TIMES)
    assert [set(event_scores(span)) for span in product.spans] == [{"seen"}] * len(TIMES)
    durations = {sample.output: sample.context["duration_s"] for sample in product.samples}
    assert durations["control"] == 1.0
    for name in ("zero", "reversed", "endzero", "negative"):
        assert durations[name] is None, name
    assert all(value is None or value >= 0 for value in durations.values())


def test_c123_an_end_that_no_clock_says_gives_no_duration(product: Product) -> None:
    start, end = TIMES["maxu64"]
    trace_api.get_tracer("app").start_span("maxu64", start_time=start, attributes={s.OI_OUTPUT: "x"}).end(end_time=end)
    (sample,) = product.samples
    assert sample.context["duration_s"] is None


@pytest.mark.skipif(not C123.exists(), reason="the cases from the field are not beside this checkout (../shared/cases)")
def test_c123_odd_times_through_the_agent() -> None:
    """Over its HTTP receiver: all but the negative one come out, the sender is told of that, and all are scored."""
    with ReceiverProcess() as receiver:
        told = through_agent(receiver, [C123.read_bytes()])
        names = [f"chat {name}" for name in TIMES if name != "negative"] + ["chat missing"]
        found = {span["name"]: span for span in receiver.spans()}
        assert len(receiver.spans()) == len(found)
        assert sorted(found) == sorted(names)
    assert int(told[0]["partialSuccess"]["rejectedSpans"]) == 1
    for name, span in found.items():
        scores = [event["attributes"] for event in span["events"] if event["name"] == s.EVALUATION_EVENT]
        assert [score[s.EVALUATION_NAME] for score in scores] == ["length_words"], name


# --- C125 ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The SDK's wall clock, as a number of seconds that a test may change."""
    import time

    shift = [0]
    monkeypatch.setattr(sdk_trace, "time_ns", lambda: time.time_ns() + shift[0] * S)
    return shift


def stepped(product: Product, clock: list[int], seconds: int) -> tuple[ReadableSpan, sg.Sample]:
    @sg.trace
    def call() -> str:
        clock[0] = seconds
        return "x"

    call()
    (sample,) = product.samples
    return product.only("call"), sample


@pytest.mark.parametrize("seconds", [-30, -3_600])
def test_c125_a_clock_that_steps_back_gives_no_negative_duration_and_a_score_as_usual(
    seconds: int, product: Product, clock: list[int]
) -> None:
    span, sample = stepped(product, clock, seconds)
    assert sample.context["duration_s"] is None or 0 <= sample.context["duration_s"] < 5
    assert set(event_scores(span)) == {"seen"}
    assert event_scores(span)["seen"][s.DURATION] >= 0


@pytest.mark.parametrize("seconds", [-30, 30])
def test_c125_a_calls_duration_is_taken_from_a_clock_that_does_not_step(
    seconds: int, product: Product, clock: list[int]
) -> None:
    span, sample = stepped(product, clock, seconds)
    assert sample.context["duration_s"] is not None
    assert 0 <= sample.context["duration_s"] < 5
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time >= span.start_time


def test_c125_the_time_to_the_first_chunk_does_not_step(product: Product, clock: list[int]) -> None:
    @sg.trace
    def stream() -> Iterator[str]:
        clock[0] = -30
        yield "x"

    list(stream())
    assert 0 <= product.only("stream").attributes[s.TIME_TO_FIRST_CHUNK] < 5
