"""Google's Agent Development Kit: ``gcp.vertex.agent.*``.

Source: google-adk 2.13.0, telemetry/tracing.py. Its schema 1 (all there was before 2.13, since then with
ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=1) has the model's request and response, and a tool's arguments and response, as JSON of
Gemini's types in attributes of its own, ``{}`` where they may not be captured; schema 2 is OpenTelemetry GenAI, read by
`otel_genai`. Under both the model's messages may come as log records of the older conventions, read by `genai_events`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spangrade import semconv
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.dialects.base import NOT_A_CALL, KindMark
from spangrade.samples.exchanges import of_payloads
from spangrade.samples.jsontext import read_items, read_value
from spangrade.samples.payloads import Payload, read_request, read_response
from spangrade.samples.reading import Reading

SCOPE: Final = "gcp.vertex.agent"
REQUEST: Final = "gcp.vertex.agent.llm_request"
RESPONSE: Final = "gcp.vertex.agent.llm_response"
ARGUMENTS: Final = "gcp.vertex.agent.tool_call_args"
TOOL_RESPONSE: Final = "gcp.vertex.agent.tool_response"
SESSION: Final = "gcp.vertex.agent.session_id"
_UNTOLD: Final = ("<not specified>", "<not serializable>", "N/A")

name: Final = "google_adk"
capture: Final = (
    "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY in the application's environment (its schema 1: it is on"
    " unless ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=false)"
)
kind_marks: Final[Mapping[str, KindMark]] = {
    REQUEST: KindMark(present="llm"),
    ARGUMENTS: KindMark(present="tool"),
    # It sums up the tool calls of one turn, each of which has a span of its own.
    semconv.TOOL_NAME: KindMark({"(merged tools)": NOT_A_CALL}),
}
content_keys: Final = frozenset({REQUEST, RESPONSE, ARGUMENTS, TOOL_RESPONSE, "gcp.vertex.agent.data"})
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset({REQUEST, RESPONSE, ARGUMENTS, TOOL_RESPONSE, SESSION, semconv.OPERATION_NAME})


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading | None:
    attributes = span.attributes
    if ARGUMENTS in attributes or TOOL_RESPONSE in attributes:
        return _tool(attributes)
    if REQUEST in attributes or RESPONSE in attributes:
        return _model(attributes)
    return Reading(name) if span.scope_name == SCOPE else None


def _model(attributes: Mapping[str, Any]) -> Reading:
    given, given_cut = _object(attributes.get(REQUEST))
    result, result_cut = _object(attributes.get(RESPONSE))
    held = given.get("config")
    config: Mapping[str, Any] = held if isinstance(held, Mapping) else {}
    request = read_request({**config, **given})
    # A response of ADK's is one of the candidates of Gemini's, and beside it stands what is said of the whole.
    response = read_response({**result, "candidates": [result]} if "content" in result else result)
    if not result:
        response = Payload()
    return replace(
        of_payloads(name, None, None, request, response, truncated=given_cut or result_cut),
        tools=_declared(config.get("tools")),
        session_id=scalars.first_name(attributes, SESSION),
    )


def _tool(attributes: Mapping[str, Any]) -> Reading:
    arguments, arguments_cut = _told(attributes.get(ARGUMENTS))
    result, result_cut = _told(attributes.get(TOOL_RESPONSE))
    call_id = scalars.first_name(attributes, "gen_ai.tool.call.id")
    call = {
        "id": call_id if call_id not in _UNTOLD else None,
        "name": scalars.first_name(attributes, semconv.TOOL_NAME),
        "arguments": arguments,
    }
    return Reading(
        name,
        kind="tool",
        input=arguments,
        output=result,
        tool_calls=({key: value for key, value in call.items() if value is not None},) if call["name"] else (),
        session_id=scalars.first_name(attributes, SESSION),
        truncated=arguments_cut or result_cut,
    )


def _declared(tools: Any) -> tuple[dict[str, Any], ...]:
    """Gemini's tools: each holds several functions, or is one of its own."""
    found: list[Any] = []
    for tool in tools[: scalars.MAX_TOOLS] if isinstance(tools, (list, tuple)) else ():
        functions = tool.get("function_declarations") if isinstance(tool, Mapping) else None
        found += functions if isinstance(functions, (list, tuple)) else [tool]
    return scalars.declared_tools(found)


def _object(value: Any) -> tuple[Mapping[str, Any], bool]:
    """``(object, truncated)``; of one that was cut its whole members."""
    parsed, cut = read_value(value)
    held = read_items(value).tail if cut else parsed
    return (held if isinstance(held, Mapping) else {}), cut


def _told(value: Any) -> tuple[Any, bool]:
    """``(value, truncated)`` of a tool's side; None where it is not told or may not be captured."""
    parsed, cut = read_value(value)
    if parsed in ({}, *_UNTOLD) or parsed == {"result": "<not specified>"}:
        return None, cut
    return parsed, cut
