"""A span → `Call`: every dialect says what it finds, and the findings are merged.

`quick_kind` is asked for every span that ends, on the application's thread; `extract` runs on ours. Both read span
content only, so that the SDK and the agent see the same call (promise 6).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spangrade._guard import guard
from spangrade._values import bounded
from spangrade.model.documents import read_documents
from spangrade.model.span import SpanData
from spangrade.samples import media
from spangrade.samples.content import CONTENT_EVENTS, CONTENT_KEYS, is_content_key
from spangrade.samples.dialects import DIALECTS, otel_genai
from spangrade.samples.dialects.base import EVALUATOR
from spangrade.samples.kinds import quick_kind
from spangrade.samples.messages import is_judge_text, split_thinking
from spangrade.samples.reading import RETRIEVAL_KINDS, Call, Reading

__all__ = ["CONTENT_EVENTS", "CONTENT_KEYS", "extract", "is_content_key", "quick_kind"]

_RESULT_LISTS: Final = ("documents", "docs", "source_documents", "source_nodes", "nodes", "results", "matches", "hits")


def extract(span: SpanData) -> Call | None:
    """The call that a span is, or None when it is none. Never raises: a fault of ours is logged once and gives None.

    - ``input`` of an LLM call is the text of its last user turn, ``output`` that of its first choice; structured GenAI
      messages are believed before OpenInference ones, and both before ``input.value``. Of any other call an explicit
      ``input.value`` and ``output.value`` come first.
    - The output is None, not ``""``, for a turn of tool calls or thoughts only, and where no content was captured.
    - ``truncated``: an attribute was cut, or the span lost attributes, or the model ran out of tokens while thinking.
    """
    with guard("samples.extract"):
        return _extract(span)
    return None


def _extract(span: SpanData) -> Call | None:
    # Dialects look up many keys; on the SDK's own container each costs half a microsecond, on a dict next to nothing.
    attributes: Mapping[str, Any] = span.attributes if type(span.attributes) is dict else dict(span.attributes.items())
    kind = quick_kind(attributes)
    if kind is None:
        return None
    attributes, events = media.named(attributes), media.named_in(span.events)
    same = attributes is span.attributes and events is span.events
    view = span if same else replace(span, attributes=attributes, events=events)
    readings: list[Reading] = []
    for dialect in DIALECTS:
        with guard(f"samples.{dialect.name}"):
            if dialect.claims(attributes) and (said := dialect.read(view)) is not None:
                readings.append(said)
    reading = _merge(kind, readings, lossy=span.dropped_attributes > 0)
    return Call(span, reading, evaluator=kind == EVALUATOR or _is_judge(reading))


def _is_judge(reading: Reading) -> bool:
    """Whether the system text is that of a judge of ours, whoever traced the call."""
    return is_judge_text(reading.system) or any(
        message.get("role") == "system" and is_judge_text(message.get("content")) for message in reading.messages
    )


def _merge(kind: str, readings: Sequence[Reading], *, lossy: bool) -> Reading:
    """One reading of several: for each field the first dialect that says something."""
    if len(readings) == 1 and not lossy and readings[0].kind == kind and (kind != "llm" or readings[0].output_messages):
        only = readings[0]  # the usual case, at no cost
        documents = _documents(kind, readings, only.output)
        return only if documents is only.documents else replace(only, documents=documents)
    heard = _by_messages(readings) if kind == "llm" else readings
    talk = _by_messages(readings)
    asked = next((r for r in talk if r.messages), None)
    said = next((r for r in talk if r.output_messages), None)
    output, reasoning = _first(r.output for r in heard), _first(r.reasoning for r in talk)
    if kind == "llm" and isinstance(output, str):
        output, thoughts = split_thinking(output)
        reasoning = reasoning or thoughts
    return Reading(
        dialect="+".join(r.dialect for r in readings),
        kind=kind,
        input=_first(r.input for r in heard),
        output=output,
        messages=asked.messages if asked is not None else (),
        output_messages=said.output_messages if said is not None else (),
        system=_first(r.system for r in talk),
        documents=_documents(kind, readings, output),
        query=_first(r.query for r in readings),
        # Of a tool's span it is the call that it is: an explicit one has its arguments, too.
        tool_calls=next((r.tool_calls for r in (readings if kind == "tool" else talk) if r.tool_calls), ()),
        model=_first(r.model for r in readings),
        provider=_first(r.provider for r in readings),
        response_id=_first(r.response_id for r in readings),
        finish_reasons=next((r.finish_reasons for r in talk if r.finish_reasons), ()),
        usage=_joined(r.usage for r in readings),
        tools=next((r.tools for r in readings if r.tools), ()),
        first_chunk_s=_first(r.first_chunk_s for r in readings),
        session_id=_first(r.session_id for r in readings),
        user_id=_first(r.user_id for r in readings),
        metadata=_joined(r.metadata for r in readings),
        context=_joined(r.context for r in readings),
        reasoning=bounded(reasoning) if reasoning else None,
        refusal=any(r.refusal for r in readings),
        truncated=lossy or any(r.truncated for r in readings),
    )


def _by_messages(readings: Sequence[Reading]) -> list[Reading]:
    """Readings with messages first, and of these the GenAI conventions' (the sort keeps the order otherwise)."""
    return sorted(readings, key=lambda r: (r.dialect != otel_genai.name) if r.messages or r.output_messages else 2)


def _documents(kind: str, readings: Sequence[Reading], output: Any) -> tuple[Mapping[str, Any], ...] | None:
    """Documents that a dialect names; else those that a retrieval gave back as its output."""
    found = next((r.documents for r in readings if r.documents is not None), None)
    if found is None and kind in RETRIEVAL_KINDS:
        held = isinstance(output, Mapping) and any(isinstance(output.get(key), (list, tuple)) for key in _RESULT_LISTS)
        if held or isinstance(output, (list, tuple)):
            return read_documents(output)
    return found


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _joined(mappings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            found.setdefault(key, value)
    return found
