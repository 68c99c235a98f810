"""Haystack: pipelines, components, agents. The values are those of haystack-ai 3.4.1."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.samples.assemble import sample_of
from spangrade.samples.extract import is_content_key, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
LOOK = {"name": "look", "description": "looks", "parameters": {"type": "object"}}
TOOLS = [{"type": "haystack.tools.tool.Tool", "data": LOOK}]
CALLED = {"tool_name": "look", "arguments": {"city": "Lisbon"}, "id": "c1", "extra": None}


def message(role: str, *parts: Any, **meta: Any) -> dict[str, Any]:
    return {
        "role": role,
        "meta": meta,
        "name": None,
        "content": [{"text": p} if isinstance(p, str) else p for p in parts],
    }


def reply(*parts: Any, finish: str = "stop") -> dict[str, Any]:
    usage = {"completion_tokens": 5, "prompt_tokens": 12, "prompt_tokens_details": {"cached_tokens": 4}}
    return message("assistant", *parts, model="gpt-4o-mini-2024-07-18", index=0, finish_reason=finish, usage=usage)


def component(kind: str, given: Any = None, gave: Any = None) -> dict[str, Any]:
    held = {"haystack.component.name": "x", "haystack.component.type": kind}
    if given is not None:
        held["haystack.component.input"] = json.dumps(given)
    if gave is not None:
        held["haystack.component.output"] = json.dumps(gave)
    return held


def pipeline(given: Any, gave: Any = None) -> dict[str, Any]:
    held = {"haystack.pipeline.input_data": json.dumps(given), "haystack.pipeline.max_runs_per_component": 100}
    return held if gave is None else {**held, "haystack.pipeline.output_data": json.dumps(gave)}


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        (component("InMemoryBM25Retriever"), "retriever"),
        (component("SerperDevWebSearch"), "retriever"),
        (component("LLMRanker"), "reranker"),
        (component("DocumentJoiner"), "reranker"),
        (component("OpenAIGenerator"), "llm"),
        (component("OpenAIChatGenerator"), "llm"),
        (component("SentenceTransformersTextEmbedder"), "embedding"),
        (component("FaithfulnessEvaluator"), "evaluator"),
        (component("ChatPromptBuilder"), None),
        (component("AnswerBuilder"), "chain"),
        ({"haystack.pipeline.max_runs_per_component": 100}, "chain"),
        ({"haystack.agent.max_steps": 100}, "agent"),
        ({"haystack.agent.step": 0}, None),
        ({"haystack.agent.step.llm.input": "{}"}, "llm"),
        ({"haystack.tool.name": "look"}, "tool"),
    ],
)
def test_what_a_component_is_its_class_says(attributes: dict[str, Any], kind: str | None) -> None:
    assert quick_kind(attributes) == kind


def test_a_chat_generator(call_of: CallOf) -> None:
    """Parts whose kind is the key; what is known of the answer in its `meta`."""
    given = {
        "messages": [message("system", "Be kind"), message("user", "Hi")],
        "tools": TOOLS,
        "generation_kwargs": None,
    }
    reading = call_of(component("OpenAIChatGenerator", given, {"replies": [reply("Hello")]})).reading
    assert (reading.kind, reading.input, reading.output, reading.system) == ("llm", "Hi", "Hello", "Be kind")
    assert (reading.model, reading.finish_reasons, reading.tools) == ("gpt-4o-mini-2024-07-18", ("stop",), (LOOK,))
    assert reading.usage == {"input_tokens": 12, "output_tokens": 5, "cache_read_tokens": 4}


def test_a_generator_of_texts(call_of: CallOf) -> None:
    """Of before there were messages."""
    gave = {"replies": ["Hello", "Hi there"], "meta": [{"model": "m-1", "finish_reason": "stop"}, {"model": "m-1"}]}
    reading = call_of(component("OpenAIGenerator", {"prompt": "Hi", "system_prompt": None}, gave)).reading
    assert (reading.input, reading.output, reading.model) == ("Hi", "Hello", "m-1")
    assert [m["content"] for m in reading.output_messages] == ["Hello", "Hi there"]
    assert reading.finish_reasons == ("stop",)


def test_the_parts_of_a_message(call_of: CallOf) -> None:
    """Tool calls and their results, thoughts, images."""
    given = [
        message("user", "Look", {"image": {"base64_image": "AAAA", "mime_type": "image/png"}}),
        message("assistant", {"tool_call": CALLED}),
        message("tool", {"tool_call_result": {"result": "type F", "origin": CALLED, "error": False}}),
    ]
    gave = {"replies": [reply({"reasoning": {"reasoning_text": "hm"}}, {"tool_call": CALLED}, finish="tool_calls")]}
    reading = call_of(component("OpenAIChatGenerator", {"messages": given}, gave)).reading
    assert (reading.input, reading.output, reading.reasoning) == ("Look\n[image: image/png]", None, "hm")
    assert reading.tool_calls == ({"id": "c1", "name": "look", "arguments": {"city": "Lisbon"}},)
    assert reading.messages[2] == {"role": "tool", "content": "type F", "tool_call_id": "c1", "name": "look"}


def test_a_retriever_has_query_and_documents(call_of: CallOf) -> None:
    """A document's own fields are flattened into it; what it does not have is null."""
    document = {"p": 1, "id": "d1", "content": "type F", "blob": None, "score": 0.8, "embedding": None}
    call = call_of(component("InMemoryBM25Retriever", {"query": "plug", "filters": None}, {"documents": [document]}))
    sample = sample_of(call)
    assert (sample.input, call.reading.query) == ("plug", "plug")
    assert sample.documents == [{"id": "d1", "content": "type F", "score": 0.8, "metadata": {"p": 1}}]
    assert call_of(component("BM25Retriever", {"query": "q"}, {"documents": []})).reading.documents == ()
    assert call_of(component("BM25Retriever")).reading.documents is None


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"retriever": {"query": "Which plug?"}, "builder": {"question": "Which plug?"}}, "Which plug?"),
        ({"retriever": {"query": "Which plug?", "top_k": 3}, "builder": {"style": "short"}}, "Which plug?"),
        ({"llm": {"messages": [message("system", "Be kind"), message("user", "Which plug?")]}}, "Which plug?"),
        ({"a": {"query": "one"}, "b": {"question": "two"}}, {"a": {"query": "one"}, "b": {"question": "two"}}),
        ({}, {}),
        ({"a": {"n": 1}}, {"a": {"n": 1}}),
    ],
)
def test_a_pipelines_question_is_what_all_its_components_are_asked(call_of: CallOf, given: Any, asked: Any) -> None:
    """Else all that it was given, by component."""
    assert call_of(pipeline(given)).reading.input == asked


