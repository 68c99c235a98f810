"""Pydantic AI: agents and tools, in all formats of its instrumentation."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.samples.assemble import root_sample, sample_of
from spangrade.samples.extract import is_content_key, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
CaseCalls = Callable[[str], dict[str, Call]]


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


CONVERSATION = [
    text("user", "Which plug?"),
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": '{"c":1}'}]},
    {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "name": "look", "result": {"plug": "F"}}]},
    {**text("assistant", "Type F."), "finish_reason": "stop"},
]


def agent(messages: list[Any], **more: Any) -> dict[str, Any]:
    """An agent's span of formats 3 to 6."""
    return {
        "model_name": "gpt-4o-mini",
        "agent_name": "clerk",
        "gen_ai.agent.name": "clerk",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": "s1",
        "pydantic_ai.all_messages": json.dumps(messages),
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def test_an_agents_span(call_of: CallOf) -> None:
    """What the user asked, what came out, all that was said between, the sums of its model calls."""
    reading = call_of(
        agent(
            CONVERSATION,
            final_result="Type F.",
            gen_ai__system_instructions='[{"type":"text","content":"Be kind"}]',
            gen_ai__aggregated_usage__input_tokens=24,
            gen_ai__aggregated_usage__output_tokens=10,
            gen_ai__aggregated_usage__details__reasoning_tokens=1,
        )
    ).reading
    assert (reading.kind, reading.input, reading.output) == ("agent", "Which plug?", "Type F.")
    assert (reading.system, reading.model, reading.session_id) == ("Be kind", "gpt-4o-mini", "s1")
    assert [m["role"] for m in reading.messages] == ["system", "user", "assistant", "tool"]
    assert reading.messages[3] == {"role": "tool", "content": '{"plug":"F"}', "tool_call_id": "c1", "name": "look"}
    assert reading.output_messages == ({"role": "assistant", "content": "Type F.", "finish_reason": "stop"},)
    assert reading.tool_calls == ({"id": "c1", "name": "look", "arguments": {"c": 1}},)
    assert reading.usage == {"input_tokens": 24, "output_tokens": 10, "reasoning_tokens": 1}


def test_structured_output_is_an_object(call_of: CallOf) -> None:
    """C050: the parsed model is the output, as JSON."""
    assert call_of(agent(CONVERSATION, final_result='{"plug": "F"}')).reading.output == {"plug": "F"}


def test_without_a_result_the_last_answer_is_the_output(call_of: CallOf) -> None:
    """A run that failed has neither."""
    assert call_of(agent(CONVERSATION)).reading.output == "Type F."
    assert call_of(agent(CONVERSATION[:3])).reading.output is None


def test_the_question_is_that_of_this_run(call_of: CallOf) -> None:
    """A conversation that goes on has older questions before it, and a retry's reason after it."""
    turns = [
        *CONVERSATION,
        text("user", "And in Rome?"),
        text("assistant", "?"),
        text("user", "Validation failed: try again"),
    ]
    reading = call_of(agent(turns, pydantic_ai__new_message_index=4)).reading
    assert reading.input == "And in Rome?"
    assert len(reading.messages) == 7
    assert call_of(agent(turns, pydantic_ai__new_message_index=99)).reading.input is None


def test_without_content_there_is_none(call_of: CallOf) -> None:
    """`include_content=False` leaves the messages' shape."""
    bare = [{"role": "user", "parts": [{"type": "text"}]}, {"role": "assistant", "parts": [{"type": "text"}]}]
    reading = call_of(agent(bare)).reading
    assert (reading.kind, reading.input, reading.output) == ("agent", None, None)


def test_a_run_whose_messages_somebody_took_out(call_of: CallOf) -> None:
    """Laminar does, since the model calls have them; the result is left."""
    attributes = agent([], final_result="Type F.")
    del attributes["pydantic_ai.all_messages"]
    reading = call_of(attributes).reading
    assert (reading.kind, reading.input, reading.output) == ("agent", None, "Type F.")


def test_the_first_format(call_of: CallOf) -> None:
    """Events in a list, parts with a `kind`."""
    events = [
        {"role": "system", "content": "Be kind", "gen_ai.message.index": 0, "event.name": "gen_ai.system.message"},
        {
            "content": [
                "Look",
                {"kind": "image-url", "url": "https://x/y.png"},
                {"kind": "binary", "media_type": "audio/wav", "binary_content": "AAAA"},
            ],
            "role": "user",
            "event.name": "gen_ai.user.message",
        },
        {
            "role": "assistant",
            "content": [{"kind": "thinking", "text": "hm"}, {"kind": "text", "text": "Hello there"}],
            "event.name": "gen_ai.assistant.message",
        },
    ]
    attributes = {"agent_name": "clerk", "all_messages_events": json.dumps(events), "final_result": "Hello there"}
    assert quick_kind(attributes) == "agent"
    reading = call_of(attributes).reading
    assert (reading.input, reading.output, reading.system) == (
        "Look\n[image: by URL]\n[audio: audio/wav]",
        "Hello there",
        "Be kind",
    )
    assert reading.reasoning == "hm"
    del attributes["final_result"]
    assert call_of(attributes).reading.output == "Hello there"


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ({"plug": "F"}, '{"plug":"F"}'),
        ([{"plug": "F"}, {"plug": "C"}], '[{"plug":"F"},{"plug":"C"}]'),
        ([1, 2], "[1,2]"),
        (5, "5"),
        ("type F", "type F"),
        ([{"kind": "text", "text": "type F", "type": "text"}], "type F"),
    ],
)
def test_what_a_tool_returned_is_its_turns_text(call_of: CallOf, returned: Any, text: str) -> None:
    """Format 1 writes the value itself."""
    events = [
        {"role": "user", "content": "Which plug?", "event.name": "gen_ai.user.message"},
        {"role": "tool", "content": returned, "id": "c1", "name": "look", "event.name": "gen_ai.tool.message"},
    ]
    reading = call_of({"agent_name": "clerk", "all_messages_events": json.dumps(events)}).reading
    assert reading.messages[1] == {"role": "tool", "content": text, "tool_call_id": "c1", "name": "look"}


