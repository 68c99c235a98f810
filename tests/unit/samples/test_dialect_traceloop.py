"""OpenLLMetry (Traceloop)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade.model.span import EventData, SpanData
from spangrade.samples import vector_events
from spangrade.samples.assemble import sample_of
from spangrade.samples.content import is_content_key
from spangrade.samples.extract import extract, quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]


def flattened(prompts: list[dict[str, Any]], completions: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The attributes of a model call up to 0.54."""
    attributes: dict[str, Any] = {"llm.request.type": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m"}
    for side, items in (("prompt", prompts), ("completion", completions)):
        for index, item in enumerate(items):
            attributes |= {f"gen_ai.{side}.{index}.{key}": value for key, value in item.items()}
    return {**attributes, **more}


def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
    """An object as LangChain's serialiser writes it."""
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "x", kind], "kwargs": kwargs}


def entity(kind: str, given: Any = None, result: Any = None, **more: Any) -> dict[str, Any]:
    attributes = {"traceloop.span.kind": kind, "traceloop.entity.name": "answer", **more}
    held = {"traceloop.entity.input": given, "traceloop.entity.output": result}
    return {**attributes, **{key: json.dumps(value) for key, value in held.items() if value is not None}}


def test_flattened_messages_with_tool_calls_and_their_results(call_of: CallOf) -> None:
    """Every field in its place; several digits are a number."""
    history = [{"role": "user", "content": f"turn {i}"} for i in range(9)]
    sample = sample_of(
        call_of(
            flattened(
                [
                    {"role": "system", "content": "Be kind"},
                    *history,
                    {
                        "role": "assistant",
                        "tool_calls.0.id": "c1",
                        "tool_calls.0.name": "plugs",
                        "tool_calls.0.arguments": '{"city": "Lisbon"}',
                    },
                    {"role": "tool", "content": "type F", "tool_call_id": "c1"},
                ],
                [{"role": "assistant", "content": "Type F fits.", "finish_reason": "stop"}],
                **{
                    "gen_ai.response.model": "m-1",
                    "gen_ai.response.id": "r1",
                    "gen_ai.usage.input_tokens": 10,
                    "gen_ai.usage.output_tokens": 5,
                    "gen_ai.usage.cache_read_input_tokens": 4,
                    "llm.usage.total_tokens": 15,
                    "llm.request.functions.0.name": "plugs",
                    "llm.request.functions.0.parameters": '{"type": "object"}',
                    "traceloop.association.properties.session_id": "s1",
                    "traceloop.association.properties.user_id": "u1",
                    "traceloop.association.properties.tier": "gold",
                    "traceloop.association.properties.ls_provider": "openai",
                },
            )
        )
    )
    assert (sample.input, sample.output, sample.context["system"]) == ("turn 8", "Type F fits.", "Be kind")
    assert [m["content"] for m in sample.context["messages"][1:10]] == [f"turn {i}" for i in range(9)]
    assert sample.context["messages"][10]["tool_calls"] == [
        {"id": "c1", "name": "plugs", "arguments": {"city": "Lisbon"}}
    ]
    assert sample.context["messages"][11] == {"role": "tool", "content": "type F", "tool_call_id": "c1"}
    assert sample.context["usage"] == {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 4}
    assert (sample.context["model"], sample.context["provider"]) == ("m-1", "openai")
    assert (sample.context["session_id"], sample.context["user_id"]) == ("s1", "u1")
    assert sample.metadata["tier"] == "gold"
    assert "ls_provider" not in sample.metadata
    assert sample.context["tools"] == [
        {"type": "function", "function": {"name": "plugs", "parameters": {"type": "object"}}}
    ]


def test_a_completion_of_tool_calls_is_no_empty_answer(call_of: CallOf) -> None:
    """Neither as tool_calls nor as the older function_call."""
    call = {"tool_calls.0.id": "c1", "tool_calls.0.name": "plugs", "tool_calls.0.arguments": '{"city": "Lisbon"}'}
    reading = call_of(flattened([{"role": "user", "content": "Hi"}], [{"role": "assistant", **call}])).reading
    assert reading.output is None
    assert reading.tool_calls == ({"id": "c1", "name": "plugs", "arguments": {"city": "Lisbon"}},)
    older = {"function_call.name": "plugs", "function_call.arguments": "{}"}
    reading = call_of(flattened([{"role": "user", "content": "Hi"}], [{"role": "assistant", **older}])).reading
    assert (reading.output, reading.tool_calls) == (None, ({"name": "plugs", "arguments": {}},))


