"""OpenLLMetry (Traceloop): flattened ``gen_ai.prompt.<i>.*`` and ``gen_ai.completion.<i>.*`` up to about 0.54, workflows and
tasks with ``traceloop.entity.input`` and ``.output``, vector stores' hits as events.

Source: traceloop/openllmetry, opentelemetry-semantic-conventions-ai 0.4.13 and 0.5.1, and the instrumentations of openai,
anthropic and langchain of 0.53.4 and 0.62.4. Since 0.55 their model calls have messages in ``gen_ai.input.messages`` and are
read by `otel_genai`; with ``use_legacy_attributes=False`` in events, read by `genai_events`.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade import semconv
from spangrade.model.span import SpanData
from spangrade.samples import langchain, scalars, vector_events
from spangrade.samples.arguments import unwrapped
from spangrade.samples.dialects.base import KindMark
from spangrade.samples.flat import elements, grouped, lost_its_beginning, under
from spangrade.samples.jsontext import read_items, read_object, read_value
from spangrade.samples.message_events import content_of
from spangrade.samples.messages import Turn, answer, as_messages, last_user_text, system_text
from spangrade.samples.reading import Reading
from spangrade.samples.turns import read_message

KIND: Final = "traceloop.span.kind"
INPUT: Final = "traceloop.entity.input"
OUTPUT: Final = "traceloop.entity.output"
RETRIEVAL: Final = "vector_db_retrieve"  # the operation of a LangChain retriever's task
PROPERTIES: Final = "traceloop.association.properties."
_PROMPTS: Final = ("gen_ai.prompt.", "llm.prompts.")
_COMPLETIONS: Final = ("gen_ai.completion.", "llm.completions.")
_PLAIN: Final = frozenset({"role", "content", "finish_reason"})
_FUNCTIONS: Final = "llm.request.functions."
_CHUNKS: Final = ("gen_ai.content.completion.chunk", "llm.content.completion.chunk")
_FILTERED: Final = "FILTERED"  # written in place of what a content filter held back
#: Association properties that have a place of their own; LangChain's about itself are nobody's labels.
_SESSION: Final = ("session_id", "session.id", "conversation_id", "thread_id")
_USER: Final = ("user_id", "user.id")
_OF_RUN: Final = frozenset({"outputs", "output", "kwargs"})
_OF_LANGCHAIN: Final = ("ls_", "lc_", "langgraph_")

name: Final = "traceloop"
capture: Final = "it is on unless TRACELOOP_TRACE_CONTENT=false switches it off in the application's environment"
kind_marks: Final[Mapping[str, KindMark]] = {
    # A task may be anything: an operation of the GenAI conventions, where the span names one, says more.
    KIND: KindMark({"workflow": "chain", "agent": "agent", "tool": "tool"}, default="chain"),
    "llm.request.type": KindMark({"chat": "llm", "completion": "llm", "embedding": "embedding", "rerank": "reranker"}),
    "gen_ai.prompt.0.role": KindMark(present="llm"),
    "gen_ai.prompt.0.content": KindMark(present="llm"),
    "gen_ai.completion.0.role": KindMark(present="llm"),
    "gen_ai.completion.0.content": KindMark(present="llm"),
    "llm.completions.0.content": KindMark(present="llm"),
    INPUT: KindMark(present="chain"),
    OUTPUT: KindMark(present="chain"),
    # A search in a vector store; what else is done with one (insert, delete, create) is no retrieval.
    "db.vector.query.top_k": KindMark(present="retriever"),
    "db.chroma.query.n_results": KindMark(present="retriever"),
    "db.chroma.query.texts_count": KindMark(present="retriever"),
    "db.chroma.query.embeddings_count": KindMark(present="retriever"),
    "pinecone.query.top_k": KindMark(present="retriever"),
    "db.milvus.search.collection_name": KindMark(present="retriever"),
    "db.milvus.query.collection_name": KindMark(present="retriever"),
    "db.marqo.search.query": KindMark(present="retriever"),
}
content_keys: Final = frozenset(
    {
        INPUT,
        OUTPUT,
        "gen_ai.task.input",
        "gen_ai.task.output",
        "traceloop.prompt.template",
        "db.marqo.search.query",
        "mcp.request.argument",
        "mcp.response.value",
    }
)
content_prefixes: Final = (*_PROMPTS, *_COMPLETIONS, _FUNCTIONS, "traceloop.prompt.template_variables")
_CLAIMS: Final = frozenset(
    {
        *kind_marks,
        "traceloop.workflow.name",
        "traceloop.entity.path",
        "traceloop.entity.name",
        *(f"{PROPERTIES}{key}" for key in (*_SESSION, *_USER)),
        "gen_ai.completion.0.finish_reason",
        "gen_ai.completion.0.tool_calls.0.name",
        "llm.usage.total_tokens",
        "gen_ai.usage.total_tokens",
        "llm.is_streaming",
        "gen_ai.is_streaming",
        "llm.user",
        "gen_ai.user",
    }
)


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes) or lost_its_beginning(attributes, (*_PROMPTS, *_COMPLETIONS))


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    flat = grouped(attributes, (*_PROMPTS, *_COMPLETIONS, _FUNCTIONS))
    asked = _turns(flat, _PROMPTS, "user")
    said = _without_thinking(_turns(flat, _COMPLETIONS, "assistant"))
    response = answer(said)
    messages, asked_cut = as_messages(asked)
    choices, said_cut = as_messages(said)
    entity = _entity(attributes)
    properties = under(attributes, PROPERTIES)
    query = _first(scalars.text(attributes.get("db.marqo.search.query")), entity.query)
    return Reading(
        name,
        kind="llm" if asked or said else None,
        input=_first(last_user_text(asked), entity.asked, query),
        output=_first(response.text, entity.answered),
        messages=messages,
        output_messages=choices,
        system=system_text(asked),
        documents=vector_events.hits(span),
        query=query,
        tool_calls=response.tool_calls or entity.executed,
        model=scalars.first_name(attributes, "llm.response.model", "llm.request.model"),
        provider=scalars.first_name(attributes, "llm.vendor"),
        finish_reasons=response.finish_reasons,
        usage=scalars.usage(
            attributes,
            ("llm.usage.prompt_tokens",),
            ("llm.usage.completion_tokens",),
            (),
            (),
            ("llm.usage.reasoning_tokens",),
        ),
        first_chunk_s=_first_chunk(span),
        tools=scalars.declared_tools([_declared(item) for item in flat.get(_FUNCTIONS, ())]),
        session_id=scalars.first_name(properties, *_SESSION),
        user_id=scalars.first_name(properties, *_USER) or scalars.first_name(attributes, "gen_ai.user", "llm.user"),
        metadata=_metadata(properties),
        reasoning=response.reasoning,
        refusal=response.refusal,
        truncated=asked_cut or said_cut or entity.truncated,
    )


def _first_chunk(span: SpanData) -> float | None:
    """Each piece of a streamed answer is an event, without its text."""
    first = next((event.time_ns for event in span.events if event.name in _CHUNKS), None)
    return None if first is None else scalars.seconds((first - span.start_ns) / 1e9)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


# --- flattened messages -------------------------------------------------------------------------------------------------


def _turns(flat: Mapping[str, list[dict[str, Any]]], prefixes: tuple[str, ...], role: str) -> list[Turn]:
    held = next((flat[prefix] for prefix in prefixes if prefix in flat), [])
    return [turn for item in held for turn in _message(item, role)]


def _message(item: Mapping[str, Any], role: str) -> list[Turn]:
    content = item.get("content", item.get("user"))  # the prompt of a completion stood under its role
    if content == _FILTERED and item.get("finish_reason") == "content_filter":
        content = None
    held = () if _PLAIN.issuperset(item) else elements(item, "tool_calls.")  # most say something only
    calls = [{key: call[key] for key in ("id", "name", "arguments") if key in call} for call in held]
    if not calls and "function_call.name" in item:
        calls = [{"name": item["function_call.name"], "arguments": item.get("function_call.arguments")}]
    message = {key: item[key] for key in ("role", "name", "tool_call_id", "finish_reason", "refusal") if key in item}
    if content is not None:
        message["content"] = content_of(content)
    if calls:
        message["tool_calls"] = calls
    # Of another dialect's flattened list nothing was taken (OpenInference: llm.prompts.0.prompt.text).
    return read_message(message, role) if message else []


def _without_thinking(turns: list[Turn]) -> list[Turn]:
    """Anthropic's thoughts are completions of a role of their own, before the answer."""
    kept: list[Turn] = []
    thoughts: list[Turn] = []
    for turn in turns:
        if turn.role == "thinking":
            thoughts.append(turn)
        else:
            if thoughts:
                turn.reasoning = "\n".join(thought.text for thought in thoughts if thought.text) or None
                turn.finish_reason = turn.finish_reason or thoughts[0].finish_reason
                thoughts = []
            kept.append(turn)
    kept += [Turn("assistant", reasoning=turn.text, finish_reason=turn.finish_reason) for turn in thoughts]
    return kept


