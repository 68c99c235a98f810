"""The spans that wait for the rest of their local root: bounded in groups, in bytes, in spans per group."""

from collections.abc import ItemsView, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Protocol, TypeVar

from spangrade._sizes import text_size
from spangrade.samples.bounds import DEFAULT, AssemblyBounds
from spangrade.samples.reading import Call

T = TypeVar("T")

MAX_GROUPS: Final = DEFAULT.max_traces
MAX_PARTS: Final = 256
MAX_NODES: Final = 4_096
MAX_BYTES: Final = DEFAULT.max_bytes  # of parts, which belong to spans that have left

Key = tuple[int, int]  # trace id; local root's span id, or 0 for a trace without lineage


class RunningCalls(Protocol):
    """A host that sees spans start."""

    def call_runs_below(self, trace_id: int, root_id: int) -> bool:
        """Whether a call is open now below this local root."""


@dataclass(frozen=True, slots=True)
class Top(Generic[T]):
    """A candidate, and the host's handle for its span (None: given back already, since a later one carries the score)."""

    call: Call
    handle: T | None
    decide_at: float

    @property
    def order(self) -> tuple[int, int]:
        return (self.call.span.end_ns, self.call.span.span_id)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a span stands among those that have arrived: its local root as far as it is known (itself, if nothing is above
    it), whether a call and whether an evaluator is above it, and ``within`` and ``over`` of `Call`."""

    root_id: int
    under_call: bool
    under_evaluator: bool
    within: str | None
    over: int | None


@dataclass(slots=True)
class Group(Generic[T]):
    """The spans of one local root or, without lineage, of one trace."""

    born: float
    tops: list[Top[T]] = field(default_factory=list)
    parts: list[Call] = field(default_factory=list)
    bytes: int = 0
    waiting_bytes: int = 0  # of tops and picks
    here: bool = True  # among the groups, whose bytes are counted together
    decided: bool = False  # something of it was decided before: what comes now is partial
    lost: str = ""  # the bound at which something of it was forgotten
    last: float = 0.0  # when something of it came
    waits: dict[int, float] = field(default_factory=dict)  # calls that log records may tell more of, and until when
    ended: bool = False  # its local root has ended (with lineage), and only log records are waited for
    running: RunningCalls | None = None
    # Without lineage only: calls to be graded by themselves, who is whose parent (None: a local root), which spans are
    # calls, of which kind, and when roots are due.
    picks: list[Top[T]] = field(default_factory=list)
    parents: dict[int, int | None] = field(default_factory=dict)
    calls: dict[int, int] = field(default_factory=dict)  # to their start
    kinds: dict[int, str] = field(default_factory=dict)  # of calls and of evaluators
    roots: dict[int, float] = field(default_factory=dict)
    scored: set[int] = field(default_factory=set)  # roots, as far as they are known, of what has been decided
    above_scored: dict[int, list[int]] = field(default_factory=dict)  # spans that have not come → the roots below them
    in_time: set[int] = field(default_factory=set)  # picks that were here by then, and wait for their log records

    def add_top(self, top: Top[T]) -> T | None:
        """Only the last to end keeps its handle; returns the one that is free now."""
        last = max(range(len(self.tops)), key=lambda i: self.tops[i].order, default=None)
        if len(self.tops) >= MAX_PARTS:
            self.lost = self.lost or "max_spans"
            del self.tops[1 if last == 0 else 0]
            last = max(range(len(self.tops)), key=lambda i: self.tops[i].order)
        if last is None:
            self.tops.append(top)
            return None
        if self.tops[last].order < top.order:
            free, self.tops[last] = self.tops[last].handle, replace(self.tops[last], handle=None)
            self.tops.append(top)
            return free
        self.tops.append(replace(top, handle=None))
        return top.handle

    def root_scored(self, root: int) -> None:
        """What stands under this root has been decided."""
        if root not in self.scored and len(self.scored) < MAX_NODES:
            self.scored.add(root)
            above = self.parents.get(root)
            if above is not None:
                self.above_scored.setdefault(above, []).append(root)

    def span_came(self, span_id: int) -> None:
        """One more is known: roots below it are none any more, its own is."""
        below = self.above_scored.pop(span_id, None)
        if below:
            self.scored.difference_update(below)
            self.root_scored(self.place(span_id).root_id)

    def place(self, span_id: int) -> Place:
        """Where a span stands. Ids that form a ring end the climb."""
        under_call = under_evaluator = False
        within, over, at, seen = None, None, span_id, {span_id}
        while True:
            parent = self.parents.get(at)
            if parent is None or parent not in self.parents or parent in seen:
                return Place(at, under_call, under_evaluator, within, over)
            seen.add(parent)
            kind = self.kinds.get(parent)
            if kind is not None:
                under_call = True
                over = parent if over is None else over
                under_evaluator = under_evaluator or kind == "evaluator"
                within = within or (kind if kind != "chain" else None)
            at = parent


class Groups(Generic[T]):
    """All of them, the oldest first. At the bound of groups the oldest is put aside; at that of bytes, the oldest groups'
    parts are forgotten."""

    def __init__(self, bounds: AssemblyBounds = DEFAULT) -> None:
        self._bounds = bounds
        self._groups: dict[Key, Group[T]] = {}
        self._bytes = self._waiting = 0
        self._aside: list[tuple[Key, Group[T]]] = []  # dropped with a span waiting

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def bytes(self) -> int:
        """Of the parts of all groups that are here."""
        return self._bytes

    def __contains__(self, key: Key) -> bool:
        return key in self._groups

    def items(self) -> ItemsView[Key, Group[T]]:
        return self._groups.items()

    def get(self, key: Key) -> Group[T] | None:
        return self._groups.get(key)

    def at(self, key: Key, now: float) -> Group[T]:
        """The group, made if it is not there."""
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= self._bounds.max_traces:
                self.put_aside(next(iter(self._groups)), "max_traces")
            group = self._groups[key] = Group(born=now)
        return group

    def drop(self, key: Key) -> Group[T] | None:
        group = self._groups.pop(key, None)
        if group is not None:
            self._take_bytes(group, -group.bytes)
            self._waiting -= group.waiting_bytes
            group.here = False
        return group

    def put_aside(self, key: Key, why: str = "") -> None:
        """Drop it; `aside` gives it back, where a span waits in it. ``why``: the bound that it has met."""
        group = self.drop(key)
        if group is not None:
            group.lost = why or group.lost
        if group is not None and (group.tops or group.picks):
            self._aside.append((key, group))

    @property
    def any_aside(self) -> bool:
        return bool(self._aside)

    def aside(self) -> list[tuple[Key, Group[T]]]:
        """What was put aside since the last time."""
        found, self._aside = self._aside, []
        return found

    def add_part(self, group: Group[T], call: Call) -> None:
        if len(group.parts) >= MAX_PARTS:
            self._take_bytes(group, -_size(group.parts.pop(0)))
            group.lost = group.lost or "max_spans"
        group.parts.append(call)
        self._take_bytes(group, _size(call))
        if self._bytes > self._bounds.max_bytes:
            for other in self._groups.values():
                if other.parts:
                    other.lost = other.lost or "max_bytes"
                    self.keep_parts(other)
                if self._bytes <= self._bounds.max_bytes:
                    break

    def wait(self, key: Key, group: Group[T], call: Call) -> None:
        """A call more is a top or a pick of it. These are copies of spans that may have left (the hold keeps to a bound of its
        own): past twice the bound of parts the oldest groups that wait are put aside, this one last of all."""
        size = _size(call)
        group.waiting_bytes += size
        self._waiting += size
        while self._waiting > 2 * self._bounds.max_bytes:
            others = (other for other, held in self._groups.items() if held.waiting_bytes and other != key)
            self.put_aside(next(others, key), "max_bytes")

    def weigh(self, group: Group[T]) -> None:
        """Its tops or picks are fewer now."""
        if group.here:
            size = sum(_size(top.call) for held in (group.tops, group.picks) for top in held)
            self._waiting += size - group.waiting_bytes
            group.waiting_bytes = size

    def say(self, group: Group[T], call: Call) -> None:
        """More is known of a call of it."""
        span_id = call.span.span_id
        for held in (group.tops, group.picks):
            held[:] = [replace(top, call=call) if top.call.span.span_id == span_id else top for top in held]
        self.weigh(group)
        self.keep_parts(group, [call if part.span.span_id == span_id else part for part in group.parts])

    def keep_parts(self, group: Group[T], parts: Iterable[Call] = ()) -> None:
        """Only these of its parts; without, none."""
        self._take_bytes(group, -group.bytes)
        group.parts = list(parts)
        self._take_bytes(group, sum(_size(part) for part in group.parts))

    def _take_bytes(self, group: Group[T], size: int) -> None:
        if group.here:
            group.bytes += size
            self._bytes += size


def _size(call: Call) -> int:
    size = 512 + text_size(call.span.attributes)
    for event in call.span.events:
        size += text_size(event.attributes)
    return size
