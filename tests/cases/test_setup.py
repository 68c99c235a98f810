"""C106, C107, C109, C111: other people's spans, head sampling, our own requests, and the environment's nonsense."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc_exporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import trace_exporter as http_exporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.trace import SpanKind
from tests.cases.conftest import Product

import spangrade as sg
from spangrade import semconv as s
from spangrade.otel import bootstrap
from spangrade.otel.engine import current_engine
from spangrade.otel.per_process import ProcessSpanExporter
from spangrade.testing import CollectingExporter, event_scores

sys.path.insert(0, str(Path(__file__).parents[2]))
from examples.demo.processes import ReceiverProcess


def web_request(provider: TracerProvider) -> None:
    """What instrumentations of a web application make around one call of ours and one of a model client's."""
    tracer = provider.get_tracer("instrumentations")
    with tracer.start_as_current_span("POST /chat", kind=SpanKind.SERVER, attributes={"http.route": "/chat"}):
        statement = {
            "db.system": "postgresql",
            "db.statement": "select input, output from answers",
            "db.operation": "x",
        }
        with tracer.start_as_current_span("SELECT", kind=SpanKind.CLIENT, attributes=statement):
            pass
        with tracer.start_as_current_span(
            "run/tasks.mail", attributes={"celery.action": "run", "messaging.system": "q"}
        ):
            pass
        with tracer.start_as_current_span("GET", kind=SpanKind.CLIENT, attributes={"url.full": "http://x/?input=1"}):
            pass
        said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "soon"}]}])
        with tracer.start_as_current_span("chat", attributes={s.OPERATION_NAME: "chat", s.OUTPUT_MESSAGES: said}):
            pass


OTHERS = {"POST /chat", "SELECT", "run/tasks.mail", "GET"}


def with_exporter() -> tuple[TracerProvider, CollectingExporter]:
    provider, theirs = TracerProvider(shutdown_on_exit=False), CollectingExporter()
    provider.add_span_processor(SimpleSpanProcessor(theirs))
    return provider, theirs


@pytest.mark.parametrize("take_over", [False, True])
def test_c106_spans_that_are_no_model_calls_are_neither_scored_nor_sent_anywhere_new(
    take_over: bool, product: Product
) -> None:
    """The application's provider has its exporter; that one gets each span once, and ours gets none of them."""
    provider, theirs = with_exporter()
    product.configure(tracer_provider=provider, take_over=take_over)
    web_request(provider)
    assert product.spans == []
    assert [sample.output for sample in product.samples] == ["soon"]
    names = [span.name for span in theirs.spans]
    assert sorted(name for name in names if not name.startswith("evaluation ")) == sorted({*OTHERS, "chat"})
    assert {span.name for span in theirs.spans if event_scores(span)} == (
        {"chat"} if take_over else {"evaluation seen"}
    )
    for span in theirs.spans:
        if span.name in OTHERS:
            assert not [key for key in span.attributes or {} if "spangrade" in key or "gen_ai" in key]


def test_c106_two_tenants_providers_keep_their_spans_and_scores_apart() -> None:
    """Each with a processor of its own; what is evaluated is one setting of the process."""
    places = [CollectingExporter(), CollectingExporter()]
    providers = []
    for place in places:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(sg.SpangradeProcessor(SimpleSpanProcessor(place)))
        providers.append(provider)
    sg.configure(metrics=[sg.metric(name="one")(lambda sample: 1)], tracer_provider=providers[0])
    for n, provider in enumerate(providers):
        with provider.get_tracer("t").start_as_current_span("call", attributes={s.OI_OUTPUT: f"of tenant {n}"}):
            pass
    assert sg.flush(10)
    for n, place in enumerate(places):
        (span,) = place.spans
        assert (span.attributes or {})[s.OI_OUTPUT] == f"of tenant {n}"
        assert set(event_scores(span)) == {"one"}


def test_c107_with_a_head_sampler_every_sampled_call_comes_out_scored_and_no_other(product: Product) -> None:
    provider = TracerProvider(sampler=TraceIdRatioBased(0.1), shutdown_on_exit=False)
    sg.shutdown()
    product.configure(tracer_provider=provider)
    sampled = []

    @sg.trace
    def call(n: int) -> int:
        if trace_api.get_current_span().is_recording():
            sampled.append(n)
        return n

    assert [call(n) for n in range(200)] == list(range(200))
    assert 3 < len(sampled) < 60
    assert sorted(sample.input for sample in product.samples) == sampled
    assert [set(event_scores(span)) for span in product.spans] == [{"seen"}] * len(sampled)


