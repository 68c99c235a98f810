"""Semantic Kernel for Python, and its successor, Microsoft's Agent Framework."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.model.span import SpanData
from spangrade.samples.assemble import sample_of
from spangrade.samples.explain import capture_of
from spangrade.samples.extract import extract, quick_kind
from spangrade.samples.logs import as_event, with_logs
from spangrade.samples.reading import Call

SCOPE = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"


@pytest.fixture
def call_with(span_of: Callable[..., SpanData]) -> Callable[..., Call]:
    """The call of a span of that scope with these log records, as `logging` puts them: name in an attribute, body as text."""

    def make(attributes: dict[str, Any], *records: tuple[str, str], scope: str = SCOPE) -> Call:
        events = (as_event(None, {"event.name": name}, body, 10 + i) for i, (name, body) in enumerate(records))
        call = extract(with_logs(span_of(attributes, scope_name=scope), [e for e in events if e is not None]))
        assert call is not None
        return call

    return make


def test_a_chat_is_in_records_whose_body_is_json_text(call_with: Callable[..., Call]) -> None:
    """With a function that the model called, and its result."""
    looked = {"id": "c1", "type": "function", "function": {"name": "plugs-look", "arguments": '{"city": "Lisbon"}'}}
    call = call_with(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.system": "openai",
            "gen_ai.request.model": "m",
            "gen_ai.response.finish_reason": "FinishReason.STOP",
        },
        ("gen_ai.system.message", json.dumps({"role": "system", "content": "Be kind"})),
        ("gen_ai.user.message", json.dumps({"role": "user", "content": "Which plug?"})),
        ("gen_ai.assistant.message", json.dumps({"role": "assistant", "tool_calls": [looked]})),
        ("gen_ai.tool.message", json.dumps({"role": "tool", "content": "type F", "tool_call_id": "c1"})),
        (
            "gen_ai.choice",
            json.dumps({"message": {"role": "assistant", "content": "Type F."}, "finish_reason": "stop"}),
        ),
    )
    sample = sample_of(call)
    assert (sample.input, sample.output, sample.context["system"]) == ("Which plug?", "Type F.", "Be kind")
    assert sample.context["messages"][2]["tool_calls"] == [
        {"id": "c1", "name": "plugs-look", "arguments": {"city": "Lisbon"}}
    ]
    assert sample.context["messages"][3] == {"role": "tool", "content": "type F", "tool_call_id": "c1"}
    assert sample.context["finish_reasons"] == ["stop"]
    assert call.reading.dialect == "semantic_kernel+otel_genai+otel_genai_events"


@pytest.mark.parametrize(
    ("sent", "read"),
    [("FinishReason.STOP", ("stop",)), ("FinishReason.STOP,FinishReason.LENGTH", ("stop", "length")), ("None", ())],
)
def test_a_finish_reason_is_the_member_of_an_enumeration(
    call_with: Callable[..., Call], sent: str, read: tuple[str, ...]
) -> None:
    """Where nothing was captured, too."""
    reading = call_with({"gen_ai.operation.name": "chat", "gen_ai.response.finish_reason": sent}).reading
    assert (reading.finish_reasons, reading.input, reading.output) == (read, None, None)


def test_a_text_completion_is_a_model_call(call_with: Callable[..., Call]) -> None:
    """Its operation has a name of its own, its prompt is a record's bare body."""
    call = call_with(
        {"gen_ai.operation.name": "text_completions"},
        ("gen_ai.prompt", "Once upon"),
        ("gen_ai.choice", json.dumps({"message": {"type": "text", "text": "a time"}})),
    )
    assert (call.kind, call.reading.input, call.reading.output) == ("llm", "Once upon", "a time")
    assert quick_kind({"gen_ai.operation.name": "text_completions"}) == "llm"


def test_an_agent_has_its_messages_on_the_span(call_with: Callable[..., Call]) -> None:
    """Several answers: the last."""
    call = call_with(
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.input.messages": json.dumps([{"role": "user", "content": "Which plug?"}]),
            "gen_ai.output.messages": json.dumps(
                [{"role": "assistant", "content": "Let me see."}, {"role": "assistant", "content": "Type F."}]
            ),
        },
        scope="semantic_kernel.utils.telemetry.agent_diagnostics.decorators",
    )
    assert (call.kind, call.reading.input, call.reading.output) == ("agent", "Which plug?", "Type F.")


def test_a_span_of_another_scope_is_not_its(call_with: Callable[..., Call]) -> None:
    """Each says by its scope whose it is, so that the advice on how to capture content is its own."""
    for scope, dialect in (("agent_framework", "agent_framework+otel_genai"), ("app", "otel_genai")):
        assert call_with({"gen_ai.operation.name": "chat"}, scope=scope).reading.dialect == dialect


@pytest.mark.parametrize(
    ("scope", "switch"), [(SCOPE, "SEMANTICKERNEL_"), ("agent_framework", "ENABLE_SENSITIVE_DATA")]
)
def test_the_advice_on_capture_is_the_librarys_own(call_with: Callable[..., Call], scope: str, switch: str) -> None:
    """What switches it on elsewhere by the same conventions has no effect on these."""
    found = capture_of(call_with({"gen_ai.operation.name": "chat"}, scope=scope).reading.dialect.split("+"))
    assert found is not None
    assert switch in found
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" not in found
