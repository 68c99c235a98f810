"""The parts of a message, in any dialect's spelling → text, tool calls, tool results, thoughts.

Part types of OpenTelemetry GenAI (text, reasoning, tool_call, tool_call_response, blob, file, uri, compaction,
generic), Pydantic AI (thinking), OpenLLMetry (refusal), OpenAI chat and Responses (image_url, input_image, output_text,
function_call, ...), Anthropic (tool_use, tool_result), Gemini (parts without a type). Media become a short description
such as ``[image: image/png, 12345 bytes]`` (see `attachments`). What is not known is named by its type.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from spangrade.samples import attachments, scalars
from spangrade.samples.jsontext import read_loose
from spangrade.samples.messages import Turn

_TEXT: Final = frozenset({"text", "input_text", "output_text", "summary_text", "markdown"})
_THOUGHT: Final = frozenset({"reasoning", "thinking", "redacted_thinking", "reasoning_text"})
_CALL: Final = frozenset({"tool_call", "tool-call", "tool_use", "function_call", "server_tool_call", "server_tool_use"})
_RESULT: Final = frozenset(
    {"tool_call_response", "tool-result", "tool_result", "function_call_output", "server_tool_call_response"}
)
_FUNCTIONS: Final = dict.fromkeys(("function", "functionCall", "function_call", "server_tool_call")).keys()
_WORD: Final = re.compile(r"[a-z0-9]+")
MAX_PARTS: Final = 2_000
_MAX_DEPTH: Final = 4


def stands_alone(item: Mapping[str, Any]) -> bool:
    """Whether this is an item of the Responses API that stands where a message would: a call, a result, a thought."""
    kind = item.get("type")
    return isinstance(kind, str) and (kind in _CALL or kind in _RESULT or kind in _THOUGHT)


def text_of(content: Any, depth: int = 0) -> str | None:
    """Text of a content value: text, parts, or anything else as JSON. None where there is none."""
    if content is None or isinstance(content, str):
        return content
    if depth > _MAX_DEPTH:
        return None
    reader = Parts()
    reader.content(content, depth)
    return reader.joined()


def tool_call(value: Any) -> dict[str, Any] | None:
    """``{"id"?, "name", "arguments"}`` of a tool call in any spelling; arguments parsed where they are JSON."""
    if type(value) is dict:
        call_id, function = value.get("id"), value.get("function")
        holder = function if type(function) is dict and "name" not in value else value
        name, given = holder.get("name"), holder.get("arguments")
        usual = holder is function or _FUNCTIONS.isdisjoint(value)
        if usual and type(name) is str and type(call_id) is str and given is not None:
            arguments = read_loose(given)[0]
            return {"id": scalars.name(call_id) or "", "name": scalars.name(name) or "", "arguments": arguments}
    elif not isinstance(value, Mapping):
        return None
    inner = value
    for key in _FUNCTIONS:
        held = value.get(key)
        if held is not None and isinstance(held, Mapping):
            inner = held
            break
    call: dict[str, Any] = {}
    call_id = scalars.first_name(value, "id", "call_id", "tool_call_id", "toolCallId") or scalars.first_name(
        inner, "id"
    )
    if call_id is not None:
        call["id"] = call_id
    call["name"] = scalars.first_name(inner, "name") or scalars.first_name(value, "name", "toolName", "tool_name") or ""
    for holder in (inner, value):
        for key in ("arguments", "args", "input", "parameters"):
            if holder.get(key) is not None:
                call["arguments"] = read_loose(holder[key])[0]
                return call
    return call


class Parts:
    """Collects the parts of one message. ``texts`` are its words and media marks, ``results`` turns of their own."""

    __slots__ = ("calls", "left", "media", "refusal", "results", "texts", "thoughts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[dict[str, Any]] = []
        self.results: list[Turn] = []
        self.thoughts: list[str] = []
        self.refusal = False
        self.media: attachments.Mark | None = None
        self.left = MAX_PARTS

    def joined(self) -> str | None:
        return "\n".join(self.texts) if self.texts else None

    def content(self, content: Any, depth: int = 0) -> None:
        if isinstance(content, str):
            self.say(content)
        elif isinstance(content, (list, tuple)):
            for part in content:
                self.left -= 1
                if self.left < 0:
                    self.say("[more parts cut]")
                    return
                if type(part) is dict:
                    self.part(part, depth)
                elif isinstance(part, str):
                    self.say(part)
                elif isinstance(part, Mapping):
                    self.part(part, depth)
        elif isinstance(content, Mapping):
            self.part(content, depth)
        elif content is not None:
            self.say(scalars.text(content) or "")

    def say(self, text: str) -> None:
        self.media = None
        self.texts.append(text)

    def show(self, name: str, details: str = "") -> None:
        """A media mark, folded into the one before it when that is of the same kind."""
        if self.media is not None and self.media.name == name:
            self.texts[-1] = self.media.add(details)
        else:
            self.media = attachments.Mark(name)
            self.texts.append(self.media.add(details))

    def part(self, part: Mapping[str, Any], depth: int = 0) -> None:
        kind = scalars.name(part.get("type")) or scalars.name(part.get("kind"))  # Pydantic AI's first format
        if kind is None:
            self.untyped(part, depth)
        elif kind in _TEXT:
            self.some(_first(part, "content", "text"))
        elif kind in _THOUGHT:
            thought = text_of(_first(part, "content", "text", "thinking", "summary"), depth + 1)
            if thought:
                self.thoughts.append(thought)
        elif kind in _CALL:
            call = tool_call(part)
            if call is not None:
                self.calls.append(call)
        elif kind in _RESULT:
            self.result(part, depth)
        elif kind == "refusal":
            self.some(_first(part, "content", "refusal", "text"))
            self.refusal = True
        elif kind == "message" and depth < _MAX_DEPTH:  # an item of the Responses API
            self.content(part.get("content"), depth + 1)
        elif kind == "compaction":
            self.some(part.get("content"))
        else:
            self.medium_or_other(part, kind)

    def some(self, value: Any) -> None:
        text = scalars.text(value)
        if text is not None:
            self.say(text)

    def untyped(self, part: Mapping[str, Any], depth: int) -> None:
        """Gemini's parts have no type; of others, the text they hold."""
        if isinstance(part.get("functionCall"), Mapping) or isinstance(part.get("function_call"), Mapping):
            call = tool_call(part)
            if call is not None:
                self.calls.append(call)
            return
        answer = _first(part, "functionResponse", "function_response")
        if isinstance(answer, Mapping):
            self.result(answer, depth)
            return
        for key in ("inlineData", "inline_data", "fileData", "file_data"):
            if isinstance(part.get(key), Mapping):
                self.show(attachments.medium_of(part[key], "file"), attachments.details_of(part[key]))
                return
        value = _first(part, "text", "content")
        if part.get("thought") is True and isinstance(value, str):
            self.thoughts.append(value)
        elif isinstance(value, str):
            self.say(value)

    def result(self, part: Mapping[str, Any], depth: int) -> None:
        value = _first(part, "response", "result", "output", "content", "server_tool_call_response")
        if isinstance(value, Mapping) and value.keys() == {
            "type",
            "value",
        }:  # Vercel's: text, json, error-text, content
            value = value["value"]
        text = text_of(value, depth + 1) if isinstance(value, (list, tuple)) else None
        self.results.append(
            Turn(
                role="tool",
                text=text if text is not None else (scalars.text(value) or ""),
                tool_call_id=scalars.first_name(part, "id", "tool_call_id", "tool_use_id", "toolCallId", "call_id"),
                name=scalars.first_name(part, "name", "toolName"),
            )
        )

    def medium_or_other(self, part: Mapping[str, Any], kind: str) -> None:
        words = _WORD.findall(kind.lower())  # image_url, input_image
        for medium in attachments.MEDIA:
            if medium in words:
                self.show(attachments.medium_of(part, medium), attachments.details_of(part))
                break
        else:
            value = part.get("content")
            if isinstance(value, str):
                self.say(value)
            else:
                self.show(scalars.first_name(part, "generic_type") or kind[:64])
        transcript = _first(part, "transcript", "audio.transcript")
        if isinstance(transcript, str):
            self.say(transcript)


def _first(part: Mapping[str, Any], *keys: str) -> Any:
    for key in keys:
        if part.get(key) is not None:
            return part[key]
    return None


NOTHING: Final = Parts()  # never written to
