"""Lines of our exporters are few; those of the application's own exporters are as many as ever."""

import logging

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import spangrade as sg
from spangrade._log import Seldom
from spangrade.delivery.exporter_lines import FewLines, few_lines

NOBODY = "http://127.0.0.1:9"


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name.startswith("opentelemetry.exporter.")]


def line(level: int, text: str = "failed: %s", name: str = "opentelemetry.exporter.x") -> logging.LogRecord:
    return logging.LogRecord(name, level, __file__, 1, text, ("refused",), None)


def test_each_sort_of_line_passes_once_a_minute_and_says_how_many_did_not() -> None:
    now = [0.0]
    filtered = FewLines(Seldom(clock=lambda: now[0]))
    with few_lines():
        assert [filtered.filter(line(logging.ERROR)) for _ in range(4)] == [True, False, False, False]
        assert filtered.filter(line(logging.WARNING))
        assert filtered.filter(line(logging.ERROR, name="opentelemetry.exporter.y"))
        now[0] = 59.9
        assert not filtered.filter(line(logging.ERROR))
        now[0] = 60.0
        again = line(logging.ERROR)
        assert filtered.filter(again)
        assert again.getMessage() == "failed: refused (and 4 lines like this since the last)"


def test_what_is_no_warning_and_what_is_not_ours_always_passes() -> None:
    filtered = FewLines()
    assert all(filtered.filter(line(logging.ERROR)) for _ in range(4))
    with few_lines():
        assert all(filtered.filter(line(logging.DEBUG)) for _ in range(4))
        assert all(filtered.filter(line(logging.INFO)) for _ in range(4))


@pytest.mark.parametrize("given", [True, False])
def test_an_exporter_of_the_applications_says_all_that_it_says_without_us(
    given: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given to `configure`, or in a provider of its own beside ours, which go to the same place by the same library."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")  # the SDK's gRPC exporter repeats no line anyway
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    theirs = OTLPSpanExporter(endpoint=NOBODY)
    provider = TracerProvider(shutdown_on_exit=False)
    if not given:
        provider.add_span_processor(SimpleSpanProcessor(theirs))
    sg.configure(endpoint=None if given else NOBODY, exporter=theirs if given else None)
    for _ in range(4):
        with sg.trace(name="call"):
            pass
        if given:
            sg.flush(5)
        else:
            provider.get_tracer("app").start_span("app").end()
    if not given:
        sg.flush(5)
        assert len(said(caplog)) in (5, 6)  # ours once, or with one of its retries
    else:
        assert len(said(caplog)) == 4
    provider.shutdown()
