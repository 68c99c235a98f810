"""From an ended SDK span to `SpanData`: attributes and events are shared, not copied."""

from opentelemetry.sdk.trace import ReadableSpan

from spangrade.model.span import EventData, SpanData

_STATUS = ("unset", "ok", "error")


def span_data(span: ReadableSpan) -> SpanData:
    """The neutral view of an ended span. The caller must not change the span's containers; nobody does after its end."""
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
        attributes=span.attributes or {},
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


def content_size(span: ReadableSpan) -> int:
    """About how many bytes of memory a held span costs: the text of its attributes, and a flat rate for the rest."""
    size = 2_048
    for value in (span.attributes or {}).values():
        if isinstance(value, (str, bytes)):
            size += len(value)
        elif isinstance(value, (tuple, list, dict)):
            size += 64 * len(value)
    return size
