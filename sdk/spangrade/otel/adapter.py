"""From an ended SDK span to `SpanData`: attributes and events are shared, not copied."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan

from spangrade.model.span import EventData, SpanData
from spangrade.tracing.lazy.span import is_lazy

#: Makes `SpanData` of an ended span.
Reader = Callable[[ReadableSpan], SpanData]

FLAT: Final = 2_048  # bytes that a span costs beside its text

_STATUS = ("unset", "ok", "error")


def plain_attributes(span: ReadableSpan) -> dict[str, Any]:
    """A span's attributes as a plain dict, copied in one step, or not at all where nobody will change them; the SDK's own
    container is many times slower to read."""
    if is_lazy(span) and span.end_time is not None:
        return span.plain
    found = span.attributes
    return found.copy() if isinstance(found, MappingProxyType) else dict(found or {})


def span_data(span: ReadableSpan, attributes: Mapping[str, Any] | None = None) -> SpanData:
    """The neutral view of an ended span; ``attributes``: what `plain_attributes` gave, when it has been asked already."""
    context, parent, scope = span.get_span_context(), span.parent, span.instrumentation_scope
    assert context is not None
    events = span.events
    return SpanData(
        trace_id=context.trace_id,
        span_id=context.span_id,
        parent_span_id=parent.span_id if parent is not None else None,
        name=span.name,
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        attributes=plain_attributes(span) if attributes is None else attributes,
        events=[EventData(e.name, e.attributes or {}, e.timestamp) for e in events] if events else (),
        resource=span.resource.attributes,
        scope_name=scope.name if scope is not None else "",
        status=_STATUS[span.status.status_code.value],
        status_message=span.status.description or "",
        parent_is_remote=parent.is_remote if parent is not None else None,
        trace_flags=int(context.trace_flags),
        trace_state=context.trace_state.to_header() if context.trace_state else "",
        dropped_attributes=span.dropped_attributes,
    )


def content_size(span: ReadableSpan, attributes: Mapping[str, Any] | None = None) -> int:
    """About how many bytes of memory a held span costs: its text, and a flat rate for the rest. ``attributes``: what
    `plain_attributes` gave, when it has been asked already."""
    if attributes is not None:
        size = FLAT + _text_size(attributes.values())
    elif is_lazy(span) and span.filled is None:
        size = FLAT + span.size
    else:
        size = FLAT + _text_size(plain_attributes(span).values())
    for event in span.events:
        size += 256 + _text_size((event.attributes or {}).values())
    return size


def _text_size(values: Iterable[Any]) -> int:
    size = 0
    for value in values:
        kind = type(value)
        if kind is str or kind is bytes:
            size += len(value)
        elif kind is tuple:
            size += 64 + _text_size(value)
        elif kind is dict:
            size += 64 + _text_size(value.values())
    return size
