"""Spans that an exporter can encode, whatever an application wrote on them.

Facts (SDK 1.40 to 1.45): the encoder refuses the whole batch for half a character in a span's, event's or scope's name or a
status, for a name that is no text, and for a time below 0; for one in an attribute, or an integer beyond
64 bits, it leaves that attribute out and logs a traceback. Here the one value is mended, on the exporter's thread. The
span itself, which others share, stays as it is; one that has nothing wrong, as nearly all have, is passed on itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, Status

from spangrade import _guard
from spangrade._values import snapshot, valid
from spangrade.delivery.span_copy import SpanCopy

_INT64: Final = 2**63
_UINT64: Final = 2**64
_AS_THEY_ARE: Final = (float, bool, bytes, type(None))


def encodable(spans: Iterable[ReadableSpan]) -> list[ReadableSpan]:
    """The spans, each of them itself or a mended copy."""
    seen: dict[int, Any] = {}  # resources and scopes, which spans share, by identity
    return [_span(span, seen) for span in spans]


def _span(span: ReadableSpan, seen: dict[int, Any]) -> ReadableSpan:
    try:
        changed = _changed(span, seen)
        return SpanCopy(span, **changed) if changed else span
    except Exception as fault:  # noqa: BLE001 - a fault of ours costs no span
        _guard.swallowed("encodable", fault)
        return span


def _changed(span: ReadableSpan, seen: dict[int, Any]) -> dict[str, Any]:
    """What has to be other than it is, by the names of the SDK's constructor."""
    was: dict[str, Any] = {
        "name": span.name,
        "resource": span.resource,
        "attributes": span.attributes,
        "events": span.events,
        "links": span.links,
        "status": span.status,
        "start_time": span.start_time,
        "end_time": span.end_time,
        "instrumentation_scope": span.instrumentation_scope,
    }
    found = {
        "name": _text(was["name"]),
        "resource": _once(was["resource"], encodable_resource, seen),
        "attributes": _attributes(was["attributes"]),
        "events": _each(was["events"], _event),
        "links": _each(was["links"], _link),
        "status": _status(was["status"]),
        "start_time": _time(was["start_time"]),
        "end_time": _time(was["end_time"]),
        "instrumentation_scope": _once(was["instrumentation_scope"], _scope, seen),
    }
    return {name: value for name, value in found.items() if value is not was[name]}


def encodable_attributes(given: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with what cannot be encoded as text that can."""
    return {_text(key): _value(value) for key, value in given.items()}


def _attributes(given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The same mapping where nothing is wrong with it."""
    if not given:
        return given
    copied = getattr(given, "copy", None)  # in one step: the SDK's own container takes a lock for each of a walk
    items: Mapping[str, Any] = copied() if copied is not None else dict(given)
    for key, value in items.items():  # looked at here where it is text: this runs for every value that leaves
        fine = value.isascii() if type(value) is str else _is_fine(value)
        if not (fine or _is_fine(value)) or type(key) is not str or not (key.isascii() or valid(key) is key):
            return encodable_attributes(items)
    return given


def _is_fine(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return valid(value) is value
    if kind is int:
        return bool(-_INT64 <= value < _INT64)
    if kind in _AS_THEY_ARE:
        return True
    if kind is tuple or kind is list:
        return all(map(_is_fine, value))
    return _value(value) is value


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else snapshot(int(value))
    if isinstance(value, Mapping):
        made = {_text(key): _value(item) for key, item in value.items()}
        same = all(key in made and made[key] is item for key, item in value.items())
        return value if same else made
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return _each(value, _value)
    return value


def _text(value: Any) -> Any:
    if type(value) is str:
        return value if value.isascii() else valid(value)
    return valid(value) if isinstance(value, str) else valid(str(snapshot(value)))


def _time(value: Any) -> Any:
    """Nanoseconds; what a 64-bit number cannot say becomes the nearest that it can, and what is no number 0."""
    if value is None or (type(value) is int and 0 <= value < _UINT64):
        return value
    try:
        return min(max(int(value), 0), _UINT64 - 1)
    except (TypeError, ValueError, OverflowError):
        return 0


def _each(items: Sequence[Any], mend: Any) -> Any:
    mended = tuple([mend(item) for item in items])
    return items if all(map(_is, mended, items)) else mended


def _is(one: object, other: object) -> bool:
    return one is other


def _once(shared: Any, mend: Any, seen: dict[int, Any]) -> Any:
    if shared is None:
        return None
    found = seen.get(id(shared))
    if found is None:
        found = seen[id(shared)] = mend(shared)
    return found


def _event(event: Event) -> Event:
    name, attributes, time = _text(event.name), _attributes(event.attributes), _time(event.timestamp)
    if name is event.name and attributes is event.attributes and time is event.timestamp:
        return event
    return Event(name, attributes, time)


def _link(link: Link) -> Link:
    attributes = _attributes(link.attributes)
    return link if attributes is link.attributes else Link(link.context, attributes)


def _status(status: Status) -> Status:
    said = status.description
    return status if said is None or _text(said) is said else Status(status.status_code, _text(said))


def encodable_resource(resource: Resource) -> Resource:
    """The resource itself, or a mended copy."""
    attributes, url = _attributes(resource.attributes), _text(resource.schema_url)
    if attributes is resource.attributes and url is resource.schema_url:
        return resource
    return Resource(dict(attributes or {}), url)


def _scope(scope: InstrumentationScope) -> InstrumentationScope:
    attributes = _attributes(scope.attributes)
    words = [scope.name, scope.version, scope.schema_url]
    mended = [None if word is None else _text(word) for word in words]
    if all(map(_is, mended, words)) and attributes is scope.attributes:
        return scope
    name, version, url = mended
    return InstrumentationScope(name or "", version, url, attributes)
