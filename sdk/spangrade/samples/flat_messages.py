"""OpenInference's flattened messages → turns: ``llm.input_messages.<i>.message.*``, and the prompts and choices of the
completions API."""

from collections.abc import Mapping
from typing import Any, Final

from spangrade.samples.flat import elements
from spangrade.samples.messages import Turn
from spangrade.samples.turns import read_message

MESSAGES: Final = ("llm.input_messages.", "llm.output_messages.")
PROMPTS: Final = ("llm.prompts.", "llm.choices.")


def flat_turns(flat: Mapping[str, list[dict[str, Any]]]) -> tuple[list[Turn], list[Turn]]:
    """The turns of both sides: flattened messages, else the prompts and choices of the completions API."""
    asked = [turn for item in flat.get("llm.input_messages.", ()) for turn in _message(item, "unknown")]
    said = [turn for item in flat.get("llm.output_messages.", ()) for turn in _message(item, "assistant")]
    if not asked:
        prompts = (item.get("prompt.text") for item in flat.get("llm.prompts.", ()))
        asked = [Turn("user", prompt) for prompt in prompts if isinstance(prompt, str)]
    if not said:
        texts = (item.get("completion.text") for item in flat.get("llm.choices.", ()))
        said = [turn for text in texts if isinstance(text, str) for turn in read_message(text, "assistant")]
    return asked, said


def _message(item: Mapping[str, Any], default_role: str) -> list[Turn]:
    """One flattened message, unfolded and read like any other."""
    role, content = item.get("message.role"), item.get("message.content")
    if len(item) == 2 and role is not None and content is not None:  # the usual case
        return read_message({"role": role, "content": content}, default_role)
    message: dict[str, Any] = {
        "role": role,
        "name": item.get("message.name"),
        "tool_call_id": item.get("message.tool_call_id"),
        "content": content,
        "finish_reason": item.get("message.finish_reason"),
    }
    contents = elements(item, "message.contents.")
    if contents:
        parts = [{key.removeprefix("message_content."): value for key, value in part.items()}
                 for part in contents if not _is_call(part)]  # fmt: skip
        message["content"] = [message["content"], *parts] if message["content"] else parts or None
    # Anthropic's calls stand among the contents, and most of them here, too.
    held = elements(item, "message.tool_calls.") or [part for part in contents if _is_call(part)]
    calls = [
        {
            "id": call.get("tool_call.id"),
            "name": call.get("tool_call.function.name"),
            "arguments": call.get("tool_call.function.arguments"),
        }
        for call in held
    ]
    function = item.get("message.function_call_name")
    if function is not None:
        calls.append({"name": function, "arguments": item.get("message.function_call_arguments_json")})
    if calls:
        message["tool_calls"] = calls
    return read_message({key: value for key, value in message.items() if value is not None}, default_role)


def _is_call(part: Mapping[str, Any]) -> bool:
    return "tool_call.function.name" in part
