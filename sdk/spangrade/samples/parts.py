"""One message of any dialect → `Turn`: content as text, as parts, or as the items of the Responses API.

Part types of OpenTelemetry GenAI (text, reasoning, tool_call, tool_call_response, blob, file, uri, compaction,
generic), Pydantic AI (thinking), OpenLLMetry (refusal), OpenAI chat and Responses (image_url, input_image, output_text,
function_call, ...), Anthropic (tool_use, tool_result), Gemini (parts without a type). Media become a short description
such as ``[image]``; equal neighbours become one, ``[image x2]``. What is not known is named by its type.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from spangrade.samples import scalars
from spangrade.samples.jsontext import Items, read_loose
from spangrade.samples.messages import Turn, is_judge_text, normal_role, split_thinking

_TEXT: Final = frozenset({"text", "input_text", "output_text", "summary_text", "markdown"})
_THOUGHT: Final = frozenset({"reasoning", "thinking", "redacted_thinking", "reasoning_text"})
_CALL: Final = frozenset({"tool_call", "tool-call", "tool_use", "function_call", "server_tool_call", "server_tool_use"})
_RESULT: Final = frozenset(
    {"tool_call_response", "tool-result", "tool_result", "function_call_output", "server_tool_call_response"}
)
_MEDIA: Final = ("image", "audio", "video", "document", "file", "media", "blob", "uri")
_WORD: Final = re.compile(r"[a-z0-9]+")
_SIMPLE: Final = frozenset({"role", "parts", "content", "finish_reason", "name"})
_MAX_PARTS: Final = 2_000
_MAX_DEPTH: Final = 4


def read_turns(found: Items, default_role: str) -> list[Turn]:
    """The turns of a message list, the broken one at its end included as far as it is good for anything.

    Of a message that was cut, whole texts and tool calls are kept, half texts are not; only a system text is kept
    as far as it goes, because by its beginning a judge's call is known (and it is not graded).
    """
    turns = [turn for item in found.items for turn in read_message(item, default_role)]
    if found.half is not None:
        halves = read_message(found.half, default_role)
        lost = not turns and isinstance(found.half, Mapping) and "role" not in found.half  # its role stood behind the cut
        if lost and halves and is_judge_text(halves[0].text):
            halves[0].role = "system"
        if halves and halves[0].role == "system":
            return turns + halves
    if found.tail is not None:
        turns += [turn for turn in read_message(found.tail, default_role) if turn.text or turn.tool_calls]
    return turns


def read_message(item: Any, default_role: str) -> list[Turn]:
    """The turns of one message: usually one; tool results are turns of their own, before what else it says."""
    if isinstance(item, str):
        return [_finish(_Reader(), {}, default_role, item)]
    if not isinstance(item, Mapping):
        return []
    if type(item) is dict and _SIMPLE.issuperset(item):
        plain = _simple_text(item)
        if plain is not None:
            return [_finish(_NOTHING, item, default_role, plain)]
    kwargs = item.get("kwargs")
    if isinstance(kwargs, Mapping) and "content" in kwargs:  # LangChain's serialised message
        item = kwargs
    reader = _Reader()
    if "role" not in item:
        kind = item.get("type")
        if isinstance(kind, str) and (kind in _CALL or kind in _RESULT or kind in _THOUGHT):
            reader.part(item)  # an item of the Responses API stands where a message would
            return reader.results or [_finish(reader, item, default_role, None)]
    for key in ("parts", "content", "contents"):
        if item.get(key) is not None:
            reader.content(item[key])
            break
    for key in ("tool_calls", "toolCalls"):
        calls = item.get(key)
        if isinstance(calls, (list, tuple)):
            reader.calls += [call for call in map(tool_call, calls[:_MAX_PARTS]) if call is not None]
            break
    refusal = scalars.text(item.get("refusal"))
    if refusal:
        reader.texts.append(refusal)
        reader.refusal = True
    for key in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(item.get(key), str):
            reader.thoughts.append(item[key])
    fallback = "assistant" if reader.calls and default_role == "unknown" else default_role
    if reader.results and not reader.texts and not reader.calls:
        return reader.results
    return [*reader.results, _finish(reader, item, fallback, None)]


def _simple_text(item: dict[str, Any]) -> str | None:
    """The text of a message of nothing else: the usual case, read without collecting parts."""
    parts = item.get("parts", item.get("content"))
    if type(parts) is str:
        return parts
    if type(parts) not in (list, tuple) or not parts:
        return None
    texts = [part["content"] for part in parts if type(part) is dict and part.get("type") == "text" and len(part) == 2
             and type(part.get("content")) is str]  # fmt: skip
    return "\n".join(texts) if len(texts) == len(parts) else None


def _finish(reader: "_Reader", item: Mapping[str, Any], default_role: str, text: str | None) -> Turn:
    call_id = scalars.first_name(item, "tool_call_id", "toolCallId", "call_id")
    role = normal_role(scalars.name(item.get("role")))
    thoughts = reader.thoughts
    if role is None:
        kind = scalars.name(item.get("type"))  # LangChain
        guessed = "tool" if call_id and not reader.calls else default_role
        role = (normal_role(kind) if kind in ("human", "ai", "system", "tool") else None) or guessed
    said = text if text is not None else reader.joined()
    if role == "assistant" and said is not None:
        said, thought = split_thinking(said)
        if thought:
            thoughts = [*thoughts, thought]
    return Turn(
        role=role,
        text=said,
        tool_calls=list(reader.calls),
        tool_call_id=call_id if role == "tool" else None,
        name=scalars.name(item.get("name")),
        reasoning=("\n".join(t for t in thoughts if t) or None) if thoughts else None,
        refusal=reader.refusal,
        finish_reason=scalars.first_name(item, "finish_reason", "finishReason", "stop_reason"),
    )


def text_of(content: Any, depth: int = 0) -> str | None:
    """Text of a content value: text, parts, or anything else as JSON. None where there is none."""
    if content is None or isinstance(content, str):
        return content
    if depth > _MAX_DEPTH:
        return None
    reader = _Reader()
    reader.content(content, depth)
    return reader.joined()


def tool_call(value: Any) -> dict[str, Any] | None:
    """``{"id"?, "name", "arguments"}`` of a tool call in any spelling; arguments parsed where they are JSON."""
    if not isinstance(value, Mapping):
        return None
    inner = next((value[k] for k in ("function", "functionCall", "function_call", "server_tool_call")
                  if isinstance(value.get(k), Mapping)), value)  # fmt: skip
    call: dict[str, Any] = {}
    call_id = scalars.first_name(value, "id", "call_id", "tool_call_id", "toolCallId")
    if call_id is not None:
        call["id"] = call_id
    call["name"] = scalars.first_name(inner, "name") or scalars.first_name(value, "name", "toolName", "tool_name") or ""
    for holder in (inner, value):
        for key in ("arguments", "args", "input", "parameters"):
            if holder.get(key) is not None:
                call["arguments"] = read_loose(holder[key])[0]
                return call
    return call


class _Reader:
    """Collects the parts of one message."""

    __slots__ = ("calls", "left", "media", "refusal", "results", "texts", "thoughts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[dict[str, Any]] = []
        self.results: list[Turn] = []
        self.thoughts: list[str] = []
        self.refusal = False
        self.media: tuple[str, int] | None = None
        self.left = _MAX_PARTS

    def joined(self) -> str | None:
        return "\n".join(self.texts) if self.texts else None

    def content(self, content: Any, depth: int = 0) -> None:
        if isinstance(content, str):
            self.say(content)
        elif isinstance(content, Mapping):
            self.part(content, depth)
        elif isinstance(content, (list, tuple)):
            for part in content:
                self.left -= 1
                if self.left < 0:
                    self.say("[more parts cut]")
                    return
                if isinstance(part, str):
                    self.say(part)
                elif isinstance(part, Mapping):
                    self.part(part, depth)
        elif content is not None:
            self.say(scalars.text(content) or "")

    def say(self, text: str) -> None:
        self.media = None
        self.texts.append(text)

    def show(self, name: str) -> None:
        """A media mark, folded into the one before it when that is the same."""
        if self.media is not None and self.media[0] == name:
            self.media = (name, self.media[1] + 1)
            self.texts[-1] = f"[{name} x{self.media[1]}]"
        else:
            self.media = (name, 1)
            self.texts.append(f"[{name}]")

    def part(self, part: Mapping[str, Any], depth: int = 0) -> None:
        kind = scalars.name(part.get("type"))
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
                self.show(_medium(part[key], "file"))
                return
        value = _first(part, "text", "content")
        if part.get("thought") is True and isinstance(value, str):
            self.thoughts.append(value)
        elif isinstance(value, str):
            self.say(value)

    def result(self, part: Mapping[str, Any], depth: int) -> None:
        value = _first(part, "response", "result", "output", "content", "server_tool_call_response")
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
        for medium in _MEDIA:
            if medium in words:
                self.show(_medium(part, medium))
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


def _medium(part: Mapping[str, Any], fallback: str) -> str:
    """image, audio, video, document or file."""
    modality = scalars.name(part.get("modality"))
    if modality is not None:
        return modality[:32].lower()
    if fallback in ("image", "audio", "video", "document"):
        return fallback
    mime = scalars.first_name(part, "mime_type", "mimeType", "mediaType", "media_type") or ""
    major = mime.partition("/")[0].lower()
    if major in ("image", "audio", "video"):
        return major
    return "document" if mime in ("application/pdf", "text/plain") else "file"


def _first(part: Mapping[str, Any], *keys: str) -> Any:
    for key in keys:
        if part.get(key) is not None:
            return part[key]
    return None


_NOTHING: Final = _Reader()  # never written to
