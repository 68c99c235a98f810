"""The Vercel AI SDK up to 6, and 7's ``LegacyOpenTelemetry``: ``ai.operationId``, ``ai.prompt*``, ``ai.response.*``.

Source: packages ai 6.0 and @ai-sdk/otel 1.0 (legacy-open-telemetry.ts); before 4 the answer was ``ai.result.*``. A call of
``generateText`` and its kin is one span, an agent's run (it may take several steps and call tools), and one span below it
for each call of the model. What 7 writes otherwise is OpenTelemetry GenAI, with the same two levels.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade.model.documents import read_documents
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.arguments import executed
from spangrade.samples.dialects.base import KindMark, session_id, user_id
from spangrade.samples.flat import under
from spangrade.samples.jsontext import read_items, read_loose, read_object, read_value
from spangrade.samples.messages import Turn, answer, as_messages, last_user_text, system_text
from spangrade.samples.parts import text_of, tool_call
from spangrade.samples.reading import Reading
from spangrade.samples.turns import read_turns

OPERATION: Final = "ai.operationId"
_TEXTS: Final = ("text", "object")
_CALLS: Final = ("generatetext", "streamtext", "generateobject", "streamobject")
KINDS: Final[Mapping[str, str]] = {
    **{f"ai.{call}": "agent" for call in _CALLS},
    **{f"ai.{call}.{do}": "llm" for call in _CALLS for do in ("dogenerate", "dostream")},
    "ai.toolcall": "tool",
}

name: Final = "vercel"
capture: Final = (
    "it is on wherever telemetry is, unless recordInputs or recordOutputs is false in experimental_telemetry"
)
kind_marks: Final[Mapping[str, KindMark]] = {
    OPERATION: KindMark(KINDS, prefixes=(("ai.embed", "embedding"), ("ai.rerank", "reranker"))),
    "ai.prompt.messages": KindMark(present="llm"),
    "ai.toolCall.name": KindMark(present="tool"),
}
content_keys: Final[frozenset[str]] = frozenset()
content_prefixes: Final = (
    "ai.prompt",
    "ai.response.text",
    "ai.response.object",
    "ai.response.toolCalls",
    "ai.response.reasoning",
    "ai.response.files",
    "ai.result.",
    "ai.toolCall.args",
    "ai.toolCall.result",
    "ai.value",
    "ai.documents",
    "ai.ranking",
)
_METADATA: Final = ("ai.telemetry.metadata.", "ai.settings.context.")


def claims(attributes: Mapping[str, Any]) -> bool:
    return OPERATION in attributes or "ai.prompt.messages" in attributes or "ai.toolCall.name" in attributes


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    kind = _kind(attributes)
    metadata = {key: value for prefix in _METADATA for key, value in under(attributes, prefix).items()}
    reading = Reading(
        name,
        kind=kind,
        session_id=session_id(attributes)
        or scalars.first_name(metadata, "sessionId", "session_id", "chatId", "threadId"),
        user_id=user_id(attributes) or scalars.first_name(metadata, "userId", "user_id"),
        metadata=metadata,
    )
    if kind == "tool":
        _read_tool(attributes, reading)
    elif kind in ("embedding", "reranker"):
        _read_values(attributes, reading)
    else:
        _read_talk(attributes, reading)
    if kind != "tool":
        reading.model = scalars.first_name(attributes, "ai.response.model", "ai.model.id")
        provider = scalars.first_name(attributes, "ai.model.provider")
        # "openai.chat", "google.generative-ai": whose it is, and which of its APIs.
        reading.provider = None if provider is None else provider.partition(".")[0]
        reading.usage = scalars.usage(
            attributes,
            ("ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens"),
            ("ai.usage.outputTokens", "ai.usage.completionTokens"),
            ("ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens"),
            ("ai.usage.inputTokenDetails.cacheWriteTokens",),
            ("ai.usage.outputTokenDetails.reasoningTokens", "ai.usage.reasoningTokens"),
        )
    return reading


def _kind(attributes: Mapping[str, Any]) -> str:
    operation = (scalars.first_name(attributes, OPERATION) or "").lower()
    known = KINDS.get(operation)
    if known is not None:
        return known
    for beginning, kind in (("ai.embed", "embedding"), ("ai.rerank", "reranker")):
        if operation.startswith(beginning):
            return kind
    return "tool" if "ai.toolCall.name" in attributes else "llm"


def _read_talk(attributes: Mapping[str, Any], reading: Reading) -> None:
    asked, asked_cut = _asked(attributes)
    said, said_cut = _said(attributes)
    spoken = answer(said)
    reading.messages, more_cut = as_messages(asked)
    reading.output_messages, still_more_cut = as_messages(said)
    reading.input, reading.system = last_user_text(asked), system_text(asked)
    reading.output, reading.reasoning = spoken.text, spoken.reasoning
    reading.tool_calls, reading.finish_reasons = spoken.tool_calls, spoken.finish_reasons
    if not reading.finish_reasons:
        reading.finish_reasons = scalars.names(_answered(attributes, "finishReason"))
    reading.tools = scalars.declared_tools(attributes.get("ai.prompt.tools"))
    reading.response_id = scalars.first_name(attributes, "ai.response.id")
    waited = attributes.get("ai.response.msToFirstChunk")
    reading.first_chunk_s = scalars.seconds(waited / 1e3) if isinstance(waited, (int, float)) else None
    reading.truncated = asked_cut or said_cut or more_cut or still_more_cut


def _asked(attributes: Mapping[str, Any]) -> tuple[list[Turn], bool]:
    """``ai.prompt.messages``, a list; else ``ai.prompt``, what the application gave: system, prompt, messages."""
    sent = attributes.get("ai.prompt.messages")
    if sent is not None:
        found = read_items(sent)
        return read_turns(found, "user"), found.truncated
    given, cut = read_value(attributes.get("ai.prompt"))
    if not isinstance(given, Mapping):
        return [], cut
    turns: list[Turn] = []
    system = text_of(given.get("system") or given.get("instructions"))
    if system:
        turns.append(Turn("system", system))
    for key in ("prompt", "messages"):
        if given.get(key) is not None:
            turns += read_turns(read_items(given[key]), "user")
    return turns, cut


def _said(attributes: Mapping[str, Any]) -> tuple[list[Turn], bool]:
    """The one turn that an answer is; none where nothing of it was captured."""
    texts = (_answered(attributes, key) for key in _TEXTS)
    text = next((scalars.text(one) for one in texts if one is not None), None)
    asked = read_items(_answered(attributes, "toolCalls"))
    calls = [call for call in map(tool_call, asked.items) if call is not None]
    reasoning = text_of(read_loose(_answered(attributes, "reasoning"))[0])
    if text is None and not calls and not reasoning:
        return [], asked.truncated
    turn = Turn(
        "assistant",
        text or (None if calls else text),
        calls,
        reasoning=reasoning or None,
        finish_reason=scalars.name(_answered(attributes, "finishReason")),
    )
    return [turn], asked.truncated


def _answered(attributes: Mapping[str, Any], key: str) -> Any:
    for beginning in ("ai.response.", "ai.result.", "ai."):
        value = attributes.get(beginning + key)
        if value is not None:
            return value
    return None


def _read_tool(attributes: Mapping[str, Any], reading: Reading) -> None:
    reading.input, given_cut = read_value(attributes.get("ai.toolCall.args"))
    reading.output, result_cut = read_value(attributes.get("ai.toolCall.result"))
    tool, call_id = (scalars.first_name(attributes, f"ai.toolCall.{key}") for key in ("name", "id"))
    reading.tool_calls = executed(tool, reading.input, call_id)
    reading.truncated = given_cut or result_cut


def _read_values(attributes: Mapping[str, Any], reading: Reading) -> None:
    """What was embedded, each as JSON; what was ranked, in its new order where that is told."""
    values = attributes.get("ai.values")
    if values is not None:
        reading.input = [read_value(one)[0] for one in read_items(values).items]
    else:
        reading.input = read_value(attributes.get("ai.value"))[0]
    if reading.kind != "reranker" or "ai.ranking" not in attributes:
        return
    documents = [read_value(one)[0] for one in read_items(attributes.get("ai.documents")).items]
    ranked = [read_object(one) for one in read_items(attributes.get("ai.ranking")).items]
    places = [(scalars.count(one.get("originalIndex", one.get("index"))), one) for one in ranked]
    kept = [(documents[at], one) for at, one in places if at is not None and at < len(documents)]
    reading.documents = read_documents([_scored(document, one) for document, one in kept])


def _scored(document: Any, ranked: Mapping[str, Any]) -> dict[str, Any]:
    whole = document if isinstance(document, Mapping) else {"content": document}
    return {**whole, "score": ranked.get("score", ranked.get("relevanceScore"))}
