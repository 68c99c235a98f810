"""Google's Agent Development Kit, for real, on a server in Gemini's shape: its schema 2, and schema 1 with its log records."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from . import gemini_answers
from .conftest import Run
from .replay import Replay
from .running import Ran

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SCHEMA_1 = {"ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN": "1"}
SYSTEM = 'Be kind.\n\nYou are an agent. Your internal name is "clerk".'
CALL = {"id": "c1", "name": "plugs", "arguments": {"city": "Lisbon"}}
RESULT = {"result": "type F in Lisbon"}
ASKED = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Which plug?"}]
HISTORY = [
    *ASKED,
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": '{"result":"type F in Lisbon"}', "tool_call_id": "c1"},
]
Running = Callable[[Mapping[str, str]], Ran]


@pytest.fixture(scope="module")
def run(run_app: Run, replay: Replay) -> Running:
    def running(env: Mapping[str, str]) -> Ran:
        place = replay.place()
        place.say("gemini", gemini_answers.PATH, *gemini_answers.ANSWERS)
        return run_app("google_adk_agent", ("agent",), venv="google_adk", env=env, place=place)

    return running


@pytest.fixture(scope="module")
def schema_2(run: Running) -> Ran:
    return run({CAPTURE: "SPAN_ONLY"})


@pytest.fixture(scope="module")
def in_records(run: Running) -> Ran:
    return run({CAPTURE: "EVENT_ONLY"})


@pytest.fixture(scope="module")
def schema_1(run: Running) -> Ran:
    return run({**SCHEMA_1, CAPTURE: "true"})


def check_models(ran: Ran, span_name: str, *, named_results: bool) -> None:
    """The two model calls, each once under that name."""
    asks, answers = (call.reading for call in ran.calls("agent", "llm") if call.span.name == span_name)
    assert (asks.input, asks.output, asks.system) == ("Which plug?", None, SYSTEM)
    assert list(asks.messages) == ASKED
    assert asks.tool_calls == (CALL,)
    assert (answers.input, answers.output) == ("Which plug?", "Type F.")
    last = {**HISTORY[-1], "name": "plugs"} if named_results else HISTORY[-1]
    assert list(answers.messages) == [*HISTORY[:-1], last]
    assert [r.usage for r in (asks, answers)] == [
        {"input_tokens": 20, "output_tokens": 6},
        {"input_tokens": 30, "output_tokens": 4},
    ]
    assert asks.session_id == answers.session_id == "s1"


def check_root(ran: Ran) -> None:
    """Agents and workflows have nothing of what was said: what is below them speaks for them."""
    root = ran.root("agent")
    assert (root["input"], root["output"]) == ("Which plug?", "Type F.")
    assert root["context"]["tool_calls"] == [{**CALL, "result": RESULT}]
    assert root["context"]["usage"] == {"input_tokens": 50, "output_tokens": 10}
    assert root["context"]["session_id"] == "s1"


def check_tool(ran: Ran) -> None:
    (tool,) = ran.calls("agent", "tool")
    assert (tool.reading.input, tool.reading.output) == (CALL["arguments"], RESULT)
    assert tool.reading.tool_calls == (CALL,)


def test_schema_2_is_of_the_genai_conventions(schema_2: Ran) -> None:
    check_models(schema_2, "generate_content gemini-3-flash", named_results=False)
    check_tool(schema_2)
    check_root(schema_2)
    assert {call.reading.dialect for call in schema_2.calls("agent")} == {"google_adk+otel_genai"}
    assert [call.kind for call in schema_2.calls("agent")] == ["chain", "agent", "llm", "tool", "llm"]


def test_schema_2_in_the_details_event(in_records: Ran) -> None:
    """Tools' arguments and results it writes on spans only."""
    check_models(in_records, "generate_content gemini-3-flash", named_results=False)
    (tool,) = in_records.calls("agent", "tool")
    assert (tool.reading.input, tool.reading.output) == (None, None)


def test_schema_1_is_of_its_own_keys(schema_1: Ran) -> None:
    check_models(schema_1, "call_llm", named_results=True)
    check_tool(schema_1)
    check_root(schema_1)
    (first, _) = (call for call in schema_1.calls("agent", "llm") if call.span.name == "call_llm")
    assert (first.reading.model, first.reading.finish_reasons) == ("gemini-3-flash-001", ("STOP",))
    assert first.reading.dialect == "google_adk+otel_genai"


def test_schema_1_has_its_messages_in_log_records_too(schema_1: Ran) -> None:
    """Of the span within each model call: all of the history are user's messages there, with Gemini's role inside."""
    check_models(schema_1, "generate_content gemini-3-flash", named_results=True)
    inner = [call for call in schema_1.calls("agent", "llm") if call.span.name.startswith("generate_content")]
    assert {call.reading.dialect for call in inner} == {"google_adk+otel_genai+otel_genai_events"}
    assert {call.reading.user_id for call in inner} == {"u1"}


@pytest.mark.parametrize("env", [{}, {**SCHEMA_1, "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS": "false"}])
def test_without_capture_nothing_was_said(run: Running, env: Mapping[str, str]) -> None:
    """What stands in place of it ({}, <elided>) is nobody's words."""
    calls = run(env).calls("agent")
    assert {"agent", "llm", "tool"} <= {call.kind for call in calls}
    assert {(call.reading.input, call.reading.output, call.reading.messages) for call in calls} == {(None, None, ())}
