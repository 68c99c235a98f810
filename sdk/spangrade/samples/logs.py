"""Log records that belong to a span, as events of that span.

Many instrumentations write what was said beside the span, not on it: the GenAI conventions up to 1.36 as one log record a
message, those since as ``gen_ai.client.inference.operation.details``, Semantic Kernel through the standard library's
``logging``. To a dialect all of them look like span events, so that it reads one thing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spangrade.model.span import EventData, SpanData
from spangrade.samples.content import CONTENT_EVENTS, is_content_key

NAME: Final = "event.name"  # where it stood before log records had a name of their own, and where `logging` can put it
BODY: Final = "body"


def as_event(
    event_name: str | None,
    attributes: Mapping[str, Any] | None,
    body: Any = None,
    time_ns: int | None = 0,
    observed_ns: int | None = 0,
) -> EventData | None:
    """A log record as an event of the span whose ids it carries; None for one without a name, which is no event.

    The name is ``event_name`` (OTLP's EventName), else the attribute ``event.name``. The attributes are the record's, and
    over them the body's fields where the body is a mapping; any other body is the attribute ``body`` as it is (of Semantic
    Kernel JSON text). The time is ``time_ns``, else ``observed_ns``, in nanoseconds since the epoch.
    """
    held: Mapping[str, Any] = {} if attributes is None else attributes
    name = event_name or held.get(NAME)
    if not isinstance(name, str) or not name:
        return None
    if isinstance(body, Mapping):
        held = {**held, **{str(key): value for key, value in body.items()}}
    elif body is not None:
        held = {**held, BODY: body}
    return EventData(name, held, time_ns or observed_ns or 0)


def holds_content(event: EventData) -> bool:
    """Whether what was said may stand in this event: one of the message events, or one with a content attribute."""
    return event.name in CONTENT_EVENTS or any(map(is_content_key, event.attributes))


def with_logs(span: SpanData, logs: Iterable[EventData]) -> SpanData:
    """The span with the events of its log records among its own, in order of time; the same object where there are none.

    Those of one time stay in the order in which they came. What came twice (a request sent again, an SDK that writes a log
    record and the same as a span event) is there once, in its fuller form.
    """
    found: list[EventData] = []
    for event in (*span.events, *logs):
        twin = next((at for at, other in enumerate(found) if _same(event, other)), None)
        if twin is None:
            found.append(event)
        elif len(event.attributes) > len(found[twin].attributes):
            found[twin] = event
    if len(found) == len(span.events) and all(map(_is, found, span.events)):
        return span
    return replace(span, events=_in_order(found))


def _is(one: EventData, other: EventData) -> bool:
    return one is other


def _in_order(events: Sequence[EventData]) -> tuple[EventData, ...]:
    return tuple(sorted(events, key=lambda event: event.time_ns))


def _same(one: EventData, other: EventData) -> bool:
    """Whether one of them says all that the other does, of the same name at the same time."""
    if one.name != other.name or one.time_ns != other.time_ns:
        return False
    less, more = sorted((one.attributes, other.attributes), key=len)
    try:
        return all(key in more and bool(more[key] == value) for key, value in less.items())
    except Exception:  # noqa: BLE001 - values of somebody's own types compare as they like
        return False
