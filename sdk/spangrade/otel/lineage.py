"""Spans that are open in this process, so that a call knows its ancestors when it ends."""

import os
import threading
import weakref
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from spangrade.otel.adapter import plain_attributes
from spangrade.samples.extract import quick_kind
from spangrade.samples.window import Lineage

MAX_OPEN: Final = 16_384


class _Open:
    __slots__ = ("_kind", "has_calls", "parent", "span")

    def __init__(self, span: ReadableSpan, parent: tuple[int, int] | None) -> None:
        self.span = span
        self.parent = parent
        self.has_calls = False
        self._kind: str | None = None

    def kind(self) -> str | None:
        """By its attributes so far. Once a call, always one; what is none yet may still become one."""
        if self._kind is None:
            self._kind = quick_kind(plain_attributes(self.span))
        return self._kind


class OpenSpans:
    """Bounded: past `MAX_OPEN` the oldest is forgotten (a span that is never ended must not cost memory for ever); what
    ends below a forgotten one then counts as topmost."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], _Open] = {}
        self._lock = threading.Lock()
        _all.add(self)

    def __len__(self) -> int:
        return len(self._open)

    def started(self, span: ReadableSpan) -> None:
        """A span starts. Ids identify it, so a repeated id (a seeded generator) only makes one of the two topmost."""
        context = span.get_span_context()
        if context is None:
            return
        above = _parent_key(span)
        opened = self._open
        opened[context.trace_id, context.span_id] = _Open(span, above)
        if len(opened) > MAX_OPEN:
            with self._lock:
                while len(opened) > MAX_OPEN:
                    opened.pop(next(iter(opened)), None)

    def ended(self, span: ReadableSpan, *, is_call: bool) -> tuple[Lineage, bool]:
        """A span ends: its lineage, and whether calls ended below it whose root it is."""
        context = span.get_span_context()
        assert context is not None
        opened = self._open
        mine = opened.pop((context.trace_id, context.span_id), None)
        root_id, under_call, under_evaluator, topmost = context.span_id, False, False, mine
        key = mine.parent if mine is not None else _parent_key(span)
        for _ in range(256):  # deeper nesting than this is a ring of repeated ids
            above = opened.get(key) if key is not None else None
            if above is None or key is None:
                break
            root_id, topmost = key[1], above
            kind = above.kind()
            under_call = under_call or kind is not None
            under_evaluator = under_evaluator or kind == "evaluator"
            key = above.parent
        if is_call and topmost is not None:
            topmost.has_calls = True
        return Lineage(root_id, under_call, under_evaluator), mine is not None and mine.has_calls

    def after_fork(self) -> None:
        """In a forked child open spans are the parent's: what ends here has no ancestor in this process."""
        self._open = {}
        self._lock = threading.Lock()


def _parent_key(span: ReadableSpan) -> tuple[int, int] | None:
    parent = span.parent
    return (parent.trace_id, parent.span_id) if parent is not None and not parent.is_remote else None


_all: weakref.WeakSet[OpenSpans] = weakref.WeakSet()


def _after_fork() -> None:
    for one in list(_all):
        one.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
