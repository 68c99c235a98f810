"""Requests and responses of model APIs, as found whole in ``input.value`` and ``output.value`` of LLM spans.

Read are the shapes of OpenAI chat and completions, OpenAI Responses (also wrapped as ``{"response": ...}``), Anthropic
messages, Gemini ``contents``/``candidates``, Ollama ``message``, LangChain ``generations``, and bare message lists.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spangrade.samples import scalars
from spangrade.samples.jsontext import Items
from spangrade.samples.messages import Turn
from spangrade.samples.parts import text_of
from spangrade.samples.turns import read_message, read_turns

_MAX_DEPTH: Final = 3


@dataclass(slots=True)
class Payload:
    """What a request or response says. No turns and ``known`` False: the shape is not one that we know."""

    turns: list[Turn] = field(default_factory=list)
    known: bool = False
    model: str | None = None
    response_id: str | None = None
    usage: dict[str, int] = field(default_factory=dict)
    finish_reasons: tuple[str, ...] = ()


def read_request(value: Any, depth: int = 0) -> Payload:
    """The conversation in a parsed request."""
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
        value = value[0]  # LangChain: one list per prompt
    if _is_message_list(value):
        return Payload(_turns(value, "user"), known=True)
    if not isinstance(value, Mapping):
        return Payload()
    found = Payload(model=scalars.first_name(value, "model"))
    system = instructions(value)
    if system:
        found.turns.append(Turn("system", system))
    if isinstance(value.get("messages"), (list, tuple)):
        batch = value["messages"]
        if batch and isinstance(batch[0], (list, tuple)):  # LangChain: one list per prompt
            batch = batch[0]
        found.turns += _turns(batch, "unknown")
    elif isinstance(value.get("contents"), (list, tuple, str)):
        contents = value["contents"]
        found.turns += _turns([contents] if isinstance(contents, str) else contents, "user")
    elif isinstance(value.get("input"), str) or _is_message_list(value.get("input")):
        given = value["input"]
        found.turns += _turns([given] if isinstance(given, str) else given, "user")
    elif isinstance(value.get("prompt"), str):
        found.turns.append(Turn("user", value["prompt"]))
    elif isinstance(value.get("prompts"), (list, tuple)):
        found.turns += [Turn("user", prompt) for prompt in value["prompts"][:64] if isinstance(prompt, str)]
    elif isinstance(value.get("request"), Mapping) and depth < _MAX_DEPTH:
        return read_request(value["request"], depth + 1)
    else:
        return Payload()
    found.known = True
    return found


def facts(value: Any) -> Payload:
    """Of a parsed response only its id, model, usage and why it ended, where its turns are known from elsewhere."""
    if isinstance(value, Mapping):
        value = next((value[key] for key in ("response", "raw") if isinstance(value.get(key), Mapping)), value)
    if not isinstance(value, Mapping):
        return Payload()
    return Payload(
        model=scalars.first_name(value, "model", "modelVersion", "model_version"),
        response_id=scalars.first_name(value, "id", "responseId", "response_id"),
        usage=_usage(value),
        finish_reasons=_finish_reasons(value),
    )


def read_response(value: Any, depth: int = 0) -> Payload:
    """The choices in a parsed response."""
    if _is_message_list(value):
        return Payload(_choices_of(value), known=True)
    if not isinstance(value, Mapping):
        return Payload()
    found = facts(value)
    if isinstance(value.get("choices"), (list, tuple)):
        found.turns = [turn for choice in value["choices"][:64] for turn in _choice(choice)]
    elif isinstance(value.get("candidates"), (list, tuple)):
        found.turns = [turn for choice in value["candidates"][:64] for turn in _choice(choice)]
    elif isinstance(value.get("output"), (list, tuple)):
        found.turns = _choices_of(value["output"])
    elif isinstance(value.get("response"), Mapping) and depth < _MAX_DEPTH:
        return read_response(value["response"], depth + 1)
    elif isinstance(value.get("message"), Mapping):
        found.turns = read_message(value["message"], "assistant")
    elif value.get("role") is not None and "content" in value:
        found.turns = read_message(value, "assistant")
    elif isinstance(value.get("generations"), (list, tuple)):
        found.turns = [turn for choice in _flat(value["generations"]) for turn in _choice(choice)]
    else:
        return Payload()
    found.known = True
    return found


def instructions(request: Any) -> str | None:
    """The system text that a parsed request holds apart from its messages (Anthropic, Responses, Gemini)."""
    if not isinstance(request, Mapping):
        return None
    for key in ("system", "instructions", "system_instruction", "systemInstruction"):
        system = _system(request.get(key))
        if system:
            return system
    return None


def _is_message_list(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(item, Mapping) and ("role" in item or "type" in item) for item in value)
        and any("role" in item or "content" in item for item in value)
    )


def _turns(items: Any, default_role: str) -> list[Turn]:
    return read_turns(Items(list(items)), default_role)


def _choices_of(items: Any) -> list[Turn]:
    """Messages are choices; the items of the Responses API (thoughts, calls, messages) are parts of one turn."""
    if any(isinstance(item, Mapping) and item.get("type") is not None for item in items):
        return read_message({"role": "assistant", "content": list(items)}, "assistant")
    return _turns(items, "assistant")


def _choice(choice: Any) -> list[Turn]:
    if not isinstance(choice, Mapping):
        return []
    inner = next((choice[key] for key in ("message", "content", "delta") if isinstance(choice.get(key), Mapping)), None)
    turns = read_message(inner, "assistant") if inner is not None else []
    if not turns and isinstance(choice.get("text"), str):
        turns = read_message(choice["text"], "assistant")
    reason = scalars.first_name(choice, "finish_reason", "finishReason")
    for turn in turns:
        turn.finish_reason = turn.finish_reason or reason
    return turns


def _finish_reasons(value: Mapping[str, Any]) -> tuple[str, ...]:
    """One of each choice; of the Responses API, which has only a status, the word that its chat API has for it."""
    for key in ("choices", "candidates"):
        if isinstance(value.get(key), (list, tuple)):
            found = [scalars.first_name(one, "finish_reason", "finishReason") if isinstance(one, Mapping) else None
                     for one in value[key][:64]]  # fmt: skip
            return tuple([reason for reason in found if reason is not None])
    reason = scalars.first_name(value, "stop_reason")
    if reason is None and value.get("object") == "response":
        reason = _status(value)
    return () if reason is None else (reason,)


def _status(response: Mapping[str, Any]) -> str | None:
    if response.get("status") == "completed":
        items = response.get("output")
        called = isinstance(items, (list, tuple)) and any(
            isinstance(item, Mapping) and item.get("type") == "function_call" for item in items
        )
        return "tool_calls" if called else "stop"
    why = response.get("incomplete_details")
    reason = scalars.first_name(why, "reason") if isinstance(why, Mapping) else None
    return "length" if reason == "max_output_tokens" else reason


def _flat(value: Any) -> list[Any]:
    return [item for part in value[:64] for item in (part[:64] if isinstance(part, (list, tuple)) else [part])]


def _system(value: Any) -> str | None:
    if isinstance(value, Mapping) and "parts" in value:
        value = value["parts"]
    return text_of(value) if isinstance(value, (str, list, tuple)) else None


def _usage(value: Mapping[str, Any]) -> dict[str, int]:
    for key in ("usage", "usageMetadata", "usage_metadata"):
        held = value.get(key)
        if isinstance(held, Mapping):
            found = scalars.usage(
                {**held, **_details(held)},
                ("input_tokens", "prompt_tokens", "promptTokenCount", "prompt_token_count"),
                ("output_tokens", "completion_tokens", "candidatesTokenCount", "candidates_token_count"),
                ("cache_read_input_tokens", "cached_tokens", "cachedContentTokenCount", "cached_content_token_count"),
                ("cache_creation_input_tokens",),
                ("reasoning_tokens", "thoughtsTokenCount", "thoughts_token_count"),
            )
            return _whole(found, held)
    return {}


def _details(usage: Mapping[str, Any]) -> dict[str, Any]:
    """OpenAI's counts of cached tokens and of thoughts, which stand one level further down."""
    names = ("input_tokens_details", "prompt_tokens_details", "output_tokens_details", "completion_tokens_details")
    return {key: value for name in names if isinstance(usage.get(name), Mapping)
            for key, value in usage[name].items() if key in ("cached_tokens", "reasoning_tokens")}  # fmt: skip


def _whole(found: dict[str, int], usage: Mapping[str, Any]) -> dict[str, int]:
    """Input with its cached part, output with its thoughts, as the GenAI conventions count: Anthropic gives the cached part
    beside the input, Gemini the thoughts beside the output."""
    if "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
        cached = found.get("cache_read_tokens", 0) + found.get("cache_write_tokens", 0)
        if "input_tokens" in found:
            found["input_tokens"] += cached
    if "thoughtsTokenCount" in usage or "thoughts_token_count" in usage:
        found["output_tokens"] = found.get("output_tokens", 0) + found.get("reasoning_tokens", 0)
    return found