def _declared(item: Mapping[str, Any]) -> dict[str, Any]:
    function = {key: item[key] for key in ("name", "description") if item.get(key) is not None}
    parameters = item.get("parameters", item.get("input_schema"))  # Anthropic's word for it
    if parameters is not None:
        function["parameters"] = read_object(parameters)
    return {"type": "function", "function": function}


# --- workflows, tasks, agents, tools -------------------------------------------------------------------------------------


class _Entity:
    """What a workflow, task, agent or tool was given and gave back."""

    __slots__ = ("answered", "asked", "executed", "query", "truncated")

    def __init__(self) -> None:
        self.asked: Any = None
        self.answered: Any = None
        self.query: str | None = None
        self.executed: tuple[dict[str, Any], ...] = ()
        self.truncated = False


def _entity(attributes: Mapping[str, Any]) -> _Entity:
    found = _Entity()
    given, given_cut = _value(attributes.get(INPUT))
    result, result_cut = _value(attributes.get(OUTPUT))
    found.truncated = given_cut or result_cut
    if attributes.get(semconv.OPERATION_NAME) == RETRIEVAL:
        found.query = scalars.text(given.get("query")) if isinstance(given, Mapping) else None
        found.asked = found.query
        found.answered = result.get("documents") if isinstance(result, Mapping) else None
        return found
    if isinstance(given, Mapping) and "inputs" in given and "args" not in given:  # LangChain
        found.asked = langchain.read_asked(
            given["inputs"] if given["inputs"] is not None else given.get("input_str")
        ).value
    else:
        found.asked = unwrapped(given)
    if isinstance(result, Mapping) and result and _OF_RUN.issuperset(result):
        found.answered = langchain.read_answered(result.get("outputs", result.get("output"))).value
    else:
        found.answered = result
    if scalars.first_name(attributes, KIND) == "tool":
        found.executed = _executed(attributes, given, found)
    return found


