"""OpenTelemetry GenAI up to conventions 1.36: messages as events of the span, or as log records that belong to it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.model.span import EventData, SpanData
from spangrade.samples.assemble import sample_of
from spangrade.samples.content import CONTENT_EVENTS, is_content_key
from spangrade.samples.extract import extract, quick_kind
from spangrade.samples.logs import as_event, with_logs
from spangrade.samples.reading import Call

SpanOf = Callable[..., SpanData]
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m"}
LOOK = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}


def event(name: str, time_ns: int = 0, **attributes: Any) -> EventData:
    return EventData(f"gen_ai.{name}", attributes, time_ns)


@pytest.fixture
def said(span_of: SpanOf) -> Callable[..., Call]:
    """The call of a chat span with these events."""

    def make(*events: EventData, **attributes: Any) -> Call:
        call = extract(span_of({**CHAT, **attributes}, events=events))
        assert call is not None
        return call

    return make


def test_a_conversation_as_events_with_fields_as_attributes(said: Callable[..., Call]) -> None:
    """Structured fields are JSON text there; a tool's answer is tied to its call by the event's id."""
    sample = sample_of(
        said(
            event("system.message", content="Be kind"),
            event("user.message", content="Hi"),
            event("assistant.message", tool_calls=json.dumps([LOOK])),
            event("tool.message", content="found", id="c1"),
            event("choice", index=0, finish_reason="stop", message='{"role": "assistant", "content": "Hello there"}'),
        )
    )
    assert (sample.context["system"], sample.input, sample.output) == ("Be kind", "Hi", "Hello there")
    assert sample.context["messages"] == [
        {"role": "system", "content": "Be kind"},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "look", "arguments": {"q": 1}}]},
        {"role": "tool", "content": "found", "tool_call_id": "c1"},
    ]
    assert sample.context["finish_reasons"] == ["stop"]
    assert (sample.context["model"], sample.context["provider"]) == ("m", "openai")


def test_the_same_conversation_as_log_records_is_the_same_sample(span_of: SpanOf, said: Callable[..., Call]) -> None:
    """Bodies with real values, in any order of arrival; the time says which came first."""
    bodies: list[tuple[str, Any]] = [
        ("gen_ai.system.message", {"content": "Be kind"}),
        ("gen_ai.user.message", {"content": "Hi"}),
        ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"content": "Hello", "tool_calls": [LOOK]}}),
    ]
    records = [as_event(name, {"gen_ai.system": "openai"}, body, 10 + i) for i, (name, body) in enumerate(bodies)]
    found = [record for record in records if record is not None]
    forth, back = (extract(with_logs(span_of(CHAT), logs)) for logs in (found, found[::-1]))
    flat = said(
        event("system.message", content="Be kind"),
        event("user.message", content="Hi"),
        event("choice", index=0, finish_reason="stop", message="Hello", tool_calls=json.dumps([LOOK])),
    )
    assert forth is not None
    assert back is not None
    assert sample_of(forth) == sample_of(back) == sample_of(flat)
    assert forth.reading.tool_calls == ({"id": "c1", "name": "look", "arguments": {"q": 1}},)


@pytest.mark.parametrize("key", ["body", "gen_ai.event.content"])
def test_the_body_may_be_json_text(said: Callable[..., Call], key: str) -> None:
    """Semantic Kernel's log records, and Azure AI's span events."""
    call = said(
        event("user.message", **{key: '{"role": "user", "content": "Hi"}'}),
        event("choice", **{key: '{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}'}),
    )
    assert (call.reading.input, call.reading.output, call.reading.finish_reasons) == ("Hi", "Hello", ("stop",))


def test_a_body_that_was_cut_gives_its_whole_members_only(said: Callable[..., Call]) -> None:
    """Half a sentence is not graded."""
    call = said(
        event("user.message", body='{"role": "user", "name": "Ada", "content": "How do I ge'),
        event("choice", index=0, message='{"role": "assistant", "content": "You ta'),
    )
    assert (call.reading.input, call.reading.output) == (None, None)
    assert call.reading.truncated


def test_the_prompt_of_a_text_completion_is_the_body(said: Callable[..., Call]) -> None:
    """Semantic Kernel; its answer is a text content."""
    call = said(
        event("prompt", body="Once upon"),
        event("choice", body='{"message": {"type": "text", "text": "a time"}}'),
        **{"gen_ai.operation.name": "text_completions"},
    )
    assert (call.kind, call.reading.input, call.reading.output) == ("llm", "Once upon", "a time")


def test_what_a_user_wrote_in_json_stays_his_text(said: Callable[..., Call]) -> None:
    """Only message parts are taken for structure."""
    for text in ('{"a": 1}', "[1, 2]", "[not json", "[]", '{"role": "x"}'):
        assert said(event("user.message", content=text)).reading.input == text
    parts = json.dumps([{"text": "Look"}, {"image": {"format": "png", "source": {"bytes": "AAAA"}}}])
    assert said(event("user.message", content=parts)).reading.input.startswith("Look")


def test_gemini_content_knows_its_own_role(said: Callable[..., Call]) -> None:
    """Google ADK sends the whole history as user messages, and the model's turns among them."""
    call = said(
        event("system.message", content="Be kind"),
        event("user.message", content={"role": "user", "parts": [{"text": "Hi"}]}),
        event("user.message", content={"role": "model", "parts": [{"function_call": {"name": "look", "args": {"q": 1}}}]}),
        event("user.message", content={"role": "user", "parts": [{"function_response": {"name": "look", "response": {"r": 2}}}]}),
        event("choice", index=0, content={"role": "model", "parts": [{"text": "Hello"}]}, finish_reason="STOP"),
    )  # fmt: skip
    assert [m["role"] for m in call.reading.messages] == ["system", "user", "assistant", "tool"]
    assert (call.reading.input, call.reading.output, call.reading.system) == ("Hi", "Hello", "Be kind")


