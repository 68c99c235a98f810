"""`LazySpan`: what a call records is kept as it is, and becomes attributes when somebody asks for them."""

from _thread import RLock
from collections.abc import Callable
from functools import partial
from time import time_ns
from typing import Any, Final, Protocol, TypeGuard

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import Span
from opentelemetry.sdk.util import BoundedList
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from spangrade import _guard

UNSET: Final = Status(StatusCode.UNSET)
_NOTHING: Final = ()
_claiming: Final = RLock()  # held for three steps at most, and never while anything else is called


class Attributes(dict[str, Any]):
    """Attributes in the making."""

    set_attribute = dict.__setitem__
    set_attributes = dict.update


class Recipe(Protocol):
    """How what a span keeps becomes attributes. ``frozen``: None where nothing was kept."""

    def first(self, kind: str, name: str) -> dict[str, Any]:
        """What a call of this kind carries from its start."""

    def write_given(self, sink: Any, kind: str, frozen: Any) -> None:
        """The input. The sink has ``set_attribute`` and ``set_attributes``."""

    def write_gave(self, sink: Any, kind: str, frozen: Any) -> None:
        """The output."""


#: Something else that a call has recorded: ``write(sink, kind, value)``.
Entry = tuple[Callable[[Any, str, Any], None], str, Any]