def test_parts_stand_as_json_in_the_content(call_of: CallOf) -> None:
    """And a user's own JSON is none of them."""
    parts = json.dumps(
        [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "https://x/y"}}]
    )
    said = [{"role": "assistant", "content": "A cat."}]
    assert (
        call_of(flattened([{"role": "user", "content": parts}], said)).reading.input == "What is it?\n[image: by URL]"
    )
    assert call_of(flattened([{"role": "user", "content": "[1, 2]"}], said)).reading.input == "[1, 2]"


def test_thoughts_are_a_completion_of_their_own_and_no_answer(call_of: CallOf) -> None:
    """Anthropic."""
    asked = [{"role": "user", "content": "17*3?"}]
    thinking = {"role": "thinking", "content": "Maybe 54?", "finish_reason": "end_turn"}
    reading = call_of(flattened(asked, [thinking, {"role": "assistant", "content": "51"}])).reading
    assert (reading.output, reading.reasoning, reading.finish_reasons) == ("51", "Maybe 54?", ("end_turn",))
    assert len(reading.output_messages) == 1
    assert call_of(flattened(asked, [thinking])).reading.output is None


def test_a_call_that_stands_in_the_content_too_is_one(call_of: CallOf) -> None:
    """Anthropic's parts, and flattened beside them."""
    part = {"type": "tool_use", "id": "c1", "name": "look", "input": {"q": 1}}
    asked = {
        "role": "assistant",
        "content": json.dumps([{"type": "text", "text": "I look."}, part]),
        "tool_calls.0.id": "c1",
        "tool_calls.0.name": "look",
        "tool_calls.0.arguments": '{"q": 1}',
    }
    (message,) = call_of(flattened([asked], [])).reading.messages
    assert message["tool_calls"] == [{"id": "c1", "name": "look", "arguments": {"q": 1}}]


def test_offered_tools_may_have_an_input_schema(call_of: CallOf) -> None:
    """Anthropic."""
    function = {"llm.request.functions.0.name": "look", "llm.request.functions.0.input_schema": '{"type": "object"}'}
    tools = call_of(flattened([{"role": "user", "content": "Hi"}], [], **function)).reading.tools
    assert tools == ({"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}},)


def test_a_refusal_is_marked_and_what_a_filter_held_back_is_no_answer(call_of: CallOf) -> None:
    """The instrumentation writes FILTERED in its place."""
    asked = [{"role": "user", "content": "Hi"}]
    refused = call_of(flattened(asked, [{"role": "assistant", "refusal": "I can't."}])).reading
    assert (refused.output, refused.refusal) == ("I can't.", True)
    filtered = {"role": "assistant", "content": "FILTERED", "finish_reason": "content_filter"}
    reading = call_of(flattened(asked, [filtered])).reading
    assert (reading.output, reading.finish_reasons) == (None, ("content_filter",))


def test_the_oldest_names(call_of: CallOf) -> None:
    """llm.prompts, llm.completions, llm.vendor and their kin."""
    reading = call_of(
        {
            "llm.request.type": "completion",
            "llm.vendor": "OpenAI",
            "llm.request.model": "m",
            "llm.prompts.0.user": "Once upon",
            "llm.completions.0.content": "a time",
            "llm.usage.prompt_tokens": 3,
            "llm.usage.completion_tokens": 2,
            "llm.user": "u1",
        }
    ).reading
    assert (reading.kind, reading.input, reading.output) == ("llm", "Once upon", "a time")
    assert (reading.model, reading.provider, reading.user_id) == ("m", "OpenAI", "u1")
    assert reading.usage == {"input_tokens": 3, "output_tokens": 2}


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"traceloop.span.kind": "workflow", "gen_ai.operation.name": "invoke_agent"}, "chain"),
        ({"traceloop.span.kind": "task"}, "chain"),
        ({"traceloop.span.kind": "agent"}, "agent"),
        ({"traceloop.span.kind": "tool"}, "tool"),
        ({"llm.request.type": "embedding"}, "embedding"),
        ({"llm.request.type": "rerank"}, "reranker"),
        ({"gen_ai.prompt.0.content": "Hi"}, "llm"),
        ({"db.system": "chroma", "db.operation": "query", "db.chroma.query.n_results": 3}, "retriever"),
        ({"db.system": "chroma", "db.operation": "add", "db.chroma.add.ids_count": 3}, None),
        ({"db.system": "postgresql", "db.operation": "query"}, None),
        ({"traceloop.association.properties.user_id": "u1", "http.request.method": "GET"}, None),
    ],
)
def test_kinds(attributes: dict[str, Any], kind: str | None) -> None:
    """Its processor puts workflow and properties on every span of the application; these are no calls for that."""
    assert quick_kind(attributes) == kind