def test_tools_of_the_first_two_formats(call_of: CallOf) -> None:
    attributes = {
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "c1",
        "tool_arguments": '{"city": "Lisbon"}',
        "tool_response": "found",
    }
    reading = call_of(attributes).reading
    assert (reading.kind, reading.input, reading.output) == ("tool", {"city": "Lisbon"}, "found")
    assert reading.tool_calls == ({"id": "c1", "name": "look", "arguments": {"city": "Lisbon"}},)
    second = call_of({**attributes, "gen_ai.operation.name": "execute_tool"}).reading
    assert (second.input, second.output, second.tool_calls) == (reading.input, reading.output, reading.tool_calls)


@pytest.mark.parametrize("value", ["[", "{}", "5", '"x"', "[5, null]", "not json", 7, None, '[{"role": "user"}]'])
def test_rubbish_is_no_conversation(call_of: CallOf, value: Any) -> None:
    for key in ("pydantic_ai.all_messages", "all_messages_events"):
        reading = call_of({"agent_name": "clerk", key: value, "pydantic_ai.new_message_index": "x"}).reading
        assert reading.kind == "agent"
        assert reading.output is None


def test_a_bare_result_makes_no_call() -> None:
    """Others use such a name for other things."""
    assert quick_kind({"final_result": "x"}) is None
    for key in ("final_result", "pydantic_ai.all_messages", "all_messages_events", "tool_arguments", "tool_response"):
        assert is_content_key(key)


def test_c065_three_generations_give_the_same_conversation(case_calls: CaseCalls) -> None:
    """System 'Be kind', user 'Hi', answer 'Hello there'; the tool with arguments and result; no call for a placeholder."""
    calls = case_calls("C065")
    for span in ("95931954279497f4", "df9c60f45c609136"):
        sample = sample_of(calls[span])
        assert (sample.context["system"], sample.input, sample.output) == ("Be kind", "Hi", "Hello there")
    first = sample_of(calls["95931954279497f4"])
    assert first.context["messages"][2]["tool_calls"] == [{"id": "c1", "name": "look", "arguments": {}}]
    assert first.context["messages"][3] == {"role": "tool", "content": "found", "tool_call_id": "c1"}
    for span in ("693b15347018e9b9", "d38d484f3862f8e0"):
        tool = sample_of(calls[span])
        assert (tool.input, tool.output) == ({}, "found")
        assert tool.context["tool_calls"][0]["name"] == "look"
    run, structured = sample_of(calls["fc57874ce63f6138"]), sample_of(calls["44be0a0203f6fad8"])
    assert (run.context["kind"], run.input, run.output) == ("agent", "Hi", "Hello there")
    assert (structured.input, structured.output) == ("Hi", {"reply": "Hello there"})
    assert "d998ff3a339f9318" not in calls
    whole = root_sample([calls["44be0a0203f6fad8"]], [calls["d38d484f3862f8e0"]])
    assert whole is not None
    assert whole[1].context["tool_calls"] == [{"name": "look", "arguments": {}, "result": "found"}]
