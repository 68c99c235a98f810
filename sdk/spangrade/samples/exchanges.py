"""A model call of which a dialect holds the request and the response whole → `Reading`."""

from collections.abc import Mapping
from typing import Any

from spangrade.samples.messages import answer, as_messages, last_user_text, system_text
from spangrade.samples.payloads import Payload, read_request, read_response
from spangrade.samples.reading import Reading
from spangrade.samples.scalars import declared_tools


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
        tools=declared_tools(tools) if isinstance(tools, (list, tuple)) else (),
        reasoning=said.reasoning,
        refusal=said.refusal,
        truncated=truncated or asked_cut or said_cut,
    )
