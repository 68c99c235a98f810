"""Cases from the field (../shared/cases, sections E to G), as far as the dialects read today go."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.config import UseEntry
from spangrade.metrics.entries import evaluator_from
from spangrade.model.score import Skip
from spangrade.samples.assemble import root_sample, sample_of
from spangrade.samples.family import Family
from spangrade.samples.reading import Call

CaseCalls = Callable[[str], dict[str, Call]]


def by_name(calls: dict[str, Call]) -> dict[str, Call]:
    return {call.span.name: call for call in calls.values()}


def test_c043_a_turn_of_tool_calls_has_empty_text_and_its_calls(case_calls: CaseCalls) -> None:
    """The second call's arguments are no JSON and stay raw; the tool's answer is tied to the first."""
    (call,) = case_calls("C043").values()
    sample = sample_of(call)
    _, turn, tool = sample.context["messages"]
    assert turn["content"] == ""
    assert turn["tool_calls"] == [
        {"id": "c1", "name": "plugs", "arguments": {"city": "Lisbon"}},
        {"name": "adapters", "arguments": "{not json"},
    ]
    assert tool == {"role": "tool", "content": "type F", "tool_call_id": "c1"}
    assert sample.input == "Which plug fits in Lisbon?"
    assert sample.output == "Type F fits."


@pytest.mark.parametrize(
    ("span", "mark"),
    [
        ("ea8cf7674e340ea1", "[image x2: image/png, 8 bytes; by URL]"),
        ("5e65a480cd64219b", "[image: image/png, 8 bytes]"),
        ("c4ea11cfd99b27fc", "[image: by URL]"),
    ],
)
def test_c044_parts_become_text_and_one_image_mark(case_calls: CaseCalls, span: str, mark: str) -> None:
    """GenAI parts, OpenInference contents, JSON in OpenLLMetry's content. The address is not shown."""
    reading = case_calls("C044")[span].reading
    assert reading.input == f"What is in this picture?\n{mark}"
    assert reading.output == "A cat."


def test_c047_a_refusal_is_the_output_and_is_marked(case_calls: CaseCalls) -> None:
    """As a GenAI part, in OpenLLMetry's JSON, and inside a raw OpenAI response; an empty list of messages is no output at all."""
    calls = case_calls("C047")
    for span in ("75d0926ae2c73002", "3bb0abad8dde40fc", "7dfe9e814a0db8c6"):
        sample = sample_of(calls[span])
        assert sample.input == "Write the forbidden thing"
        assert sample.output == "I can't help with that."
        assert sample.context["refusal"] is True
    empty = sample_of(calls["26785a6b778d438b"])
    assert empty.output is None
    assert "refusal" not in empty.context


def test_c048_thoughts_are_apart_from_the_answer(case_calls: CaseCalls) -> None:
    """As a part of either name, or as tags; thoughts alone are no answer, and the sample is marked truncated."""
    p1, p2, p3, p4 = (sample_of(call) for call in case_calls("C048").values())
    assert [p.output for p in (p1, p2, p3)] == ["51", "51", "51"]
    assert [p.context["reasoning"] for p in (p1, p2, p3)] == ["Maybe 54? No: 17*3 = 51.", "Maybe 54?", "Maybe 54?"]
    assert p4.output is None
    assert p4.context["truncated"] is True
    assert p4.context["finish_reasons"] == ["length"]


def test_c049_the_responses_api_inside_output_value(case_calls: CaseCalls) -> None:
    """The reply among items of thoughts, tool calls and messages, wrapped in an event."""
    sample = sample_of(case_calls("C049")["861fa3a9748a5e58"])
    assert (sample.input, sample.output, sample.context["system"]) == ("Say OK", "OK", "Be brief")
    assert sample.context["tool_calls"] == [{"id": "c1", "name": "ping", "arguments": {}}]
    assert sample.context["reasoning"] == "think"
    assert sample.context["usage"] == {"input_tokens": 4, "output_tokens": 1}


def test_c049_items_without_a_role_in_langfuse(case_calls: CaseCalls) -> None:
    sample = sample_of(case_calls("C049")["81437d899972ab88"])
    assert (sample.input, sample.output) == ("Say OK", "OK")


