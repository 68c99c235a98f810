"""C033, C035, C041: half characters, huge integers, and megabytes. C042 is in test_media.py."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from tests.cases.conftest import Product, output

import spangrade as sg
from spangrade import semconv as s
from spangrade.delivery.span_copy import SpanCopy
from spangrade.testing import CollectingExporter, event_scores

HALF = "thanks \ud83d"


def encoded(spans: list[ReadableSpan]) -> Any:
    """The batch as OTLP has it; raises where the exporter would lose all of it."""
    request = encode_spans(spans)
    assert request.SerializeToString()
    return request


def strict(text: Any) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    text.encode()
    return json.loads(text, parse_constant=refuse)


# --- C033 ------------------------------------------------------------------------------------------------------------


def says_everything() -> str:
    sg.set_input({HALF: [HALF]})
    sg.set_output({"said": HALF})
    sg.set_metadata({HALF: HALF}, tenant=HALF)
    sg.set_context(note=HALF)
    sg.set_session(HALF, user=HALF)
    sg.set_retrieval_documents([{"id": HALF, "content": HALF, "metadata": {HALF: HALF}}])
    return HALF


@pytest.mark.parametrize("kind", ["chain", "llm", "tool", "agent", "retriever"])
def test_c033_half_a_character_anywhere_costs_only_itself(
    kind: Any, product: Product, caplog: pytest.LogCaptureFixture
) -> None:
    """In every setter, an exception, and all that a metric may say."""

    @sg.metric
    def half(sample: sg.Sample) -> sg.Score:
        return sg.Score(label=HALF, explanation=HALF, metadata={HALF: HALF})

    @sg.metric
    def breaks(sample: sg.Sample) -> float:
        raise ValueError(HALF)

    product.configure(half, breaks)
    with sg.trace(name="says", kind=kind):
        says_everything()
    with pytest.raises(ValueError, match="thanks"), sg.trace(name="fails", kind=kind):
        raise ValueError(HALF)

    @sg.trace
    def innocent() -> str:
        return "fine"

    innocent()
    sent = encoded(product.spans)
    assert sum(len(scope.spans) for group in sent.resource_spans for scope in group.scope_spans) == 3
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
    assert "thanks" in str([dict(span.attributes or {}) for span in product.spans])


@pytest.mark.parametrize("where", ["block", "decorator", "qualified name"])
def test_c033_half_a_character_in_a_calls_name_costs_only_itself(where: str, product: Product) -> None:
    def f() -> str:
        return "fine"

    if where == "block":
        with sg.trace(name=HALF, kind="tool"):
            pass
    elif where == "decorator":
        sg.trace(name=HALF, kind="agent")(f)()
    else:
        f.__qualname__ = HALF
        sg.trace(f)()
    encoded(product.spans)
    (span,) = product.spans
    assert span.name.startswith("thanks")


@pytest.mark.parametrize(("name", "recorded"), [(5, "5"), (["a"], '["a"]')])
def test_c033_a_name_that_is_no_text_is_named_and_costs_no_other_span(
    name: Any, recorded: str, product: Product
) -> None:
    with sg.trace(name=name):
        pass
    encoded(product.spans)
    (span,) = product.spans
    assert span.name == recorded


def test_c033_half_a_character_in_a_metrics_name_is_refused_or_replaced(
    product: Product, caplog: pytest.LogCaptureFixture
) -> None:
    product.configure(sg.metric(name=HALF)(lambda sample: 1))
    with sg.trace(name="call"):
        sg.set_output("x")
    encoded(product.spans)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


PLACES = [
    "attribute", "key", "list", "map", "name", "event", "event's attribute", "link", "status", "exception", "scope", "redact",
]  # fmt: skip


def application_says(where: str) -> None:
    tracer = trace_api.get_tracer(HALF if where == "scope" else "app", HALF if where == "scope" else "1")
    here = trace_api.get_current_span().get_span_context()
    links = [trace_api.Link(here, {"note": HALF})] if where == "link" else []
    with tracer.start_as_current_span(HALF if where == "name" else "app", links=links) as span:
        match where:
            case "attribute":
                span.set_attribute("note", HALF)
            case "key":
                span.set_attribute(HALF, "note")
            case "list":
                span.set_attribute("note", ["fine", HALF])
            case "map":
                span.set_attribute("note", {HALF: [HALF]})  # type: ignore[dict-item]
            case "event":
                span.add_event(HALF)
            case "event's attribute":
                span.add_event("said", {HALF: HALF})
            case "status":
                span.set_status(trace_api.StatusCode.ERROR, HALF)
            case "exception":
                span.record_exception(ValueError(HALF))
            case "redact":
                span.set_attribute("note", "to be redacted")


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.filterwarnings("ignore")
def test_c033_what_the_application_itself_writes_on_a_span_of_ours_costs_only_itself(
    where: str, product: Product, caplog: pytest.LogCaptureFixture
) -> None:
    """The exporter is ours where the provider is: what it is handed can be encoded, and says nearly what was meant."""

    @sg.trace
    def innocent() -> str:
        return "fine"

    if where == "redact":
        product.configure(redact=lambda text: text.replace("to be redacted", HALF))
    innocent()
    application_says(where)
    spans = product.spans
    sent = encoded(spans)
    assert sum(len(scope.spans) for group in sent.resource_spans for scope in group.scope_spans) == 2
    assert "thanks" in str(sent)
    assert "Failed to encode" not in caplog.text
    (fine,) = product.named("innocent")
    assert set(event_scores(fine)) == {"seen"}


@pytest.mark.parametrize(("start", "end"), [(-5, -1), (2**64, 2**65), (1.5, 2.5)])
def test_c033_times_and_names_that_are_none_cost_no_other_span(start: Any, end: Any, product: Product) -> None:
    product.configure()
    trace_api.get_tracer("app").start_span(7, start_time=start).end(end_time=end)  # type: ignore[arg-type]
    with trace_api.get_tracer("app").start_as_current_span("app") as span:
        span.add_event(7, timestamp=start)  # type: ignore[arg-type]
    sent = encoded(product.spans)
    found = {span.name: span for group in sent.resource_spans for scope in group.scope_spans for span in scope.spans}
    assert set(found) == {"7", "app"}
    assert [event.name for event in found["app"].events] == ["7"]


def test_c033_a_span_with_nothing_wrong_is_handed_on_itself(product: Product) -> None:
    """Nearly all of them: a copy would cost each of them its dropped counts and some microseconds."""
    product.configure()
    with trace_api.get_tracer("app").start_as_current_span(
        "äpp", attributes={"tags": ["ü", "b"], "n": 2**63 - 1, "raw": b"x"}, links=[]
    ) as span:
        span.add_event("said", {"text": "…", "numbers": [1, 2.5, True]})
        span.set_status(trace_api.StatusCode.ERROR, "nö")
    (found,) = product.spans
    assert not isinstance(found, SpanCopy)


def test_c033_half_a_character_in_the_environment_costs_only_itself(
    exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Python reads bytes of the environment that are no UTF-8 as half characters."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=\udcff,tier=1")
    sg.configure(service_name=HALF, metrics=["length_words"], exporter=exporter)
    with sg.trace(name="call"):
        sg.set_output("x")
    assert sg.flush(10)
    (group,) = encoded(exporter.spans).resource_spans
    resource = {pair.key: pair.value.string_value for pair in group.resource.attributes}
    assert resource["service.name"].startswith("thanks")
    assert resource["tier"] == "1"
    assert "Failed to encode" not in caplog.text


# --- C035 ------------------------------------------------------------------------------------------------------------


BIG = {"id": 2**63, "neg": -(2**70), "edge": 2**63 - 1, "low": -(2**63)}
AS_SENT = {"id": str(2**63), "neg": str(-(2**70)), "edge": 2**63 - 1, "low": -(2**63)}


def test_c035_an_integer_beyond_64_bits_is_sent_as_text(product: Product) -> None:
    """As argument, result, label of the application's, field of a document, and beside a score."""

    @sg.metric
    def told(sample: sg.Sample) -> sg.Score:
        return sg.Score(0.5, metadata=BIG)

    @sg.metric
    def large(sample: sg.Sample) -> Any:
        return 2**70

    @sg.metric
    def endless(sample: sg.Sample) -> Any:
        return 10**5_000

    @sg.trace
    def f(x: Any) -> Any:
        sg.set_metadata(BIG)
        sg.set_context(BIG)
        sg.set_retrieval_documents([{"content": "c", "metadata": BIG, "score": 10**400}])
        return x

    product.configure(told, large, endless)
    assert f(BIG) is BIG
    span = product.only("f")
    attributes = dict(span.attributes)
    for key in (s.OI_INPUT, s.OI_OUTPUT, s.OI_METADATA, s.CONTEXT):
        assert strict(attributes[key]) == AS_SENT, key
    (document,) = strict(attributes[s.RETRIEVAL_DOCUMENTS])
    assert document["metadata"] == AS_SENT
    scores = event_scores(span)
    assert strict(scores["told"][s.SCORE_METADATA]) == AS_SENT
    assert scores["large"][s.SCORE_VALUE] == float(2**70)
    assert s.SCORE_VALUE not in scores["endless"]
    assert scores["endless"][s.ERROR_TYPE]
    (sample,) = product.samples
    assert sample.metadata["id"] == str(2**63)
    encoded(product.spans)


