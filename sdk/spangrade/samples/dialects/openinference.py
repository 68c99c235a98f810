"""OpenInference 0.1.42: ``openinference.span.kind``, ``input.value``, ``output.value``, flattened messages, documents.

Source: Arize-ai/openinference, spec/semantic_conventions.md. ``input.value`` and ``output.value`` without a kind are
read here too. LLM spans that hold only the raw request and response as JSON are read by `payloads`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from spangrade import semconv
from spangrade._values import bounded, snapshot
from spangrade.model.documents import read_documents
from spangrade.model.span import SpanData
from spangrade.samples import llama_index, scalars
from spangrade.samples.arguments import executed
from spangrade.samples.dialects.base import EVALUATOR, NOT_A_CALL, KindMark, session_id, user_id
from spangrade.samples.flat import grouped, lost_its_beginning
from spangrade.samples.flat_messages import MESSAGES, PROMPTS, flat_turns
from spangrade.samples.jsontext import loads, looks_cut, looks_json, read_items, read_loose, read_object, read_value
from spangrade.samples.langchain import read_answered, read_asked
from spangrade.samples.messages import Turn, answer, as_messages, last_user_text, system_text
from spangrade.samples.payloads import Payload, facts, instructions, read_request, read_response
from spangrade.samples.reading import RETRIEVAL_KINDS, Reading
from spangrade.samples.turns import read_turns

KINDS: Final[Mapping[str, str]] = {
    "llm": "llm",
    "chain": "chain",
    "agent": "agent",
    "tool": "tool",
    "retriever": "retriever",
    "reranker": "reranker",
    "embedding": "embedding",
    "guardrail": "guardrail",
    "evaluator": EVALUATOR,
    "decision": "chain",
    "prompt": NOT_A_CALL,  # a template being filled in
}
_TOOLS: Final = "llm.tools."
_FIRST_TOKEN_EVENT: Final = "First Token Stream Event"
_HIDDEN: Final = "__REDACTED__"  # what TraceConfig puts in place of a value
_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_DOCUMENTS: Final = ("retrieval.documents.", "reranker.output_documents.")

name: Final = "openinference"
capture: Final = (
    "it is on unless OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS or another OPENINFERENCE_HIDE_* variable (or a"
    " TraceConfig) hides it"
)
kind_marks: Final[Mapping[str, KindMark]] = {
    semconv.OI_KIND: KindMark(KINDS),
    semconv.OI_INPUT: KindMark(present="chain"),
    semconv.OI_OUTPUT: KindMark(present="chain"),
    # When a span has more attributes than its limit, the Python SDK drops the oldest, so the kind goes first.
    "llm.model_name": KindMark(present="llm"),
    "llm.output_messages.0.message.role": KindMark(present="llm"),
    "llm.output_messages.0.message.content": KindMark(present="llm"),
    "retrieval.documents.0.document.content": KindMark(present="retriever"),
}
content_keys: Final = frozenset(
    {
        semconv.OI_INPUT,
        semconv.OI_OUTPUT,
        "llm.prompt_template.template",
        "llm.prompt_template.variables",
        "llm.function_call",
        "reranker.query",
        "tool.parameters",
    }
)
content_prefixes: Final = (
    *MESSAGES,
    *PROMPTS,
    "retrieval.documents.",
    "reranker.input_documents.",
    "reranker.output_documents.",
    "embedding.embeddings.",
    "input.images.",
    "output.images.",
    "input.documents.",
    "output.documents.",
    "input.audio.",
    "output.audio.",
)
_CLAIMS: Final = frozenset({*kind_marks, "llm.response.model_name", "retrieval.documents.0.document.id"})


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes) or lost_its_beginning(attributes, (*MESSAGES, *_DOCUMENTS))


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    if _HIDDEN in attributes.values():
        attributes = {key: value for key, value in attributes.items() if value != _HIDDEN}
    flat = grouped(attributes, (*MESSAGES, *PROMPTS, *_DOCUMENTS, _TOOLS))
    declared = KINDS.get((scalars.first_name(attributes, semconv.OI_KIND) or "").lower())
    kind = declared or ("llm" if any(key in flat for key in (*MESSAGES, *PROMPTS)) else None)
    given, given_cut = _value(attributes, semconv.OI_INPUT, semconv.OI_INPUT_MIME)
    result, result_cut = _value(attributes, semconv.OI_OUTPUT, semconv.OI_OUTPUT_MIME)
    given = given_at_first = llama_index.unwrapped(given)
    asked, said = flat_turns(flat)
    request, response = Payload(), Payload()
    calls: tuple[dict[str, Any], ...] = ()
    if kind == "llm":
        if asked:
            system = None if any(turn.role == "system" for turn in asked) else instructions(given)
            asked = [Turn("system", system), *asked] if system else asked
        else:
            request = _payload(read_request, given, attributes.get(semconv.OI_INPUT))
            if not request.known or (isinstance(given, Mapping) and "prompt" in given):  # the template's own repr
                request = _filled(attributes) or request
        response = facts(result) if said else _payload(read_response, result, attributes.get(semconv.OI_OUTPUT))
        asked, said = asked or request.turns, said or response.turns
        _name_reasons(said, response.finish_reasons)
    elif kind == "tool":
        given, result, calls = _tool(attributes, given, result)
    elif kind in ("chain", "agent") and not said:  # a conversation as its whole input or output
        state, outcome = read_asked(given), read_answered(result)
        asked = state.turns or asked
        given = state.value if state.turns else given
        result = outcome.value if outcome.turns else result
    said_answer = answer(said)
    messages, asked_cut = as_messages(asked)
    choices, said_cut = as_messages(said)
    if asked and (kind == "llm" or given is None):
        question = last_user_text(asked)
        given = question if question is not None or request.known else given
    if (said or response.known) and (kind == "llm" or result is None):
        result = said_answer.text
    finish = scalars.names(attributes.get("llm.finish_reason")) or said_answer.finish_reasons
    if len(finish) < len(response.finish_reasons):  # the attribute has room for that of one choice
        finish = response.finish_reasons
    return Reading(
        name,
        kind=kind,
        input=given,
        output=result,
        messages=messages,
        output_messages=choices,
        system=system_text(asked),
        documents=_documents(flat, kind, attributes, result),
        query=scalars.text(attributes.get("reranker.query")),
        tool_calls=calls or said_answer.tool_calls,
        model=scalars.first_name(
            attributes,
            "llm.response.model_name",
            "llm.model_name",
            "llm.request.model_name",
            "embedding.model_name",
            "reranker.model_name",
        )
        or response.model
        or request.model
        or _requested_model(attributes, given_at_first),
        provider=scalars.first_name(attributes, "llm.provider", "llm.system"),
        response_id=response.response_id,
        finish_reasons=finish,
        usage=scalars.usage(
            attributes,
            ("llm.token_count.prompt",),
            ("llm.token_count.completion",),
            ("llm.token_count.prompt_details.cache_read",),
            ("llm.token_count.prompt_details.cache_write",),
            ("llm.token_count.completion_details.reasoning",),
        )
        or response.usage,
        tools=_tools(flat, attributes),
        first_chunk_s=_first_chunk(span),
        session_id=session_id(attributes),
        user_id=user_id(attributes),
        metadata=_metadata(attributes),
        reasoning=said_answer.reasoning,
        refusal=said_answer.refusal,
        truncated=given_cut or result_cut or asked_cut or said_cut,
    )


def _value(attributes: Mapping[str, Any], key: str, mime_key: str) -> tuple[Any, bool]:
    """``input.value`` or ``output.value``: parsed when its mime type says JSON, else text as it is."""
    value = attributes.get(key)
    if not isinstance(value, str):
        return snapshot(value), False
    mime = attributes.get(mime_key)
    if isinstance(mime, str) and "json" in mime.lower():
        return read_value(value)
    return bounded(value), False


def _payload(reader: Any, parsed: Any, raw: Any) -> Payload:
    """A parsed request or response; of a message list that was cut, what is whole."""
    found: Payload = reader(parsed)
    if not found.known and isinstance(parsed, str) and isinstance(raw, str) and looks_json(raw):
        try:
            found = reader(loads(raw))  # JSON that nobody called JSON
        except ValueError:
            if raw.lstrip().startswith("[") and looks_cut(raw):
                role = "user" if reader is read_request else "assistant"
                return Payload(read_turns(read_items(raw), role), known=True)
    return found


def _filled(attributes: Mapping[str, Any]) -> Payload | None:
    """A prompt template with its variables: what was sent where a span has no messages."""
    template = attributes.get("llm.prompt_template.template")
    variables = read_object(attributes.get("llm.prompt_template.variables"))
    if not isinstance(template, str) or not variables:
        return None
    text = _VARIABLE.sub(lambda found: scalars.text(variables.get(found[1])) or found[0], template)
    return Payload([Turn("user", text)], known=True)


def _name_reasons(said: list[Turn], reasons: tuple[str, ...]) -> None:
    """Why each of several choices ended, which only the raw response tells."""
    if len(said) > 1 and len(said) == len(reasons):
        for turn, reason in zip(said, reasons, strict=True):
            turn.finish_reason = turn.finish_reason or reason


def _requested_model(attributes: Mapping[str, Any], request: Any) -> str | None:
    """Of a call that failed there is no other."""
    asked = scalars.first_name(request, "model") if isinstance(request, Mapping) else None
    if asked is not None or "llm.invocation_parameters" not in attributes:
        return asked
    return scalars.first_name(read_object(attributes["llm.invocation_parameters"]), "model", "model_name")


def _documents(
    flat: Mapping[str, list[dict[str, Any]]], kind: str | None, attributes: Mapping[str, Any], result: Any
) -> tuple[dict[str, Any], ...] | None:
    """Retrieved documents; of a reranker what it put out."""
    order = reversed(_DOCUMENTS) if kind == "reranker" else _DOCUMENTS
    for prefix in order:
        held: Any = flat.get(prefix)
        if held is None:
            whole = attributes.get(prefix[:-1])  # a structured list, where the sender's SDK allows one
            held = read_items(whole).items if whole is not None else None
        if held is not None:
            return read_documents([_document(item) if isinstance(item, Mapping) else item for item in held])
    nodes = llama_index.documents(result) if kind in RETRIEVAL_KINDS else None
    return None if nodes is None else read_documents(nodes)


def _document(item: Mapping[str, Any]) -> dict[str, Any]:
    plain = {str(key).removeprefix("document."): value for key, value in item.items()}
    if isinstance(plain.get("metadata"), str):
        plain["metadata"] = read_object(plain["metadata"])
    return plain


def _tool(attributes: Mapping[str, Any], given: Any, result: Any) -> tuple[Any, Any, tuple[dict[str, Any], ...]]:
    """Arguments, result, and the call that a tool's span is. LangChain's result is a message that names its call."""
    answered = read_answered(result).turns
    message = answered[0] if len(answered) == 1 and answered[0].role == "tool" else None
    if message is not None:
        result = message.text
    tool = scalars.first_name(attributes, "tool.name", semconv.TOOL_NAME)
    arguments = read_loose(attributes.get("tool.parameters"))[0] if given is None else given
    call_id = scalars.first_name(attributes, "tool.id", "tool_call.id") or (message.tool_call_id if message else None)
    return given, result, executed(tool, arguments, call_id)


def _tools(flat: Mapping[str, list[dict[str, Any]]], attributes: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """``llm.tools.<i>.tool.json_schema``, else the ``tools`` of the request's parameters."""
    held = [item.get("tool.json_schema") for item in flat.get(_TOOLS, ())]
    if not held and "llm.invocation_parameters" in attributes:
        held = read_object(attributes["llm.invocation_parameters"]).get("tools") or []
    return scalars.declared_tools([item for item in held if item is not None]) if held else ()


def _first_chunk(span: SpanData) -> float | None:
    """From the event that its instrumentations add to a streamed call."""
    for event in span.events:
        if event.name == _FIRST_TOKEN_EVENT:
            return scalars.seconds((event.time_ns - span.start_ns) / 1e9)
    return None


def _metadata(attributes: Mapping[str, Any]) -> dict[str, Any]:
    found = read_object(attributes.get(semconv.OI_METADATA))
    tags = scalars.names(attributes.get("tag.tags"))
    if tags and "tags" not in found:
        found["tags"] = list(tags)
    return found
