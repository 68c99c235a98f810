"""A call of which a dialect holds what was given and what came back whole, each one value → `Reading`."""

from collections.abc import Mapping
from typing import Any

from spangrade import semconv
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.arguments import by_name, executed
from spangrade.samples.langchain import documents_of, read_answered, read_asked
from spangrade.samples.messages import answer, as_messages, last_user_text, outcome, system_text
from spangrade.samples.payloads import Payload, read_request, read_response
from spangrade.samples.reading import RETRIEVAL_KINDS, Reading


def read_exchange(dialect: str, given: Any, result: Any, *, truncated: bool = False) -> Reading:
    """What the parsed request ``given`` and the parsed response ``result`` of a model say, as far as their shapes are known.

    Shapes that are not (a bare text, a prompt's variables, an object as structured output) are input and output as they
    are, and no messages.
    """
    request, response = read_request(given), read_response(result)
    return of_payloads(dialect, given, result, request, response, truncated=truncated)


def of_payloads(
    dialect: str, given: Any, result: Any, request: Payload, response: Payload, *, truncated: bool = False
) -> Reading:
    """`read_exchange` where the caller has read request and response himself."""
    messages, asked_cut = as_messages(request.turns)
    choices, said_cut = as_messages(response.turns)
    said = answer(response.turns)
    tools = given.get("tools") if isinstance(given, Mapping) else None
    return Reading(
        dialect,
        kind="llm",
        input=last_user_text(request.turns) if request.known else given,
        output=said.text if response.known else result,
        messages=messages,
        output_messages=choices,
        system=system_text(request.turns),
        tool_calls=said.tool_calls,
        model=response.model or request.model,
        response_id=response.response_id,
        finish_reasons=said.finish_reasons,
        usage=response.usage,
        tools=scalars.declared_tools(tools) if isinstance(tools, (list, tuple)) else (),
        reasoning=said.reasoning,
        refusal=said.refusal,
        truncated=truncated or asked_cut or said_cut,
    )


def read_run(
    dialect: str, span: SpanData, kind: str, given: Any, result: Any, *, function: bool = False, truncated: bool = False
) -> Reading:
    """A run of anything but a model: messages give the last user turn and the last answer of the assistant (a state of
    LangGraph's, too), other inputs and outputs the question and the answer among them. ``function``: they are a
    function's arguments by name and what it returned, so all of them count. A tool's are its arguments, and its name is
    the span's.
    """
    if kind == "tool":
        called = executed(scalars.first_name(span.attributes, semconv.TOOL_NAME) or span.name, given)
        return Reading(dialect, kind=kind, input=given, output=result, tool_calls=called, truncated=truncated)
    asked, answered = read_asked(given), read_answered(result)
    messages, cut = as_messages(asked.turns)
    return Reading(
        dialect,
        kind=kind,
        input=by_name(given) if function and not asked.turns else asked.value,
        output=result if function and not answered.turns else answered.value,
        messages=messages,
        system=system_text(asked.turns),
        documents=documents_of(result) if kind in RETRIEVAL_KINDS else None,
        tool_calls=outcome(answered.turns).tool_calls if kind in ("agent", "chain") else (),
        truncated=truncated or cut,
    )
