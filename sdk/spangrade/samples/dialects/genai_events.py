"""OpenTelemetry GenAI up to conventions 1.36: what was said stands in events, one a message, not in attributes.

As log records that belong to the span (opentelemetry-instrumentation-openai-v2, OpenLLMetry with
``use_legacy_attributes=False``, agent-framework, Google ADK, Semantic Kernel) or as events of the span itself (Strands, Azure AI),
and before those as ``gen_ai.content.prompt`` and ``gen_ai.content.completion``. Source: open-telemetry/semantic-conventions
v1.36, docs/gen-ai/gen-ai-events.md. Models, tokens and ids stand in the same attributes as later: `otel_genai` reads them.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade import semconv
from spangrade.model.span import EventData, SpanData
from spangrade.samples import scalars
from spangrade.samples.dialects.base import KindMark
from spangrade.samples.jsontext import looks_cut, read_items, read_loose
from spangrade.samples.message_events import ROLES, WHOLE, read_events
from spangrade.samples.messages import Turn, answer, as_messages, last_user_text, system_text
from spangrade.samples.reading import Reading
from spangrade.samples.turns import read_turns

#: Before each message had an event of its own: event → the attribute that holds all of them as JSON.
TOGETHER: Final[Mapping[str, str]] = {
    "gen_ai.content.prompt": "gen_ai.prompt",
    "gen_ai.content.completion": "gen_ai.completion",
}

name: Final = "otel_genai_events"
capture: Final = (
    "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true in the application's environment, and send its log records"
    " where its spans go (OTEL_LOGS_EXPORTER=otlp)"
)
kind_marks: Final[Mapping[str, KindMark]] = {semconv.LEGACY_SYSTEM: KindMark(present="llm")}
content_keys: Final = frozenset({*TOGETHER.values(), "gen_ai.event.content"})
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset(
    {semconv.LEGACY_SYSTEM, semconv.PROVIDER_NAME, semconv.OPERATION_NAME, semconv.REQUEST_MODEL}
)


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading | None:
    events = [event for event in span.events if event.name in ROLES or event.name in TOGETHER]
    if not events:
        return None
    asked, said = read_events((event.name, event.attributes) for event in events)
    earlier_asked, asked_cut = _together(events, "gen_ai.content.prompt", "user")
    earlier_said, said_cut = _together(events, "gen_ai.content.completion", "assistant")
    asked, said = asked or earlier_asked, said or earlier_said
    response = answer(said)
    messages, asked_long = as_messages(asked) if _speaks(asked) else ((), False)
    choices, said_long = as_messages(said) if _speaks(said) else ((), False)
    given: Any = last_user_text(asked)
    result: Any = response.text
    if span.attributes.get(semconv.OPERATION_NAME) == "execute_tool":  # Strands: arguments and result, as two messages
        given = _of_tool(asked)
        result = read_loose(result)[0]
    return Reading(
        name,
        input=given,
        output=result,
        messages=messages,
        output_messages=choices,
        system=system_text(asked),
        tool_calls=response.tool_calls,
        provider=scalars.first_name(events[0].attributes, semconv.LEGACY_SYSTEM),
        finish_reasons=response.finish_reasons,
        user_id=next((user for e in events if (user := scalars.name(e.attributes.get(semconv.USER_ID)))), None),
        reasoning=response.reasoning,
        refusal=response.refusal,
        truncated=asked_cut or said_cut or asked_long or said_long or any(map(_cut, events)),
    )


def _together(events: list[EventData], event_name: str, role: str) -> tuple[list[Turn], bool]:
    turns: list[Turn] = []
    cut = False
    for event in events:
        if event.name == event_name:
            found = read_items(event.attributes.get(TOGETHER[event_name]))
            turns += read_turns(found, role)
            cut = cut or found.truncated
    return turns, cut


def _speaks(turns: list[Turn]) -> bool:
    """Whether anything was captured of what was said: without, the events have roles and names of tools only."""
    return any(turn.text is not None or any("arguments" in call for call in turn.tool_calls) for turn in turns)


def _of_tool(asked: list[Turn]) -> Any:
    texts = [turn.text for turn in asked if turn.role == "tool" and turn.text is not None]
    return read_loose(texts[-1])[0] if texts else None


def _cut(event: EventData) -> bool:
    held = (event.attributes.get(key) for key in ("message", "tool_calls", *WHOLE))
    return any(isinstance(value, str) and looks_cut(value) for value in held)
