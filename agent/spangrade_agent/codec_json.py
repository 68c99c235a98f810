"""OTLP/JSON into protobuf messages: one walk for all signals, guided by the messages' own descriptors.

What the specification asks (OTLP 1.11, "JSON Protobuf Encoding"): lowerCamelCase names, trace and span ids as hex in
either case, other bytes as base64, 64-bit integers as decimal strings or numbers, enums as numbers, NaN and Infinity as
strings, unknown fields ignored. What senders do besides, and is read too: snake_case names, enum names, ids as base64, as
lists of bytes or as Node Buffers, ``instrumentationLibrarySpans``. protobuf's own reader is of no use here: it takes hex
ids for base64 and gives 24 bytes without a word, and one bad field makes it refuse the whole request.

A fault costs the smallest thing that can be left out: an attribute, event, link, span, log record or data point as a
whole; of the envelopes around them (resource, scope, metric) only the faulty field. Whatever is left out is counted.
"""

import json
from typing import Any, Final

from google.protobuf.message import Message

from spangrade._values import cut, valid
from spangrade_agent.codec_json_fields import Fault, Field, Shape, beyond_64_bits, shape_of, whole_number

#: The lists whose elements OTLP's partial success counts.
COUNTED: Final = frozenset({"spans", "logRecords", "dataPoints"})
#: Message types that go on without a faulty field; anything else with a faulty scalar is left out as a whole.
_ENVELOPES: Final = frozenset(
    {"ResourceSpans", "ScopeSpans", "ResourceLogs", "ScopeLogs", "ResourceMetrics", "ScopeMetrics"}
    | {"ExportTraceServiceRequest", "ExportLogsServiceRequest", "ExportMetricsServiceRequest"}
    | {"Resource", "InstrumentationScope", "Status"}
    | {"Metric", "Gauge", "Sum", "Histogram", "ExponentialHistogram", "Summary"}
)
#: A fault anywhere in an attribute's value costs the attribute: half a value would be another value.
_VALUES: Final = frozenset({"KeyValue", "AnyValue", "ArrayValue", "KeyValueList"})
_MAX_DEPTH: Final = 96  # protobuf readers refuse more than 100 nested messages: whoever we relay to could not read it
_MAX_EXAMPLES: Final = 4
_MAX_REASON: Final = 200
_MAX_COUNT: Final = 2**32 - 1


class BadRequest(ValueError):
    """The body cannot be read as a request at all; the message names what is wrong. Sending it again is no use."""