def test_c035_an_integer_beyond_64_bits_on_an_applications_own_span_is_sent_as_text(
    product: Product, caplog: pytest.LogCaptureFixture
) -> None:
    attributes: Any = {**BIG, "list": [1, 2**63], "map": BIG, "endless": 10**5_000}
    with trace_api.get_tracer("app").start_as_current_span("app", attributes=attributes) as span:
        span.add_event("said", BIG)
    (span,) = product.spans
    sent = dict(span.attributes)
    assert "bits" in sent.pop("endless")
    assert sent == {**AS_SENT, "list": (1, str(2**63)), "map": AS_SENT}
    assert dict(span.events[0].attributes) == AS_SENT
    encoded([span])
    assert "Failed to encode" not in caplog.text


# --- C041 ------------------------------------------------------------------------------------------------------------


def processor_seconds(call: Callable[[], Any]) -> float:
    """What a coroutine takes of this thread's processor, whatever else the machine does; the best of three."""

    async def measured() -> float:
        started = time.thread_time()
        await call()
        return time.thread_time() - started

    return min(asyncio.run(measured()) for _ in range(3))


TEXT = "é" * 15_000_000
IMAGE = "data:image/png;base64," + "iVBORw0KGgo" * 750_000
RAW = b"\x89PNG" * 750_000
LOGS = [{"line": n, "text": f"line {n} of a long log"} for n in range(200_000)]


@pytest.mark.parametrize("given", [TEXT, IMAGE, RAW, LOGS, {"text": TEXT, "images": [IMAGE] * 20}, [TEXT] * 50])
def test_c041_tens_of_megabytes_do_not_hold_up_the_event_loop(given: Any, product: Product) -> None:
    """Less than the 50 ms that the case allows, counted as processor time, each of the three times that the value is looked
    at in a call; and what is recorded stays small."""

    @sg.trace
    async def vision(given: Any) -> Any:
        sg.set_metadata(given=given)
        return {"thumb": given, "text": "a cat"}

    async def call() -> None:
        await vision(given)

    assert processor_seconds(call) < 3 * 0.05
    for span in product.named("vision"):
        assert sum(len(str(value).encode()) for value in (span.attributes or {}).values()) < 1_600_000


def test_c041_a_stream_of_megabytes_costs_each_step_little(product: Product) -> None:
    @sg.trace
    async def frames() -> Any:
        for _ in range(20):
            yield {"frame": IMAGE, "raw": RAW}

    async def call() -> None:
        async for _ in frames():
            pass

    assert processor_seconds(call) < 20 * 0.05
    recorded = output(product.named("frames")[0])
    assert len(recorded) < 100_000
    assert "image/png" in recorded
