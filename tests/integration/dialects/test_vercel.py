"""The Vercel AI SDK in Node, for real, in both generations: the spans of 6 (``ai.*``) and those of 7 (``gen_ai.*``)."""

from __future__ import annotations

from typing import Any

import pytest

from .collect import Receiver
from .node import run_node
from .openai_samples import ANSWERED_TOOLS, ASKED, CALLS, PARROT, expected
from .replay import Replay
from .running import Ran

SCENARIOS = ("text", "streaming", "tools", "object", "hidden", "fails")
OBJECT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "gpt-4o-mini-2024-07-18",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": '{"days":3}'},
            "finish_reason": "stop",
            "logprobs": None,
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
}
LABELS = {"userId": "u1", "sessionId": "s1", "plan": "free"}


@pytest.fixture(scope="module", params=["vercel_6", "vercel_7"])
def ran(request: Any, replay: Replay, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    place = replay.place()
    place.say("object", "/v1/chat/completions", OBJECT)
    folder = tmp_path_factory.mktemp(request.param)
    return run_node("vercel", SCENARIOS, request.param, place, receiver.inbox(), folder)


def legacy(ran: Ran) -> bool:
    return ran.call("text", "agent").reading.dialect == "vercel"


def of_call(ran: Ran, sample: dict[str, Any]) -> dict[str, Any]:
    """What each generation tells besides, taken away: labels, names of spans, details of tokens."""
    found = dict(sample["context"])
    assert found.pop("span_name") in ("ai.generateText.doGenerate", "ai.streamText.doStream", "chat gpt-4o-mini")
    if legacy(ran):
        assert (found.pop("session_id"), found.pop("user_id")) == ("s1", "u1")
        assert found["usage"].pop("reasoning_tokens", 0) == 0
    assert found["usage"].pop("cache_read_tokens", 0) == 0
    (service,) = {sample["metadata"]["service.name"]}
    return {**sample, "context": found, "metadata": {"service.name": service}}


def test_each_call_of_the_model_is_its_sample(ran: Ran) -> None:
    assert of_call(ran, ran.sample("text", "llm")) == expected("chat")
    assert of_call(ran, ran.sample("streaming", "llm")) == expected("streaming")
    first, second = (plain_of(call) for call in ran.calls("tools", "llm"))
    without = {"system": None, "tools": None}
    asked, answered = ANSWERED_TOOLS[1:2], ANSWERED_TOOLS[1:]
    assert tools(first) == ["get_current_weather"]
    assert stripped(of_call(ran, first)) == expected(
        "tools", 0, messages=asked, finish_reasons=["tool-calls"], **without
    )
    assert stripped(of_call(ran, second)) == expected("tools", 1, messages=answered, **without)


def test_the_call_as_a_whole_is_an_agents_run_with_the_same_question_and_answer(ran: Ran) -> None:
    whole = ran.root("text")
    assert (whole["input"], whole["output"]) == (ASKED["content"], "This is a test.")
    assert whole["context"]["messages"] == [PARROT, ASKED]
    assert (whole["context"]["system"], whole["context"]["kind"]) == (PARROT["content"], "agent")
    assert whole["context"]["usage"]["output_tokens"] == 5
    assert ran.root("streaming")["output"] == '"This is a test."'


def test_a_run_with_tools_has_their_results_and_the_tokens_of_its_steps_once(ran: Ran) -> None:
    whole = ran.root("tools")
    last = expected("tools", 1)
    assert (whole["input"], whole["output"]) == (last["input"], last["output"])
    results = ("50 degrees and raining", "70 degrees and sunny")
    assert whole["context"]["tool_calls"] == [
        {**call, "result": result} for call, result in zip(CALLS, results, strict=True)
    ]
    usage = whole["context"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (174, 76)
    found = {call.reading.tool_calls[0]["id"]: call.reading for call in ran.calls("tools", "tool")}
    for call, result in zip(CALLS, results, strict=True):
        assert (found[call["id"]].input, found[call["id"]].output) == (call["arguments"], result)


def test_an_object_is_its_json_text(ran: Ran) -> None:
    assert ran.root("object")["output"] == ran.sample("object", "llm")["output"] == '{"days":3}'
    assert ran.root("object")["input"] == "When does it come?"


def test_a_stream_tells_when_its_answer_began(ran: Ran) -> None:
    call = ran.call("streaming", "llm")
    assert call.reading.first_chunk_s is not None
    assert 0 < call.reading.first_chunk_s <= 60


def test_what_is_not_recorded_was_not_said(ran: Ran) -> None:
    """recordInputs and recordOutputs false: input and output are None, never ""."""
    for call in ran.calls("hidden"):
        assert (call.reading.input, call.reading.output) == (None, None)
        assert (call.reading.messages, call.reading.output_messages, call.reading.system) == ((), (), None)
    assert ran.root("hidden")["context"]["usage"]["output_tokens"] == 5


def test_a_call_that_fails_is_a_question_without_an_answer(ran: Ran) -> None:
    whole = ran.root("fails")
    assert (whole["input"], whole["output"], whole["context"]["status"]) == (ASKED["content"], None, "error")


def test_the_older_generation_tells_users_sessions_and_labels(ran: Ran) -> None:
    whole = ran.root("text")
    if not legacy(ran):
        assert whole["metadata"] == {"service.name": "app"}
        return
    assert (whole["context"]["session_id"], whole["context"]["user_id"]) == ("s1", "u1")
    assert whole["metadata"] == {"service.name": "app", **LABELS}


def plain_of(call: Any) -> dict[str, Any]:
    from spangrade.samples.assemble import sample_of

    from .apps.as_json import plain

    return plain(sample_of(call))


def tools(sample: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in sample["context"]["tools"]]


def stripped(sample: dict[str, Any]) -> dict[str, Any]:
    """Without the tools' declarations, and the tool's name, which only this SDK gives to results."""
    context = {key: value for key, value in sample["context"].items() if key != "tools"}
    context["messages"] = [{k: v for k, v in message.items() if k != "name"} for message in context["messages"]]
    return {**sample, "context": context}
