"""OpenTelemetry GenAI as of conventions 1.37: messages as JSON (or structured values) in ``gen_ai.*`` attributes.

Source: open-telemetry/semantic-conventions-genai (model/gen-ai/spans.yaml, the message JSON schemas). The span event
``gen_ai.client.inference.operation.details`` with the same keys is read too. Conventions up to 1.36 are another
dialect.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade import semconv
from spangrade.model.documents import read_documents
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.arguments import executed
from spangrade.samples.dialects.base import EVALUATOR, NOT_A_CALL, KindMark, session_id, user_id
from spangrade.samples.jsontext import read_items, read_loose, read_value
from spangrade.samples.messages import Answer, Turn, answer, as_messages, last_user_text, outcome, system_text
from spangrade.samples.reading import Reading
from spangrade.samples.turns import read_message, read_turns

DETAILS_EVENT: Final = "gen_ai.client.inference.operation.details"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"

#: Standard operations, and a few that are met in practice. Unknown ones are like agents, as the conventions advise.
OPERATIONS: Final[Mapping[str, str]] = {
    "chat": "llm",
    "generate_content": "llm",
    "text_completion": "llm",
    "text_completions": "llm",  # Semantic Kernel
    "response": "llm",  # MLflow
    "llm_call": "llm",  # Gemini CLI
    "tool_call": "tool",
    "agent_call": "agent",
    "user_prompt": NOT_A_CALL,
    "system_prompt": NOT_A_CALL,
    "schedule_tool_calls": NOT_A_CALL,
    "image_generation": "llm",  # Logfire
    "embeddings": "embedding",
    "retrieval": "retriever",
    "search_memory": "retriever",
    "vector_db_retrieve": "retriever",  # OpenLLMetry
    "rerank": "reranker",  # Vercel AI 7
    "execute_tool": "tool",
    "create_memory": "tool",
    "update_memory": "tool",
    "upsert_memory": "tool",
    "delete_memory": "tool",
    "create_memory_store": "tool",
    "delete_memory_store": "tool",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "agent_step": "chain",  # Vercel AI 7
    "plan": "chain",
    "execute_task": "chain",  # Traceloop
    "invoke_workflow": "chain",
    "evaluation": EVALUATOR,  # proposed in semantic-conventions-genai#185
}

#: What frameworks name as the provider on spans of their own; no model is theirs.
FRAMEWORKS: Final = frozenset({"langchain", "langgraph", "crewai", "gcp.vertex.agent", "microsoft.agent_framework"})

name: Final = "otel_genai"
capture: Final = (
    "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (instrumentations before 2026: =true) and"
    " OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental in the application's environment"
)
kind_marks: Final[Mapping[str, KindMark]] = {
    semconv.OPERATION_NAME: KindMark(OPERATIONS, default="agent"),
    semconv.INPUT_MESSAGES: KindMark(present="llm"),
    semconv.OUTPUT_MESSAGES: KindMark(present="llm"),
    semconv.TOOL_ARGUMENTS: KindMark(present="tool"),
    semconv.TOOL_RESULT: KindMark(present="tool"),
    semconv.RETRIEVAL_QUERY: KindMark(present="retriever"),
    semconv.RETRIEVAL_DOCUMENTS: KindMark(present="retriever"),
}
content_keys: Final = frozenset(
    {
        semconv.INPUT_MESSAGES,
        semconv.OUTPUT_MESSAGES,
        semconv.SYSTEM_INSTRUCTIONS,
        semconv.TOOL_ARGUMENTS,
        semconv.TOOL_RESULT,
        semconv.RETRIEVAL_DOCUMENTS,
        semconv.RETRIEVAL_QUERY,
        semconv.TOOL_DEFINITIONS,
    }
)
content_prefixes: Final = ("gen_ai.prompt.variable.",)
_CLAIMS: Final = frozenset(
    {
        *kind_marks,
        semconv.SYSTEM_INSTRUCTIONS,
        semconv.REQUEST_MODEL,
        semconv.RESPONSE_MODEL,
        semconv.RESPONSE_ID,
        semconv.FINISH_REASONS,
        semconv.INPUT_TOKENS,
        semconv.OUTPUT_TOKENS,
        semconv.CONVERSATION_ID,
        semconv.PROVIDER_NAME,
        semconv.LEGACY_SYSTEM,
        semconv.TOOL_DEFINITIONS,
        semconv.TIME_TO_FIRST_CHUNK,
    }
)

_VERCELS_FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading:
    attributes = _with_details(span)
    kind = _kind(attributes)
    asked, asked_cut = _turns(attributes, semconv.INPUT_MESSAGES, "user")
    said, said_cut = _turns(attributes, semconv.OUTPUT_MESSAGES, "assistant")
    instructions, system_cut = read_instructions(attributes.get(semconv.SYSTEM_INSTRUCTIONS))
    response = answer(said) if kind not in ("agent", "chain") else outcome(said)
    documents, documents_cut = _documents(attributes)
    # Alone they are no conversation: that of an agent of Pydantic AI's is elsewhere.
    apart = instructions is not None and instructions != system_text(asked) and bool(asked or said)
    messages, more_cut = as_messages([Turn("system", instructions), *asked] if apart else asked)
    choices, still_more_cut = as_messages(said)
    given: Any = last_user_text(asked)
    result: Any = response.text
    query = scalars.text(attributes.get(semconv.RETRIEVAL_QUERY))
    calls = response.tool_calls
    if kind == "tool":
        given, asked_cut = _value(attributes.get(semconv.TOOL_ARGUMENTS))
        result, said_cut = _value(attributes.get(semconv.TOOL_RESULT))
        calls = executed(
            scalars.first_name(attributes, semconv.TOOL_NAME), given, scalars.first_name(attributes, TOOL_CALL_ID)
        )
    elif query is not None and given is None:
        given = query
    finish = scalars.names(attributes.get(semconv.FINISH_REASONS)) or response.finish_reasons
    return Reading(
        name,
        kind=kind,
        input=given,
        output=result,
        messages=messages,
        output_messages=choices,
        system=instructions or system_text(asked),
        documents=documents,
        query=query,
        tool_calls=calls,
        model=scalars.first_name(attributes, semconv.RESPONSE_MODEL, semconv.REQUEST_MODEL),
        provider=_provider(attributes),
        response_id=scalars.first_name(attributes, semconv.RESPONSE_ID),
        finish_reasons=finish,
        usage=scalars.usage(
            attributes,
            (semconv.INPUT_TOKENS, "gen_ai.usage.prompt_tokens"),
            (semconv.OUTPUT_TOKENS, "gen_ai.usage.completion_tokens"),
            (semconv.CACHE_READ_TOKENS, "gen_ai.usage.cache_read_input_tokens"),
            (
                semconv.CACHE_WRITE_TOKENS,
                "gen_ai.usage.cache_creation.input_tokens",
                "gen_ai.usage.cache_creation_input_tokens",
            ),
            (semconv.REASONING_TOKENS, "gen_ai.usage.reasoning_tokens"),
        ),
        tools=scalars.declared_tools(attributes.get(semconv.TOOL_DEFINITIONS)),
        first_chunk_s=scalars.seconds(
            attributes.get(semconv.TIME_TO_FIRST_CHUNK, attributes.get(_VERCELS_FIRST_CHUNK))
        ),
        session_id=session_id(attributes),
        user_id=user_id(attributes),
        reasoning=response.reasoning,
        refusal=response.refusal,
        truncated=any((asked_cut, said_cut, system_cut, documents_cut, more_cut, still_more_cut))
        or out_of_tokens(finish, response),
    )


def out_of_tokens(finish: tuple[str, ...], response: Answer) -> bool:
    """Whether the model ran out of tokens before it gave any answer (thoughts ate the limit)."""
    return response.text is None and not response.tool_calls and any(f in ("length", "max_tokens") for f in finish)


def _kind(attributes: Mapping[str, Any]) -> str | None:
    operation = scalars.first_name(attributes, semconv.OPERATION_NAME)
    if operation is not None:
        return OPERATIONS.get(operation.lower(), "agent")
    return next((mark.present for key, mark in kind_marks.items() if mark.present and key in attributes), None)


def _provider(attributes: Mapping[str, Any]) -> str | None:
    provider = scalars.first_name(attributes, semconv.PROVIDER_NAME, semconv.LEGACY_SYSTEM)
    return None if provider in FRAMEWORKS else provider


def _with_details(span: SpanData) -> Mapping[str, Any]:
    """The span's attributes, with what its details events say where the span itself says nothing."""
    attributes = span.attributes
    for event in span.events:
        if event.name == DETAILS_EVENT:
            attributes = {**event.attributes, **attributes}
    return attributes