def _value(value: Any) -> tuple[Any, bool]:
    """``(value, truncated)``: JSON. Of an object that was cut the members before the one in which it was, else nothing."""
    parsed, cut = read_value(value)
    if not cut:
        return parsed, False
    begun = read_items(value).tail
    return (dict(list(begun.items())[:-1]) or None) if isinstance(begun, Mapping) else None, True


def _executed(attributes: Mapping[str, Any], given: Any, found: _Entity) -> tuple[dict[str, Any], ...]:
    """The one call that a tool span is. LangChain's callbacks put its bookkeeping beside the arguments."""
    beside = given.get("kwargs") if isinstance(given, Mapping) and "inputs" in given else None
    if isinstance(beside, Mapping) and given.get("inputs") is not None:
        found.asked = given["inputs"]
    call = {
        "id": scalars.first_name(beside, "tool_call_id") if isinstance(beside, Mapping) else None,
        "name": scalars.first_name(attributes, semconv.TOOL_NAME, "traceloop.entity.name"),
        "arguments": found.asked,
    }
    return ({key: value for key, value in call.items() if value is not None},) if call["name"] is not None else ()


def _metadata(properties: Mapping[str, Any]) -> dict[str, Any]:
    known = {*_SESSION, *_USER}
    return {k: v for k, v in properties.items() if k not in known and not k.startswith(_OF_LANGCHAIN)}
