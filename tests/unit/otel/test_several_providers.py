"""`configure` for one provider, then for another: the spans of both go on, and both are flushed and ended."""

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import spangrade as sg
from spangrade.testing import CollectingExporter, event_scores

from .others import CALL, answer, yes


def call(provider: trace_api.TracerProvider) -> None:
    with provider.get_tracer("app").start_as_current_span("llm", attributes=CALL):
        pass


def test_a_flush_is_for_all_of_them() -> None:
    first, second, provider = CollectingExporter(), CollectingExporter(), TracerProvider(shutdown_on_exit=False)
    sg.configure(metrics=[yes], exporter=first)
    ours = trace_api.get_tracer_provider()
    sg.configure(metrics=[yes], exporter=second, tracer_provider=provider)
    call(ours)
    call(provider)
    assert sg.flush(10)
    for exporter in (first, second):
        assert [set(event_scores(span)) for span in exporter.spans] == [{"yes"}]


def test_a_failed_export_of_the_first_is_a_failed_flush() -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    sg.configure(metrics=[yes], exporter=CollectingExporter(fail=True))
    ours = trace_api.get_tracer_provider()
    sg.configure(metrics=[yes], exporter=CollectingExporter(), tracer_provider=provider)
    call(ours)
    assert not sg.flush(10)
    assert sg.flush(10)


@pytest.mark.parametrize("order", [["ours", "theirs"], ["ours", "theirs", "ours"]])
def test_at_the_end_the_spans_of_all_are_exported_and_what_is_ours_is_ended(order: list[str]) -> None:
    exporters = {"ours": CollectingExporter(), "theirs": CollectingExporter()}
    theirs, known = TracerProvider(shutdown_on_exit=False), CollectingExporter()
    providers: dict[str, trace_api.TracerProvider] = {"theirs": theirs}
    for one in order:
        sg.configure(metrics=[yes], exporter=exporters[one], tracer_provider=providers.get(one))
        providers.setdefault(one, trace_api.get_tracer_provider())
    theirs.add_span_processor(BatchSpanProcessor(known))
    for provider in providers.values():
        call(provider)
    sg.shutdown()
    for name, exporter in exporters.items():
        assert [set(event_scores(span)) for span in exporter.spans] == [{"yes"}], name
        assert exporter.shut_down
    assert len(known.spans) == 1  # somebody else's processor is flushed, and goes on
    assert not known.shut_down
    call(theirs)
    theirs.shutdown()
    assert len(known.spans) == 2


def test_a_provider_that_was_shut_down_is_not_kept(exporter: CollectingExporter) -> None:
    for _ in range(3):
        provider = TracerProvider(shutdown_on_exit=False)
        sg.configure(metrics=[yes], exporter=CollectingExporter(), tracer_provider=provider)
        provider.shutdown()
    sg.configure(metrics=[yes], exporter=exporter)
    answer("a")
    assert sg.flush(10)
    assert [set(event_scores(span)) for span in exporter.spans] == [{"yes"}]
