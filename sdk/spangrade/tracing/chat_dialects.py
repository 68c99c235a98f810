"""The forms in which clients stream an answer, known by what a chunk holds: nothing of theirs is imported.

Each is the client's own objects or the same as dicts: OpenAI's chat completions (and what speaks them: vLLM, LiteLLM,
Groq, Mistral, Azure, Hugging Face), its older completions, Responses and helper events, the Agents SDK, Anthropic's events
and those of its helper, LangChain's message chunks, Ollama, Gemini, Bedrock's Converse. Of their other events nothing is
kept: they say that something begins or ends, or repeat what came before.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

_MOST: Final = 64  # items of one chunk that are looked at


class Listener(Protocol):
    """See `chat.Joined`."""

    def get(self, holder: Any, name: str) -> Any:
        """What stands under a name."""

    def say(self, text: Any, choice: int = 0) -> None:
        """More of the answer."""

    def repeat(self, text: Any) -> None:
        """More of it, of an event beside the one that says it first."""

    def think(self, text: Any) -> None:
        """More of what came before it."""

    def call(
        self, key: Any = None, *, name: Any = None, call_id: Any = None, arguments: Any = None, choice: int = 0
    ) -> None:
        """A tool call, or more of one."""


_Dialect = Callable[[Listener, Any], bool]


def hears(to: Listener, chunk: Any) -> bool:
    """Tell ``to`` what a chunk says; False if it is of no form that is known here."""
    typed = _typed(_type(to, chunk))
    if typed is not None:
        return typed(to, chunk)
    return any(dialect(to, chunk) for dialect in _UNTYPED)


def _typed(kind: str) -> _Dialect | None:
    if not kind:
        return None
    known = _BY_TYPE.get(kind)
    if known is None and kind.startswith(("response.", "content.", "refusal.", "tool_calls.", "logprobs.")):
        return _silent
    return known


def _some(held: Any) -> list[Any]:
    return list.__getitem__(held, slice(_MOST)) if _is_list(held) else []


def _number(held: Any) -> int:
    return held if type(held) is int else 0


def _type(to: Listener, holder: Any) -> str:
    kind = to.get(holder, "type")
    return kind if type(kind) is str else ""


def _is_list(held: Any) -> bool:
    return issubclass(type(held), list)  # `isinstance` would ask the object what it is


def _first(to: Listener, holder: Any, *names: str) -> Any:
    return next((held for name in names if (held := to.get(holder, name)) is not None), None)


def _silent(_to: Listener, _chunk: Any) -> bool:
    return True


# --- OpenAI ------------------------------------------------------------------------------------------------------------------


def _choices(to: Listener, chunk: Any) -> bool:
    choices = to.get(chunk, "choices")
    if not _is_list(choices):
        return False
    for choice in _some(choices):
        if to.get(choice, "message") is not None:  # a whole answer, and no chunk
            return False
        number, delta = _number(to.get(choice, "index")), to.get(choice, "delta")
        if delta is None:
            to.say(to.get(choice, "text"), number)
            continue
        _content(to, to.get(delta, "content"), number)
        to.say(to.get(delta, "refusal"), number)
        to.think(_first(to, delta, "reasoning_content", "reasoning"))
        for call in _some(to.get(delta, "tool_calls")):
            _openai_call(to, call, number)
        function = to.get(delta, "function_call")
        if function is not None:
            name, arguments = to.get(function, "name"), to.get(function, "arguments")
            to.call("function_call", name=name, arguments=arguments, choice=number)
    return True


def _openai_call(to: Listener, call: Any, choice: int) -> None:
    function = to.get(call, "function")
    name, arguments = to.get(function, "name"), to.get(function, "arguments")
    to.call(_number(to.get(call, "index")), name=name, call_id=to.get(call, "id"), arguments=arguments, choice=choice)


def _content(to: Listener, content: Any, choice: int = 0) -> None:
    """Text, or parts of a message."""
    to.say(content, choice)
    for part in _some(content):
        to.say(part, choice)
        kind = _type(to, part)
        if kind == "thinking":
            to.think(to.get(part, "thinking"))
        elif kind in ("", "text"):
            to.say(to.get(part, "text"), choice)


def _says(name: str) -> _Dialect:
    def dialect(to: Listener, event: Any) -> bool:
        to.say(to.get(event, name))
        return True

    return dialect


def _repeats(to: Listener, event: Any) -> bool:
    to.repeat(to.get(event, "delta"))
    return True


def _thinks(to: Listener, event: Any) -> bool:
    to.think(to.get(event, "delta"))
    return True


def _response_item(to: Listener, event: Any) -> bool:
    item = to.get(event, "item")
    if _type(to, item) == "function_call":
        name, arguments, call_id = to.get(item, "name"), to.get(item, "arguments"), to.get(item, "call_id")
        to.call(_number(to.get(event, "output_index")), name=name, call_id=call_id, arguments=arguments)
    return True


def _response_arguments(to: Listener, event: Any) -> bool:
    to.call(_number(to.get(event, "output_index")), arguments=to.get(event, "delta"))
    return True


def _within(name: str) -> _Dialect:
    """The chunk is in an envelope."""

    def dialect(to: Listener, envelope: Any) -> bool:
        inner = to.get(envelope, name)
        kind = _type(to, inner)
        typed = _typed(kind) if kind not in _ENVELOPES else None
        if typed is not None:
            return typed(to, inner)
        return _choices(to, inner)

    return dialect


# --- Anthropic, Bedrock --------------------------------------------------------------------------------------------------------


def _block_start(to: Listener, event: Any) -> bool:
    block = to.get(event, "content_block")
    kind = _type(to, block)
    if kind == "text":
        to.say(to.get(block, "text"))
    elif kind.endswith("tool_use"):
        to.call(_number(to.get(event, "index")), name=to.get(block, "name"), call_id=to.get(block, "id"))
    return True


def _block_delta(to: Listener, event: Any) -> bool:
    delta = to.get(event, "delta")
    to.say(to.get(delta, "text"))
    to.think(to.get(delta, "thinking"))
    arguments = to.get(delta, "partial_json")
    if arguments is not None:
        to.call(_number(to.get(event, "index")), arguments=arguments)
    return True


def _helper(to: Listener, event: Any) -> bool:
    """An event of the helper's that repeats the one before it; a part of a message may have the same type."""
    if to.get(event, "snapshot") is None:
        return False
    if _type(to, event) == "text":
        to.repeat(to.get(event, "text"))
    return True


