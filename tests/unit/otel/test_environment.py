"""What OTEL_* variables say is done."""

import threading
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import spangrade as sg
from spangrade.otel import bootstrap, destinations
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter


def yes(sample: sg.Sample) -> bool:
    return True


def test_service_name_and_resource_attributes(exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "from-env")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    sg.configure(exporter=exporter)
    with sg.trace("x"):
        pass
    assert sg.flush(5)
    attributes = exporter.spans[0].resource.attributes
    assert (attributes["service.name"], attributes["deployment.environment"]) == ("from-env", "test")


@pytest.mark.parametrize(
    ("environment", "endpoint", "protocol"),
    [
        ({}, None, "http/protobuf"),
        ({}, "http://collector:4318", "http/protobuf"),
        ({}, "http://collector:4317", "grpc"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317"}, None, "grpc"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http://collector:9999", "grpc"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "http://collector:4317", "http/protobuf"),
        ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, None, "grpc"),
    ],
)
def test_the_protocol_is_said_by_the_environment_else_by_the_port(
    environment: dict[str, str], endpoint: str | None, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert destinations.protocol_of("traces", destinations.endpoint_of("traces", endpoint)) == protocol
    made = destinations.span_exporter(endpoint)
    assert (".grpc." in type(made.inner).__module__) == (protocol == "grpc")
    made.shutdown()


def test_an_unknown_protocol_or_exporter_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    with pytest.raises(sg.ConfigError, match="use grpc or http/protobuf"):
        sg.configure(metrics=[yes])
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_PROTOCOL")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    with pytest.raises(sg.ConfigError, match="'zipkin' is not an installed exporter"):
        sg.configure(metrics=[yes])
    assert isinstance(trace_api.get_tracer_provider(), trace_api.ProxyTracerProvider)


def test_exporters_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    sg.configure(metrics=[yes])
    engine = current_engine()
    assert engine is not None
    assert engine.log_events is None
    with sg.trace("x"):
        sg.set_output("y")
    assert sg.flush(5)
    assert engine.ledger.snapshot()["yes"].delivered == {"span_event": 1}


def test_outcomes_are_instruments_of_the_applications_meter_provider(
    exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr("opentelemetry.metrics.get_meter_provider", lambda: provider)
    sg.configure(metrics=[yes, "overlap"], exporter=exporter)
    for _ in range(3):
        with sg.trace("x"):
            sg.set_output("y")
    assert sg.flush(5)
    found: dict[tuple[Any, ...], Any] = {}
    data = reader.get_metrics_data()
    assert data is not None
    scopes = data.resource_metrics[0].scope_metrics
    for metric in (one for scope in scopes if scope.scope.name == "spangrade" for one in scope.metrics):
        for point in metric.data.data_points:
            found[(metric.name, *sorted(dict(point.attributes or {}).items()))] = point.value  # type: ignore[union-attr]
    assert found["spangrade.pairs", ("evaluator", "yes"), ("outcome", "scored"), ("reason", "")] == 3
    skipped = ("spangrade.pairs", ("evaluator", "overlap"), ("outcome", "skipped"), ("reason", "documents missing"))
    assert found[skipped] == 3
    assert found["spangrade.pairs.met", ("evaluator", "overlap")] == 3
    assert found["spangrade.pairs.pending", ("evaluator", "yes")] == 0
    assert found["spangrade.scores.delivered", ("carrier", "span_event"), ("evaluator", "yes")] == 3
    provider.shutdown()


def test_several_destinations_each_get_every_span(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str | None, CollectingExporter] = {}

    def fake(endpoint: str | None) -> CollectingExporter:
        made[endpoint] = CollectingExporter()
        return made[endpoint]

    monkeypatch.setattr(destinations, "span_exporter", fake)
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    places = [{"preset": "otlp", "endpoint": f"http://localhost:{port}"} for port in (1111, 2222)]
    sg.configure(metrics=[yes], destinations=places)
    with sg.trace("x"):
        sg.set_output("y")
    assert sg.flush(5)
    assert [len(e.spans) for e in made.values()] == [1, 1]
    engine = current_engine()
    assert engine is not None
    assert engine.ledger.snapshot()["yes"].delivered == {"span_event": 1}


def test_threads_end_with_shutdown(exporter: CollectingExporter) -> None:
    before = {t.name for t in threading.enumerate()}
    sg.configure(metrics=[yes], exporter=exporter)
    with sg.trace("x"):
        sg.set_output("y")
    assert sg.flush(5)
    sg.shutdown()
    for thread in threading.enumerate():
        if thread.name not in before:
            thread.join(5)
    assert {t.name for t in threading.enumerate()} - before == set()
    assert bootstrap._runtime is None
