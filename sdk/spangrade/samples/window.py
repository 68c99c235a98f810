"""Which spans of a trace, within one process, make up one root sample; time is passed in.

Two ways to know a span's place, one result:

- *with lineage*: the host saw the ancestors start (the SDK's processor), so a span's local root, and whether a call is
  above it, are known when it ends;
- *without*: spans arrive in any order and batches (an exporter, the agent), so candidates wait until the local root has
  arrived (no parent, or a remote one), plus a short grace.

A group that is still open when its time is up is decided with what is there, marked partial, and starts afresh.
State is bounded in groups, in spans per group, and in age.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from spangrade.samples.reading import Call

T = TypeVar("T")

MAX_GROUPS: Final = 4_096
MAX_PARTS: Final = 256
MAX_NODES: Final = 4_096
MAX_AGE_S: Final = 600.0
GRACE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Lineage:
    """What the host knows of a span's open ancestors: the topmost one (itself, if none), whether a call is among them,
    and whether an evaluator is (then the span is an evaluator's work, and is not offered)."""

    root_id: int
    under_call: bool
    under_evaluator: bool = False


@dataclass(frozen=True, slots=True)
class _Top(Generic[T]):
    """A candidate, and the host's handle for its span (None: given back already, since a later one carries the score)."""

    call: Call
    handle: T | None

    @property
    def order(self) -> tuple[int, int]:
        return (self.call.span.end_ns, self.call.span.span_id)


@dataclass(frozen=True, slots=True)
class Decided(Generic[T]):
    """A root sample's spans, and handles that need not wait any longer for one.

    ``tops`` are the topmost calls in order of end. The last one carries the score: ``carrier`` is its handle, None while
    nothing is decided (then there are no tops). ``rest``: spans that carry no root score after all.
    """

    tops: tuple[Call, ...] = ()
    parts: tuple[Call, ...] = ()
    partial: bool = False
    carrier: T | None = None
    rest: tuple[T, ...] = ()


@dataclass(slots=True)
class _Group(Generic[T]):
    born: float
    decide_at: float | None = None
    tops: list[_Top[T]] = field(default_factory=list)
    parts: list[Call] = field(default_factory=list)
    # Without lineage only: who is whose parent, which spans are calls, and which roots have arrived.
    parents: dict[int, int | None] = field(default_factory=dict)
    calls: set[int] = field(default_factory=set)
    complete: bool = False


class TraceWindow(Generic[T]):
    """Owned by one thread; no lock."""

    def __init__(self, grace_s: float = GRACE_S) -> None:
        self._grace = grace_s
        self._groups: dict[tuple[int, int], _Group[T]] = {}

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
        free: T | None = None
        if handle is None:
            self._add_part(group, call)
        else:
            free = self._add_top(group, _Top(call, handle), decide_at)
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
        group = self._groups.pop((trace_id, root_id), None)
        return self._decide(group, partial=False) if group is not None and group.tops else None

    @staticmethod
    def _add_top(group: _Group[T], top: _Top[T], decide_at: float) -> T | None:
        """Only the last to end keeps its handle; returns the one that is free now."""
        group.decide_at = min(group.decide_at or decide_at, decide_at)
        last = max(range(len(group.tops)), key=lambda i: group.tops[i].order, default=None)
        if last is None:
            group.tops.append(top)
            return None
        if group.tops[last].order < top.order:
            free, group.tops[last] = group.tops[last].handle, _Top(group.tops[last].call, None)
            group.tops.append(top)
            return free
        group.tops.append(_Top(top.call, None))
        return top.handle

    # --- without lineage ---------------------------------------------------------------------------------------------

    def arrive(
        self,
        call: Call | None,
        ids: tuple[int, int, int | None],
        is_local_root: bool,
        handle: T | None,
        now: float,
        decide_at: float,
    ) -> None:
        """A span arrived, a call or not. ``ids``: trace, span, parent. The decision comes from `due`."""
        trace_id, span_id, parent_id = ids
        group = self._group((trace_id, 0), now)
        if len(group.parents) < MAX_NODES:
            group.parents[span_id] = None if is_local_root else parent_id
        if call is not None:
            group.calls.add(span_id)
            if handle is not None:
                group.tops.append(_Top(call, handle))
                group.decide_at = min(group.decide_at or decide_at, decide_at)
            else:
                self._add_part(group, call)
        if is_local_root:
            group.complete = True
            soon = now + self._grace
            group.decide_at = min(group.decide_at or soon, soon)

    # --- time ---------------------------------------------------------------------------------------------------------

    def due(self, now: float) -> Iterator[Decided[T]]:
        """Decide what can wait no longer, and forget what is too old."""
        for key, group in list(self._groups.items()):
            if (group.decide_at is not None and group.decide_at <= now) or group.born + MAX_AGE_S <= now:
                del self._groups[key]
                yield from self._close(key, group)

    def _close(self, key: tuple[int, int], group: _Group[T]) -> Iterator[Decided[T]]:
        if group.tops:
            yield from self._split(group) if key[1] == 0 else [self._decide(group, partial=True)]

    def next_due(self) -> float | None:
        """When `due` should be called next."""
        times = [g.decide_at for g in self._groups.values() if g.decide_at is not None]
        return min(times) if times else None

    def decide_all(self) -> Iterator[Decided[T]]:
        """Decide every group now: a flush or the end."""
        groups, self._groups = self._groups, {}
        for key, group in groups.items():
            yield from self._close(key, group)

    # --- inside ---------------------------------------------------------------------------------------------------------

    def _group(self, key: tuple[int, int], now: float) -> _Group[T]:
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= MAX_GROUPS:
                self._forget_one(now)
            group = self._groups[key] = _Group(born=now)
        return group

    def _forget_one(self, now: float) -> None:
        # The oldest group without a waiting span; failing that, the oldest one is decided at the next `due`.
        for key, group in self._groups.items():
            if not group.tops:
                del self._groups[key]
                return
        next(iter(self._groups.values())).decide_at = now

    @staticmethod
    def _add_part(group: _Group[T], call: Call) -> None:
        if len(group.parts) >= MAX_PARTS:
            del group.parts[0]
        group.parts.append(call)

    @staticmethod
    def _decide(group: _Group[T], partial: bool) -> Decided[T]:
        tops = sorted(group.tops, key=lambda top: top.order)
        return Decided(tuple(t.call for t in tops), tuple(group.parts), partial, tops[-1].handle)

    def _split(self, group: _Group[T]) -> Iterator[Decided[T]]:
        """Without lineage: sort a trace's candidates by their local root, and into topmost and below."""
        tops: dict[int, list[_Top[T]]] = {}
        below: dict[int, list[Call]] = {}
        broken: set[int] = set()
        rest: list[T] = []
        for top in group.tops:
            root, under_call, reached = self._climb(group, top.call.span.span_id)
            if not reached:
                broken.add(root)
            if not under_call:
                tops.setdefault(root, []).append(top)
                continue
            below.setdefault(root, []).append(top.call)
            if top.handle is not None:
                rest.append(top.handle)
        for part in group.parts:
            below.setdefault(self._climb(group, part.span.span_id)[0], []).append(part)
        for root, mine in tops.items():
            mine.sort(key=lambda top: top.order)
            rest.extend(top.handle for top in mine[:-1] if top.handle is not None)
            parts = tuple(below.get(root, ()))
            yield Decided(tuple(t.call for t in mine), parts, root in broken, mine[-1].handle)
        if rest:
            yield Decided(rest=tuple(rest))

    @staticmethod
    def _climb(group: _Group[T], span_id: int) -> tuple[int, bool, bool]:
        """The topmost known ancestor, whether a call is on the way up, and whether a local root was reached."""
        under_call, at, seen = False, span_id, {span_id}
        while True:
            parent = group.parents.get(at)
            if parent is None:
                return at, under_call, at in group.parents
            if parent not in group.parents:
                return at, under_call, False
            if parent in seen:  # ids that form a ring: treat as broken
                return at, under_call, False
            seen.add(parent)
            under_call = under_call or parent in group.calls
            at = parent
