"""Spans that are open in this process, so that a call knows its ancestors when it ends."""

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan

from spangrade.otel.adapter import plain_attributes
from spangrade.samples.extract import quick_kind
from spangrade.samples.reading import ROOT_KINDS
from spangrade.samples.window import Lineage
from spangrade.tracing import open_documents

MAX_OPEN: Final = 16_384
MAX_AGE_S: Final = 6 * 3_600.0
_EVERY: Final = 64  # spans, after which the bounds are looked at
_MARKS: Final = 64  # in `MAX_AGE_S`: what is older is told as exactly as that
_MAX_DEPTH: Final = 256  # deeper nesting than this is a ring of repeated ids
_CLIMB: Final = (None,) * _MAX_DEPTH


class _Open(Lineage):
    """One started span, which becomes its own lineage when it ends. ``above`` is kept after that one has ended, so that the
    climb does not stop at it."""

    __slots__ = ("_kind", "_span", "above", "ended", "has_calls", "key", "number")

    def __init__(self, key: tuple[int, int], above: "_Open | None", kind: str | None, span: Any, number: int) -> None:
        self.key = key
        self.number = number  # in the order of their starts
        self.above = above
        self.ended = self.has_calls = False
        self._kind = kind
        self._span = span  # what gives it, as long as it lives; None where the kind is known

    def kind(self) -> str | None:
        """By its attributes so far. Once a call, always one; what is none yet may still become one."""
        if self._kind is None and (span := self._span()) is not None:
            self._kind = quick_kind(plain_attributes(span))
        return self._kind


class OpenSpans:
    """Bounded: past `MAX_OPEN` the oldest is forgotten, and what is older than `MAX_AGE_S` when others start; what ends
    below a forgotten one then counts as topmost."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._open: dict[tuple[int, int], _Open] = {}
        self._lock = threading.RLock()
        self._started = 0
        self._clock = clock
        self._marks: deque[tuple[float, int]] = deque()  # at that time that one was the last to have started
        _all.add(self)

    def __len__(self) -> int:
        return len(self._open)

    def started(self, span: ReadableSpan) -> None:
        """A span of any sort starts. Ids identify it, so a repeated id (a seeded generator) only makes one of the two topmost."""
        context, parent = span.get_span_context(), span.parent
        if context is not None:
            under = (parent.trace_id, parent.span_id) if parent is not None and not parent.is_remote else None
            # Held weakly: a span that is never ended must not keep its content.
            self.opened((context.trace_id, context.span_id), under, None, weakref.ref(span))

    def opened(self, key: tuple[int, int], under: tuple[int, int] | None, kind: str | None, span: Any) -> None:
        """The same by its ids and its parent's in this process, and by its kind or what gives the span."""
        opened = self._open
        above = None if under is None else opened.get(under)
        if above is not None:
            if above.ended:
                above = above.above
            else:  # what has ended above it is no part of a climb, and would be kept as long as somebody starts a successor
                while (over := above.above) is not None and over.ended:
                    above.above = over.above
        self._started = number = self._started + 1
        opened[key] = _Open(key, above, kind, span, number)
        if number % _EVERY == 0:
            self._forget(opened, number)

    def _forget(self, opened: dict[tuple[int, int], _Open], number: int) -> None:
        with self._lock:
            now, marks, old = self._clock(), self._marks, 0
            if not marks or now - marks[-1][0] >= MAX_AGE_S / _MARKS:
                marks.append((now, number))
            while now - marks[0][0] >= MAX_AGE_S:
                old = marks.popleft()[1]
            while len(opened) > MAX_OPEN or (old and opened):
                oldest = _first(opened)
                if oldest is None or (len(opened) <= MAX_OPEN and oldest.number > old):
                    break
                opened.pop(oldest.key, None)

    def ended(self, key: tuple[int, int], *, is_call: bool) -> tuple[Lineage, bool]:
        """A span ends: its lineage, and whether calls ended below it whose root it is."""
        mine, noted = self._open.pop(key, None), open_documents.held
        if noted:
            noted.pop(key, None)
        if mine is None:  # it started before we were there, or was forgotten
            return Lineage(key[1], False, False, self), False
        mine.ended = True
        root, under_call, under_evaluator, at = mine, False, False, mine.above
        within: str | None = None
        over: int | None = None
        given: str | None = None
        for _ in _CLIMB:
            if at is None:
                break
            if not at.ended:
                root = at
                kind = at.kind()
                under_call = under_call or kind is not None
                under_evaluator = under_evaluator or kind == "evaluator"
                if over is None and kind is not None:
                    over = at.key[1]
                if within is None and kind != "chain":
                    within = kind
                if noted and given is None and kind in ROOT_KINDS:
                    given = noted.get(at.key)
            at = at.above
        if is_call:
            root.has_calls = True
        mine.root_id, mine.under_call, mine.within, mine.over, mine.given = root.key[1], under_call, within, over, given
        mine.under_evaluator, mine.running = under_evaluator, self
        return mine, mine.has_calls

    def call_runs_below(self, trace_id: int, root_id: int) -> bool:
        """Whether a call that could be topmost is open now below this local root. Asked rarely, from our own thread."""
        for one in list(self._open.values()):
            if one.key[0] != trace_id or one.key[1] == root_id or one.kind() not in ROOT_KINDS:
                continue
            at, depth = one.above, 0
            while at is not None and depth < _MAX_DEPTH:
                if at.key[1] == root_id:
                    return True
                at, depth = at.above, depth + 1
        return False

    def after_fork(self) -> None:
        """In a forked child open spans are the parent's: what ends here has no ancestor in this process."""
        self._open = {}
        self._lock = threading.RLock()


def _first(opened: dict[tuple[int, int], _Open]) -> _Open | None:
    while True:
        try:
            return next(iter(opened.values()), None)
        except RuntimeError:  # another thread's span has just started or ended
            continue


_all: weakref.WeakSet[OpenSpans] = weakref.WeakSet()


def forget_open_spans() -> None:
    """In a forked child, for all processors."""
    for one in list(_all):
        one.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_open_spans)
