"""Which spans of a trace, within one process, make up one root sample; time is passed in.

Two ways to know a span's place, one result:

- *with lineage*: the host saw the ancestors start (the SDK's processor), so a span's local root, and whether a call is
  above it, are known when it ends;
- *without*: spans arrive in any order and batches (an exporter, the agent), so candidates wait until their local root has
  arrived (`SpanData.is_local_root`), plus a short grace.

What is still open when its time is up is decided as it is, and marked partial; what comes after that under the same root
is a sample of its own, partial too. With lineage, a call that runs below the same root postpones that: the one that
waits cannot be the last then, so it is given back. State is bounded in groups, in bytes, in spans per group, and in age.

A call whose log records may bring its answer is waited for, too, where a sample would be empty without.
"""

import heapq
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Generic, TypeVar

from spangrade.samples.bounds import DEFAULT, AssemblyBounds
from spangrade.samples.decided import Decided, Lineage
from spangrade.samples.dialects.base import EVALUATOR
from spangrade.samples.groups import MAX_NODES, Group, Groups, Key, Top
from spangrade.samples.log_waits import LogWaits
from spangrade.samples.reading import Call
from spangrade.samples.tally import Tally
from spangrade.samples.under_root import UnderRoot, by_root

__all__ = ["GRACE_S", "MAX_AGE_S", "Decided", "Lineage", "TraceWindow"]

T = TypeVar("T")

MAX_AGE_S: Final = DEFAULT.max_age
GRACE_S: Final = DEFAULT.grace
_NEVER: Final = float("inf")


