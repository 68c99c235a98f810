"""Which spans of a trace, within one process, make up one root sample; time is passed in.

Two ways to know a span's place, one result:

- *with lineage*: the host saw the ancestors start (the SDK's processor), so a span's local root, and whether a call is
  above it, are known when it ends;
- *without*: spans arrive in any order and batches (an exporter, the agent), so candidates wait until their local root has
  arrived (no parent, or a remote one), plus a short grace.

What is still open when its time is up is decided as it is, and marked partial; what comes after that under the same root
is a sample of its own, partial too. With lineage, a call that runs below the same root postpones that: the one that
waits cannot be the last then, so it is given back. State is bounded in groups, in bytes, in spans per group, and in age.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from spangrade.samples.dialects.base import EVALUATOR
from spangrade.samples.groups import MAX_NODES, Group, Groups, Key, Place, RunningCalls, Top
from spangrade.samples.reading import Call

T = TypeVar("T")

MAX_AGE_S: Final = 600.0
GRACE_S: Final = 0.1


@dataclass(slots=True)  # not frozen: one is made for every span that ends, and a frozen one takes four times as long
class Lineage:
    """What the host knows of a span's open ancestors: the topmost one (itself, if none), whether a call is among them,
    and whether an evaluator is (then the span is an evaluator's work, and is not offered). ``running`` can be asked
    later. ``within``: see `Call`."""

    root_id: int
    under_call: bool
    under_evaluator: bool = False
    running: RunningCalls | None = None
    within: str | None = None


@dataclass(frozen=True, slots=True)
class Decided(Generic[T]):
    """A root sample's spans, and handles that need not wait any longer for one.

    ``tops`` are the topmost calls in order of end. The last one carries the score: ``carrier`` is its handle, None while
    nothing is decided (then there are no tops). ``rest``: spans that carry no root score after all. ``picks``: calls to be
    graded by themselves, each with its handle, out of ``around``: all calls of their local root.
    """

    tops: tuple[Call, ...] = ()
    parts: tuple[Call, ...] = ()
    partial: bool = False
    carrier: T | None = None
    rest: tuple[T, ...] = ()
    picks: tuple[tuple[Call, T], ...] = ()
    around: tuple[Call, ...] = ()


class TraceWindow(Generic[T]):
    """Owned by one thread; no lock."""

    def __init__(self, grace_s: float = GRACE_S) -> None:
        self._grace = grace_s
        self._groups: Groups[T] = Groups()
        self._due: list[tuple[float, Key]] = []  # a heap; entries of groups that have gone are skipped

    def __len__(self) -> int:
        return len(self._groups)

    # --- with lineage -----------------------------------------------------------------------------------------------

    def add(self, call: Call, lineage: Lineage, handle: T | None, now: float, decide_at: float) -> Decided[T] | None:
        """A call ended whose place is known. ``handle``: of a span that can carry a root score, else None.

        Returns a decision when the call is itself the local root, and handles that a later topmost call made free.
        """
        key = (call.span.trace_id, lineage.root_id)
        own_root = lineage.root_id == call.span.span_id
        if own_root and handle is not None and key not in self._groups:
            return Decided((call,), (), False, handle)
        group = self._group(key, now)
        group.running = lineage.running
        free: T | None = None
        if handle is None:
            self._groups.add_part(group, call)
        else:
            free = group.add_top(Top(call, handle, decide_at))
            self._look_at(key, decide_at)
        rest = () if free is None else (free,)
        decided = self.root_ended(*key) if own_root else None
        return replace(decided, rest=rest) if decided is not None else (Decided(rest=rest) if rest else None)

    def parts_of(self, trace_id: int, root_id: int = 0) -> list[Call]:
        """What has ended so far under a local root (or, without lineage, in the trace): an inner call's own parts are
        among them."""
        group = self._groups.get((trace_id, root_id))
        return [] if group is None else [*group.parts, *(top.call for top in group.tops)]

    def root_ended(self, trace_id: int, root_id: int) -> Decided[T] | None:
        """The local root ended, whether it was a call or not: its group is complete."""
        group = self._groups.drop((trace_id, root_id))
        return self._decide(group, partial=group.decided) if group is not None and group.tops else None

    # --- without lineage ---------------------------------------------------------------------------------------------

    def arrive(
        self,
        call: Call | None,
        ids: tuple[int, int, int | None],
        is_local_root: bool,
        handle: T | None,
        now: float,
        decide_at: float,
        pick: T | None = None,
    ) -> None:
        """A span arrived, a call or not. ``ids``: trace, span, parent. The decision comes from `due`. ``pick``: the handle of
        a call that is to be graded by itself, whatever else: then what belongs to it is waited for, too."""
        trace_id, span_id, parent_id = ids
        key = (trace_id, 0)
        group = self._group(key, now)
        if call is not None and group.calls.get(span_id, call.span.start_ns) != call.span.start_ns:
            self._groups.put_aside(key)
            group = self._group(key, now)  # another request of the same ids: a generator that is seeded again and again
        if len(group.parents) < MAX_NODES:
            group.parents[span_id] = None if is_local_root else parent_id
        if call is not None:
            group.calls[span_id] = call.span.start_ns
            if len(group.kinds) < MAX_NODES:
                group.kinds[span_id] = EVALUATOR if call.evaluator else call.kind
            if handle is not None:
                group.tops.append(Top(call, handle, decide_at))
                self._look_at(key, decide_at)
            elif not call.evaluator:
                self._groups.add_part(group, call)
            if pick is not None:
                group.picks.append(Top(call, pick, decide_at))
                self._look_at(key, decide_at)
        if is_local_root:
            group.roots[span_id] = now + self._grace
            self._look_at(key, now + self._grace)
        elif any(at <= now for at in group.roots.values()):  # its root has come long ago: it waits for itself only
            self._look_at(key, now + self._grace)

    # --- time ---------------------------------------------------------------------------------------------------------

    def due(self, now: float) -> Iterator[Decided[T]]:
        """Decide what can wait no longer, and forget what is too old."""
        for key, late in self._groups.aside():
            yield from self._close(key, late)
        seen: set[Key] = set()
        while self._due and self._due[0][0] <= now:
            _, key = heapq.heappop(self._due)
            group = self._groups.get(key)
            if group is None or key in seen:
                continue
            seen.add(key)
            yield from self._look(key, group, now)
            if group.born + MAX_AGE_S <= now:
                self._groups.drop(key)
                if group.tops or group.picks:
                    yield from self._close(key, group)

    def next_due(self) -> float | None:
        """When `due` should be called next."""
        if self._groups.any_aside:
            return 0.0
        return self._due[0][0] if self._due else None

    def decide_all(self) -> Iterator[Decided[T]]:
        """Decide every group now: a flush or the end."""
        yield from self.due(float("-inf"))
        for key, group in list(self._groups.items()):
            if group.tops or group.picks:
                yield from self._close(key, group)
                group.tops, group.picks, group.decided = [], [], True
                self._groups.keep_parts(group)

    def _look(self, key: Key, group: Group[T], now: float) -> Iterator[Decided[T]]:
        waiting = any(top.decide_at <= now for top in (*group.tops, *group.picks))
        if not waiting and not any(at <= now for at in group.roots.values()):
            return
        if key[1] == 0:
            yield from self._split(key, group, now)
        elif group.running is not None and group.running.call_runs_below(*key):
            # A call that ends later runs already, so none of these is the last: their spans may go.
            yield Decided(rest=tuple(top.handle for top in group.tops if top.handle is not None))
            group.tops = [replace(top, handle=None, decide_at=float("inf")) for top in group.tops]
        else:
            yield self._decide(group, partial=True)
            group.tops, group.decided = [], True
            self._groups.keep_parts(group)

    def _close(self, key: Key, group: Group[T]) -> Iterator[Decided[T]]:
        if key[1] == 0:
            yield from self._split(key, group, float("inf"))
        else:
            yield self._decide(group, partial=True)

    # --- inside ---------------------------------------------------------------------------------------------------------

    def _look_at(self, key: Key, when: float) -> None:
        if when != float("inf"):
            heapq.heappush(self._due, (when, key))

    def _group(self, key: Key, now: float) -> Group[T]:
        if key not in self._groups:
            self._look_at(key, now + MAX_AGE_S)
        return self._groups.at(key, now)

    @staticmethod
    def _decide(group: Group[T], partial: bool) -> Decided[T]:
        tops = sorted(group.tops, key=lambda top: top.order)
        return Decided(tuple(t.call for t in tops), tuple(group.parts), partial, tops[-1].handle)

    def _split(self, key: Key, group: Group[T], now: float) -> Iterator[Decided[T]]:
        """Without lineage: candidates by their local root, and into topmost and below; what is not due yet stays."""
        tops: dict[int, list[Top[T]]] = {}
        below: dict[int, list[Top[T]]] = {}
        picks: dict[int, list[Top[T]]] = {}
        parts: dict[int, list[Call]] = {}
        rest: list[T] = []
        for waiting, top in (*((tops, top) for top in group.tops), *((picks, top) for top in group.picks)):
            place = group.place(top.call.span.span_id)
            if place.under_evaluator:
                if top.handle is not None:
                    rest.append(top.handle)
                continue
            into = below if place.under_call and waiting is tops else waiting
            into.setdefault(place.root_id, []).append(replace(top, call=_placed(top.call, place)))
        for part in group.parts:
            place = group.place(part.span.span_id)
            if not place.under_evaluator:
                parts.setdefault(place.root_id, []).append(_placed(part, place))
        stay_tops: list[Top[T]] = []
        stay_picks: list[Top[T]] = []
        for root in {*tops, *below, *picks}:
            mine, inner, asked = tops.get(root, []), below.get(root, []), picks.get(root, [])
            arrived = group.roots.get(root, float("inf")) <= now
            if not arrived and not any(top.decide_at <= now for top in (*mine, *inner, *asked)):
                stay_tops.extend((*mine, *inner))
                stay_picks.extend(asked)
                continue
            mine.sort(key=lambda top: top.order)
            rest.extend(top.handle for top in (*mine[:-1], *inner) if top.handle is not None)
            known = parts.pop(root, ()) if mine else parts.get(root, ())
            under = (*known, *(top.call for top in inner))
            partial = not arrived or root not in group.roots or group.decided
            if asked:
                around = (*under, *(top.call for top in mine))
                handed = tuple((top.call, top.handle) for top in asked if top.handle is not None)
                yield Decided(partial=partial, picks=handed, around=around)
            if mine:
                yield Decided(tuple(t.call for t in mine), under, partial, mine[-1].handle)
        group.tops, group.picks = stay_tops, stay_picks
        self._groups.keep_parts(group, (part for some in parts.values() for part in some))
        if stay_tops or stay_picks:
            self._look_at(key, min(top.decide_at for top in (*stay_tops, *stay_picks)))
        if rest:
            yield Decided(rest=tuple(rest))


def _placed(call: Call, place: Place) -> Call:
    return call if place.within is None else replace(call, within=place.within)