def _bedrock(to: Listener, event: Any) -> bool:
    """Dicts of one key, which says what happens."""
    if type(event) is not dict or len(event) != 1:
        return False
    (key,) = event
    if key == "metadata" and type(key) is str:
        return to.get(event[key], "usage") is not None
    if type(key) is not str or key not in _BEDROCK:
        return False
    start, more = to.get(event, "contentBlockStart"), to.get(event, "contentBlockDelta")
    tool = to.get(to.get(start, "start"), "toolUse")
    if tool is not None:
        to.call(
            _number(to.get(start, "contentBlockIndex")), name=to.get(tool, "name"), call_id=to.get(tool, "toolUseId")
        )
    delta = to.get(more, "delta")
    to.say(to.get(delta, "text"))
    to.think(to.get(to.get(delta, "reasoningContent"), "text"))
    tool = to.get(delta, "toolUse")
    if tool is not None:
        to.call(_number(to.get(more, "contentBlockIndex")), arguments=to.get(tool, "input"))
    return True


# --- others --------------------------------------------------------------------------------------------------------------------


def _langchain(to: Listener, chunk: Any) -> bool:
    _content(to, to.get(chunk, "content"))
    to.think(to.get(to.get(chunk, "additional_kwargs"), "reasoning_content"))
    for call in _some(to.get(chunk, "tool_call_chunks")):
        name, arguments = to.get(call, "name"), to.get(call, "args")
        to.call(_number(to.get(call, "index")), name=name, call_id=to.get(call, "id"), arguments=arguments)
    return True


def _ollama(to: Listener, chunk: Any) -> bool:
    if type(to.get(chunk, "done")) is not bool:
        return False
    message, text = to.get(chunk, "message"), to.get(chunk, "response")
    if to.get(message, "role") is None:
        to.say(text)
        return type(text) is str
    to.say(to.get(message, "content"))
    to.think(to.get(message, "thinking"))
    for call in _some(to.get(message, "tool_calls")):
        function = to.get(call, "function")
        to.call(name=to.get(function, "name"), arguments=to.get(function, "arguments"))
    return True


def _gemini(to: Listener, chunk: Any) -> bool:
    candidates = to.get(chunk, "candidates")
    if not _is_list(candidates):
        return candidates is None and _first(to, chunk, "usage_metadata", "usageMetadata") is not None
    for candidate in _some(candidates):
        number = _number(to.get(candidate, "index"))
        for part in _some(to.get(to.get(candidate, "content"), "parts")):
            text, call = to.get(part, "text"), _first(to, part, "function_call", "functionCall")
            if to.get(part, "thought") is True:
                to.think(text)
            else:
                to.say(text, number)
            if call is not None:
                name, arguments = to.get(call, "name"), to.get(call, "args")
                to.call(name=name, call_id=to.get(call, "id"), arguments=arguments, choice=number)
    return True


def _mistral(to: Listener, chunk: Any) -> bool:
    return _choices(to, to.get(chunk, "data"))


_UNTYPED: Final[tuple[_Dialect, ...]] = (_choices, _ollama, _gemini, _mistral, _bedrock)
_BEDROCK: Final = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop")
_ENVELOPES: Final = ("chunk", "raw_response_event")
_BY_TYPE: Final[dict[str, _Dialect]] = {
    "response.output_text.delta": _says("delta"),
    "response.refusal.delta": _says("delta"),
    "response.reasoning_text.delta": _thinks,
    "response.reasoning_summary_text.delta": _thinks,
    "response.output_item.added": _response_item,
    "response.function_call_arguments.delta": _response_arguments,
    "content.delta": _repeats,
    "chunk": _within("chunk"),  # of OpenAI's helper, which repeats what is in it by events of other types
    "raw_response_event": _within("data"),
    "agent_updated_stream_event": _silent,
    "run_item_stream_event": _silent,
    "content_block_start": _block_start,
    "content_block_delta": _block_delta,
    **dict.fromkeys(("message_start", "message_delta", "message_stop", "content_block_stop", "ping"), _silent),
    **dict.fromkeys(("text", "input_json", "thinking", "signature", "citation"), _helper),
    "AIMessageChunk": _langchain,
}
