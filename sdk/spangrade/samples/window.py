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
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Protocol, TypeVar

from spangrade.samples.reading import Call

T = TypeVar("T")

MAX_GROUPS: Final = 4_096
MAX_PARTS: Final = 256
MAX_NODES: Final = 4_096
MAX_BYTES: Final = 32 * 2**20  # of parts, which belong to spans that have left
MAX_AGE_S: Final = 600.0
GRACE_S: Final = 0.1

Key = tuple[int, int]  # trace id; local root's span id, or 0 for a trace without lineage


class RunningCalls(Protocol):
    """A host that sees spans start."""

    def call_runs_below(self, trace_id: int, root_id: int) -> bool:
        """Whether a call is open now below this local root."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """What the host knows of a span's open ancestors: the topmost one (itself, if none), whether a call is among them,
    and whether an evaluator is (then the span is an evaluator's work, and is not offered). ``running`` can be asked
    later."""

    root_id: int
    under_call: bool
    under_evaluator: bool = False
    running: RunningCalls | None = None


@dataclass(frozen=True, slots=True)
class _Top(Generic[T]):
    """A candidate, and the host's handle for its span (None: given back already, since a later one carries the score)."""

    call: Call
    handle: T | None
    decide_at: float

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
    tops: list[_Top[T]] = field(default_factory=list)
    parts: list[Call] = field(default_factory=list)
    bytes: int = 0
    decided: bool = False  # something of it was decided before: what comes now is partial
    running: RunningCalls | None = None
    # Without lineage only: who is whose parent (None: a local root), which spans are calls, and when roots are due.
    parents: dict[int, int | None] = field(default_factory=dict)
    calls: dict[int, int] = field(default_factory=dict)  # to their start
    roots: dict[int, float] = field(default_factory=dict)


class TraceWindow(Generic[T]):
    """Owned by one thread; no lock."""

    def __init__(self, grace_s: float = GRACE_S) -> None:
        self._grace = grace_s
        self._groups: dict[Key, _Group[T]] = {}
        self._due: list[tuple[float, Key]] = []  # a heap; entries of groups that have gone are skipped
        self._evicted: list[tuple[Key, _Group[T]]] = []  # dropped at the bound with a span waiting: decided at `due`
        self._bytes = 0

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
            self._add_part(group, call)
        else:
            free = self._add_top(group, _Top(call, handle, decide_at))
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
        group = self._drop((trace_id, root_id))
        return self._decide(group, partial=group.decided) if group is not None and group.tops else None

    @staticmethod
    def _add_top(group: _Group[T], top: _Top[T]) -> T | None:
        """Only the last to end keeps its handle; returns the one that is free now."""
        last = max(range(len(group.tops)), key=lambda i: group.tops[i].order, default=None)
        if len(group.tops) >= MAX_PARTS:
            del group.tops[1 if last == 0 else 0]
            last = max(range(len(group.tops)), key=lambda i: group.tops[i].order)
        if last is None:
            group.tops.append(top)
            return None
        if group.tops[last].order < top.order:
            free, group.tops[last] = group.tops[last].handle, replace(group.tops[last], handle=None)
            group.tops.append(top)
            return free
        group.tops.append(replace(top, handle=None))
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
        key = (trace_id, 0)
        group = self._group(key, now)
        if call is not None and group.calls.get(span_id, call.span.start_ns) != call.span.start_ns:
            group = self._anew(key, now)  # another request of the same ids: a generator that is seeded again and again
        if len(group.parents) < MAX_NODES:
            group.parents[span_id] = None if is_local_root else parent_id
        if call is not None:
            group.calls[span_id] = call.span.start_ns
            if handle is not None:
                group.tops.append(_Top(call, handle, decide_at))
                self._look_at(key, decide_at)
            else:
                self._add_part(group, call)
        if is_local_root:
            group.roots[span_id] = now + self._grace
            self._look_at(key, now + self._grace)
        elif any(at <= now for at in group.roots.values()):  # its root has come long ago: it waits for itself only
            self._look_at(key, now + self._grace)

    # --- time ---------------------------------------------------------------------------------------------------------

    def due(self, now: float) -> Iterator[Decided[T]]:
        """Decide what can wait no longer, and forget what is too old."""
        evicted, self._evicted = self._evicted, []
        for key, late in evicted:
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
                self._drop(key)
                if group.tops:
                    yield from self._close(key, group)

    def next_due(self) -> float | None:
        """When `due` should be called next."""
        if self._evicted:
            return 0.0
        return self._due[0][0] if self._due else None

    def decide_all(self) -> Iterator[Decided[T]]:
        """Decide every group now: a flush or the end."""
        yield from self.due(float("-inf"))
        for key, group in list(self._groups.items()):
            if group.tops:
                yield from self._close(key, group)
                group.tops, group.decided = [], True
                self._clear_parts(group)

    def _look(self, key: Key, group: _Group[T], now: float) -> Iterator[Decided[T]]:
        if not any(top.decide_at <= now for top in group.tops) and not any(at <= now for at in group.roots.values()):
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
            self._clear_parts(group)

    def _close(self, key: Key, group: _Group[T]) -> Iterator[Decided[T]]:
        if key[1] == 0:
            yield from self._split(key, group, float("inf"))
        else:
            yield self._decide(group, partial=True)

    # --- inside ---------------------------------------------------------------------------------------------------------

    def _look_at(self, key: Key, when: float) -> None:
        if when != float("inf"):
            heapq.heappush(self._due, (when, key))

    def _group(self, key: Key, now: float) -> _Group[T]:
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= MAX_GROUPS:
                self._forget_oldest()
            group = self._groups[key] = _Group(born=now)
            self._look_at(key, now + MAX_AGE_S)
        return group

    def _drop(self, key: Key) -> _Group[T] | None:
        group = self._groups.pop(key, None)
        if group is not None:
            self._bytes -= group.bytes
        return group

    def _forget_oldest(self) -> None:
        self._evict(next(iter(self._groups)))

    def _evict(self, key: Key) -> None:
        group = self._drop(key)
        if group is not None and group.tops:
            self._evicted.append((key, group))

    def _anew(self, key: Key, now: float) -> _Group[T]:
        self._evict(key)
        return self._group(key, now)

    def _add_part(self, group: _Group[T], call: Call) -> None:
        if len(group.parts) >= MAX_PARTS:
            self._take_bytes(group, -_size(group.parts.pop(0)))
        group.parts.append(call)
        self._take_bytes(group, _size(call))
        if self._bytes > MAX_BYTES:
            for other in self._groups.values():  # the oldest group's parts go first
                self._clear_parts(other)
                if self._bytes <= MAX_BYTES:
                    break

    def _take_bytes(self, group: _Group[T], size: int) -> None:
        group.bytes += size
        self._bytes += size

    def _clear_parts(self, group: _Group[T]) -> None:
        self._bytes -= group.bytes
        group.parts, group.bytes = [], 0

    @staticmethod
    def _decide(group: _Group[T], partial: bool) -> Decided[T]:
        tops = sorted(group.tops, key=lambda top: top.order)
        return Decided(tuple(t.call for t in tops), tuple(group.parts), partial, tops[-1].handle)

    def _split(self, key: Key, group: _Group[T], now: float) -> Iterator[Decided[T]]:
        """Without lineage: candidates by their local root, and into topmost and below; what is not due yet stays."""
        tops: dict[int, list[_Top[T]]] = {}
        below: dict[int, list[_Top[T]]] = {}
        parts: dict[int, list[Call]] = {}
        for top in group.tops:
            root, under_call = self._climb(group, top.call.span.span_id)
            (below if under_call else tops).setdefault(root, []).append(top)
        for part in group.parts:
            parts.setdefault(self._climb(group, part.span.span_id)[0], []).append(part)
        stay_tops: list[_Top[T]] = []
        rest: list[T] = []
        for root in {*tops, *below}:
            mine, inner = tops.get(root, []), below.get(root, [])
            arrived = group.roots.get(root, float("inf")) <= now
            if not arrived and not any(top.decide_at <= now for top in (*mine, *inner)):
                stay_tops.extend((*mine, *inner))
                continue
            mine.sort(key=lambda top: top.order)
            rest.extend(top.handle for top in (*mine[:-1], *inner) if top.handle is not None)
            if mine:
                under = (*parts.pop(root, ()), *(top.call for top in inner))
                partial = not arrived or root not in group.roots or group.decided
                yield Decided(tuple(t.call for t in mine), under, partial, mine[-1].handle)
        group.tops = stay_tops
        kept = [part for some in parts.values() for part in some]
        self._clear_parts(group)
        for part in kept:
            group.parts.append(part)
            self._take_bytes(group, _size(part))
        if stay_tops:
            self._look_at(key, min(top.decide_at for top in stay_tops))
        if rest:
            yield Decided(rest=tuple(rest))

    @staticmethod
    def _climb(group: _Group[T], span_id: int) -> tuple[int, bool]:
        """The topmost known ancestor, and whether a call is on the way up. Ids that form a ring end the climb."""
        under_call, at, seen = False, span_id, {span_id}
        while True:
            parent = group.parents.get(at)
            if parent is None or parent not in group.parents or parent in seen:
                return at, under_call
            seen.add(parent)
            under_call = under_call or parent in group.calls
            at = parent


def _size(call: Call) -> int:
    return 512 + sum(len(value) for value in call.span.attributes.values() if isinstance(value, (str, bytes)))