def said(*texts: str | None) -> str:
    """Choices of a response as the GenAI conventions have them; None: one of a tool call only."""
    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}
    parts = [[call] if text is None else [{"type": "text", "content": text}] for text in texts]
    return json.dumps([{"role": "assistant", "parts": some, "finish_reason": "stop"} for some in parts])


@pytest.mark.parametrize(
    ("choices", "output", "kept"),
    [
        (("A", "B", "C"), "A", ["A", "B", "C"]),
        (("",), "", None),
        ((" ",), " ", None),
        ((None,), None, None),
        (("", "B"), "", ["", "B"]),
        ((), None, None),
    ],
)
def test_c052_the_first_choice_is_graded_the_rest_is_kept_and_no_text_is_not_an_empty_one(
    call_of: Callable[..., Call], choices: tuple[str | None, ...], output: str | None, kept: list[str] | None
) -> None:
    """An empty answer is ``""``; none, or a turn of tool calls only, is None, and what needs an output is skipped."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": '[{"role": "user", "content": "Q"}]'}
    sample = sample_of(call_of({**chat, "gen_ai.output.messages": said(*choices)}))
    assert sample.output == output
    found = sample.context.get("output_messages")
    assert (None if found is None else [message["content"] for message in found]) == kept
    assert sample.context.get("tool_calls") == (
        [{"id": "c1", "name": "look", "arguments": {}}] if None in choices else None
    )
    if output is None:
        with pytest.raises(Skip, match="output missing"):
            evaluator_from(UseEntry(use="json_valid")).evaluate(sample)


@pytest.mark.parametrize("place", ["instructions", "first message", "prompts"])
def test_c051_the_system_text_and_the_whole_history_are_there(call_of: Callable[..., Call], place: str) -> None:
    """Wherever the sender puts the one, and with the tool calls of earlier turns."""
    history = [
        {"role": "user", "parts": [{"type": "text", "content": "Q1"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": {"q": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "found"}]},
        {"role": "user", "parts": [{"type": "text", "content": "Q2"}]},
    ]
    chat: dict[str, Any] = {"gen_ai.operation.name": "chat"}
    system = {"role": "system", "parts": [{"type": "text", "content": "Be kind"}]}
    if place == "instructions":
        chat |= {
            "gen_ai.system_instructions": json.dumps(system["parts"]),
            "gen_ai.input.messages": json.dumps(history),
        }
    elif place == "first message":
        chat |= {"gen_ai.input.messages": json.dumps([system, *history])}
    else:
        request = {"system": "Be kind", "messages": history}
        chat = {
            "openinference.span.kind": "LLM",
            "input.value": json.dumps(request),
            "input.mime_type": "application/json",
        }
    context = sample_of(call_of(chat)).context
    assert context["system"] == "Be kind"
    assert [message["role"] for message in context["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert context["messages"][2]["tool_calls"] == [{"id": "c1", "name": "look", "arguments": {"q": 1}}]
    assert context["messages"][3] == {"role": "tool", "content": "found", "tool_call_id": "c1"}


def test_c056_the_documents_are_those_of_the_last_retrieval_before_the_model(case_calls: CaseCalls) -> None:
    """The reranker's; the others are in context, each once."""
    calls = list(case_calls("C056").values())
    found = root_sample([c for c in calls if c.span.parent_span_id is None], calls)
    assert found is not None
    carrier, sample = found
    assert carrier.span.name == "rag"
    assert [document["content"] for document in sample.documents] == ["type F"]
    assert sample.documents[0]["score"] == 0.99
    assert [r["name"] for r in sample.context["retrievals"]] == ["ensemble", "bm25", "vector"]
    assert sample.context["searched"] is True


def test_c061_flattened_indices_are_numbers(case_calls: CaseCalls) -> None:
    """Gaps closed, absurd ones ignored, a missing role is unknown and its turn kept."""
    sample = sample_of(case_calls("C061")["5dae429688af1c52"])
    messages = sample.context["messages"]
    texts = ["turn 0", "turn 1", "turn 2", "turn 5 without a role", "turn 10", "turn 11"]
    assert [m["content"] for m in messages] == texts
    assert messages[3]["role"] == "unknown"
    assert messages[0]["tool_calls"][0]["name"] == "late_index_tool"
    assert (sample.input, sample.output) == ("turn 10", "final")


