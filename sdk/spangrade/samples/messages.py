"""Conversations: turns, the text of a turn, and the bounds on both.

A `Turn` is one message of any dialect, read. `as_messages` gives the plain dicts that a `Reading` and later
``Sample.context["messages"]`` hold. Thinking text is kept apart from the answer, wherever the sender put it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from spangrade import semconv
from spangrade._values import MAX_CHARS, bounded, valid

MAX_MESSAGES: Final = 2_000
MAX_TOOL_CALLS: Final = 256
_MIN_SHARE: Final = 64

_ROLES: Final = {
    "human": "user",
    "ai": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "developer": "system",
    "function": "tool",
}


def normal_role(role: str | None) -> str | None:
    """``user``, ``assistant``, ``system``, ``tool``, or the sender's own word in lower case."""
    if role is None:
        return None
    lower = role.lower()
    return _ROLES.get(lower, lower)


@dataclass(slots=True)
class Turn:
    """One message. ``text`` is None where the sender gave no text at all, ``""`` where it gave an empty one."""

    role: str
    text: str | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_call_id: str | None = None
    name: str | None = None
    reasoning: str | None = None
    refusal: bool = False
    finish_reason: str | None = None

    def as_message(self) -> dict[str, Any]:
        """The plain dict: ``role`` and ``content`` always, the rest where known. Valid text, not bounded."""
        message: dict[str, Any] = {"role": self.role, "content": valid(self.text) if self.text else ""}
        if self.tool_calls:
            message["tool_calls"] = self.tool_calls[:MAX_TOOL_CALLS]
        if self.tool_call_id:
            message["tool_call_id"] = self.tool_call_id
        if self.name:
            message["name"] = self.name
        if self.reasoning:
            message["reasoning"] = valid(self.reasoning)
        if self.finish_reason:
            message["finish_reason"] = self.finish_reason
        if self.refusal:
            message["refusal"] = True
        return message


def as_messages(turns: Sequence[Turn]) -> tuple[tuple[dict[str, Any], ...], bool]:
    """``(messages, cut)``, bounded in number and together in characters.

    The newest are whole as long as there is room, since they matter most; older ones are cut in the middle with a mark.
    Turns of which only the roles are known (content was not captured) are no messages.
    """
    known, size = False, 0
    for turn in turns:
        known = known or turn.text is not None or bool(turn.tool_calls or turn.reasoning)
        size += len(turn.text or "") + len(turn.reasoning or "")
    if not known:
        return (), False
    if size <= MAX_CHARS and len(turns) <= MAX_MESSAGES:  # the usual case
        return tuple([turn.as_message() for turn in turns]), False
    kept = turns[-MAX_MESSAGES:]
    cut, room = len(kept) < len(turns), MAX_CHARS
    messages = []
    for turn in reversed(kept):
        message = turn.as_message()
        for key in ("content", "reasoning"):
            value = message.get(key)
            if not value:
                continue
            cut = cut or len(value) > room
            message[key] = bounded(value, max(room, _MIN_SHARE))
            room = max(room - len(value), 0)
        messages.append(message)
    messages.reverse()
    return tuple(messages), cut


def last_user_text(turns: Sequence[Turn]) -> str | None:
    """What the user asked: the text of the last user turn, else of the last turn whose role nobody gave."""
    for role in ("user", "unknown"):
        for turn in reversed(turns):
            if turn.role == role and turn.text is not None:
                return bounded(turn.text)
    return None


def system_text(turns: Iterable[Turn]) -> str | None:
    """The system turns' text, in order."""
    texts = [turn.text for turn in turns if turn.role == "system" and turn.text]
    return bounded("\n".join(texts)) if texts else None


@dataclass(slots=True)
class Answer:
    """What the choices of one response say.

    ``text`` is that of the first choice that has any (a refusal's text is its text). It is None for no choice at all
    and for a turn of nothing but tool calls or thoughts: such a turn is no empty answer.
    """

    text: str | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    reasoning: str | None = None
    refusal: bool = False
    finish_reasons: tuple[str, ...] = ()


def answer(turns: Sequence[Turn]) -> Answer:
    """The `Answer` of a response's turns: choices, or the items of one choice in order."""
    if len(turns) == 1:  # the usual case
        said = turns[0]
        return Answer(
            None if said.text is None else bounded(said.text),
            tuple(said.tool_calls[:MAX_TOOL_CALLS]),
            bounded(said.reasoning) if said.reasoning else None,
            said.refusal and said.text is not None,
            (said.finish_reason,) if said.finish_reason else (),
        )
    chosen = next((i for i, turn in enumerate(turns) if turn.text is not None), None)
    heard = turns if chosen is None else turns[: chosen + 1]
    spoken = None if chosen is None else turns[chosen]
    thoughts = [turn.reasoning for turn in heard if turn.reasoning]
    return Answer(
        text=None if spoken is None or spoken.text is None else bounded(spoken.text),
        tool_calls=tuple(call for turn in heard for call in turn.tool_calls)[:MAX_TOOL_CALLS],
        reasoning=bounded("\n".join(thoughts)) if thoughts else None,
        refusal=spoken is not None and spoken.refusal,
        finish_reasons=tuple(turn.finish_reason for turn in turns if turn.finish_reason),
    )


def outcome(turns: Sequence[Turn]) -> Answer:
    """The `Answer` of everything that an agent or a chain put out, in order: it may be a whole run, with tool calls and their
    results before the answer. The text is that of the last assistant turn that has any; tool calls are those of all turns."""
    spoken = [turn for turn in turns if turn.role not in ("user", "system", "tool")]
    said = next((turn for turn in reversed(spoken) if turn.text is not None), None)
    last = answer([said] if said is not None else spoken)
    return replace(
        last,
        tool_calls=tuple(call for turn in spoken for call in turn.tool_calls)[:MAX_TOOL_CALLS],
        finish_reasons=last.finish_reasons or answer(spoken).finish_reasons,
    )


_THINKING: Final = re.compile(r"\s*<(think|thinking|reasoning)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THINKING_END: Final = re.compile(r"</(?:think|thinking)>[ \t]*\r?\n", re.IGNORECASE)


def split_thinking(text: str) -> tuple[str | None, str | None]:
    """``(answer, thoughts)`` of a text that may begin with thinking tags. The answer is None when there is none.

    Known forms: ``<think>…</think>answer``; the same cut before its end; and ``…</think>`` at a line's end with its
    opening tag in the prompt (DeepSeek R1). Tags further on are the answer's own words.
    """
    if "think" not in text and "<reasoning>" not in text:  # the usual case, at the cost of one search
        return text, None
    opening = _THINKING.match(text)
    if opening is not None:
        rest = text[opening.end() :].strip()
        return rest or None, opening.group(2).strip() or None
    if "<think" not in text:
        closing = _THINKING_END.search(text)
        if closing is not None:
            return text[closing.end() :].strip() or None, text[: closing.start()].strip() or None
    return text, None


def is_judge_text(system: str | None) -> bool:
    """Whether a system text is that of one of our judges, by the fixed marker at its very beginning (promise 8)."""
    return system is not None and system.lstrip().startswith(semconv.JUDGE_MARKER)
