"""A flush beside other people's processors: each is flushed, and one that says nothing has failed nothing."""

from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import spangrade as sg
from spangrade.testing import CollectingExporter


class Silent(SpanProcessor):
    """Answers a flush with nothing, as the base class does until opentelemetry-sdk 1.41 or so."""

    def force_flush(self, timeout_millis: int = 30_000) -> Any:
        return None


class Refusing(SpanProcessor):
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return False


class Raising(SpanProcessor):
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        raise RuntimeError("theirs")


def yes(sample: sg.Sample) -> bool:
    return True


@pytest.mark.parametrize(("other", "all_done"), [(Silent, True), (Refusing, False), (Raising, False)])
def test_every_processor_is_flushed_whatever_one_before_it_answers_and_the_answer_is_true(
    other: type[SpanProcessor], all_done: bool, exporter: CollectingExporter
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(other())
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
    sg.configure(metrics=[yes], tracer_provider=provider)
    with sg.trace("answer"):
        sg.set_output("yes")
    assert sg.flush(10) is all_done
    assert len(exporter.named("answer")) == 1
    provider.shutdown()