class TraceWindow(Generic[T]):
    """Owned by one thread; no lock."""

    def __init__(self, bounds: AssemblyBounds = DEFAULT, tally: Tally | None = None) -> None:
        self._bounds = bounds
        self._groups: Groups[T] = Groups(bounds)
        self._due: list[tuple[float, Key]] = []  # a heap; entries of groups that have gone are skipped
        self._logs: LogWaits[T] = LogWaits(self._groups)
        self.tally = tally or Tally()

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def bytes(self) -> int:
        """Of spans that others may need, about."""
        return self._groups.bytes

    # --- with lineage -----------------------------------------------------------------------------------------------

    def add(
        self, call: Call, lineage: Lineage, handle: T | None, now: float, decide_at: float, logs_until: float = 0.0
    ) -> Decided[T] | None:
        """A call ended whose place is known. ``handle``: of a span that can carry a root score, else None. ``logs_until``:
        till when its log records may bring its answer; 0 when there are none.

        Returns a decision when the call is itself the local root, and handles that a later topmost call made free.
        """
        key = (call.span.trace_id, lineage.root_id)
        own_root = lineage.root_id == call.span.span_id
        if own_root and handle is not None and not logs_until and key not in self._groups:
            return Decided((call,), (), False, handle)
        group = self._group(key, now)
        group.running = lineage.running
        if group.decided:
            self.tally.late["call"] += 1
        if logs_until:
            self._logs.expect(group, key, call, logs_until)
        free: T | None = None
        if handle is None:
            self._groups.add_part(group, call)
        else:
            free = group.add_top(Top(call, handle, decide_at))
            self._look_at(key, decide_at)
            self._groups.wait(key, group, call)
        rest = () if free is None else (free,)
        decided = self.root_ended(*key, now) if own_root else None
        return replace(decided, rest=rest) if decided is not None else (Decided(rest=rest) if rest else None)

    def parts_of(self, trace_id: int, root_id: int = 0) -> list[Call]:
        """What has ended so far under a local root (or, without lineage, in the trace): an inner call's own parts are
        among them."""
        group = self._groups.get((trace_id, root_id))
        return [] if group is None else [*group.parts, *(top.call for top in group.tops)]

    def root_ended(self, trace_id: int, root_id: int, now: float = _NEVER) -> Decided[T] | None:
        """The local root ended, whether it was a call or not: its group is complete, but for log records."""
        key = (trace_id, root_id)
        group = self._groups.get(key)
        if group is not None and group.tops:
            until = self._logs.until(group, group.tops, group.parts)
            if until > now:
                group.ended = True
                self._look_at(key, until)
                return None
        self._groups.drop(key)
        return self._decide(group, "late" if group.decided else "") if group is not None and group.tops else None

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
        logs_until: float = 0.0,
    ) -> None:
        """A span arrived, a call or not. ``ids``: trace, span, parent. The decision comes from `due`. ``pick``: the handle of
        a call that is to be graded by itself, whatever else: then what belongs to it is waited for, too. ``logs_until``: see
        `add`."""
        trace_id, span_id, parent_id = ids
        key = (trace_id, 0)
        group = self._group(key, now)
        if call is not None and group.calls.get(span_id, call.span.start_ns) != call.span.start_ns:
            self._groups.put_aside(key)
            group = self._group(key, now)  # another request of the same ids: a generator that is seeded again and again
        if len(group.parents) < MAX_NODES:
            group.parents[span_id] = None if is_local_root else parent_id
            if group.above_scored:
                group.span_came(span_id)
        if call is not None:
            self._count_late(group, span_id)
            if logs_until:
                self._logs.expect(group, key, call, logs_until)
            if len(group.kinds) < MAX_NODES:
                group.calls[span_id] = call.span.start_ns
                group.kinds[span_id] = EVALUATOR if call.evaluator else call.kind
            if handle is not None:
                group.tops.append(Top(call, handle, decide_at))
                self._look_at(key, decide_at)
            elif not call.evaluator:
                self._groups.add_part(group, call)
            if pick is not None:
                group.picks.append(Top(call, pick, decide_at))
                self._look_at(key, decide_at)
            if handle is not None or pick is not None:
                self._groups.wait(key, group, call)
        if is_local_root:
            group.roots[span_id] = now + self._bounds.grace
            self._look_at(key, now + self._bounds.grace)
        elif any(at <= now for at in group.roots.values()):  # its root has come long ago: it waits for itself only
            self._look_at(key, now + self._bounds.grace)

    # --- log records ----------------------------------------------------------------------------------------------------

    def expected(self, trace_id: int, span_id: int) -> Call | None:
        """The call that waits for its log records, if one of these ids does."""
        return self._logs.call(trace_id, span_id)

    def said(self, call: Call, now: float) -> None:
        """What the log records of an `expected` call have told."""
        self._look_at(self._logs.said(call, now), now)

    # --- time ---------------------------------------------------------------------------------------------------------

    def due(self, now: float) -> Iterator[Decided[T]]:
        """Decide what can wait no longer, and forget what is too old."""
        for key, aside in self._groups.aside():
            yield from self._close(key, aside, aside.lost)
        seen: set[Key] = set()
        while self._due and self._due[0][0] <= now:
            _, key = heapq.heappop(self._due)
            group = self._groups.get(key)
            if group is None or key in seen:
                continue
            seen.add(key)
            yield from self._look(key, group, now)
            if group.born + self._bounds.max_age <= now:
                self._groups.drop(key)
                if group.tops or group.picks:
                    yield from self._close(key, group, "max_age")

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
                yield from self._close(key, group, "flush")
                group.tops, group.picks, group.decided = [], [], True
                self._groups.keep_parts(group)
                self._groups.weigh(group)

    def _look(self, key: Key, group: Group[T], now: float) -> Iterator[Decided[T]]:
        quiet = self._bounds.quiet is not None and group.last + self._bounds.quiet <= now
        waiting = quiet or group.ended or any(top.decide_at <= now for top in (*group.tops, *group.picks))
        if not waiting and not any(at <= now for at in group.roots.values()):
            return
        if key[1] == 0:
            yield from self._split(key, group, now, "quiet" if quiet else "no_root", over=quiet)
            return
        until = self._logs.until(group, group.tops, group.parts)
        if not group.tops:
            return
        if until > now:
            self._look_at(key, until)
        elif group.ended:
            self._groups.drop(key)
            yield self._decide(group, "late" if group.decided else "")
        elif group.running is not None and group.running.call_runs_below(*key):
            # A call that ends later runs already, so none of these is the last: their spans may go.
            yield Decided(rest=tuple(top.handle for top in group.tops if top.handle is not None))
            group.tops = [replace(top, handle=None, decide_at=_NEVER) for top in group.tops]
        else:
            yield self._decide(group, "quiet" if quiet else "no_root")
            group.tops, group.decided = [], True
            self._groups.keep_parts(group)
            self._groups.weigh(group)

    def _close(self, key: Key, group: Group[T], why: str) -> Iterator[Decided[T]]:
        if key[1] == 0:
            yield from self._split(key, group, _NEVER, why, over=True)
        elif group.ended:
            yield self._decide(group, "late" if group.decided else "")
        else:
            yield self._decide(group, why or "flush")

    # --- inside ---------------------------------------------------------------------------------------------------------

    def _look_at(self, key: Key, when: float) -> None:
        if when != _NEVER:
            heapq.heappush(self._due, (when, key))

    def _group(self, key: Key, now: float) -> Group[T]:
        """Something of it has come."""
        if key not in self._groups:
            self._look_at(key, now + self._bounds.max_age)
        if self._bounds.quiet is not None:
            self._look_at(key, now + self._bounds.quiet)
        group = self._groups.at(key, now)
        group.last = now
        return group

    def _count_late(self, group: Group[T], span_id: int) -> None:
        if group.decided or (group.scored and group.place(span_id).root_id in group.scored):
            self.tally.late["call"] += 1

    def _why(self, group: Group[T], why: str) -> bool:
        """Whether a sample is partial, for what reason; counted."""
        why = why or group.lost
        if why:
            self.tally.partial[why] += 1
        return bool(why)

    def _decide(self, group: Group[T], why: str) -> Decided[T]:
        tops = sorted(group.tops, key=lambda top: top.order)
        partial = self._why(group, why)
        return Decided(tuple(t.call for t in tops), tuple(group.parts), partial, tops[-1].handle)

    def _split(self, key: Key, group: Group[T], now: float, why: str, *, over: bool) -> Iterator[Decided[T]]:
        """Without lineage: what stands under each local root is decided, if it is due. ``over``: nothing waits any longer, for
        the reason ``why``."""
        roots, rest = by_root(group)
        stay: list[UnderRoot[T]] = []
        for root, under in roots.items():
            waiting = under.waiting
            arrived = group.roots.get(root, _NEVER) <= now
            ready = arrived or over or any(top.decide_at <= now for top in waiting)
            below = (*under.parts, *(top.call for top in under.below))
            until = self._logs.until(group, under.tops, below) if under.tops else 0.0
            if not waiting or not ready or until > now:
                stay.append(under)
                if waiting and ready:
                    self._look_at(key, until)
                continue
            reason = "late" if group.decided or root in group.scored else "" if root in group.roots else why
            rest.extend(top.handle for top in (*under.tops[:-1], *under.below) if top.handle is not None)
            if under.tops:
                group.root_scored(root)
            yield from self._decide_under(key, group, under, below, now, reason)
            stay.append(under)
        group.tops = [top for under in stay for top in (*under.tops, *under.below)]
        group.picks = [top for under in stay for top in under.picks]
        self._groups.keep_parts(group, (part for under in stay for part in under.parts))
        self._groups.weigh(group)
        if group.tops or group.picks:
            self._look_at(key, max(now, min(top.decide_at for top in (*group.tops, *group.picks))))
        if rest:
            yield Decided(rest=tuple(rest))

    def _decide_under(
        self, key: Key, group: Group[T], under: UnderRoot[T], below: tuple[Call, ...], now: float, why: str
    ) -> Iterator[Decided[T]]:
        """Decide one root; what stays in ``under`` is what is needed on: by calls that still wait for their log records."""
        waits, tops = group.waits.get, under.tops
        later = [top for top in under.picks if waits(top.call.span.span_id, 0.0) > now]
        around = (*below, *(top.call for top in tops))
        for top in under.picks:
            span_id = top.call.span.span_id
            if waits(span_id, 0.0) <= now and top.handle is not None:
                partial = self._why(group, "" if span_id in group.in_time else why)
                yield Decided(partial=partial, picks=((top.call, top.handle),), around=around)
        if tops:
            yield Decided(tuple(t.call for t in tops), below, self._why(group, why), tops[-1].handle)
        under.tops, under.below, under.picks = [], [], later
        if later:
            under.parts = list(around)
            if not why:
                group.in_time.update(top.call.span.span_id for top in later)
            self._look_at(key, min(waits(top.call.span.span_id, 0.0) for top in later))
        elif tops:
            under.parts = []