@pytest.fixture
def receiver() -> Iterator[ReceiverProcess]:
    with ReceiverProcess() as process:
        yield process


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_c109_what_we_send_is_not_traced_by_http_instrumentations(
    own: bool, protocol: str, receiver: ReceiverProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spans and log events, through a provider of ours or one of the application's, flushed again and again."""
    pytest.importorskip("opentelemetry.instrumentation.requests", reason="the dev extra's requests instrumentation")
    import requests
    from opentelemetry.instrumentation.requests import RequestsInstrumentor

    provider, theirs = (None, CollectingExporter()) if own else with_exporter()
    endpoint = receiver.base_url if protocol == "http" else "http://127.0.0.1:9"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc" if protocol == "grpc" else "http/protobuf")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    sg.configure(metrics=[sg.metric(name="one")(lambda sample: 1)], endpoint=endpoint, tracer_provider=provider)
    if provider is None:
        provider = trace_api.get_tracer_provider()
        provider.add_span_processor(SimpleSpanProcessor(theirs))  # type: ignore[attr-defined]
    RequestsInstrumentor().instrument(tracer_provider=provider)
    try:
        with sg.trace(name="call"):
            sg.set_output("soon")
        for _ in range(3):
            sg.flush(3)
        # The instrumentation is at work: a request of the application's is traced.
        requests.get(receiver.base_url + "/nothing", timeout=5)
        sg.flush(3)
        assert [span.name for span in theirs.spans if not span.name.startswith("evaluation ")] == ["call", "GET"]
        if protocol == "http":
            assert len(receiver.logs(wait=5)) == 1
            assert {span["name"] for span in receiver.spans()} == ({"call", "GET"} if own else set())
    finally:
        RequestsInstrumentor().uninstrument()


def test_c109_a_metric_that_uses_an_instrumented_client_makes_no_spans(receiver: ReceiverProcess) -> None:
    """A home-made judge; the instrumentation is told to stand aside on our threads and on our loop."""
    pytest.importorskip("opentelemetry.instrumentation.httpx", reason="the dev extra's httpx instrumentation")
    import httpx
    from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

    exporter = CollectingExporter()
    HTTPXClientInstrumentor().instrument()
    try:

        @sg.metric
        def asks(sample: sg.Sample) -> float:
            return float(httpx.get(receiver.base_url + "/nothing").status_code >= 200)

        @sg.metric
        async def asks_too(sample: sg.Sample) -> float:
            async with httpx.AsyncClient() as client:
                return float((await client.get(receiver.base_url + "/nothing")).status_code >= 200)

        sg.configure(metrics=[asks, asks_too], exporter=exporter)
        with sg.trace(name="call"):
            sg.set_output("soon")
        assert sg.flush(10)
        assert [span.name for span in exporter.spans] == ["call"]
        assert set(event_scores(exporter.spans[0])) == {"asks", "asks_too"}
        assert [event.get(s.ERROR_TYPE) for event in event_scores(exporter.spans[0]).values()] == [None, None]
    finally:
        HTTPXClientInstrumentor().uninstrument()


ENVIRONMENT = {
    "OTEL_EXPORTER_OTLP_TIMEOUT": ["abc", "-1", "nan"],
    "OTEL_EXPORTER_OTLP_ENDPOINT": ["nonsense:x", "ftp://collector", "http://"],
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": ["-1", "abc"],
    "OTEL_BSP_SCHEDULE_DELAY": ["-5", "abc"],
    "OTEL_EXPORTER_OTLP_PROTOCOL": ["http/json", "carrier-pigeon"],
    "SPANGRADE_CONFIG": ["/nowhere/at/all.yaml"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in ENVIRONMENT.items() for value in values])
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_c111_nonsense_in_the_environment_is_refused_or_said(
    name: str, value: str, protocol: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In a `ConfigError`, or a line of the log where a default is used instead; with the value in it."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv(name, value)
    try:
        sg.configure()
    except sg.ConfigError as refused:
        assert value in str(refused)  # noqa: PT017
        assert current_engine() is None
    else:
        said = [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
        assert value in str([record.getMessage() + str(record.exc_info) for record in said])


@pytest.mark.parametrize("port", [4317, 4318])
@pytest.mark.parametrize(
    ("said", "seconds"), [("1000", 1.0), ("10000", 10.0), ("301", 0.301), ("10", 10.0), ("0.5", 0.5), ("300", 300.0)]
)
def test_c111_a_time_limit_is_read_by_the_unit_that_can_be_meant(
    said: str, seconds: float, port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The specification's milliseconds where the Python SDK's seconds would be absurd; said once, with both readings."""
    limits: list[Any] = []

    class Listens(HttpExporter if port == 4318 else GrpcExporter):  # type: ignore[misc]
        def __init__(self, *, timeout: float, **others: Any) -> None:
            limits.append(timeout)
            super().__init__(timeout=timeout, **others)

    for exporter in (http_exporter, grpc_exporter):
        monkeypatch.setattr(exporter, "OTLPSpanExporter", Listens)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", said)
    sg.configure(endpoint=f"http://127.0.0.1:{port}")
    assert limits == [seconds]
    lines = [line for line in caplog.messages if "OTEL_EXPORTER_OTLP_TIMEOUT" in line]
    assert len(lines) == (float(said) != seconds)
    assert all(f"={said} " in line and "milliseconds" in line and f"{said} seconds" in line for line in lines)


def test_c111_what_the_specification_allows_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty means unset, a name in capitals is a name, and blanks around it are no part of it."""
    for name, value in {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "",
        "OTEL_EXPORTER_OTLP_PROTOCOL": " GRPC ",
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b,other=c",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
    }.items():
        monkeypatch.setenv(name, value)
    sg.configure()
    assert current_engine() is not None
    assert bootstrap._runtime is not None
    (exporter,) = bootstrap._runtime.exporters
    assert isinstance(exporter, ProcessSpanExporter)
    assert "grpc" in type(exporter.inner).__module__
