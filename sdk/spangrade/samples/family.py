"""Calls of one group and how they stand to each other: order, ancestry, whose work is an evaluator's.

Every order is total (times, then span id), so that the same calls give the same result however they arrived.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from spangrade.samples.reading import Call

_MAX_DEPTH: Final = 1_000


def by_start(call: Call) -> tuple[int, int, int]:
    """Sort key: the first to start first."""
    return call.span.start_ns, call.span.end_ns, call.span.span_id


def by_end(call: Call) -> tuple[int, int]:
    """Sort key: the last to end last."""
    return call.span.end_ns, call.span.span_id


def unique(calls: Iterable[Call]) -> list[Call]:
    """One call per span id (a resent span is the same call), in order of start."""
    kept: dict[int, Call] = {}
    for call in calls:
        other = kept.get(call.span.span_id)
        if other is None or (other != call and _rank(call) > _rank(other)):
            kept[call.span.span_id] = call
    return sorted(kept.values(), key=by_start)


def _rank(call: Call) -> tuple[int, int, str]:
    # Two spans with one id that are not the same: any rule will do, as long as it does not depend on order.
    return call.span.end_ns, len(call.span.attributes), repr(call)


class Family:
    """The calls of one group, with what is above each of them."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self.calls: Sequence[Call] = unique(calls)
        self._by_id = {call.span.span_id: call for call in self.calls}

    def ancestors(self, call: Call) -> Iterable[Call]:
        """The calls above this one, nearest first, as far as parents are in the group."""
        seen = {call.span.span_id}
        at = self._above(call)
        while at is not None and at not in seen and len(seen) < _MAX_DEPTH:
            seen.add(at)
            above = self._by_id.get(at)
            if above is None:
                return
            yield above
            at = self._above(above)

    def _above(self, call: Call) -> int | None:
        """The parent, else the nearest call above as the host has seen it: spans that are no calls are not in a group."""
        parent = call.span.parent_span_id
        return call.over if call.over is not None and parent not in self._by_id else parent

    def within(self, call: Call) -> str | None:
        """The kind of the nearest call above this one that is no chain: as its host saw it, else as the group has it."""
        if call.within is not None:
            return call.within
        return next((above.kind for above in self.ancestors(call) if above.kind != "chain"), None)

    def under(self, call: Call) -> list[Call]:
        """The calls below this one. Where the parent is a span that is no call, so that the link is not known here,
        a call counts as below when it ran within this one's time."""
        return [other for other in self.calls if other is not call and self._is_under(other, call)]

    def _is_under(self, call: Call, top: Call) -> bool:
        last = call
        for above in self.ancestors(call):
            if above.span.span_id == top.span.span_id:
                return True
            last = above
        if last.over is not None or last.span.parent_span_id is None or last.span.parent_span_id in self._by_id:
            return False  # what is above it is known
        if any(above.span.span_id == last.span.span_id for above in self.ancestors(top)):
            return False
        return top.span.start_ns <= last.span.start_ns and last.span.end_ns <= top.span.end_ns and last is not top

    def without_evaluators(self) -> "Family":
        """Without evaluator traffic: evaluators' calls and all that is below one (a judge's model call)."""
        evil = {call.span.span_id for call in self.calls if call.evaluator}
        if not evil:
            return self
        return Family(
            call
            for call in self.calls
            if call.span.span_id not in evil and not any(above.span.span_id in evil for above in self.ancestors(call))
        )