def test_c063_cut_json_gives_the_whole_messages_before_the_cut(case_calls: CaseCalls) -> None:
    """Nothing half is graded, and the sample says that it is not whole."""
    calls = case_calls("C063")
    one, two = sample_of(calls["6dc84905d6df841d"]), sample_of(calls["bbcdf42954dfd002"])
    assert one.input is None
    assert one.output == "Type F."  # its text is whole, though its message is not
    assert one.context["truncated"] is True
    assert two.context["messages"] == [{"role": "system", "content": "You are a travel clerk."}]
    assert (two.input, two.output) == (None, None)
    assert two.context["truncated"] is True


def test_c065_three_generations_give_one_conversation_and_placeholders_no_call(case_calls: CaseCalls) -> None:
    """Events in an attribute, an agent's whole run, GenAI messages; a tool by the old names and the new."""
    calls = case_calls("C065")
    first, second = sample_of(calls["95931954279497f4"]), sample_of(calls["df9c60f45c609136"])
    for sample in (first, second):
        assert (sample.context["system"], sample.input, sample.output) == ("Be kind", "Hi", "Hello there")
    assert first.context["messages"][2:] == [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "look", "arguments": {}}]},
        {"role": "tool", "content": "found", "tool_call_id": "c1"},
    ]
    run, typed = sample_of(calls["fc57874ce63f6138"]), sample_of(calls["44be0a0203f6fad8"])
    assert (run.input, run.output) == ("Hi", "Hello there")
    assert (typed.input, typed.output) == ("Hi", {"reply": "Hello there"})
    for span in ("693b15347018e9b9", "d38d484f3862f8e0"):
        tool = sample_of(calls[span])
        assert (tool.input, tool.output) == ({}, "found")
        assert tool.context["tool_calls"] == [{"name": "look", "arguments": {}, "result": "found"}]
    assert "d998ff3a339f9318" not in calls


def test_c067_messages_in_events_of_three_generations(case_calls: CaseCalls) -> None:
    """One event a message, one for each side, the details event."""
    calls = case_calls("C067")
    assert len(calls) == 3
    for call in calls.values():
        sample = sample_of(call)
        assert (sample.input, sample.output) == ("Hi", "Hello there")
        assert sample.context["messages"][-1] == {"role": "user", "content": "Hi"}
    assert [call.reading.system for call in calls.values()] == ["Be kind", None, None]


def test_c070_tokens_are_counted_once(case_calls: CaseCalls) -> None:
    """An agent's total repeats its children's, and a second instrumentation repeats a call."""
    calls = list(case_calls("C070").values())
    found = root_sample([calls[0]], calls)
    assert found is not None
    assert found[1].context["usage"] == {"input_tokens": 113, "output_tokens": 11}
    assert found[1].output == "Hello again"


def test_c083_evaluators_and_what_is_below_them_leave_nothing_to_score(case_calls: CaseCalls) -> None:
    """Only the answer is left."""
    calls = case_calls("C083")
    left = Family(calls.values()).without_evaluators().calls
    assert [call.span.name for call in left] == ["answer"]
    assert root_sample([calls["a13e6351a03177c9"]], list(calls.values())) is None


def test_c091_messages_as_real_values(case_calls: CaseCalls) -> None:
    """Maps and lists in place of JSON text."""
    (call,) = case_calls("C091").values()
    assert call.reading.input == "structured, not JSON text"
    assert call.reading.output == "an answer as real OTLP values"


def test_c093_one_sample_however_the_parts_arrive(case_calls: CaseCalls) -> None:
    """The retriever is another service's; the orphan is another trace."""
    calls = [call for call in case_calls("C093").values() if call.reading.input != "alone"]
    top = [call for call in calls if call.span.parent_span_id is None]
    found = root_sample(top, calls)
    assert found is not None
    assert [d["content"] for d in found[1].documents] == ["type F"]
    assert found[1].output == "Type F."
    assert found == root_sample(top, calls[::-1])


def test_c123_a_duration_is_unknown_rather_than_wrong(case_calls: CaseCalls) -> None:
    """End before start, zero, missing: None; never negative, never huge."""
    durations = {name: sample_of(call).context["duration_s"] for name, call in by_name(case_calls("C123")).items()}
    for name in ("chat zero", "chat reversed", "chat endzero", "chat missing"):
        assert durations[name] is None, name
    assert durations["chat control"] == 1.0
    assert all(value is None or 0 <= value <= 1.0 for value in durations.values())
