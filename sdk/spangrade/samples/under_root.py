"""The spans of a trace, sorted by their local root: for hosts that get them in any order."""

from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from spangrade.samples.groups import Group, Place, Top
from spangrade.samples.reading import Call

T = TypeVar("T")


@dataclass(slots=True)
class UnderRoot(Generic[T]):
    """What stands under one local root, as far as it is known: the topmost candidates, those below a call, calls to be graded
    by themselves, and parts."""

    tops: list[Top[T]] = field(default_factory=list)
    below: list[Top[T]] = field(default_factory=list)
    picks: list[Top[T]] = field(default_factory=list)
    parts: list[Call] = field(default_factory=list)

    @property
    def waiting(self) -> list[Top[T]]:
        """All that has a handle."""
        return [*self.tops, *self.below, *self.picks]


def by_root(group: Group[T]) -> tuple[dict[int, UnderRoot[T]], list[T]]:
    """By the root's span id; and the handles of what stands under an evaluator, which nobody grades."""
    found: dict[int, UnderRoot[T]] = {}
    rest: list[T] = []
    for is_pick, top in (*((False, top) for top in group.tops), *((True, top) for top in group.picks)):
        place = group.place(top.call.span.span_id)
        if place.under_evaluator:
            if top.handle is not None:
                rest.append(top.handle)
            continue
        under = found.setdefault(place.root_id, UnderRoot())
        into = under.picks if is_pick else under.below if place.under_call else under.tops
        into.append(replace(top, call=_placed(top.call, place)))
    for part in group.parts:
        place = group.place(part.span.span_id)
        if not place.under_evaluator:
            found.setdefault(place.root_id, UnderRoot()).parts.append(_placed(part, place))
    for under in found.values():
        under.tops.sort(key=lambda top: top.order)
    return found, rest


def _placed(call: Call, place: Place) -> Call:
    return call if place.over is None else replace(call, within=place.within, over=place.over)