def test_an_answer_in_pieces_is_one_answer(said: Callable[..., Call]) -> None:
    """ADK reports each streamed piece as a choice; only the last has a reason to finish."""
    pieces = [("Hel", None), ("lo ", None), ("there", "STOP")]
    call = said(
        *(
            event("choice", index=0, content={"role": "model", "parts": [{"text": t}]}, finish_reason=f)
            for t, f in pieces
        )
    )
    assert call.reading.output == "Hello there"
    assert len(call.reading.output_messages) == 1


def test_several_choices_are_kept_in_the_order_of_their_index(said: Callable[..., Call]) -> None:
    """Whatever came first."""
    call = said(
        event("choice", index=1, message={"content": "B"}, finish_reason="stop"),
        event("choice", index=0, message={"content": "A"}, finish_reason="stop"),
    )
    assert call.reading.output == "A"
    assert [m["content"] for m in call.reading.output_messages] == ["A", "B"]


@pytest.mark.parametrize(
    "events",
    [
        [event("user.message"), event("choice", index=0, finish_reason="stop", message={"role": "assistant"})],
        [
            event("system.message", content="<elided>"),
            event("user.message", content="<elided>"),
            event("choice", content="<elided>", index=0, finish_reason="stop"),
        ],
    ],
)
def test_events_without_content_are_no_empty_texts(said: Callable[..., Call], events: list[EventData]) -> None:
    """Capture is off: nothing was said that anybody could grade; why it ended is known."""
    reading = said(*events).reading
    assert (reading.input, reading.output, reading.system) == (None, None, None)
    assert (reading.messages, reading.output_messages) == ((), ())
    assert reading.finish_reasons == ("stop",)


def test_without_content_the_names_of_called_tools_remain(said: Callable[..., Call]) -> None:
    """They are no content."""
    call = {"id": "c1", "type": "function", "function": {"name": "look"}}
    reading = said(event("user.message"), event("choice", index=0, message={"tool_calls": [call]})).reading
    assert reading.tool_calls == ({"id": "c1", "name": "look"},)
    assert reading.output_messages == ()


def test_prompt_and_completion_in_one_event_each(said: Callable[..., Call]) -> None:
    """The oldest form."""
    call = said(
        event("content.prompt", **{"gen_ai.prompt": '[{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}]'}),
        event("content.completion", **{"gen_ai.completion": '[{"role": "assistant", "content": "Hello"}]'}),
    )  # fmt: skip
    assert (call.reading.system, call.reading.input, call.reading.output) == ("S", "Hi", "Hello")
    bare = said(
        event("content.prompt", **{"gen_ai.prompt": "Hi"}), event("content.completion", **{"gen_ai.completion": "Yo"})
    )
    assert (bare.reading.input, bare.reading.output) == ("Hi", "Yo")


def test_the_events_of_a_tool_span_are_its_arguments_and_result(said: Callable[..., Call]) -> None:
    """Strands."""
    call = said(
        event("tool.message", role="tool", content='{"q": 1}', id="c1"),
        event("choice", message='[{"text": "found"}]', id="c1"),
        **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1"},
    )
    assert (call.kind, call.reading.input, call.reading.output) == ("tool", {"q": 1}, "found")


def test_a_user_named_on_the_records_is_the_user(said: Callable[..., Call]) -> None:
    """Google ADK names him only there."""
    assert said(event("user.message", content="Hi", **{"user.id": "u1"})).reading.user_id == "u1"


def test_events_of_other_names_say_nothing(said: Callable[..., Call]) -> None:
    """A span without messages is read by the dialect of its attributes alone."""
    assert said(EventData("exception", {"content": "Hi"})).reading.dialect == "otel_genai"


def test_messages_in_attributes_are_believed_first(said: Callable[..., Call]) -> None:
    """Both forms at once: the newer one."""
    newer = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "new"}]}])
    call = said(event("user.message", content="old"), event("choice", message="A"), **{"gen_ai.input.messages": newer})
    assert (call.reading.input, call.reading.output) == ("new", "A")


def test_a_system_without_an_operation_is_a_model_call() -> None:
    """The conventions' first versions had no operations."""
    assert quick_kind({"gen_ai.system": "openai"}) == "llm"
    assert quick_kind({"gen_ai.system": "openai", "gen_ai.operation.name": "execute_tool"}) == "tool"


def test_what_the_events_hold_is_content() -> None:
    """Left out with export_content=False, the whole event or its key."""
    assert {"gen_ai.user.message", "gen_ai.choice", "gen_ai.prompt"} <= CONTENT_EVENTS
    assert all(map(is_content_key, ("gen_ai.prompt", "gen_ai.completion", "gen_ai.event.content")))
