"""`configure(instrument=[...])` where three instrumentations of one library are really installed."""

from __future__ import annotations

import json

import pytest

from .beside import CALLS, Ran, Run, runs, scores
from .loopback import ANSWER

# In one venv, all for the same library: OpenInference's, Traceloop's and OpenTelemetry's own.
OPENINFERENCE = "openinference-instrumentation-openai"
TRACELOOP = "opentelemetry-instrumentation-openai"
OFFICIAL = "opentelemetry-instrumentation-genai-openai"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return runs("newest", tmp_path_factory.mktemp("ours"))


def lines(ran: Ran) -> list[str]:
    """What we say, without the line of every `configure`."""
    return [line for line in ran.stderr.splitlines() if "spangrade is on" not in line]


def test_instrument_switches_on_one_of_three_and_says_which_and_what_is_missing(run: Run) -> None:
    ran = run("spangrade", instrument=["openai", "anthropic", "langchian"], listen=True)
    on, missing = lines(ran)
    assert on == f"INFO event='instrumentations are switched on' on='openai ({OPENINFERENCE})'"
    assert missing.startswith("WARNING ")
    assert "install='pip install openinference-instrumentation-anthropic'" in missing
    assert "'langchian' (did you mean 'langchain'?)" in missing
    spans = ran.places.spans("ours")
    assert [(span["scope"], scores(span)) for span in spans] == [("openinference.instrumentation.openai", ["yes"])] * 3


def test_instrument_leaves_the_applications_own_choice_on_and_adds_none(run: Run) -> None:
    ran = run("traceloop", "spangrade", instrument=["openai"], listen=True)
    (on,) = lines(ran)
    assert on == f"INFO event='instrumentations are switched on' already_on='openai ({TRACELOOP})'"
    spans = ran.places.spans("ours")
    assert [scores(span) for span in spans] == [["yes"]] * CALLS
    assert {span["scope"].rsplit(".v1", 1)[0] for span in spans} == {"opentelemetry.instrumentation.openai"}


def test_opentelemetrys_own_is_taken_when_asked_for_and_it_is_said_that_it_leaves_the_text_out(run: Run) -> None:
    ran = run("spangrade", instrument=[OFFICIAL], listen=True)
    on, no_content = lines(ran)
    assert on == f"INFO event='instrumentations are switched on' on='{OFFICIAL} ({OFFICIAL})'"
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY" in no_content
    spans = ran.places.spans("ours")
    assert len(spans) == CALLS
    assert not any(ANSWER in json.dumps(span["attributes"]) for span in spans)
