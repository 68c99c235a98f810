"""LangSmith's OTel export: whole inputs and outputs, each one JSON text. The values are those of langsmith 0.15.1."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.samples.assemble import sample_of
from spangrade.samples.extract import is_content_key, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
#: What it takes these for.
OPERATIONS = {"llm": "chat", "retriever": "embeddings", "prompt": "chat", "tool": "execute_tool"}
TRACEABLE = {"langsmith.metadata.ls_method": "traceable"}


def run(kind: str, prompt: Any = None, completion: Any = None, **more: Any) -> dict[str, Any]:
    held = {
        "langsmith.span.kind": kind,
        "gen_ai.operation.name": OPERATIONS.get(kind, kind),
        "gen_ai.system": "langchain",
        "langsmith.trace.session_id": "project-1",
        "langsmith.trace.session_name": "default",
    }
    if prompt is not None:
        held["gen_ai.prompt"] = json.dumps(prompt)
    if completion is not None:
        held["gen_ai.completion"] = json.dumps(completion)
    return {**held, **more}


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("llm", "llm"),
        ("chain", "chain"),
        ("tool", "tool"),
        ("retriever", "retriever"),
        ("embedding", "embedding"),
        ("parser", "chain"),
        ("prompt", None),
        ("something", "chain"),
    ],
)
def test_its_kinds_are_believed_before_its_operation_names(word: str, kind: str | None) -> None:
    """It calls retrievers embeddings, and prompts chat."""
    assert quick_kind(run(word)) == kind


def test_a_call_of_a_wrapped_client(call_of: CallOf) -> None:
    """OpenAI's request and response whole."""
    request = {
        "messages": [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}],
        "model": "gpt-4o-mini",
    }
    message = {"content": "Hello", "refusal": None, "role": "assistant", "function_call": None, "tool_calls": None}
    response = {"id": "r1", "choices": [{"finish_reason": "stop", "index": 0, "message": message}], "model": "m-1"}
    more = {
        "gen_ai.response.model": "m-1",
        "gen_ai.response.id": "r1",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 5,
    }
    reading = call_of(run("llm", request, response, **more)).reading
    assert (reading.kind, reading.input, reading.output, reading.system) == ("llm", "Hi", "Hello", "Be kind")
    assert [m["role"] for m in reading.messages] == ["system", "user"]
    assert (reading.model, reading.response_id, reading.finish_reasons) == ("m-1", "r1", ("stop",))
    assert reading.usage == {"input_tokens": 12, "output_tokens": 5}


def test_a_model_call_of_langchains(call_of: CallOf) -> None:
    """Messages as its serialiser makes them, one list for each prompt."""

    def message(name: str, **kwargs: Any) -> dict[str, Any]:
        return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}

    given = {
        "messages": [[message("SystemMessage", content="Be kind", type="system"),
                      message("HumanMessage", content="Hi", type="human")]]
    }  # fmt: skip
    asked = {"name": "look", "args": {"q": 1}, "id": "c1", "type": "tool_call"}
    gave = message("AIMessage", content="", type="ai", tool_calls=[asked])
    generations = {"generations": [[{"text": "", "type": "ChatGeneration", "message": gave}]], "llm_output": {}}
    reading = call_of(run("llm", given, generations)).reading
    assert (reading.input, reading.system) == ("Hi", "Be kind")
    assert reading.tool_calls == ({"id": "c1", "name": "look", "arguments": {"q": 1}},)