class LazySpan(Span):
    """A span of the SDK whose attributes, events, links and context are made when they are asked for.

    Its input and output are kept frozen, and other things as entries; the first reading of the attributes writes all that
    was kept, and from then on the span is like any other. Whatever the SDK's methods touch is made on the way, under the
    span's own lock, so that two threads may read, and one may write while another reads. What is the same for all spans of
    a tracer stands on a subclass for that tracer (see `LazyTracer`). A span that nobody has read is one object beside its
    content: that is what thousands of held spans cost.

    The ended span itself is what processors get. The SDK hands them a copy, since its own could be changed once more by
    who holds it; this one refuses that once it has ended, as the SDK's does.
    """

    # Those of the SDK's names that hold something of this span alone. The tracer sets them, in place of a constructor.
    __slots__ = (
        "_context_made", "_end_time", "_entries", "_gave", "_given", "_links_made", "_made_lock", "_name", "_start_time",
        "_status", "_under", "filled", "flags", "ids", "kind_of_call", "made_events", "parent_ids", "size", "trace_state",
    )  # fmt: skip
    _context_made: SpanContext | None
    _end_time: int | None
    _entries: tuple[Entry, ...]
    _gave: Any  # the output, frozen
    _given: Any  # the input, frozen
    _links_made: Any
    _made_lock: Any
    _name: str
    _start_time: int | None
    _status: Status
    # Its parent: a context, or what one of a span like this would say. Not that span: a task that starts its successor for
    # ever would keep all that came before.
    _under: "SpanContext | tuple[tuple[int, int], TraceFlags, TraceState | None] | None"
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
    _recipe: Recipe
    _span_processor: Any
    # What the SDK's constructor would set, the same for all.
    _kind = SpanKind.INTERNAL
    _trace_config = None
    _record_exception = True
    _set_status_on_exception = True
    _record_end_metrics: Callable[[], None] | None = None

    # --- what is kept ---------------------------------------------------------------------------------------------------

    @property
    def _lock(self) -> Any:  # type: ignore[override]
        """Re-entrant: a finalizer may end another call's stream while this span is written."""
        if self._made_lock is None:
            with _claiming:
                if self._made_lock is None:
                    self._made_lock = RLock()
        return self._made_lock

    def give(self, frozen: Any, size: int) -> None:
        """Keep the input, frozen, at the start."""
        self._given = frozen
        self.size += size
        if self._made_lock is not None:  # somebody has read it already, or does so now
            self.record((self._recipe.write_given, self.kind_of_call, frozen), 0)

    def record(self, entry: Entry, size: int) -> None:
        """Keep something, to be written when somebody reads; at once if somebody has."""
        with self._lock:
            if self.filled is None and self._end_time is None:
                self._entries = (*self._entries, entry)
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
                self._entries, self._given, self._gave = (), None, None
            return self.filled

    def _written(self) -> Attributes:
        found, kind, recipe = Attributes(), self.kind_of_call, self._recipe
        _try(lambda: found.update(recipe.first(kind, self._name)))
        if self._given is not None:
            _try(lambda: recipe.write_given(found, kind, self._given))
        for write, name, value in self._entries:
            _try(partial(write, found, name, value))
        if self._gave is not None:
            _try(lambda: recipe.write_gave(found, kind, self._gave))
        return found

    @property
    def plain(self) -> dict[str, Any]:
        """The attributes of an ended span as the dict that holds them, which is not to be changed."""
        return self._attributes._dict

    # --- what the SDK's methods look for -------------------------------------------------------------------------------

    @property
    def _attributes(self) -> BoundedAttributes:  # type: ignore[override]
        filled = self.filled
        return self._fill() if filled is None else filled

    @property
    def _events(self) -> Any:  # type: ignore[override]
        if self.made_events is None:
            if self._end_time is not None:  # and none will come
                return _NOTHING
            with self._lock:
                if self.made_events is None:
                    self.made_events = BoundedList(self._limits.max_events)
        return self.made_events

    @property
    def _links(self) -> Any:  # type: ignore[override]
        if self._links_made is None:
            if self._end_time is not None:
                return _NOTHING
            with self._lock:
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
        under: Any = self._under
        if type(under) is not tuple:  # a SpanContext is a tuple of another class
            return under  # type: ignore[no-any-return]
        (trace_id, span_id), flags, state = under
        return SpanContext(trace_id, span_id, False, flags, state)

    # --- the end --------------------------------------------------------------------------------------------------------

    def end(self, end_time: int | None = None) -> None:
        """End the span, once; processors get it then."""
        if not self.finish(None, 0, time_ns() if end_time is None else end_time):
            super().end()  # the SDK's own word for a span that has ended already

    def finish(self, gave: Any, size: int, end_time: int, entries: tuple[Entry, ...] = ()) -> bool:
        """Keep the output, frozen, and whatever else, and end. False, and nothing done, if the span had ended."""
        with _claiming:  # so does whoever makes the lock: nobody reads or writes it yet, or it is there
            alone = self._made_lock is None
            if alone:
                if self._end_time is not None:
                    return False
                self._end_time = end_time
                self._gave = gave
                self.size += size
                if entries:
                    self._entries += entries
        if not alone and not self._finish_shared(gave, size, end_time, entries):
            return False
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

    def _finish_shared(self, gave: Any, size: int, end_time: int, entries: tuple[Entry, ...]) -> bool:
        with self._lock:
            if self._end_time is not None:
                return False
            if self.filled is None:
                self._gave = gave
                self.size += size
                self._entries += entries
            else:
                for write, name, value in entries:
                    write(self, name, value)
                if gave is not None:
                    _try(lambda: self._recipe.write_gave(self, self.kind_of_call, gave))
                self.filled._immutable = True
            self._end_time = end_time
        return True


def _try(write: Callable[[], None]) -> None:
    try:
        write()
    except Exception as fault:  # noqa: BLE001 - a fault of ours costs that value and no other
        _guard.swallowed("trace.fill", fault)


def is_lazy(span: object) -> TypeGuard[LazySpan]:
    """Whether it is a lazily filled span; the SDK's spans have a metaclass that makes `isinstance` slow."""
    return type(span).__base__ is LazySpan


def write_one(sink: Any, name: str, value: Any) -> None:
    """One attribute."""
    sink.set_attribute(name, value)


def write_all(sink: Any, _name: str, attributes: Any) -> None:
    """Attributes as they are."""
    sink.set_attributes(attributes)
