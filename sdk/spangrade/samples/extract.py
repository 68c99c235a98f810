"""A span → `Call`: every dialect says what it finds, and the findings are merged.

`quick_kind` is asked for every span that ends, on the application's thread; `extract` runs on ours. Both read span
content only, so that the SDK and the agent see the same call (promise 6).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from spangrade._guard import guard, swallowed
from spangrade._values import bounded
from spangrade.model.documents import read_documents
from spangrade.model.span import SpanData
from spangrade.samples import media, room
from spangrade.samples.content import CONTENT_EVENTS, CONTENT_KEYS, is_content_key
from spangrade.samples.dialects import DIALECTS, Dialect, otel_genai
from spangrade.samples.dialects.base import EVALUATOR
from spangrade.samples.kinds import quick_kind
from spangrade.samples.messages import is_judge_text, split_thinking
from spangrade.samples.reading import RETRIEVAL_KINDS, Call, Reading

__all__ = ["CONTENT_EVENTS", "CONTENT_KEYS", "extract", "is_content_key", "quick_kind"]

_MAX_KEYS: Final = 64
_MAX_KEY_CHARS: Final = 4_096
_FIELDS: Final = (
    "input", "output", "messages", "output_messages", "system", "documents", "query", "tool_calls", "model", "provider",
    "response_id", "finish_reasons", "usage", "tools", "first_chunk_s", "duration_s", "session_id", "user_id", "metadata", "context",
    "reasoning",
)  # fmt: skip
(
    _INPUT, _OUTPUT, _MESSAGES, _OUTPUT_MESSAGES, _SYSTEM, _DOCUMENTS, _QUERY, _TOOL_CALLS, _MODEL, _PROVIDER, _RESPONSE_ID,
    _FINISH_REASONS, _USAGE, _TOOLS, _FIRST_CHUNK, _DURATION, _SESSION, _USER, _METADATA, _CONTEXT, _REASONING,
) = map(attrgetter, _FIELDS)  # fmt: skip
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
    attributes, events = media.named(attributes), media.named_in(span.events) if span.events else span.events
    attributes, cut = room.within(attributes)
    if events:
        events, cut_events = room.events_within(events)
        cut = cut or cut_events
    same = attributes is span.attributes and events is span.events
    view = span if same else replace(span, attributes=attributes, events=events)
    readings: list[Reading] = []
    for dialect in _claiming(attributes):
        try:  # not the guard's context manager: this runs for each dialect of each call
            said = dialect.read(view)
        except Exception as fault:  # noqa: BLE001 - a fault of ours costs what that dialect says
            swallowed(f"samples.{dialect.name}", fault)
        else:
            if said is not None:
                readings.append(said)
    reading = _merge(kind, readings, lossy=cut or span.dropped_attributes > 0)
    return Call(span, reading, evaluator=kind == EVALUATOR or _is_judge(reading))


def _claiming(attributes: Mapping[str, Any]) -> tuple[Dialect, ...]:
    """The dialects that claim a span. The spans of one instrumentation have the same keys, so the answer is kept by them;
    not of very many or long ones, which nobody else has."""
    if len(attributes) <= _MAX_KEYS:
        keys = tuple(attributes)
        try:
            if sum(map(len, keys)) <= _MAX_KEY_CHARS:
                return _claimed(keys)
        except TypeError:  # a key that is no text
            pass
    return _ask_all(attributes)


@lru_cache(maxsize=512)
def _claimed(keys: tuple[str, ...]) -> tuple[Dialect, ...]:
    return _ask_all(dict.fromkeys(keys))


def _ask_all(attributes: Mapping[str, Any]) -> tuple[Dialect, ...]:
    found: list[Dialect] = []
    for dialect in DIALECTS:
        with guard(f"samples.{dialect.name}"):
            if dialect.claims(attributes):
                found.append(dialect)
    return tuple(found)


def _is_judge(reading: Reading) -> bool:
    """Whether the system text is that of a judge of ours, whoever traced the call."""
    if reading.system is not None and is_judge_text(reading.system):
        return True
    return any(m["role"] == "system" and is_judge_text(m.get("content")) for m in reading.messages)


def _merge(kind: str, readings: list[Reading], *, lossy: bool) -> Reading:
    """One reading of several: for each field the first dialect that says something."""
    if len(readings) == 1:
        reading = readings[0]  # the usual case, at next to no cost
        spoken = kind == "llm" and not reading.output_messages
    else:
        reading, spoken = _joined_reading(kind, readings), kind == "llm"
    reading.kind = kind
    reading.truncated = reading.truncated or lossy
    if spoken and isinstance(reading.output, str):
        reading.output, thoughts = split_thinking(reading.output)
        reading.reasoning = reading.reasoning or (bounded(thoughts) if thoughts else None)
    if reading.documents is None and kind in RETRIEVAL_KINDS:
        reading.documents = _given_back(reading.output)
    return reading


def _joined_reading(kind: str, readings: list[Reading]) -> Reading:
    heard, talk = readings, readings
    if len(readings) > 1:
        talk = _by_messages(readings)
        heard = talk if kind == "llm" else readings
    return Reading(
        dialect="+".join([r.dialect for r in readings]),
        input=_first(heard, _INPUT),
        output=_first(heard, _OUTPUT),
        messages=_some(talk, _MESSAGES),
        output_messages=_some(talk, _OUTPUT_MESSAGES),
        system=_first(talk, _SYSTEM),
        documents=_first(readings, _DOCUMENTS),
        query=_first(readings, _QUERY),
        # Of a tool's span it is the call that it is: an explicit one has its arguments, too.
        tool_calls=_some(readings if kind == "tool" else talk, _TOOL_CALLS),
        model=_first(readings, _MODEL),
        provider=_first(readings, _PROVIDER),
        response_id=_first(readings, _RESPONSE_ID),
        finish_reasons=_some(talk, _FINISH_REASONS),
        usage=_joined(readings, _USAGE),
        tools=_some(readings, _TOOLS),
        first_chunk_s=_first(readings, _FIRST_CHUNK),
        duration_s=_first(readings, _DURATION),
        session_id=_first(readings, _SESSION),
        user_id=_first(readings, _USER),
        metadata=_joined(readings, _METADATA),
        context=_joined(readings, _CONTEXT),
        reasoning=_first(talk, _REASONING),
        refusal=any(r.refusal for r in readings),
        truncated=any(r.truncated for r in readings),
    )


def _by_messages(readings: Sequence[Reading]) -> list[Reading]:
    """Readings with messages first, and of these the GenAI conventions' (the sort keeps the order otherwise)."""
    return sorted(readings, key=lambda r: (r.dialect != otel_genai.name) if r.messages or r.output_messages else 2)


def _given_back(output: Any) -> tuple[Mapping[str, Any], ...] | None:
    """The documents that a retrieval gave back as its output, where no dialect names any."""
    held = isinstance(output, Mapping) and any(isinstance(output.get(key), (list, tuple)) for key in _RESULT_LISTS)
    return read_documents(output) if held or isinstance(output, (list, tuple)) else None


def _first(readings: list[Reading], field: Callable[[Reading], Any]) -> Any:
    for reading in readings:
        value = field(reading)
        if value is not None:
            return value
    return None


def _some(readings: list[Reading], field: Callable[[Reading], tuple[Any, ...]]) -> tuple[Any, ...]:
    for reading in readings:
        value = field(reading)
        if value:
            return value
    return ()


def _joined(readings: list[Reading], field: Callable[[Reading], Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for reading in readings:
        said = field(reading)
        if said:
            found = {**said, **found}
    return found
