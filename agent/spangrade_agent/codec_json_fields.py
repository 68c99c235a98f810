"""What the JSON reader knows of each protobuf message: its fields by every name that is understood, and how each scalar
is read. Taken from the messages' own descriptors, so that a newer OTLP needs no change here.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from spangrade._values import MAX_CHARS, cut, valid

_OLD_NAMES: Final = {  # until OTLP 0.15 a scope was an instrumentation library
    "scope_spans": "instrumentationLibrarySpans",
    "scope_logs": "instrumentationLibraryLogs",
    "scope_metrics": "instrumentationLibraryMetrics",
    "scope": "instrumentationLibrary",
}
_ID_BYTES: Final = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}
_INT_DIGITS: Final = 24  # more than any 64-bit integer has
_READ_DIGITS: Final = 4_000  # Python reads no more of an integer
_INT64: Final = 2**63


class Fault(Exception):
    """Something that cannot be read. ``path`` grows on the way out of the nested messages."""

    def __init__(self, why: str, path: str = "") -> None:
        super().__init__(why)
        self.why, self.path = why, path

    def under(self, step: str) -> "Fault":
        """The same fault, seen from one message further out."""
        return Fault(self.why, f"{step}.{self.path}" if self.path else step)

    def __str__(self) -> str:
        return f"{self.path} {self.why}"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message. ``read`` turns a JSON value into a scalar, where the field is no message itself.
    ``counter``: the message's own count of what was lost from this list (``dropped_attributes_count``)."""

    name: str
    json_name: str
    repeated: bool
    message_type: Descriptor | None
    read: Callable[[Any], Any]
    counter: str | None


@dataclass(frozen=True, slots=True)
class Shape:
    """A message type: ``fields`` by lowerCamelCase, snake_case and historical names."""

    name: str
    fields: dict[str, Field]


@cache
def shape_of(descriptor: Descriptor) -> Shape:
    """The shape of a message type, made once."""
    found: dict[str, Field] = {}
    for field in descriptor.fields:
        counter = f"dropped_{field.name}_count"
        known = Field(
            field.name,
            field.json_name,
            _is_repeated(field),
            field.message_type,
            _reader(field),
            counter if counter in descriptor.fields_by_name else None,
        )
        for name in (field.name, field.json_name, _OLD_NAMES.get(field.name)):
            if name is not None:
                found[name] = known
    return Shape(descriptor.name, found)


def _is_repeated(field: Any) -> bool:
    # protobuf 6.31 brought `is_repeated`, protobuf 7 took `label` away.
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else bool(field.label == 3)


def _reader(field: FieldDescriptor) -> Callable[[Any], Any]:
    """How a scalar field is read. Ranges are checked by protobuf itself, when the value is set."""
    kind = field.cpp_type
    if field.type == FieldDescriptor.TYPE_BYTES:
        size = _ID_BYTES.get(field.name)
        return _bytes if size is None else _id_reader(size)
    if field.enum_type is not None:
        return _enum_reader(field.enum_type)
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return _string
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return _bool
    return _double if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT) else _integer


def _string(value: Any) -> str:
    if type(value) is not str:
        raise Fault("is no string")
    return valid(value)  # JavaScript that cuts a text inside an emoji sends half of it: a lone surrogate


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise Fault("is no boolean")
    return value


class LongNumber(str):
    """The digits of an integer that are too many to be read as one."""

    __slots__ = ()


def whole_number(digits: str) -> int | LongNumber:
    """For the JSON reader: one such number must not cost the request."""
    return int(digits) if len(digits) <= _READ_DIGITS else LongNumber(digits)


def beyond_64_bits(value: Any) -> str | None:
    """The text of an integer that no attribute can hold as a number; None for all that is no such integer."""
    if type(value) is float and value.is_integer():  # so JavaScript writes a large one
        value = int(value)
    if type(value) is int:
        return None if -_INT64 <= value < _INT64 else cut(str(value), MAX_CHARS)
    digits = value.removeprefix("-") if isinstance(value, str) else ""
    if not (digits.isascii() and digits.isdigit()) or len(digits) < _INT_DIGITS - 5:
        return None
    if len(digits) < _INT_DIGITS and -_INT64 <= int(value) < _INT64:
        return None
    return cut(str(value), MAX_CHARS)


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    if type(value) is str and len(value) < _INT_DIGITS and value.isascii() and value.removeprefix("-").isdigit():
        return int(value)
    if type(value) is float and value.is_integer():
        return int(value)
    raise Fault("is no integer")


def _double(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int or (type(value) is str and value.isascii() and "_" not in value):
        return float(value)  # also the strings NaN, Infinity, -Infinity
    raise Fault("is no number")


def _enum_reader(enum: EnumDescriptor) -> Callable[[Any], int]:
    """By number or name; what this OTLP does not know is "unspecified" (0), as it would be to whoever reads it next."""
    numbers = frozenset(enum.values_by_number)
    names = {name: value.number for name, value in enum.values_by_name.items()}

    def read(value: Any) -> int:
        if type(value) is str and value in names:
            return names[value]
        if isinstance(value, LongNumber) or (type(value) is str and not value.removeprefix("-").isdigit()):
            return 0
        number = _integer(value)
        return number if number in numbers else 0

    return read


def _id_reader(size: int) -> Callable[[Any], bytes]:
    """Hex of the right length; else base64, a list of bytes or a Node Buffer that gives the right length."""

    def read(value: Any) -> bytes:
        found = b""
        if type(value) is str:
            if not value:
                return b""
            try:
                found = bytes.fromhex(value) if len(value) == 2 * size else _bytes(value)
            except (ValueError, Fault):
                pass  # told below
        else:
            octets = value.get("data") if type(value) is dict else value  # {"type": "Buffer", "data": [...]}
            if type(octets) is list and all(type(octet) is int and 0 <= octet < 256 for octet in octets):
                found = bytes(octets)
        if len(found) != size:
            raise Fault(f"is neither {2 * size} hex digits nor {size} bytes in another form")
        return found

    return read


def _bytes(value: Any) -> bytes:
    """Base64, plain or URL-safe, with or without padding, as proto3 JSON has it."""
    if type(value) is not str:
        raise Fault("is no base64 text")
    try:
        text = value.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise Fault("is no base64 text") from None
