"""Pydantic AI: the conversation on an agent's span, and tool spans, in the formats 1 to 6 of its instrumentation.

Source: pydantic-ai 2.68.0 (pydantic_ai/_instrumentation.py, capabilities/instrumentation.py), and 0.x for format 1. Model calls
are OpenTelemetry GenAI since format 2; of format 1 (``events``) they are read by the dialect `logfire`. An agent's span has
``pydantic_ai.all_messages`` (format 1: ``all_messages_events``), ``final_result`` and, beside its model calls' own counts,
``gen_ai.aggregated_usage.*``; instructions stand apart in ``gen_ai.system_instructions``. Tools of formats 1 and 2 have ``tool_arguments`` and ``tool_response``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spangrade import semconv
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.arguments import executed
from spangrade.samples.dialects.base import KindMark, session_id, user_id
from spangrade.samples.dialects.otel_genai import read_instructions
from spangrade.samples.jsontext import read_items, read_loose
from spangrade.samples.message_events import read_event_list
from spangrade.samples.messages import Turn, answer, as_messages, last_user_text, system_text
from spangrade.samples.reading import Reading
from spangrade.samples.turns import read_turns

MESSAGES: Final = "pydantic_ai.all_messages"
EVENTS: Final = "all_messages_events"
RESULT: Final = "final_result"
ARGUMENTS: Final = "tool_arguments"
RESPONSE: Final = "tool_response"
NEW_FROM: Final = "pydantic_ai.new_message_index"
_AGENT: Final = ("agent_name", MESSAGES, EVENTS)
_TOTAL: Final = "gen_ai.aggregated_usage."

name: Final = "pydantic_ai"
capture: Final = "it is on unless InstrumentationSettings(include_content=False) leaves it out"
kind_marks: Final[Mapping[str, KindMark]] = {
    MESSAGES: KindMark(present="agent"),
    EVENTS: KindMark(present="agent"),
    ARGUMENTS: KindMark(present="tool"),
    RESPONSE: KindMark(present="tool"),
}
content_keys: Final = frozenset({MESSAGES, EVENTS, RESULT, ARGUMENTS, RESPONSE})
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset({*kind_marks, RESULT, "agent_name", "model_request_parameters"})


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading | None:
    attributes = span.attributes
    if ARGUMENTS in attributes or RESPONSE in attributes:
        return _tool(attributes)
    if any(key in attributes for key in _AGENT):
        return _agent(attributes)
    return None


def _agent(attributes: Mapping[str, Any]) -> Reading:
    if MESSAGES in attributes or EVENTS not in attributes:
        found = read_items(attributes.get(MESSAGES))
        turns, cut = read_turns(found, "user"), found.truncated
        asked, said = _parted(turns)
        new_from = scalars.count(attributes.get(NEW_FROM)) or 0
        new = read_turns(read_items(found.items[new_from:]), "user") if new_from else turns
    else:
        asked, said, cut = read_event_list(attributes[EVENTS])
        new = asked
    result, result_cut = read_loose(attributes.get(RESULT))
    system, system_cut = read_instructions(attributes.get(semconv.SYSTEM_INSTRUCTIONS))
    response = answer(said)
    if system and asked:
        asked = [Turn("system", system), *asked]
    messages, asked_cut = as_messages(asked)
    return Reading(
        name,
        kind="agent",
        input=_question(new),
        output=result if result is not None else response.text,
        messages=messages,
        output_messages=as_messages(said)[0],
        system=system_text(asked) or system,
        tool_calls=tuple(call for turn in (*asked, *said) for call in turn.tool_calls),
        model=scalars.first_name(attributes, "model_name"),
        finish_reasons=response.finish_reasons,
        usage=scalars.usage(
            attributes,
            (f"{_TOTAL}input_tokens",),
            (f"{_TOTAL}output_tokens",),
            (f"{_TOTAL}cache_read.input_tokens",),
            (f"{_TOTAL}cache_write.input_tokens", f"{_TOTAL}cache_creation.input_tokens"),
            (f"{_TOTAL}reasoning.output_tokens", f"{_TOTAL}details.reasoning_tokens"),
        ),
        session_id=session_id(attributes),
        user_id=user_id(attributes),
        reasoning=response.reasoning,
        refusal=response.refusal,
        truncated=cut or result_cut or system_cut or asked_cut,
    )


def _parted(turns: list[Turn]) -> tuple[list[Turn], list[Turn]]:
    """What was sent, and the answer: the assistant's last turn, where the conversation ends with one."""
    if turns and turns[-1].role == "assistant":
        return turns[:-1], turns[-1:]
    return turns, []


def _question(new: Sequence[Turn]) -> str | None:
    """What the user asked in this run: the first of its user turns. Later ones are the framework's (a retry's reason)."""
    first = next((turn for turn in new if turn.role == "user" and turn.text is not None), None)
    return last_user_text([first] if first is not None else new)


def _tool(attributes: Mapping[str, Any]) -> Reading:
    given, given_cut = read_loose(attributes.get(ARGUMENTS))
    result, result_cut = read_loose(attributes.get(RESPONSE))
    return Reading(
        name,
        kind="tool",
        input=given,
        output=result,
        tool_calls=executed(
            scalars.first_name(attributes, semconv.TOOL_NAME),
            given,
            scalars.first_name(attributes, "gen_ai.tool.call.id"),
        ),
        session_id=session_id(attributes),
        user_id=user_id(attributes),
        truncated=given_cut or result_cut,
    )
