"""LiveKit Agents: what was said to and by a voice agent, under ``lk.*`` beside OpenTelemetry GenAI. From its documentation and
from how others read it (MLflow, Langfuse); not run.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.arguments import executed
from spangrade.samples.dialects.base import KindMark, session_id, user_id
from spangrade.samples.jsontext import read_loose, read_value
from spangrade.samples.messages import as_messages, last_user_text, system_text
from spangrade.samples.payloads import read_request
from spangrade.samples.reading import Reading

CHAT: Final = "lk.chat_ctx"
ASKED: Final = "lk.user_input"
TEXT: Final = "lk.response.text"
TOOL: Final = "lk.function_tool.name"
ARGUMENTS: Final = "lk.function_tool.args"
RESULT: Final = "lk.function_tool.output"

name: Final = "livekit"
capture: Final = "it is on in LiveKit's own telemetry"
kind_marks: Final[Mapping[str, KindMark]] = {
    TOOL: KindMark(present="tool"),
    CHAT: KindMark(present="llm"),
    ASKED: KindMark(present="agent"),
    TEXT: KindMark(present="llm"),
}
content_keys: Final[frozenset[str]] = frozenset()
content_prefixes: Final = ("lk.",)
_CLAIMS: Final = frozenset(kind_marks)


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    if TOOL in attributes:
        given, cut = read_loose(attributes.get(ARGUMENTS))
        called = executed(
            scalars.first_name(attributes, TOOL), given, scalars.first_name(attributes, "lk.function_tool.id")
        )
        result = read_loose(attributes.get(RESULT))[0]
        return Reading(name, kind="tool", input=given, output=result, tool_calls=called, truncated=cut)
    context, cut = read_value(attributes.get(CHAT))
    items = context.get("items", context.get("messages")) if isinstance(context, Mapping) else context
    turns = read_request(items).turns
    messages, long = as_messages(turns)
    question = scalars.text(attributes.get(ASKED))
    return Reading(
        name,
        input=question if question is not None else last_user_text(turns),
        output=scalars.text(attributes.get(TEXT)),
        messages=messages,
        system=system_text(turns) or scalars.text(attributes.get("lk.instructions")),
        session_id=session_id(attributes) or scalars.first_name(attributes, "lk.room_name"),
        user_id=user_id(attributes),
        truncated=cut or long,
    )
