"""Any Python value into bounded, valid text, without running the application's code.

No property, ``repr``, ``__iter__`` or ``model_dump`` of an unknown type is called: those can be slow, raise, or change
something. What is not known is named by its type. The result is a fresh copy, so that a caller may change its own list
a moment later. Bounds: `MAX_CHARS` of text and `MAX_NODES` items per value, `MAX_DEPTH` levels.
"""

import dataclasses
import datetime
import decimal
import enum
import hashlib
import json
import marshal
import math
import pathlib
import uuid
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_json

MAX_CHARS: Final = 1_048_576
MAX_NODES: Final = 20_000
MAX_DEPTH: Final = 16

_INT64: Final = 2**63
_STDLIB_TEXT: Final = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.tzinfo,
    decimal.Decimal,
    uuid.UUID,
    pathlib.PurePath,
    complex,
)


def valid(text: str) -> str:
    """``text`` with lone surrogates replaced: they cannot be encoded, and one costs a whole export batch."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cut(text: str, limit: int) -> str:
    """``text`` cut in the middle to about ``limit`` characters, with a mark that says how many are missing."""
    if len(text) <= limit:
        return text
    keep = max(limit // 2, 1)
    return f"{text[:keep]}…[{len(text) - 2 * keep} characters cut]…{text[-keep:]}"


def bounded(text: str, limit: int = MAX_CHARS) -> str:
    """`cut`, then `valid`: the order in which a long text costs least."""
    return valid(cut(text, limit))


def type_name(value: object) -> str:
    """``module.Type`` of a value, without asking the value."""
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


class _Walk:
    """One value's walk: what is left of the bounds, and the containers on the current path."""

    __slots__ = ("chars", "nodes", "path")

    def __init__(self) -> None:
        self.chars = MAX_CHARS
        self.nodes = MAX_NODES
        self.path: set[int] = set()

    def text(self, value: str) -> str:
        if len(value) > self.chars:
            value = cut(value, max(self.chars, 64))
        self.chars = max(self.chars - len(value), 0)
        return value if value.isascii() else valid(value)

    def visit(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self.text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -_INT64 <= value < _INT64 else _big_int(value)
        if kind is float:
            return value if math.isfinite(value) else str(value)
        self.nodes -= 1
        if self.nodes < 0:
            return "<more items cut>"
        if depth >= MAX_DEPTH:
            return f"<{type_name(value)}: deeper than {MAX_DEPTH} levels>"
        if isinstance(value, (dict, list, tuple, set, frozenset)):
            return self.container(value, depth)
        return self.other(value, kind, depth)

    def container(self, value: Any, depth: int) -> Any:
        here = id(value)
        if here in self.path:
            return "<cycle>"
        self.path.add(here)
        try:
            visit, below = self.visit, depth + 1
            if isinstance(value, dict):
                out: dict[str, Any] = {}
                # dict.items and list(...) of the builtins themselves, so that an overriding subclass is not run.
                for key, item in tuple(dict.items(value)):
                    if self.nodes < 0:
                        out["…"] = "<more items cut>"
                        break
                    out[self.text(key) if type(key) is str else self.key(key)] = visit(item, below)
                return out
            base = next(b for b in (list, tuple, set, frozenset) if isinstance(value, b))
            items: list[Any] = []
            for item in tuple(base.__iter__(value)):
                if self.nodes < 0:
                    items.append("<more items cut>")
                    break
                items.append(visit(item, below))
                self.nodes -= 1
            return items
        except RuntimeError:  # another thread changed the container while we looked
            return f"<{type_name(value)}: changed while it was read>"
        finally:
            self.path.discard(here)

    def key(self, key: Any) -> str:
        plain = self.visit(key, MAX_DEPTH - 1)
        return plain if isinstance(plain, str) else dumps(plain)

    def other(self, value: Any, kind: type, depth: int) -> Any:
        if issubclass(kind, str):
            return self.text(str.__str__(value))
        if issubclass(kind, enum.Enum):
            inner = value._value_
            return inner if isinstance(inner, (str, int)) else f"{kind.__qualname__}.{value._name_}"
        if issubclass(kind, int):
            return self.visit(int(int.__int__(value)), depth)
        if issubclass(kind, float):
            return self.visit(float.__float__(value), depth)
        if issubclass(kind, (bytes, bytearray, memoryview)):
            return describe_bytes(bytes(value) if kind is not memoryview else value.tobytes())
        if kind in _STDLIB_TEXT or (kind.__module__ in {"datetime", "pathlib", "zoneinfo"}):
            return self.text(str(value))
        if issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__"):
            return self.fields(value, depth)
        if kind.__module__ == "numpy" or kind.__module__.startswith("numpy."):
            return self.numpy(value, kind, depth)
        return f"<{type_name(value)}>"

    def fields(self, value: Any, depth: int) -> Any:
        """Stored fields of a dataclass, pydantic or attrs object; properties and computed fields are not run."""
        here = id(value)
        if here in self.path:
            return "<cycle>"
        self.path.add(here)
        try:
            try:
                stored = object.__getattribute__(value, "__dict__")
            except AttributeError:
                names = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
                stored = {n: object.__getattribute__(value, n) for n in names}
            return self.container({k: v for k, v in dict.items(stored) if not str(k).startswith("_")}, depth)
        except (AttributeError, RuntimeError):
            return f"<{type_name(value)}>"
        finally:
            self.path.discard(here)

    def numpy(self, value: Any, kind: type, depth: int) -> Any:
        if kind.__name__ == "ndarray":
            return f"<numpy.ndarray shape={value.shape} dtype={value.dtype}>"
        item = getattr(value, "item", None)
        if item is None:
            return f"<{type_name(value)}>"
        plain = item()
        return self.visit(plain, depth + 1) if type(plain) is not kind else f"<{type_name(value)}>"


def _big_int(value: int) -> str:
    # str() of a very long integer is refused by Python (and slow); 4,000 digits are more than anybody reads.
    return str(value) if value.bit_length() < 13_000 else f"<int of {value.bit_length()} bits>"


def describe_bytes(data: bytes) -> str:
    """Bytes are never sent: their length and hash are."""
    return f"<bytes length={len(data)} sha256={hashlib.sha256(data).hexdigest()[:16]}>"


def snapshot(value: Any) -> Any:
    """A bounded copy of ``value`` made of None, bool, int (64 bit), float (finite), str, list and dict with str keys."""
    return _Walk().visit(value, 0)


def dumps(plain: Any) -> str:
    """Strict JSON of what `snapshot` returned."""
    return to_json(plain, inf_nan_mode="null").decode()


FAST_BYTES: Final = 262_144
_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _fast_json(value: Any) -> str | None:
    """JSON of a value that is made of exact builtin types only, at C speed; None for everything else.

    ``marshal`` refuses whatever is not an exact builtin, so nothing of the application's is run by what follows, and the
    length of what it gives bounds the work. The encoder refuses the rest (bytes, sets, NaN, cycles).
    """
    try:
        if len(marshal.dumps(value)) > FAST_BYTES:
            return None
        text = _encode(value)
    except (ValueError, TypeError, RecursionError):
        return None
    return valid(text)


def to_text(value: Any) -> tuple[str, bool]:
    """``(text, is_json)``: a str as it is, everything else as JSON of its `snapshot`."""
    if type(value) is str:
        return bounded(value), False
    fast = _fast_json(value)
    if fast is not None:
        return fast, True
    plain = snapshot(value)
    if type(plain) is str and not isinstance(value, Mapping):
        return plain, False
    return dumps(plain), True