class Losses:
    """What of a request could not be read: how many of each kind, and the first few reasons (no content in them)."""

    def __init__(self) -> None:
        self.kept = 0  # spans, log records, data points that were read
        self._counts: dict[str, int] = {}
        self._examples: list[str] = []

    def note(self, kind: str, reason: str) -> None:
        """Count one lost thing; ``kind`` is the JSON name of the list or field that it was in."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if len(self._examples) < _MAX_EXAMPLES and (short := cut(reason, _MAX_REASON)) not in self._examples:
            self._examples.append(short)

    @property
    def rejected(self) -> int:
        """Spans, log records and data points that were left out: what partial success counts."""
        return sum(count for kind, count in self._counts.items() if kind in COUNTED)

    @property
    def message(self) -> str:
        """``left out: spans 2, attributes 1 (spans[3].traceId is ...; ...)``; empty when nothing was."""
        if not self._counts:
            return ""
        counts = ", ".join(f"{kind} {count}" for kind, count in self._counts.items())
        return f"left out: {counts} ({'; '.join(self._examples)})"


def read_json(body: bytes, request: Message) -> Losses:
    """Read an OTLP/JSON body into the empty ``request``; returns what was left out.

    Raises:
        BadRequest: for a body that is no JSON object, that has no field of the request (a Go struct dumped as JSON,
            another signal's request), or of which nothing at all could be read. ``{}`` is an empty request.
    """
    name = request.DESCRIPTOR.name
    try:
        data = json.loads(body, parse_int=whole_number)
    except RecursionError:
        raise BadRequest("the body is no JSON that can be read: nested too deep") from None
    except json.JSONDecodeError as fault:
        raise BadRequest(f"the body is no JSON: {fault}") from None
    except ValueError as fault:  # its text may hold the body
        raise BadRequest(f"the body is no JSON that can be read: {type(fault).__name__}") from None
    losses = Losses()
    try:
        _fill(request, data, shape_of(request.DESCRIPTOR), losses, 1)
    except Fault as fault:
        raise BadRequest(f"the body is no {name} in JSON: it {fault.why}") from None
    if losses.message and not losses.kept and not losses.rejected:
        raise BadRequest(f"nothing of this {name} could be read: {losses.message}")
    return losses


def _fill(message: Any, data: Any, shape: Shape, losses: Losses, depth: int) -> None:
    """Read one JSON object into ``message``. Raises `Fault` when the whole of it is to be left out."""
    if type(data) is not dict:
        raise Fault("is no object")
    if depth > _MAX_DEPTH:
        raise Fault("is nested too deep")
    if data and shape.fields.keys().isdisjoint(data):
        names = dict.fromkeys(field.json_name for field in shape.fields.values())
        raise Fault(f"has none of the fields of {shape.name} ({', '.join(names)})")
    lost: list[str] = []
    for key, value in data.items():
        field = shape.fields.get(key)
        if field is None or value is None:  # null is as if it were not there (proto3 JSON)
            continue
        try:
            missing = _set(message, field, value, shape, losses, depth)
        except (Fault, TypeError, ValueError, OverflowError) as raised:
            fault = raised if isinstance(raised, Fault) else Fault("is out of range or of a wrong type")
            fault = fault.under(field.json_name)
            if not _goes_on_without(shape, field):
                raise fault from None
            if not field.repeated:  # of a list nothing was read, unless under its other name
                message.ClearField(field.name)
            losses.note(field.json_name, str(fault))
            missing = 1
        if missing and field.counter is not None:
            lost.extend([field.counter] * missing)
    for counter in lost:  # after the loop, since the sender's own count may come last
        setattr(message, counter, min(getattr(message, counter) + 1, _MAX_COUNT))


def _goes_on_without(shape: Shape, field: Field) -> bool:
    """Whether a message of this type is worth passing on without ``field``."""
    return shape.name in _ENVELOPES or (field.message_type is not None and shape.name not in _VALUES)


def _set(message: Any, field: Field, value: Any, shape: Shape, losses: Losses, depth: int) -> int:
    """Read one field; returns how many elements of a list were left out."""
    if field.repeated:
        if type(value) is not list:
            raise Fault("is no list")
        if field.message_type is not None:
            below = shape_of(field.message_type)
            return _fill_list(getattr(message, field.name), field, value, below, shape.name in _VALUES, losses, depth)
        getattr(message, field.name).extend([field.read(item) for item in value])
    elif field.message_type is not None:
        child = getattr(message, field.name)
        child.SetInParent()  # {} is a field that is set, not the same as nothing
        _fill(child, value, shape_of(field.message_type), losses, depth + 1)
    elif field.name == "int_value" and shape.name == "AnyValue" and (text := beyond_64_bits(value)) is not None:
        message.string_value = text  # a hash, an id: as text it is still what was meant
    else:
        setattr(message, field.name, field.read(value))
    return 0


def _fill_list(
    elements: Any, field: Field, values: list[Any], shape: Shape, whole: bool, losses: Losses, depth: int
) -> int:
    """Read a list of messages; returns how many were left out. ``whole``: none may be, the first fault is raised."""
    lost, attributes = 0, shape.name == "KeyValue"
    for index, value in enumerate(values):
        if attributes and _add_text(elements, value):
            continue
        element = elements.add()
        try:
            _fill(element, value, shape, losses, depth + 1)
            if attributes and not whole and not element.key:
                raise Fault("has no key")
        except Fault as fault:
            if whole:
                raise fault.under(f"[{index}]") from None
            del elements[-1]
            losses.note(field.json_name, str(fault.under(f"{field.json_name}[{index}]")))
            lost += 1
    if field.json_name in COUNTED:
        losses.kept += len(values) - lost
    return lost


def _add_text(elements: Any, attribute: Any) -> bool:
    """An attribute as nearly all are, a text under a key, at a fraction of the general walk's cost; False for others."""
    if type(attribute) is not dict or len(attribute) != 2:
        return False
    key, value = attribute.get("key"), attribute.get("value")
    if type(key) is not str or not key or type(value) is not dict or len(value) != 1:
        return False
    text = value.get("stringValue")
    if type(text) is not str:
        return False
    elements.add(key=valid(key)).value.string_value = valid(text)
    return True
