"""What a trace window is told of a span's place, and what it gives back."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from spangrade.samples.groups import RunningCalls
from spangrade.samples.reading import Call

T = TypeVar("T")


@dataclass(slots=True)  # not frozen: one is made for every span that ends, and a frozen one takes four times as long
class Lineage:
    """What the host knows of a span's open ancestors: the topmost one (itself, if none), whether a call is among them,
    and whether an evaluator is (then the span is an evaluator's work, and is not offered). ``running`` can be asked
    later. ``within``, ``over``: see `Call`. ``given``: the documents set by hand on the nearest open call above, as JSON."""

    root_id: int
    under_call: bool
    under_evaluator: bool = False
    running: RunningCalls | None = None
    within: str | None = None
    over: int | None = None
    given: str | None = None


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
