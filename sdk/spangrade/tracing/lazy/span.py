"""`LazySpan`: what a call records is kept as it is, and becomes attributes when somebody asks for them."""

from collections.abc import Callable, Mapping
from time import time_ns
from typing import Any, Final, TypeGuard

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import Span
from opentelemetry.sdk.util import BoundedList
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from spangrade import _guard

#: Writes one thing that a call has recorded: ``write(sink, name, value)``. The sink has ``set_attribute`` and
#: ``set_attributes``.
Write = Callable[[Any, str, Any], None]
#: One thing that a call has recorded: what writes it, and the two things that this is given.
Entry = tuple[Write, str, Any]

UNSET: Final = Status(StatusCode.UNSET)
_NOTHING: Final = ()


class Attributes(dict[str, Any]):
    """Attributes in the making."""

    set_attribute = dict.__setitem__
    set_attributes = dict.update


class LazySpan(Span):
    """A span of the SDK whose attributes, events, links and context are made when they are asked for.

    `record` keeps one thing; the first reading of the attributes writes all that was kept, in order, and from then on the
    span is like any other. Whatever the SDK's methods touch is made on the way, under the span's own lock, so that two
    threads may read, and one may write while another reads. What is the same for all spans of a tracer stands on a
    subclass for that tracer (see `LazyTracer`).

    The ended span itself is what processors get. The SDK hands them a copy, since its own could be changed once more by
    who holds it; this one refuses that once it has ended, as the SDK's does.
    """

    # Those of the SDK's names that hold something of this span alone. The tracer sets them, in place of a constructor.
    __slots__ = (
        "_context_made", "_end_time", "_links_made", "_lock", "_name", "_recorded", "_start_time", "_status", "_under",
        "filled", "flags", "ids", "kind_of_call", "made_events", "parent_ids", "size", "trace_state",
    )  # fmt: skip
    _context_made: SpanContext | None
    _end_time: int | None
    _links_made: Any
    _lock: Any  # a re-entrant one: a finalizer may end another call's stream while this span is written
    _name: str
    _recorded: list[Entry]
    _start_time: int | None
    _status: Status
    _under: "LazySpan | SpanContext | None"
    filled: (
        BoundedAttributes | None
    )  # None: nobody has read or written attributes, and the kind is what it started with
    flags: TraceFlags
    ids: tuple[int, int]  # of its trace, and its own
    kind_of_call: str
    made_events: Any  # None: there are none, and it is no larger than `size`
    parent_ids: tuple[int, int] | None  # of its parent in this process
    size: int  # bytes that were recorded, about
    trace_state: TraceState | None

    # What the tracer's subclass says.
    _limits: Any
    _processors: Any
    _span_processor: Any
    _first: Callable[[str, str], dict[str, Any]]  # of kind and name: what a call carries from its start
    # What the SDK's constructor would set, the same for all.
    _kind = SpanKind.INTERNAL
    _trace_config = None
    _record_exception = True
    _set_status_on_exception = True
    _record_end_metrics: Callable[[], None] | None = None

    # --- what is kept ---------------------------------------------------------------------------------------------------

    def record(self, entry: Entry, size: int) -> None:
        """Keep something, to be written when somebody reads; at once if somebody has."""
        with self._lock:
            if self.filled is None and self._end_time is None:
                self._recorded.append(entry)
                self.size += size
                return
        write, name, value = entry
        write(self, name, value)

    def _fill(self) -> BoundedAttributes:
        with self._lock:
            if self.filled is None:
                limits = self._limits
                self.filled = BoundedAttributes(
                    limits.max_span_attributes,
                    self._written(),
                    immutable=self._end_time is not None,
                    max_value_len=limits.max_span_attribute_length,
                )
                self._recorded = []
            return self.filled

    def _written(self) -> Attributes:
        found = Attributes()
        entries: tuple[Entry, ...] = ((self._write_first, "", None), *self._recorded)
        for write, name, value in entries:
            try:
                write(found, name, value)
            except Exception as fault:  # noqa: BLE001 - a fault of ours costs that value and no other
                _guard.swallowed("trace.fill", fault)
        return found

    def _write_first(self, sink: Attributes, _name: str, _value: Any) -> None:
        sink.update(self._first(self.kind_of_call, self._name))

    # --- what the SDK's methods look for -------------------------------------------------------------------------------

    @property
    def _attributes(self) -> BoundedAttributes:  # type: ignore[override]
        filled = self.filled
        return self._fill() if filled is None else filled

    @property
    def _events(self) -> Any:  # type: ignore[override]
        if self.made_events is None:
            with self._lock:
                if self._end_time is not None:
                    return _NOTHING
                if self.made_events is None:
                    self.made_events = BoundedList(self._limits.max_events)
        return self.made_events

    @property
    def _links(self) -> Any:  # type: ignore[override]
        if self._links_made is None:
            with self._lock:
                if self._end_time is not None:
                    return _NOTHING
                if self._links_made is None:
                    self._links_made = BoundedList(self._limits.max_links)
        return self._links_made

    @property
    def _context(self) -> SpanContext:  # type: ignore[override]
        made = self._context_made
        if made is None:
            made = self._context_made = SpanContext(*self.ids, False, self.flags, self.trace_state)
        return made

    @property
    def _parent(self) -> SpanContext | None:  # type: ignore[override]
        under = self._under
        return under._context if isinstance(under, LazySpan) else under

    # --- the end --------------------------------------------------------------------------------------------------------

    def end(self, end_time: int | None = None) -> None:
        """End the span, once; processors get it then."""
        if not self.finish((), 0, time_ns() if end_time is None else end_time):
            super().end()  # the SDK's own word for a span that has ended already

    def finish(self, entries: tuple[Entry, ...], size: int, end_time: int) -> bool:
        """Keep the last things, and end. False, and nothing done, if the span had ended."""
        with self._lock:
            if self._end_time is not None:
                return False
            if self.filled is None:
                self._recorded = [*self._recorded, *entries]
                self.size += size
            else:
                for write, name, value in entries:
                    write(self, name, value)
            self._end_time = end_time
            if self.filled is not None:
                self.filled._immutable = True
        if self._record_end_metrics is not None:
            self._record_end_metrics()
        processors, behind = self._processors, self._span_processor
        if processors.seen is None or behind._span_processors is not processors.seen:  # others than at its start
            behind._on_ending(self)
            behind.on_end(self)
            return True
        for tell in processors.ending:
            tell(self)
        for tell in processors.end:
            try:
                tell(self)
            except Exception as fault:  # noqa: BLE001 - one that fails costs the others nothing
                _guard.swallowed("trace.processor", fault)
        return True


def is_lazy(span: object) -> TypeGuard[LazySpan]:
    """Whether it is a lazily filled span; the SDK's spans have a metaclass that makes `isinstance` slow."""
    return type(span).__base__ is LazySpan


def write_all(sink: Any, _name: str, attributes: Mapping[str, Any]) -> None:
    """Attributes as they are."""
    sink.set_attributes(attributes)


def write_one(sink: Any, name: str, value: Any) -> None:
    """One attribute."""
    sink.set_attribute(name, value)
