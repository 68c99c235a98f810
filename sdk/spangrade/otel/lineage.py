"""Spans that are open in this process, so that a call knows its ancestors when it ends."""

import os
import threading
import weakref
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from spangrade.otel.adapter import plain_attributes
from spangrade.samples.extract import quick_kind
from spangrade.samples.reading import ROOT_KINDS
from spangrade.samples.window import Lineage

MAX_OPEN: Final = 16_384
_MAX_DEPTH: Final = 256  # deeper nesting than this is a ring of repeated ids


class _Open:
    """One started span. It is held weakly: a span that is never ended must not keep its content. ``above`` is kept after
    that one has ended, so that the climb does not stop at it."""

    __slots__ = ("__weakref__", "_kind", "above", "ended", "has_calls", "key", "span")

    def __init__(self, span: ReadableSpan, key: tuple[int, int], above: "_Open | None") -> None:
        self.span = weakref.ref(span)
        self.key = key
        self.above = above
        self.ended = False
        self.has_calls = False
        self._kind: str | None = None

    def kind(self) -> str | None:
        """By its attributes so far. Once a call, always one; what is none yet may still become one."""
        if self._kind is None and (span := self.span()) is not None:
            self._kind = quick_kind(plain_attributes(span))
        return self._kind


class OpenSpans:
    """Bounded: past `MAX_OPEN` the oldest is forgotten; what ends below a forgotten one then counts as topmost."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], _Open] = {}
        self._lock = threading.RLock()
        _all.add(self)

    def __len__(self) -> int:
        return len(self._open)

    def started(self, span: ReadableSpan) -> None:
        """A span starts. Ids identify it, so a repeated id (a seeded generator) only makes one of the two topmost."""
        context, parent = span.get_span_context(), span.parent
        if context is None:
            return
        opened = self._open
        above = None
        if parent is not None and not parent.is_remote:
            above = opened.get((parent.trace_id, parent.span_id))
            if above is not None and above.ended:
                above = above.above
        key = (context.trace_id, context.span_id)
        opened[key] = _Open(span, key, above)
        if len(opened) > MAX_OPEN:
            with self._lock:
                while len(opened) > MAX_OPEN:
                    opened.pop(next(iter(opened)), None)

    def ended(self, span: ReadableSpan, *, is_call: bool) -> tuple[Lineage, bool]:
        """A span ends: its lineage, and whether calls ended below it whose root it is."""
        context = span.get_span_context()
        assert context is not None
        mine = self._open.pop((context.trace_id, context.span_id), None)
        if mine is None:  # it started before we were there, or was forgotten
            return Lineage(context.span_id, False, running=self), False
        mine.ended = True
        root, under_call, under_evaluator, at = mine, False, False, mine.above
        for _ in range(_MAX_DEPTH):
            if at is None:
                break
            if not at.ended:
                root = at
                kind = at.kind()
                under_call = under_call or kind is not None
                under_evaluator = under_evaluator or kind == "evaluator"
            at = at.above
        if is_call:
            root.has_calls = True
        return Lineage(root.key[1], under_call, under_evaluator, self), mine.has_calls

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


_all: weakref.WeakSet[OpenSpans] = weakref.WeakSet()


def forget_open_spans() -> None:
    """In a forked child, for all processors."""
    for one in list(_all):
        one.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_open_spans)
