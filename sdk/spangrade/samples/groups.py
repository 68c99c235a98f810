"""The spans that wait for the rest of their local root: bounded in groups, in bytes, in spans per group."""

from collections.abc import ItemsView, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Protocol, TypeVar

from spangrade.samples.reading import Call

T = TypeVar("T")

MAX_GROUPS: Final = 4_096
MAX_PARTS: Final = 256
MAX_NODES: Final = 4_096
MAX_BYTES: Final = 32 * 2**20  # of parts, which belong to spans that have left

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
    it), whether a call and whether an evaluator is above it, and the kind of the nearest call above it that is no chain."""

    root_id: int
    under_call: bool
    under_evaluator: bool
    within: str | None


@dataclass(slots=True)
class Group(Generic[T]):
    """The spans of one local root or, without lineage, of one trace."""

    born: float
    tops: list[Top[T]] = field(default_factory=list)
    parts: list[Call] = field(default_factory=list)
    bytes: int = 0
    here: bool = True  # among the groups, whose bytes are counted together
    decided: bool = False  # something of it was decided before: what comes now is partial
    running: RunningCalls | None = None
    # Without lineage only: calls to be graded by themselves, who is whose parent (None: a local root), which spans are
    # calls, of which kind, and when roots are due.
    picks: list[Top[T]] = field(default_factory=list)
    parents: dict[int, int | None] = field(default_factory=dict)
    calls: dict[int, int] = field(default_factory=dict)  # to their start
    kinds: dict[int, str] = field(default_factory=dict)  # of calls and of evaluators
    roots: dict[int, float] = field(default_factory=dict)

    def add_top(self, top: Top[T]) -> T | None:
        """Only the last to end keeps its handle; returns the one that is free now."""
        last = max(range(len(self.tops)), key=lambda i: self.tops[i].order, default=None)
        if len(self.tops) >= MAX_PARTS:
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

    def place(self, span_id: int) -> Place:
        """Where a span stands. Ids that form a ring end the climb."""
        under_call = under_evaluator = False
        within, at, seen = None, span_id, {span_id}
        while True:
            parent = self.parents.get(at)
            if parent is None or parent not in self.parents or parent in seen:
                return Place(at, under_call, under_evaluator, within)
            seen.add(parent)
            kind = self.kinds.get(parent)
            if kind is not None:
                under_call = True
                under_evaluator = under_evaluator or kind == "evaluator"
                within = within or (kind if kind != "chain" else None)
            at = parent


class Groups(Generic[T]):
    """All of them, the oldest first. At the bound of groups the oldest is put aside; at that of bytes, the oldest groups'
    parts are forgotten."""

    def __init__(self) -> None:
        self._groups: dict[Key, Group[T]] = {}
        self._bytes = 0
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
            if len(self._groups) >= MAX_GROUPS:
                self.put_aside(next(iter(self._groups)))
            group = self._groups[key] = Group(born=now)
        return group

    def drop(self, key: Key) -> Group[T] | None:
        group = self._groups.pop(key, None)
        if group is not None:
            self._take_bytes(group, -group.bytes)
            group.here = False
        return group

    def put_aside(self, key: Key) -> None:
        """Drop it; `aside` gives it back, where a span waits in it."""
        group = self.drop(key)
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
        group.parts.append(call)
        self._take_bytes(group, _size(call))
        if self._bytes > MAX_BYTES:
            for other in self._groups.values():
                self.keep_parts(other)
                if self._bytes <= MAX_BYTES:
                    break

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
    return 512 + sum(len(value) for value in call.span.attributes.values() if isinstance(value, (str, bytes)))
