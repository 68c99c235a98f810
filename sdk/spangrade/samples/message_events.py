"""Messages as events, as the GenAI conventions had them up to 1.36: ``gen_ai.user.message``, ``gen_ai.choice`` and kin.

An event is its name and its body: the attributes of a span event, the fields of a log record, or an element of a list in
an attribute (``event.name`` beside the fields, as Logfire and Pydantic AI wrote it). Source: open-telemetry/semantic-conventions
v1.36, docs/gen-ai/gen-ai-events.md.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from spangrade.samples import scalars
from spangrade.samples.jsontext import read_items, read_loose
from spangrade.samples.messages import Turn
from spangrade.samples.turns import read_message

CHOICE: Final = "gen_ai.choice"
UNKNOWN: Final = "gen_ai.unknown"  # Logfire: an item of the Responses API that no event is for; under ``data``
ROLES: Final[Mapping[str, str]] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    CHOICE: "assistant",
    UNKNOWN: "unknown",
}
_STRUCTURED: Final = ("content", "message", "tool_calls", "data")


def read_events(events: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[list[Turn], list[Turn]]:
    """``(asked, said)``: the turns of the messages in their order, and of the choices. Events of other names are skipped."""
    asked: list[Turn] = []
    said: list[Turn] = []
    for name, body in events:
        role = ROLES.get(name)
        if role is None:
            continue
        if name == CHOICE:
            said += _choice(body)
        else:
            asked += _message(role, _parsed(body))
    return asked, said


def read_event_list(value: Any) -> tuple[list[Turn], list[Turn], bool]:
    """``(asked, said, truncated)`` of an attribute that holds a list of events, each with its name under ``event.name``.

    Where no choice is among them (Logfire on the Responses API, a whole conversation), the assistant's turns at the very
    end are what was said: one message.
    """
    found = read_items(value)
    items = [item for item in found.items if isinstance(item, Mapping)]
    if found.tail is not None and isinstance(found.tail, Mapping):
        items.append(found.tail)
    asked, said = read_events((str(item.get("event.name")), item) for item in items)
    if not said:
        end = len(asked)
        while end and asked[end - 1].role == "assistant":
            end -= 1
        asked, said = asked[:end], [_one(asked[end:])] if asked[end:] else []
    return asked, said, found.truncated


def _parsed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body with its structured fields read: as attributes they are JSON text."""
    return {key: read_loose(value)[0] if key in _STRUCTURED else value for key, value in body.items()}


def _choice(body: Mapping[str, Any]) -> list[Turn]:
    plain = _parsed(body)
    message = plain.pop("message", None)
    inner: dict[str, Any] = dict(message) if isinstance(message, Mapping) else {"content": message}
    turns = _message("assistant", {**{k: v for k, v in plain.items() if k in ("content", "tool_calls")}, **inner})
    reason = scalars.name(plain.get("finish_reason"))
    for turn in turns:
        turn.finish_reason = turn.finish_reason or reason
    return turns


def _message(role: str, body: Mapping[str, Any]) -> list[Turn]:
    data = body.get("data")
    if isinstance(data, Mapping):
        role = scalars.name(body.get("role")) or role
        body = {key: value for key, value in data.items() if key != "role"}
        return read_message({"role": role, "content": [body]}, role)
    if role == "tool":
        body = {**body, "role": "tool", "tool_call_id": body.get("tool_call_id") or body.get("id")}
    return read_message({"role": role, **{key: value for key, value in body.items() if value is not None}}, role)


def _one(turns: list[Turn]) -> Turn:
    """Several turns as one message."""
    if len(turns) == 1:
        return turns[0]
    texts = [turn.text for turn in turns if turn.text is not None]
    thoughts = [turn.reasoning for turn in turns if turn.reasoning]
    return Turn(
        role="assistant",
        text="\n".join(texts) if texts else None,
        tool_calls=[call for turn in turns for call in turn.tool_calls],
        reasoning="\n".join(thoughts) or None,
        refusal=any(turn.refusal for turn in turns),
        finish_reason=next((turn.finish_reason for turn in turns if turn.finish_reason), None),
    )
