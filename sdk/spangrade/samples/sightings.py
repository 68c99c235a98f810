"""One logical call that two instrumentations have seen is one call: which of its spans counts.

1. A model call below a model call, with nothing but chains and spans that are no calls between them, is that call seen
   again: a framework's span and its provider's, a wrapper and what it wraps. The outer one counts, and what it does not
   say the inner one does.
2. Calls of one kind below one local root that ran at the same time, told by instrumentations of different names, are one
   when they have the same response id or, where ids do not tell, were asked and answered the same. The first to end counts;
   of each instrumentation one span at most belongs to it, so that equal calls made side by side stay as many as they are.

Both are known when a call ends, from what is above it and what has ended before it. So a host that decides then, and one
that gets all spans later in whatever order, agree.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from spangrade._values import dumps, snapshot
from spangrade.samples.family import Family, by_end
from spangrade.samples.reading import Call

_COMPARED: Final = 65_536  # characters of a text


def is_again(kind: str, within: str | None) -> bool:
    """Whether a call of this kind is the one around it, seen again. ``within``: see `Call`."""
    return kind == "llm" == within


def seen_again(calls: Iterable[Call]) -> frozenset[int]:
    """The span ids of those among calls of one local root that another one of them counts for."""
    family = Family(calls)
    again = {call.span.span_id for call in family.calls if is_again(call.kind, family.within(call))}
    again.update(told_twice(call for call in family.calls if call.span.span_id not in again))
    return frozenset(again)


def around(family: Family, call: Call) -> list[Call]:
    """The model calls that this model call is, seen from further out, nearest first. Where a span that is no call hides the
    link, the one whose time it ran in."""
    if call.kind != "llm" or not is_again(call.kind, family.within(call)):
        return []
    found: list[Call] = []
    for above in family.ancestors(call):
        if above.kind == "llm":
            found.append(above)
        elif above.kind != "chain":
            break
    if found:
        return found
    mine = call.span
    over = [other for other in family.calls if other.kind == "llm" and other is not call
            and other.span.start_ns <= mine.start_ns and mine.end_ns <= other.span.end_ns]  # fmt: skip
    return sorted(over, key=by_end)[:1]


def told_twice(calls: Iterable[Call]) -> dict[int, int]:
    """By the second rule alone: the span id of each further sighting to that of the first."""
    found: dict[int, int] = {}
    calls = list(calls)
    if len({call.span.scope_name for call in calls}) < 2:
        return found
    firsts: dict[str, list[tuple[Call, list[str]]]] = {}  # by kind, in order of end: the call, who has told of it
    for call in sorted(calls, key=by_end):
        before = firsts.setdefault(call.kind, [])
        told: tuple[Call, list[str]] | None = None
        for entry in reversed(before):  # the earliest that fits is taken
            if entry[0].span.end_ns < call.span.start_ns:
                break
            if call.span.scope_name not in entry[1] and _same(entry[0], call):
                told = entry
        if told is None:
            before.append((call, [call.span.scope_name]))
        else:
            told[1].append(call.span.scope_name)
            found[call.span.span_id] = told[0].span.span_id
    return found


def _same(one: Call, other: Call) -> bool:
    ids = one.reading.response_id, other.reading.response_id
    if None not in ids:
        return ids[0] == ids[1]
    answers = _answer(one), _answer(other)
    return answers[0] is not None and answers[0] == answers[1] and _asked_same(one, other)


def _asked_same(one: Call, other: Call) -> bool:
    asked = _text(_asked(one)), _text(_asked(other))
    return None in asked or asked[0] == asked[1]


def _asked(call: Call) -> Any:
    return call.reading.query if call.reading.query is not None else call.reading.input


def _answer(call: Call) -> Any:
    """What came out, in a form that can be compared; None where nothing is known."""
    reading = call.reading
    if reading.documents:
        return tuple((document.get("id"), _text(document.get("content"))) for document in reading.documents)
    said = _text(reading.output)
    asks = tuple((asked.get("name"), _text(asked.get("arguments"))) for asked in reading.tool_calls)
    return (said, asks) if said is not None or (asks and call.kind != "tool") else None


def _text(value: Any) -> str | None:
    """Blanks do not count, nor does how JSON is spelled."""
    if value is None:
        return None
    if not isinstance(value, str):
        plain = dict(value) if isinstance(value, Mapping) else value
        value = dumps(snapshot(plain))
    return " ".join(value[:_COMPARED].split()) or None
