"""How much of a span is read at all: what is longer is cut before any dialect sees it, so the work that one span can cause has
an end, however it is written (JSON in JSON, thousands of flattened keys, megabytes in one attribute).

Media are named before (see `media`), so that a picture of megabytes costs a conversation nothing. A value that is cut loses
its end: of a JSON list the whole elements before the cut are still read, and the call is marked truncated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spangrade.model.span import EventData

MAX_VALUE_CHARS: Final = 4 * 2**20
MAX_SPAN_CHARS: Final = 8 * 2**20  # of all attributes together, and once more of all events
MAX_EVENTS: Final = 4_096


def within(attributes: Mapping[str, Any], room: int = MAX_SPAN_CHARS) -> tuple[Mapping[str, Any], bool]:
    """The attributes with their texts within the bounds, and whether any was cut; the same object where none was.

    Where all together are too long, the longest are cut first, each to the same length.
    """
    sizes = [len(value) for value in attributes.values() if type(value) is str]
    if not sizes or sum(sizes) <= min(room, MAX_VALUE_CHARS):
        return attributes, False
    limit = _limit(sorted(sizes), room)
    if max(sizes) <= limit:
        return attributes, False
    return {
        key: value[:limit] if type(value) is str and len(value) > limit else value for key, value in attributes.items()
    }, True


def events_within(events: Sequence[EventData]) -> tuple[Sequence[EventData], bool]:
    """The same of events: the last ones count, since an answer comes last."""
    kept, room, cut = list(events[-MAX_EVENTS:]), MAX_SPAN_CHARS, len(events) > MAX_EVENTS
    for at in range(len(kept) - 1, -1, -1):
        held, short = within(kept[at].attributes, room)
        room -= sum(len(value) for value in held.values() if type(value) is str)
        if short:
            kept[at], cut = replace(kept[at], attributes=held), True
    return (kept, True) if cut else (events, False)


def _limit(sizes: Sequence[int], room: int) -> int:
    """The length to which each may go, so that together they keep to ``room``."""
    left, over = room, len(sizes)
    for size in sizes:
        share = max(left, 0) // over
        if size > share:
            return min(share, MAX_VALUE_CHARS)
        left -= size
        over -= 1
    return MAX_VALUE_CHARS
