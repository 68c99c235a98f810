"""Claude Code and the Claude Agent SDK: one span a prompt, with model requests and tools below it. From its documentation
(https://code.claude.com/docs/en/monitoring-usage) and from how MLflow reads it; not run.

Content is ``<REDACTED>`` unless the user opts in. Tokens of the cache stand beside the input's.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.arguments import executed
from spangrade.samples.dialects.base import KindMark, session_id, user_id
from spangrade.samples.jsontext import read_loose
from spangrade.samples.payloads import facts
from spangrade.samples.reading import Reading

TYPE: Final = "span.type"
WITHHELD: Final = "<REDACTED>"
KINDS: Final[Mapping[str, str]] = {
    "claude_code.interaction": "agent",
    "claude_code.llm_request": "llm",
    "claude_code.tool": "tool",
}
_ASKED: Final = ("user_prompt", "new_context")
_ANSWERED: Final = "response.model_output"
_DETAILS: Final = ("full_command", "file_path", "skill_name", "subagent_type")

name: Final = "claude_code"
capture: Final = "set OTEL_LOG_USER_PROMPTS=1, OTEL_LOG_TOOL_DETAILS=1 and OTEL_LOG_TOOL_CONTENT=1 in its environment"
kind_marks: Final[Mapping[str, KindMark]] = {TYPE: KindMark(KINDS)}
content_keys: Final = frozenset({*_ASKED, _ANSWERED, "tool_input", "full_command"})
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset(kind_marks)


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading | None:
    attributes = span.attributes
    kind = KINDS.get((scalars.first_name(attributes, TYPE) or "").lower())
    if kind is None:
        return None
    session, user = session_id(attributes), user_id(attributes)
    if kind == "tool":
        given = _content(attributes, "tool_input")
        if given is None:
            given = {key: value for key in _DETAILS if (value := _content(attributes, key)) is not None} or None
        outcome = next((e.attributes for e in span.events if e.name == "tool.output"), {})
        result = next((found for key in ("output", "content") if (found := _content(outcome, key)) is not None), None)
        called = executed(scalars.first_name(attributes, "tool_name", "tool.name"), given)
        return Reading(name, kind=kind, input=given, output=result, tool_calls=called, session_id=session, user_id=user)
    counts = {
        "input_tokens": attributes.get("input_tokens"),
        "output_tokens": attributes.get("output_tokens"),
        "cache_read_input_tokens": attributes.get("cache_read_tokens"),
        "cache_creation_input_tokens": attributes.get("cache_creation_tokens"),
    }
    told = {key: value for key, value in counts.items() if value is not None}
    return Reading(
        name,
        kind=kind,
        input=next((found for key in _ASKED if (found := _content(attributes, key)) is not None), None),
        output=_content(attributes, _ANSWERED),
        model=scalars.first_name(attributes, "model"),
        usage=facts({"usage": told}).usage if kind == "llm" else {},
        session_id=session,
        user_id=user,
    )


def _content(attributes: Mapping[str, Any], key: str) -> Any:
    value = attributes.get(key)
    return None if value == WITHHELD else read_loose(value)[0]
