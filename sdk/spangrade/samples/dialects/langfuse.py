"""Langfuse: ``langfuse.observation.*`` of its SDKs 3 to 5, and the trace's own ``langfuse.trace.*`` of those before 5.

Source: langfuse 5.0.4 (langfuse/_client/attributes.py, langfuse/openai.py). Text is written as it is, anything else as
JSON; a decorated function's input is ``{"args": [...], "kwargs": {...}}``, a generation's the model's request.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from spangrade import semconv
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.arguments import executed, unwrapped
from spangrade.samples.dialects.base import EVALUATOR, NOT_A_CALL, KindMark
from spangrade.samples.exchanges import read_exchange
from spangrade.samples.flat import under
from spangrade.samples.jsontext import read_loose, read_object, read_value
from spangrade.samples.payloads import facts
from spangrade.samples.reading import Reading

TYPE: Final = "langfuse.observation.type"
INPUT: Final = "langfuse.observation.input"
OUTPUT: Final = "langfuse.observation.output"
TRACE_INPUT: Final = "langfuse.trace.input"
TRACE_OUTPUT: Final = "langfuse.trace.output"
MODEL: Final = "langfuse.observation.model.name"
_METADATA: Final = ("langfuse.observation.metadata", "langfuse.trace.metadata")
_FIRST_TOKEN: Final = "langfuse.observation.completion_start_time"
_FINISH: Final = "finish_reason"  # of a stream, among the metadata

KINDS: Final[Mapping[str, str]] = {
    "span": "chain",
    "generation": "llm",
    "agent": "agent",
    "tool": "tool",
    "chain": "chain",
    "retriever": "retriever",
    "embedding": "embedding",
    "guardrail": "guardrail",
    "evaluator": EVALUATOR,
    "event": NOT_A_CALL,  # a point in time
}

name: Final = "langfuse"
capture: Final = (
    "it is on unless LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=false, @observe(capture_input=False,"
    " capture_output=False) or the client's mask= leaves it out"
)
kind_marks: Final[Mapping[str, KindMark]] = {
    TYPE: KindMark(KINDS, default="chain"),
    # Its own judges' calls; applications may not use that prefix.
    "langfuse.environment": KindMark(prefixes=(("langfuse-", EVALUATOR),)),
    MODEL: KindMark(present="llm"),
    INPUT: KindMark(present="chain"),
    OUTPUT: KindMark(present="chain"),
    TRACE_INPUT: KindMark(present="chain"),
    TRACE_OUTPUT: KindMark(present="chain"),
}
content_keys: Final = frozenset({INPUT, OUTPUT, TRACE_INPUT, TRACE_OUTPUT, "langfuse.experiment.item.expected_output"})
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset({TYPE, INPUT, OUTPUT, TRACE_INPUT, TRACE_OUTPUT, MODEL})


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    declared = KINDS.get((scalars.first_name(attributes, TYPE) or "").lower())
    kind = declared or ("llm" if MODEL in attributes else "chain")
    given, given_cut = _value(attributes, INPUT, TRACE_INPUT)
    result, result_cut = _value(attributes, OUTPUT, TRACE_OUTPUT)
    cut = given_cut or result_cut
    metadata = _metadata(attributes)
    if kind == "llm":
        found = read_exchange(name, given, result, truncated=cut)
        finish = scalars.names(metadata.pop(_FINISH, None)) or found.finish_reasons
        found = replace(found, finish_reasons=finish)
    else:
        asked = unwrapped(given, named=kind == "tool")
        called = executed(span.name, asked) if kind == "tool" else ()
        found = Reading(name, kind=kind, input=asked, output=result, tool_calls=called, truncated=cut)
    return replace(
        found,
        model=scalars.first_name(attributes, MODEL) or found.model,
        response_id=None,  # an id in what it writes is that of an item of the answer
        usage=_usage(attributes) or found.usage,
        first_chunk_s=_first_chunk(span),
        session_id=scalars.first_name(attributes, semconv.SESSION_ID, "langfuse.session.id"),
        user_id=scalars.first_name(attributes, semconv.USER_ID, "langfuse.user.id"),
        metadata=metadata,
    )


def _value(attributes: Mapping[str, Any], *keys: str) -> tuple[Any, bool]:
    """The first that is there: the observation's own before the trace's."""
    return next((read_loose(attributes[key]) for key in keys if attributes.get(key) is not None), (None, False))


def _usage(attributes: Mapping[str, Any]) -> dict[str, int]:
    """``usage_details``: the provider's own names, or Langfuse's ``input`` and ``output``."""
    held = read_object(attributes.get("langfuse.observation.usage_details"))
    for short, long in (("input", "input_tokens"), ("output", "output_tokens")):
        if short in held:
            held.setdefault(long, held[short])
    return facts({"usage": held}).usage if held else {}


def _metadata(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """By key, each value as JSON (SDK 5) or text; or all of it as one JSON object. The observation's own come first."""
    found: dict[str, Any] = {}
    for key in _METADATA:
        for part, value in under(attributes, f"{key}.").items():
            found.setdefault(part, read_value(value)[0])
        for part, value in read_object(attributes.get(key)).items():
            found.setdefault(part, value)
    tags = scalars.names(attributes.get("langfuse.trace.tags"))
    if tags:
        found.setdefault("tags", list(tags))
    return found


def _first_chunk(span: SpanData) -> float | None:
    """From the time at which the answer began: ISO 8601 in JSON's quotes."""
    value = span.attributes.get(_FIRST_TOKEN)
    if not isinstance(value, str):
        return None
    try:
        began = datetime.fromisoformat(value.strip('"'))
    except ValueError:
        return None
    began = began if began.tzinfo is not None else began.replace(tzinfo=UTC)
    return scalars.seconds((int(began.timestamp() * 1e6) * 1_000 - span.start_ns) / 1e9)
