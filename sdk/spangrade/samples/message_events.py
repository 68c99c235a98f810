"""Messages as events, as the GenAI conventions had them up to 1.36: ``gen_ai.user.message``, ``gen_ai.choice`` and kin.

An event is its name and its body: the attributes of a span event, the fields of a log record, or an element of a list in
an attribute (``event.name`` beside the fields, as Logfire and Pydantic AI wrote it). Source: open-telemetry/semantic-conventions
v1.36, docs/gen-ai/gen-ai-events.md. Read besides: the body as JSON text under ``body`` (Semantic Kernel's log records) or
``gen_ai.event.content`` (Azure AI), Gemini's content with its own role (Google ADK), an answer in pieces (ADK, streamed).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from spangrade.samples import scalars
from spangrade.samples.jsontext import looks_json, read_items, read_loose
from spangrade.samples.messages import Turn
from spangrade.samples.turns import read_message

CHOICE: Final = "gen_ai.choice"
PROMPT: Final = "gen_ai.prompt"  # Semantic Kernel: the prompt of a text completion
UNKNOWN: Final = "gen_ai.unknown"  # Logfire: an item of the Responses API that no event is for; under ``data``
ROLES: Final[Mapping[str, str]] = {
    "gen_ai.system.message": "system",
    "gen_ai.developer.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    PROMPT: "user",
    CHOICE: "assistant",
    UNKNOWN: "unknown",
}
WITHHELD: Final = "<elided>"  # Google ADK, in place of a content that may not be captured
WHOLE: Final = ("body", "gen_ai.event.content")
_MESSAGE: Final = ("content", "tool_calls", "role", "refusal")
_PART_KEYS: Final = frozenset(
    {"type", "text", "parts", "toolUse", "toolResult", "functionCall", "functionResponse", "function_call", "image"}
    | {"function_response", "inlineData", "inline_data", "fileData", "file_data", "reasoningContent", "document"}
)


def read_events(events: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[list[Turn], list[Turn]]:
    """``(asked, said)``: the turns of the messages in their order, and of the choices. Events of other names are skipped."""
    asked: list[Turn] = []
    choices: list[tuple[int, list[Turn]]] = []
    for name, body in events:
        role = ROLES.get(name)
        if role is None:
            continue
        plain = _parsed(body)
        if name == CHOICE:
            choices.append((scalars.count(plain.get("index")) or 0, _choice(plain)))
        else:
            asked += _message(role, plain)
    choices.sort(key=lambda choice: choice[0])  # in any order they may arrive; those of one index stay in theirs
    return asked, _joined(choices)


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
    plain = dict(body)
    for key in WHOLE:
        whole = _structured(plain.pop(key, None))
        if isinstance(whole, Mapping):
            plain.update(whole)
        elif whole is not None:
            plain.setdefault("content", whole)
    for key in ("message", "tool_calls", "data"):
        if key in plain:
            plain[key] = _structured(plain[key])
    if "content" in plain:
        plain["content"] = content_of(plain["content"])
    return plain


def _structured(value: Any) -> Any:
    """An object or a list where JSON text is one; of an object that was cut, its whole members."""
    if not isinstance(value, str) or not looks_json(value):
        return value
    found = read_items(value)
    if found.truncated:
        return found.items or found.tail
    return found.items if value.lstrip().startswith("[") and found.items != [value] else found.items[0]


def content_of(value: Any) -> Any:
    """The content of a message: parts where JSON text is some, since what a user wrote may be JSON of his own."""
    if value == WITHHELD:
        return None
    if isinstance(value, str) and looks_json(value):
        parsed = read_loose(value)[0]
        parts = [parsed] if isinstance(parsed, Mapping) else parsed
        if isinstance(parts, list) and parts and all(isinstance(p, Mapping) and _PART_KEYS & p.keys() for p in parts):
            return parsed
    return value


def _choice(plain: dict[str, Any]) -> list[Turn]:
    message = plain.pop("message", None)
    inner: dict[str, Any] = dict(message) if isinstance(message, Mapping) else {"content": message}
    if inner.get("content") is None and "text" in inner:  # a text completion of Semantic Kernel's
        inner["content"] = inner["text"]
    inner["content"] = content_of(inner.get("content"))
    beside = {key: plain[key] for key in _MESSAGE if plain.get(key) is not None}
    said = {**beside, **{key: value for key, value in inner.items() if value is not None}}
    turns = _message("assistant", {**said, "role": said.get("role") or "assistant"})
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
    content = body.get("content")
    if isinstance(content, Mapping) and "parts" in content:  # Gemini's: it knows its role better than the event's name
        body = {**body, "content": content["parts"], "role": content.get("role") or body.get("role")}
    if role == "tool":
        body = {**body, "role": "tool", "tool_call_id": body.get("tool_call_id") or body.get("id")}
        body["content"] = content if _may_be_parts(content) else scalars.text(content)  # what a tool returned
    return read_message({"role": role, **{key: value for key, value in body.items() if value is not None}}, role)


def _may_be_parts(content: Any) -> bool:
    """Whether a content is text or parts, and no value of somebody's own."""
    if isinstance(content, Mapping):
        return bool(_PART_KEYS & content.keys())
    if isinstance(content, (list, tuple)):
        return all(
            isinstance(item, str) or (isinstance(item, Mapping) and _PART_KEYS & item.keys()) for item in content
        )
    return content is None or isinstance(content, str)


def _joined(choices: list[tuple[int, list[Turn]]]) -> list[Turn]:
    """The choices' turns. A choice without an end, followed by one of the same index, was a piece of it."""
    said: list[Turn] = []
    unended: int | None = None
    for index, turns in choices:
        if unended == index and said and len(turns) == 1:
            said[-1] = _one([said[-1], turns[0]], between="")
        else:
            said += turns
        unended = index if turns and turns[-1].finish_reason is None else None
    return said


def _one(turns: list[Turn], between: str = "\n") -> Turn:
    """Several turns as one message."""
    if len(turns) == 1:
        return turns[0]
    texts = [turn.text for turn in turns if turn.text is not None]
    thoughts = [turn.reasoning for turn in turns if turn.reasoning]
    return Turn(
        role="assistant",
        text=between.join(texts) if texts else None,
        tool_calls=[call for turn in turns for call in turn.tool_calls],
        reasoning=between.join(thoughts) or None,
        refusal=any(turn.refusal for turn in turns),
        finish_reason=next((turn.finish_reason for turn in turns if turn.finish_reason), None),
    )