@pytest.mark.parametrize(
    ("given", "result", "asked", "answered"),
    [
        ({"args": ["Hi"], "kwargs": {}}, "Hello", "Hi", "Hello"),
        ({"args": [], "kwargs": {"question": "Hi"}}, {"text": "Hello"}, "Hi", {"text": "Hello"}),
        ({"args": ["Hi", 3], "kwargs": {}}, 0, ["Hi", 3], 0),
        ({"args": [], "kwargs": {}}, None, None, None),
        ({"inputs": "Hi", "tags": [], "kwargs": {}}, {"outputs": "Hello", "kwargs": {}}, "Hi", "Hello"),
        (
            {"inputs": {"context": "x", "question": "Hi"}, "kwargs": {}},
            {"outputs": {"answer": "Hello", "context": "x"}, "kwargs": {}},
            "Hi",
            "Hello",
        ),
        (
            {"inputs": {"messages": [lc("HumanMessage", content="Hi", type="human")]}, "kwargs": {}},
            {
                "outputs": {
                    "messages": [
                        lc("HumanMessage", content="Hi", type="human"),
                        lc("AIMessage", content="", type="ai", tool_calls=[{"id": "c1", "name": "look", "args": {}}]),
                        lc("ToolMessage", content="found", type="tool", tool_call_id="c1"),
                        lc("AIMessage", content="Hello", type="ai"),
                    ]
                },
                "kwargs": {},
            },
            "Hi",
            "Hello",
        ),
        ({"inputs": {"a": 1, "b": 2}, "kwargs": {}}, {"outputs": {"c": [1]}, "kwargs": {}}, {"a": 1, "b": 2}, [1]),
        (
            {"inputs": lc("ChatPromptValue", messages=[lc("HumanMessage", content="Hi", type="human")]), "kwargs": {}},
            {"outputs": lc("AIMessage", content="Hello", type="ai"), "kwargs": {}},
            "Hi",
            "Hello",
        ),
    ],
)
def test_a_workflow_is_what_it_was_given_and_gave_back(
    call_of: CallOf, given: Any, result: Any, asked: Any, answered: Any
) -> None:
    """As decorators write it, and as LangChain's callbacks do."""
    sample = sample_of(call_of(entity("workflow", given, result)))
    assert (sample.input, sample.output) == (asked, answered)


def test_a_tool_of_langchain_is_its_arguments_without_the_bookkeeping(call_of: CallOf) -> None:
    """The GenAI keys of the same span hold the bookkeeping too."""
    given = {"input_str": "{'q': 1}", "tags": [], "inputs": {"q": 1}, "kwargs": {"tool_call_id": "c1"}}
    result = {
        "output": lc("ToolMessage", content="found", type="tool", tool_call_id="c1"),
        "kwargs": {"color": "green"},
    }
    genai = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.arguments": json.dumps(given),
        "gen_ai.tool.call.result": json.dumps(result),
    }
    reading = call_of(entity("tool", given, result, **genai)).reading
    assert (reading.kind, reading.input, reading.output) == ("tool", {"q": 1}, "found")
    assert reading.tool_calls == ({"id": "c1", "name": "look", "arguments": {"q": 1}},)


def test_a_retriever_of_langchain_is_a_task_with_an_operation(call_of: CallOf) -> None:
    """Its query and its documents, without the bookkeeping."""
    given = {"query": "Which plug?", "tags": [], "metadata": {}, "kwargs": {"name": "Shelf"}}
    result = {"documents": [{"page_content": "Type F", "metadata": {"p": 1}}], "count": 1}
    call = call_of(entity("task", given, result, **{"gen_ai.operation.name": "vector_db_retrieve"}))
    assert (call.kind, call.reading.input, call.reading.query) == ("retriever", "Which plug?", "Which plug?")
    assert call.reading.documents == ({"content": "Type F", "metadata": {"p": 1}},)
    silent = call_of(entity("task", **{"gen_ai.operation.name": "vector_db_retrieve"})).reading
    assert (silent.input, silent.output, silent.documents) == (None, None, None)


def test_what_was_cut_is_not_half_a_question(call_of: CallOf) -> None:
    """Whole members only, and marked."""
    whole = json.dumps({"inputs": {"question": "How do I get to the harbour?"}, "kwargs": {}})
    reading = call_of({**entity("workflow"), "traceloop.entity.input": whole[:40]}).reading
    assert reading.input is None
    assert reading.truncated
    later = json.dumps({"inputs": "Hi", "kwargs": {}, "metadata": {"a": "long"}})
    reading = call_of({**entity("workflow"), "traceloop.entity.input": later[:-5]}).reading
    assert (reading.input, reading.truncated) == ("Hi", True)


