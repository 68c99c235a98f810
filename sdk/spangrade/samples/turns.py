"""One message of any dialect → `Turn`: content as text, as parts, or as an item of the Responses API."""

from collections.abc import Mapping
from typing import Any, Final

from spangrade.samples import scalars
from spangrade.samples.jsontext import Items
from spangrade.samples.messages import Turn, is_judge_text, normal_role, split_thinking
from spangrade.samples.parts import MAX_PARTS, NOTHING, Parts, stands_alone, tool_call

_SIMPLE: Final = frozenset({"role", "parts", "content", "finish_reason", "name"})
_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})


def read_turns(found: Items, default_role: str) -> list[Turn]:
    """The turns of a message list, the broken one at its end included as far as it is good for anything.

    Of a message that was cut, whole texts and tool calls are kept, half texts are not; only a system text is kept
    as far as it goes, because by its beginning a judge's call is known (and it is not graded).
    """
    turns = [turn for item in found.items for turn in read_message(item, default_role)]
    if found.half is not None:
        halves = read_message(found.half, default_role)
        role_lost = (
            not turns and isinstance(found.half, Mapping) and "role" not in found.half
        )  # it stood behind the cut
        if role_lost and halves and is_judge_text(halves[0].text):
            halves[0].role = "system"
        if halves and halves[0].role == "system":
            return turns + halves
    if found.tail is not None:
        turns += [turn for turn in read_message(found.tail, default_role) if turn.text or turn.tool_calls]
    return turns


def read_message(item: Any, default_role: str) -> list[Turn]:
    """The turns of one message: usually one; tool results are turns of their own, before what else it says."""
    if isinstance(item, str):
        return [_finish(NOTHING, {}, default_role, item)]
    if not isinstance(item, Mapping):
        return []
    simple = item if type(item) is dict and _SIMPLE.issuperset(item) else None
    if simple is not None:
        plain = _simple_text(simple)
        if plain is not None:
            return [_simple(simple, plain) or _finish(NOTHING, item, default_role, plain)]
    parts = Parts()
    if simple is not None:
        said = simple.get("parts")
        parts.content(said if said is not None else simple.get("content"))
    else:
        kwargs = item.get("kwargs")
        if isinstance(kwargs, Mapping) and "content" in kwargs:  # LangChain's serialised message
            item = kwargs
        elif isinstance(item.get("data"), Mapping) and "content" in item["data"]:  # its messages_to_dict
            item = {"type": item.get("type"), **item["data"]}
        if "role" not in item and stands_alone(item):
            parts.part(item)
            return parts.results or [_finish(parts, item, default_role, None)]
        _collect(parts, item)
    if parts.results and not parts.texts and not parts.calls:
        return parts.results
    fallback = "assistant" if parts.calls and default_role == "unknown" else default_role
    return [*parts.results, _finish(parts, item, fallback, None)]


def _collect(parts: Parts, item: Mapping[str, Any]) -> None:
    """Everything that a message may say, wherever it says it."""
    for key in ("parts", "content", "contents", "blocks"):
        if item.get(key) is not None:
            parts.content(item[key])
            break
    for key in ("tool_calls", "toolCalls"):
        calls = item.get(key)
        if isinstance(calls, (list, tuple)):
            known = {call["id"] for call in parts.calls if "id" in call}  # Anthropic's stand among the parts too
            found = (call for call in map(tool_call, calls[:MAX_PARTS]) if call is not None)
            parts.calls += [call for call in found if call.get("id") not in known]
            break
    else:
        call = tool_call(item.get("function_call"))  # OpenAI's first form
        if call is not None:
            parts.calls.append(call)
    refusal = scalars.text(item.get("refusal"))
    if refusal:
        parts.texts.append(refusal)
        parts.refusal = True
    for key in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(item.get(key), str):
            parts.thoughts.append(item[key])


def _simple_text(item: dict[str, Any]) -> str | None:
    """The text of a message of nothing else: the usual case, read without collecting parts."""
    parts = item.get("parts", item.get("content"))
    kind = type(parts)
    if kind is str:
        return parts
    if (kind is not list and kind is not tuple) or not parts:
        return None
    texts = [part["content"] for part in parts if type(part) is dict and part.get("type") == "text" and len(part) == 2
             and type(part.get("content")) is str]  # fmt: skip
    return "\n".join(texts) if len(texts) == len(parts) else None


def _simple(item: dict[str, Any], text: str) -> Turn | None:
    """What `_finish` makes of the usual words for roles and names."""
    role, name, reason = item.get("role"), item.get("name"), item.get("finish_reason")
    if (
        type(role) is not str
        or role not in _ROLES
        or name is not None
        or (reason is not None and type(reason) is not str)
    ):
        return None
    said: str | None = text
    thought = None
    if role == "assistant":
        said, thought = split_thinking(text)
    return Turn(role, said, reasoning=thought, finish_reason=scalars.name(reason) if reason else None)


def _finish(parts: Parts, item: Mapping[str, Any], default_role: str, text: str | None) -> Turn:
    role = item.get("role")
    if type(role) is not str or role not in _ROLES:
        role = normal_role(scalars.name(role))
    call_id = None if role == "assistant" else scalars.first_name(item, "tool_call_id", "toolCallId", "call_id")
    if role is None:
        kind = scalars.name(item.get("type"))  # LangChain
        guessed = "tool" if call_id and not parts.calls else default_role
        role = (normal_role(kind) if kind in ("human", "ai", "system", "tool") else None) or guessed
    said = text if text is not None else parts.joined()
    thoughts = parts.thoughts
    if role == "assistant" and said is not None:
        said, thought = split_thinking(said)
        if thought:
            thoughts = [*thoughts, thought]
    return Turn(
        role=role,
        text=said,
        tool_calls=list(parts.calls),
        tool_call_id=call_id if role == "tool" else None,
        name=scalars.name(item.get("name")),
        reasoning=("\n".join(t for t in thoughts if t) or None) if thoughts else None,
        refusal=parts.refusal,
        finish_reason=scalars.first_name(item, "finish_reason", "finishReason", "stop_reason"),
    )