@pytest.mark.parametrize(
    ("gave", "answered"),
    [
        ({"llm": {"replies": [reply("Type F.")]}}, "Type F."),
        ({"llm": {"replies": ["Type F."], "meta": [{}]}}, "Type F."),
        ({"builder": {"answers": [{"data": "Type F.", "query": "q", "documents": []}]}}, "Type F."),
        ({"builder": {"answers": [{"type": "x", "init_parameters": {"data": "Type F."}}]}}, "Type F."),
        ({"agent": {"messages": [message("user", "q"), reply("Type F.")]}}, "Type F."),
        ({"retriever": {"documents": []}, "llm": {"replies": [reply("Type F.")]}}, "Type F."),
        ({"retriever": {"documents": []}}, {"retriever": {"documents": []}}),
        ({}, {}),
    ],
)
def test_a_pipelines_answer_is_what_its_last_component_says(call_of: CallOf, gave: Any, answered: Any) -> None:
    """Of a model, an agent, an answer builder; else all that came out, by component."""
    assert call_of(pipeline({}, gave)).reading.output == answered


def test_an_agent(call_of: CallOf) -> None:
    """What it was given, and the whole run that it gives back."""
    run = [
        message("system", "Be kind"),
        message("user", "Which plug?"),
        reply({"tool_call": CALLED}, finish="tool_calls"),
        message("tool", {"tool_call_result": {"result": "type F", "origin": CALLED, "error": False}}),
        reply("Type F."),
    ]
    attributes = {
        "haystack.agent.max_steps": 100,
        "haystack.agent.input": json.dumps({"messages": [message("user", "Which plug?")], "streaming_callback": None}),
        "haystack.agent.output": json.dumps({"messages": run, "last_message": run[-1], "step_count": 2}),
    }
    reading = call_of(attributes).reading
    assert (reading.kind, reading.input, reading.output, reading.system) == (
        "agent",
        "Which plug?",
        "Type F.",
        "Be kind",
    )
    assert [m["role"] for m in reading.messages] == ["system", "user", "assistant", "tool"]
    assert reading.tool_calls == ({"id": "c1", "name": "look", "arguments": {"city": "Lisbon"}},)


def test_the_steps_of_an_agent(call_of: CallOf) -> None:
    """A model call, and a tool with arguments and result."""
    given = {"messages": [message("user", "Hi")], "tools": TOOLS}
    step = {
        "haystack.agent.step.llm.input": json.dumps(given),
        "haystack.agent.step.llm.output": json.dumps({"replies": [reply("Hello")]}),
    }
    reading = call_of(step).reading
    assert (reading.kind, reading.input, reading.output, reading.tools) == ("llm", "Hi", "Hello", (LOOK,))
    tool = {
        "haystack.tool.name": "look",
        "haystack.agent.step.tool.input": '{"city": "Lisbon"}',
        "haystack.agent.step.tool.output": "type F",
    }
    sample = sample_of(call_of(tool))
    assert (sample.input, sample.output) == ({"city": "Lisbon"}, "type F")
    assert sample.context["tool_calls"] == [{"name": "look", "arguments": {"city": "Lisbon"}, "result": "type F"}]


def test_without_content_there_is_none(call_of: CallOf) -> None:
    """HAYSTACK_CONTENT_TRACING_ENABLED is off by default. A pipeline's inputs are there all the same."""
    for bare in (component("OpenAIChatGenerator"), component("BM25Retriever"), {"haystack.agent.max_steps": 100}):
        reading = call_of(bare).reading
        assert (reading.input, reading.output, reading.messages) == (None, None, ())
    assert call_of(pipeline({"a": {"query": "q"}})).reading.output is None


@pytest.mark.parametrize(
    "value", ["[", "{", "7", '"x"', "null", '{"replies": 5}', '{"messages": [5, null]}', '{"documents": {}}', 7]
)
def test_rubbish_does_no_harm(call_of: CallOf, value: Any) -> None:
    for kind in ("OpenAIChatGenerator", "BM25Retriever", "AnswerBuilder"):
        call_of({**component(kind), "haystack.component.input": value, "haystack.component.output": value})
    for first, second in (("pipeline.input_data", "pipeline.output_data"), ("agent.input", "agent.output")):
        call_of({f"haystack.{first}": value, f"haystack.{second}": value})


def test_its_content_is_content() -> None:
    for key in ("pipeline.input_data", "component.input", "component.output", "agent.step.llm.input"):
        assert is_content_key(f"haystack.{key}")
    assert not is_content_key("haystack.component.type")
    assert not is_content_key("haystack.component.input_types")
