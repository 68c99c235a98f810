"""LangChain4j on Quarkus, as its documentation and sources have it; and what Spring AI's filters write under the same names."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.samples.content import is_content_key
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini", "gen_ai.usage.input_tokens": 12}


@pytest.mark.parametrize(
    ("prompt", "completion"),
    [("gen_ai.prompt", "gen_ai.completion"), ("gen_ai.content.prompt", "gen_ai.content.completion")],
)
def test_the_texts_of_a_chat_models_span(call_of: CallOf, prompt: str, completion: str) -> None:
    call = call_of({**CHAT, prompt: "You are a parrot.\nSay this is a test", completion: "This is a test."})
    assert call.kind == "llm"
    assert call.reading.dialect == "otel_genai+langchain4j"
    assert (call.reading.input, call.reading.output) == ("You are a parrot.\nSay this is a test", "This is a test.")
    assert (call.reading.model, call.reading.usage) == ("gpt-4o-mini", {"input_tokens": 12})
    assert is_content_key(prompt)
    assert is_content_key(completion)


@pytest.mark.parametrize("held", [("You are a parrot.", "Say it"), json.dumps(["You are a parrot.", "Say it"])])
def test_a_list_of_texts_ends_with_the_question(call_of: CallOf, held: Any) -> None:
    reading = call_of({**CHAT, "gen_ai.prompt": held, "gen_ai.completion": ("Ahoy.",)}).reading
    assert (reading.input, reading.output) == ("Say it", "Ahoy.")
    assert [message["content"] for message in reading.messages] == ["You are a parrot.", "Say it"]


def test_messages_as_json_are_messages(call_of: CallOf) -> None:
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "When?"}]
    reading = call_of({**CHAT, "gen_ai.prompt": json.dumps(asked), "gen_ai.completion": "Now."}).reading
    assert (reading.input, reading.system, reading.output) == ("When?", "Be brief.", "Now.")


def test_an_answer_that_is_json_stays_the_text_that_it_is(call_of: CallOf) -> None:
    assert call_of({**CHAT, "gen_ai.completion": '{"days": 3}'}).reading.output == '{"days": 3}'


def test_without_them_nothing_was_said(call_of: CallOf) -> None:
    reading = call_of(CHAT).reading
    assert (reading.input, reading.output, reading.dialect) == (None, None, "otel_genai")


def test_the_runs_of_langsmith_under_the_same_names_are_langsmiths(call_of: CallOf) -> None:
    reading = call_of({"langsmith.span.kind": "llm", "gen_ai.prompt": "{}", "gen_ai.completion": "{}"}).reading
    assert "langchain4j" not in reading.dialect