def _turns(attributes: Mapping[str, Any], key: str, role: str) -> tuple[list[Turn], bool]:
    value = attributes.get(key)
    if value is None:
        return [], False
    found = read_items(value)
    return read_turns(found, role), found.truncated


def read_instructions(value: Any) -> tuple[str | None, bool]:
    """``(text, truncated)`` of ``gen_ai.system_instructions``: a bare list of parts, or text."""
    if value is None:
        return None, False
    found = read_items(value)
    parts = [*found.items, found.half] if found.half is not None else found.items
    if len(parts) == 1 and isinstance(parts[0], Mapping) and "role" in parts[0]:  # a message, against the conventions
        turns = read_message(parts[0], "system")
    else:
        turns = read_message({"role": "system", "parts": parts}, "system")
    return system_text([Turn("system", turn.text) for turn in turns]), found.truncated


def _value(value: Any) -> tuple[Any, bool]:
    """Arguments or a result: text or JSON. Vercel's SDK writes a text as JSON, too."""
    quoted = isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"'
    return read_value(value) if quoted else read_loose(value)


def _documents(attributes: Mapping[str, Any]) -> tuple[tuple[dict[str, Any], ...] | None, bool]:
    value = attributes.get(semconv.RETRIEVAL_DOCUMENTS)
    if value is None:
        return None, False
    found = read_items(value)
    return read_documents(found.items), found.truncated