@pytest.mark.parametrize(
    ("name", "fields", "document"),
    [
        (
            "db.query.result",  # Chroma
            {"id": "d1", "distance": 0.2, "document": "Type F", "metadata": '{"page": 1}'},
            {"id": "d1", "content": "Type F", "score": 0.2, "metadata": {"page": 1}},
        ),
        (
            "db.query.result",  # Pinecone
            {"id": "d1", "score": 0.9, "metadata": "{'text': 'Type F', 'page': 1}"},
            {"id": "d1", "content": "Type F", "score": 0.9, "metadata": {"page": 1}},
        ),
        (
            "db.search.result",  # Milvus
            {"id": 7, "distance": "0.5", "entity": "{'text': 'Type F'}"},
            {"id": "7", "content": "Type F", "score": 0.5},
        ),
        ("db.search.result", {"id": 7, "distance": "0.5"}, {"id": "7", "content": "", "score": 0.5}),
    ],
)
def test_hits_of_a_vector_store_are_documents(
    span_of: Callable[..., SpanData], name: str, fields: dict[str, Any], document: dict[str, Any]
) -> None:
    """In their order, with score or distance as it was told."""
    hit = EventData(name, {f"{name}.{key}": value for key, value in fields.items()})
    call = extract(span_of({"db.system": "x", "db.vector.query.top_k": 2}, events=(hit, hit)))
    assert call is not None
    assert (call.kind, call.reading.documents) == ("retriever", (document, document))


def test_a_row_of_milvus_is_a_document(span_of: Callable[..., SpanData]) -> None:
    """A query's event has the row's own fields."""
    row = EventData("db.query.result", {"id": 1, "text": "Type F", "page": 3})
    call = extract(span_of({"db.milvus.query.collection_name": "c"}, events=(row,)))
    assert call is not None
    assert call.reading.documents == ({"id": "1", "content": "Type F", "metadata": {"page": 3}},)


@pytest.mark.parametrize(
    "spelled",
    [
        "{1: " + "1or " * 5_000 + "1}",
        "{'a': '\\d'}",
        "{1: " + "-" * 50_000 + "1}",
        "{1: " + "(1," * 20_000,
        "{1: " + "a." * 20_000 + "a}",
        "{1: __import__('os').getcwd()}",
        "{'a'",
        "{",
    ],
)
def test_what_is_no_plain_dict_is_not_read_and_warns_nobody(span_of: Callable[..., SpanData], spelled: str) -> None:
    """Python's parser would print warnings of some text; here they are errors."""
    hit = EventData("db.query.result", {"db.query.result.id": "d1", "db.query.result.metadata": spelled})
    call = extract(span_of({"db.vector.query.top_k": 2}, events=(hit,)))
    assert call is not None
    assert call.reading.documents == ({"id": "d1", "content": ""},)


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**60), 2**60)
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=6,
        ),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=60, deadline=None)
def test_whatever_python_spells_is_read_back(fields: dict[str, Any]) -> None:
    """Pinecone's metadata and Milvus's entities are ``str(dict)``."""
    assert vector_events._fields(str(fields)) == fields


def test_a_search_without_hits_told_says_nothing_of_documents(call_of: CallOf) -> None:
    """Qdrant's and Marqo's instrumentations write none down."""
    reading = call_of({"db.system": "marqo", "db.marqo.search.query": "plug"}).reading
    assert (reading.kind, reading.input, reading.query, reading.documents) == ("retriever", "plug", "plug", None)


@pytest.mark.parametrize("name", ["llm.content.completion.chunk", "gen_ai.content.completion.chunk"])
def test_the_first_piece_of_a_stream_tells_how_long_it_took(span_of: Callable[..., SpanData], name: str) -> None:
    """An event a piece, without text."""
    pieces = (EventData(name, {}, 2_500_000_000), EventData(name, {}, 3_000_000_000))
    call = extract(span_of({"llm.request.type": "chat"}, events=pieces, start_ns=2 * 10**9, end_ns=4 * 10**9))
    assert call is not None
    assert call.reading.first_chunk_s == 0.5


def test_content_that_was_not_captured_is_none(call_of: CallOf) -> None:
    """TRACELOOP_TRACE_CONTENT=false."""
    roles = flattened([{"role": "user"}], [{"role": "assistant", "finish_reason": "stop"}])
    for attributes in (flattened([], []), roles, entity("workflow")):
        reading = call_of(attributes).reading
        assert (reading.input, reading.output, reading.messages, reading.output_messages) == (None, None, (), ())


def test_what_is_content() -> None:
    """Left out with export_content=False."""
    keys = ("gen_ai.prompt.0.content", "gen_ai.completion.3.tool_calls.0.arguments", "traceloop.entity.input",
            "gen_ai.task.output", "llm.prompts.0.content", "traceloop.prompt.template_variables.x")  # fmt: skip
    assert all(map(is_content_key, keys))
    assert not is_content_key("traceloop.entity.name")
