"""Logfire's model clients: ``request_data`` and ``response_data`` as JSON, or ``events``; and its placeholder spans.

Source: logfire 5.4.0 (logfire/_internal/integrations/llm_providers). ``instrument_openai`` and ``instrument_anthropic`` write
version 1 of their attributes thus, version 2 and later as OpenTelemetry GenAI. The Responses API of version 1, and Pydantic AI up
to version 1 of its format, write ``events``: a JSON list of the messages that were events in conventions up to 1.36. A
streamed answer is in a span of its own, which starts and ends when the stream has ended.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spangrade import semconv
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.dialects.base import NOT_A_CALL, KindMark, session_id, user_id
from spangrade.samples.exchanges import of_payloads
from spangrade.samples.jsontext import read_value
from spangrade.samples.message_events import read_event_list
from spangrade.samples.messages import Turn
from spangrade.samples.payloads import Payload, facts, read_request, read_response
from spangrade.samples.reading import Reading
from spangrade.samples.turns import read_message

REQUEST: Final = "request_data"
RESPONSE: Final = "response_data"
EVENTS: Final = "events"
SPAN_TYPE: Final = "logfire.span_type"

name: Final = "logfire"
capture: Final = (
    "logfire.instrument_openai() and instrument_anthropic() always capture it; what their scrubbing takes out is gone"
)
kind_marks: Final[Mapping[str, KindMark]] = {
    SPAN_TYPE: KindMark({"pending_span": NOT_A_CALL}),  # sent when a span starts; the span itself follows
}
content_keys: Final = frozenset({REQUEST, RESPONSE, EVENTS})
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset({REQUEST, RESPONSE, EVENTS})


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    if EVENTS in attributes:
        asked, said, cut = read_event_list(attributes[EVENTS])
        request, response = Payload(asked, known=bool(asked)), Payload(said, known=bool(said))
        given, result = None, None
    else:
        given, given_cut = read_value(attributes.get(REQUEST))
        result, result_cut = read_value(attributes.get(RESPONSE))
        request, response, cut = read_request(given), _response(result), given_cut or result_cut
    found = of_payloads(name, given, result, request, response, truncated=cut)
    if not request.known or not response.known:  # only a model's name, an embedding's usage: no content
        found = replace(
            found,
            input=found.input if request.known else None,
            output=found.output if response.known else None,
        )
    if "anthropic" in (span.scope_name.rpartition(".")[2], attributes.get(semconv.LEGACY_SYSTEM)):
        found = replace(found, tool_calls=tuple(_plain_call(call) for call in found.tool_calls))
    if semconv.REQUEST_MODEL in attributes:
        found = replace(found, model=None)  # `otel_genai` has the model as answered
    noted = scalars.seconds(attributes.get("duration")) if attributes.get(SPAN_TYPE) == "log" else None
    return replace(found, kind=None, duration_s=noted, session_id=session_id(attributes), user_id=user_id(attributes))


def _response(value: Any) -> Payload:
    """``{"message": ..., "usage": ...}``; of a completion ``text``; of some streams ``combined_chunk_content``."""
    found = read_response(value)
    if found.known or not isinstance(value, Mapping):
        return found
    found = facts(value)
    for key in ("text", "combined_chunk_content"):
        text = value.get(key)
        if isinstance(text, str) and (text or value.get("chunk_count")):  # no chunk: nothing was answered
            reason = value.get("finish_reason")
            item = {"content": text, "finish_reason": reason if isinstance(reason, str) else None}
            found.turns, found.known = _assistant(item), True
            break
    return found


def _plain_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without the ``{"input": ...}`` that is put around the arguments of Anthropic's calls."""
    given = call.get("arguments")
    wrapped = isinstance(given, Mapping) and given.keys() == {"input"} and isinstance(given["input"], Mapping)
    return {**call, "arguments": given["input"]} if isinstance(given, Mapping) and wrapped else call


def _assistant(item: Mapping[str, Any]) -> list[Turn]:
    return read_message({"role": "assistant", **item}, "assistant")