@pytest.mark.parametrize(
    ("inputs", "outputs", "asked", "answered"),
    [
        ({"question": "Which plug?"}, {"output": "Type F."}, "Which plug?", "Type F."),
        ({"q": "a", "style": "b"}, {"x": 1, "y": 2}, {"q": "a", "style": "b"}, {"x": 1, "y": 2}),
        ({}, {"output": None}, None, None),
        (
            {"messages": [{"role": "user", "content": "Which plug?"}]},
            {"messages": [{"role": "user", "content": "Which plug?"}, {"role": "assistant", "content": "Type F."}]},
            "Which plug?",
            "Type F.",
        ),
    ],
)
def test_a_traceable_function(call_of: CallOf, inputs: Any, outputs: Any, asked: Any, answered: Any) -> None:
    """Its arguments by name; what it returned stands under `output` unless it is a mapping."""
    reading = call_of(run("chain", inputs, outputs, **TRACEABLE)).reading
    assert (reading.kind, reading.input, reading.output) == ("chain", asked, answered)


def test_a_chain_of_langchains_has_the_answer_among_its_outputs(call_of: CallOf) -> None:
    """Its retrieval chains give back everything."""
    reading = call_of(run("chain", {"input": "Which plug?"}, {"input": "Which plug?", "answer": "Type F."})).reading
    assert (reading.input, reading.output) == ("Which plug?", "Type F.")


@pytest.mark.parametrize(
    "found",
    [
        {"output": [{"page_content": "type F", "type": "Document", "metadata": {"p": 1}}]},
        {"documents": [{"page_content": "type F", "type": "Document", "metadata": {"p": 1}}]},
        {
            "documents": [
                {
                    "lc": 1,
                    "type": "constructor",
                    "id": ["langchain", "schema", "document", "Document"],
                    "kwargs": {"page_content": "type F", "metadata": {"p": 1}, "type": "Document"},
                }
            ]
        },
    ],
)
def test_a_retriever_has_documents(call_of: CallOf, found: Any) -> None:
    sample = sample_of(call_of(run("retriever", {"query": "plug"}, found, **TRACEABLE)))
    assert sample.input == "plug"
    assert sample.documents == [{"content": "type F", "metadata": {"p": 1}}]


def test_a_tool_has_its_arguments(call_of: CallOf) -> None:
    call = call_of(run("tool", {"city": "Lisbon"}, {"plug": "F"}, **{"gen_ai.tool.name": "look", **TRACEABLE}))
    sample = sample_of(call)
    assert (sample.input, sample.output) == ({"city": "Lisbon"}, {"plug": "F"})
    assert sample.context["tool_calls"] == [{"name": "look", "arguments": {"city": "Lisbon"}, "result": {"plug": "F"}}]


def test_the_project_is_no_session(call_of: CallOf) -> None:
    """A chat's session is among the metadata; what the libraries write there is nobody's label."""
    assert call_of(run("chain", {"q": "x"})).reading.session_id is None
    reading = call_of(
        run(
            "chain",
            {"q": "x"},
            **{
                "langsmith.metadata.thread_id": "s1",
                "langsmith.metadata.user_id": "u1",
                "langsmith.metadata.tier": "gold",
                "langsmith.metadata.ls_provider": "openai",
                "langsmith.metadata.LANGSMITH_ENDPOINT": "http://x",
                "langsmith.metadata.usage_metadata": "{}",
                "langsmith.span.tags": "a, b",
            },
        )
    ).reading
    assert (reading.session_id, reading.user_id) == ("s1", "u1")
    assert reading.metadata == {"user_id": "u1", "tier": "gold", "tags": ["a", "b"]}


@pytest.mark.parametrize("value", ["[", "{", "not json", 7, None, "null"])
def test_rubbish_does_no_harm(call_of: CallOf, value: Any) -> None:
    reading = call_of({**run("llm"), "gen_ai.prompt": value, "gen_ai.completion": value}).reading
    assert (reading.kind, reading.messages, reading.tool_calls) == ("llm", (), ())


def test_without_content_there_is_none(call_of: CallOf) -> None:
    """Hidden inputs and outputs are empty objects."""
    for bare in (run("llm"), run("chain"), run("llm", {}, {}), run("chain", {}, {}), run("retriever", {}, {})):
        reading = call_of(bare).reading
        assert (reading.input, reading.output) == (None, None)
    assert is_content_key("gen_ai.prompt")
    assert is_content_key("gen_ai.completion")
