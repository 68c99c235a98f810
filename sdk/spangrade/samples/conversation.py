"""The turns of one conversation → its Sample. Pure: the same turns in any order give the same Sample.

A turn is what was scored end to end: a root sample. ``input`` is what the user said last and ``output`` the last answer;
``context["messages"]`` is the whole conversation in order, ``context["turns"]`` what each turn was, and ``documents`` are
those of the last turn. Applications send the history again with every turn, so of a turn's messages those count that the
conversation has not got yet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from spangrade._values import dumps, snapshot
from spangrade.model.sample import Sample
from spangrade.samples.reading import Call
from spangrade.samples.scalars import USAGE

MAX_MESSAGES: Final = 2_000
_SYSTEM: Final = ("system", "developer")
_YEAR_NS: Final = 366 * 24 * 3_600 * 10**9

Key = bytes  # of a message: what it says, whoever wrote it down


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the call that carries its score (without its content), its sample (without its messages), and its messages
    by their keys. ``partial``: not everything of it had arrived."""

    call: Call
    sample: Sample
    messages: tuple[Key, ...]
    partial: bool

    @property
    def order(self) -> tuple[int, int, int]:
        """The first to start first."""
        span = self.call.span
        return span.start_ns, span.end_ns, span.span_id


def messages_of(sample: Sample) -> list[Mapping[str, Any]]:
    """What was said in a turn, its answer last: the messages that its model was sent where they end with what the user
    asked; else (an application's own function around it) what went in and what came out."""
    sent = [message for message in sample.context.get("messages") or () if isinstance(message, Mapping)]
    asked = next((m.get("content") for m in reversed(sent) if m.get("role") == "user"), None)
    if asked is None or asked != sample.input:
        sent = [{"role": "user", "content": _text(sample.input)}] if sample.input is not None else []
    if sample.output is not None:
        sent.append({"role": "assistant", "content": _text(sample.output)})
    return sent[-MAX_MESSAGES:]


def key_of(message: Mapping[str, Any]) -> Key:
    """The same for the same words of the same speaker: an answer, and that answer in the history of the next turn."""
    content = message.get("content")
    said = content.strip() if isinstance(content, str) else content
    calls = [(c.get("name"), c.get("arguments")) for c in message.get("tool_calls") or () if isinstance(c, Mapping)]
    plain = dumps(snapshot([message.get("role"), said, calls if not said else None, message.get("tool_call_id")]))
    return blake2b(plain.encode("utf-8", "replace"), digest_size=16).digest()


def conversation_sample(
    session_id: str, turns: Sequence[Turn], known: Mapping[Key, Mapping[str, Any]], *, partial: bool
) -> tuple[Call, Sample]:
    """The call that carries the score (that of the last turn), and the Sample. ``known``: the messages by their keys."""
    ordered = _outermost(sorted(turns, key=lambda turn: turn.order))
    last = ordered[-1]
    context: dict[str, Any] = {
        "messages": [known[key] for key in _joined(ordered, known)],
        "turns": [_described(turn) for turn in ordered],
        "session_id": session_id,
        "kind": "session",
        "span_name": last.call.span.name,
        "status": last.sample.context.get("status", "ok"),
        "duration_s": _duration(ordered),
    }
    for key in ("user_id", "system", "model", "provider", "searched"):
        found = next((t.sample.context[key] for t in reversed(ordered) if t.sample.context.get(key) is not None), None)
        if found is not None:
            context[key] = found
    usage = {name: sum(t.sample.context.get("usage", {}).get(name, 0) for t in ordered) for name in USAGE}
    if any(usage.values()):
        context["usage"] = {name: tokens for name, tokens in usage.items() if tokens}
    for key in ("refusal", "truncated"):
        if any(turn.sample.context.get(key) for turn in ordered):
            context[key] = True
    if partial or any(turn.partial for turn in ordered):
        context["assembly"] = "partial"
    metadata: dict[str, Any] = {}
    for turn in ordered:
        metadata.update(turn.sample.metadata)
    sample = Sample(
        input=last.sample.input,
        output=last.sample.output,
        documents=list(last.sample.documents),
        context=context,
        metadata=metadata,
        trace_id=last.sample.trace_id,
    )
    return last.call, sample


def transcript(sample: Sample) -> str:
    """A conversation as text, up to its last answer: what a judge gets as the input."""
    messages = list(sample.context.get("messages") or ())
    if messages and messages[-1].get("role") == "assistant" and messages[-1].get("content") == _text(sample.output):
        messages.pop()
    lines = []
    for message in messages:
        said = _text(message.get("content")) if message.get("content") is not None else ""
        calls = [f"{c.get('name')}({_text(c.get('arguments'))})" for c in message.get("tool_calls") or ()]
        lines.append(f"[{message.get('role', 'unknown')}] {' '.join([said, *calls]).strip()}")
    return "\n\n".join(lines)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else dumps(snapshot(value))


def _outermost(ordered: Sequence[Turn]) -> list[Turn]:
    """Without those that are a part of another one: a service that a turn has called is a root in its own process."""
    found: list[Turn] = []
    for turn in ordered:
        span = turn.call.span
        inside = span.parent_span_id is not None and any(
            other.call.span.trace_id == span.trace_id and span.end_ns <= other.call.span.end_ns for other in found
        )
        if not inside:
            found.append(turn)
    return found


def _joined(ordered: Sequence[Turn], known: Mapping[Key, Mapping[str, Any]]) -> list[Key]:
    """The first system message, then what was said, each thing once."""
    system: list[Key] = []
    said: list[Key] = []
    for turn in ordered:
        spoken = []
        for key in turn.messages:
            if known[key].get("role") in _SYSTEM:
                system = system or [key]
            else:
                spoken.append(key)
        own = max((at for at, key in enumerate(spoken) if known[key].get("role") == "user"), default=0)
        said += [*_unheard(said, spoken[:own]), *spoken[own:]]
    return [*system, *said][-MAX_MESSAGES:]


def _unheard(said: Sequence[Key], history: Sequence[Key]) -> Sequence[Key]:
    """What of the history that came with a turn the conversation has not got: what stands behind its end; where the
    application has shortened or edited it, what was never said."""
    for length in range(min(len(said), len(history)), 0, -1):
        if said[-length:] == history[:length]:
            return history[length:]
    heard = set(said)
    return [key for key in history if key not in heard]


def _described(turn: Turn) -> dict[str, Any]:
    span = turn.call.span
    return {
        "input": turn.sample.input,
        "output": turn.sample.output,
        "trace_id": span.trace_hex,
        "span_id": span.span_hex,
        "status": turn.sample.context.get("status", "ok"),
    }


def _duration(ordered: Sequence[Turn]) -> float | None:
    start = min(turn.call.span.start_ns for turn in ordered)
    end = max(turn.call.span.end_ns for turn in ordered)
    return (end - start) / 1e9 if 0 < start <= end <= start + _YEAR_NS else None
