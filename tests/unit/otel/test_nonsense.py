"""Nonsense in the environment is refused at the start, in words that name the variable, and changes nothing."""

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace import TracerProvider

import spangrade as sg
from spangrade.otel import destinations, sdk_private
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter

NONSENSE = [
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "abc"),
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "-1"),
    ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "nan"),
    ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "0"),
    ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "inf"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense:x"),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://collector"),
    ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://"),
    ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "carrier-pigeon"),
    ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
    ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "abc"),
    ("OTEL_BSP_SCHEDULE_DELAY", "-5"),
    ("OTEL_BLRP_SCHEDULE_DELAY", "1.5"),
    ("OTEL_BLRP_EXPORT_TIMEOUT", "²"),
]


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize(("name", "value"), NONSENSE)
def test_it_is_refused_by_name_and_no_provider_is_set(
    name: str, value: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv(name, value)
    with pytest.raises(sg.ConfigError) as refused:
        sg.configure()
    assert repr(value) in str(refused.value)
    assert current_engine() is None
    assert isinstance(trace_api.get_tracer_provider(), trace_api.ProxyTracerProvider)


def test_what_only_the_sdks_exporter_refuses_is_refused_in_words_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")  # the one over HTTP does without a compression then
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "sponge")
    with pytest.raises(sg.ConfigError, match="OTEL_EXPORTER_OTLP_"):
        sg.configure()
    assert isinstance(trace_api.get_tracer_provider(), trace_api.ProxyTracerProvider)


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT"])
def test_it_is_refused_before_a_provider_of_somebody_elses_is_touched(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = TracerProvider()
    monkeypatch.setenv(name, "x:x")
    with pytest.raises(sg.ConfigError):
        sg.configure(tracer_provider=provider)
    assert sdk_private.processors_of(provider) == ()


@pytest.mark.parametrize(
    "name", ["OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT"]
)
def test_what_is_said_of_a_way_that_is_not_taken_is_no_matter(
    name: str, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    monkeypatch.setenv(name, "x:x")
    sg.configure(exporter=exporter)
    assert current_engine() is not None


@pytest.mark.parametrize("name", [name for name, _ in NONSENSE])
def test_empty_means_unset(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "")
    sg.configure(endpoint="http://127.0.0.1:9")
    assert current_engine() is not None


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
@pytest.mark.parametrize(("protocol", "port"), [("http/protobuf", 4318), ("grpc", 4317)])
def test_an_empty_address_is_the_default_one(
    protocol: str, port: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv(name, "")
    exporter = destinations.span_exporter(None)
    assert f"localhost:{port}" in exporter.inner._endpoint  # type: ignore[attr-defined]
    exporter.shutdown()
