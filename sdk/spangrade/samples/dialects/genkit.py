"""Genkit: ``genkit:input`` and ``genkit:output`` as JSON, the kind of an action in ``genkit:metadata:subtype``. From its source
(firebase/genkit, js/core/src/tracing and js/ai/src/model-types.ts); not run.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.arguments import executed
from spangrade.samples.dialects.base import EVALUATOR, NOT_A_CALL, KindMark, session_id, user_id
from spangrade.samples.exchanges import of_payloads, read_run
from spangrade.samples.jsontext import read_value
from spangrade.samples.messages import Turn
from spangrade.samples.payloads import Payload
from spangrade.samples.reading import RETRIEVAL_KINDS, Reading
from spangrade.samples.turns import read_message

SUBTYPE: Final = "genkit:metadata:subtype"
INPUT: Final = "genkit:input"
OUTPUT: Final = "genkit:output"
KINDS: Final[Mapping[str, str]] = {
    "flow": "chain",
    "model": "llm",
    "background-model": "llm",
    "tool": "tool",
    "retriever": "retriever",
    "reranker": "reranker",
    "embedder": "embedding",
    "evaluator": EVALUATOR,
    "prompt": NOT_A_CALL,
    "executable-prompt": NOT_A_CALL,
}

name: Final = "genkit"
capture: Final = "it is on in Genkit's own telemetry"
kind_marks: Final[Mapping[str, KindMark]] = {
    SUBTYPE: KindMark(KINDS, default="chain"),
    INPUT: KindMark(present="chain"),
    OUTPUT: KindMark(present="chain"),
}
content_keys: Final = frozenset({INPUT, OUTPUT})
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset(kind_marks)


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    kind = KINDS.get((scalars.first_name(attributes, SUBTYPE) or "").lower(), "chain")
    given, given_cut = read_value(attributes.get(INPUT))
    result, result_cut = read_value(attributes.get(OUTPUT))
    cut = given_cut or result_cut
    if kind == "llm":
        asked = given.get("messages") if isinstance(given, Mapping) else None
        request = Payload(_turns(asked, "user"), known=isinstance(asked, (list, tuple)))
        found = of_payloads(name, given, result, request, _response(result), truncated=cut)
    elif kind == "tool":
        called = executed(scalars.first_name(attributes, "genkit:name") or span.name, given)
        found = Reading(name, kind=kind, input=given, output=result, tool_calls=called, truncated=cut)
    else:
        found = read_run(name, span, kind, given, result, truncated=cut)
        query = given.get("query") if isinstance(given, Mapping) and kind in RETRIEVAL_KINDS else None
        if query is not None:
            text = "\n".join(turn.text or "" for turn in _turns([query], "user")) or None
            found = replace(found, input=text, query=text)
    return replace(
        found,
        session_id=scalars.first_name(attributes, "genkit:sessionId") or session_id(attributes),
        user_id=user_id(attributes),
    )


def _response(result: Any) -> Payload:
    """``{"message", "finishReason", "usage"}``; of before version 1, ``{"candidates": [...]}`` of these."""
    if not isinstance(result, Mapping):
        return Payload()
    held = result.get("candidates")
    choices = [c for c in held if isinstance(c, Mapping)] if isinstance(held, (list, tuple)) else [result]
    turns: list[Turn] = []
    for choice in choices:
        said = _turns([choice["message"]], "assistant") if isinstance(choice.get("message"), Mapping) else []
        for turn in said:
            turn.finish_reason = scalars.first_name(choice, "finishReason")
        turns += said
    counts = result.get("usage")
    usage = scalars.usage(
        counts if isinstance(counts, Mapping) else {},
        ("inputTokens",),
        ("outputTokens",),
        ("cachedContentTokens",),
        (),
        ("thoughtsTokens",),
    )
    return Payload(turns, known=bool(turns), usage=usage)


def _turns(messages: Any, role: str) -> list[Turn]:
    """Messages whose parts tell by a key what they are."""
    if not isinstance(messages, (list, tuple)):
        return []
    turns: list[Turn] = []
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, (list, tuple)):
            turns += read_message({"role": message.get("role") or role, "content": [_part(p) for p in content]}, role)
    return turns


def _part(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    for key, kind in (("toolRequest", "tool_call"), ("toolResponse", "tool_result"), ("media", "media")):
        held = part.get(key)
        if isinstance(held, Mapping):
            return {**held, "type": kind, "id": held.get("ref"), "media_type": held.get("contentType")}
    if isinstance(part.get("reasoning"), str):
        return {"type": "reasoning", "content": part["reasoning"]}
    return part
