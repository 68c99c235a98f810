"""What each kind of object holds, for a `Walk` to go through.

Readers call the methods of the builtin: those of a subclass are not run. And they take a container's items in one go, since
another thread may change it, but no more of them than will be looked at.
"""

import datetime
import decimal
import enum
import itertools
import pathlib
import sys
import uuid
import zoneinfo
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from spangrade import _classes
from spangrade._classes import type_name
from spangrade._secrets import HIDDEN, said

if TYPE_CHECKING:
    from spangrade._walk import Walk

LOOK: Final = 1_048_576  # characters of one text in which media are searched
_FEW: Final = 64  # items that a container may always hold
_STDLIB_TEXT: Final = (
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone, zoneinfo.ZoneInfo,
    decimal.Decimal, uuid.UUID, complex,
    pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath, pathlib.WindowsPath,
)  # fmt: skip

#: A function of the walk, the object and the depth of what is in it.
Reader = Callable[["Walk", Any, int], Any]


def _dict(walk: "Walk", value: Any, depth: int) -> Any:
    size = dict.__len__(value)
    if size <= _FEW:
        return walk.pairs(tuple(dict.items(value)), size, depth)
    # Not `items`: thousands of pairs at once set off the garbage collector.
    most = walk.most()
    keys, held = itertools.islice(dict.keys(value), most), itertools.islice(dict.values(value), most)
    taken = tuple(itertools.chain(keys, held))
    return walk.pairs(zip(taken, taken[len(taken) // 2 :], strict=False), size, depth)


def _sequence(base: Any) -> Reader:
    def read(walk: "Walk", value: Any, depth: int) -> Any:
        size = base.__len__(value)
        items = base.__iter__(value)
        return walk.items(tuple(items if size <= _FEW else itertools.islice(items, walk.most())), size, depth)

    return read


def _named_tuple(kind: type) -> Reader | None:
    """Of a tuple whose fields have names that speak of secrets."""
    names = _classes.tuple_fields(kind)
    if not any(said(name) for name in names):
        return None

    def read(walk: "Walk", value: Any, depth: int) -> Any:
        items = tuple.__iter__(value)
        named = tuple(HIDDEN if walk.hides(name, item) else item for name, item in zip(names, items, strict=False))
        return walk.items((*named, *itertools.islice(items, walk.most())), tuple.__len__(value), depth)

    return read


def _str(walk: "Walk", value: Any, _depth: int) -> Any:
    size = str.__len__(value)
    if size <= LOOK:
        return walk.text(str.__str__(value))
    head, tail = str.__getitem__(value, slice(LOOK // 2)), str.__getitem__(value, slice(-LOOK // 2, None))
    return walk.text(f"{head}…[{size - len(head) - len(tail)} characters cut]…{tail}")


def _enum(walk: "Walk", value: Any, depth: int) -> Any:
    inner = object.__getattribute__(value, "_value_")
    if type(inner) in (str, int):
        return walk.visit(inner, depth)
    return walk.text(f"{_classes.qualname(type(value))}.{object.__getattribute__(value, '_name_')}")


def _bytes(base: Any) -> Reader:
    def read(walk: "Walk", value: Any, _depth: int) -> Any:
        return walk.named(base.__len__(value), lambda part: bytes(base.__getitem__(value, part)))

    return read


def _memoryview(walk: "Walk", value: Any, _depth: int) -> Any:
    return walk.named(value.nbytes, lambda part: value.cast("B")[part].tobytes() if value.c_contiguous else b"")


def _stdlib(walk: "Walk", value: Any, _depth: int) -> Any:
    walk.charge()
    return walk.text(str(value) if sys.getsizeof(value) < 4_096 else f"<{type_name(value)}>")


def _fields(kind: type) -> Reader:
    fields = _classes.Fields(kind)

    def read(walk: "Walk", value: Any, depth: int) -> Any:
        walk.charge()
        stored = fields.of(value, walk.most() + 1)
        return walk.pairs(stored.items(), len(stored), depth)

    return read


def _numpy_scalar(walk: "Walk", value: Any, depth: int) -> Any:
    walk.charge()
    plain = value.item()
    return walk.visit(plain, depth) if type(plain) is not type(value) else walk.unknown(value)


def _numpy_array(walk: "Walk", value: Any, _depth: int) -> Any:
    walk.charge()
    return walk.text(f"<{type_name(value)} shape={value.shape} dtype={value.dtype}>")


def _unknown(walk: "Walk", value: Any, _depth: int) -> Any:
    walk.charge()
    return walk.unknown(value)


_BY_BASE: Final[tuple[tuple[type, Reader], ...]] = (
    (dict, _dict),
    *((base, _sequence(base)) for base in (list, tuple, set, frozenset)),
    (str, _str),
    (enum.Enum, _enum),
    (int, lambda walk, value, depth: walk.visit(int.__int__(value), depth)),
    (float, lambda walk, value, depth: walk.visit(float.__float__(value), depth)),
    *((base, _bytes(base)) for base in (bytes, bytearray)),
    (memoryview, _memoryview),
)


def reader(kind: type) -> Reader:
    """How objects of a class are read."""
    for base, how in _BY_BASE:
        if issubclass(kind, base):
            return (_named_tuple(kind) or how) if base is tuple and kind is not tuple else how
    if any(kind is known for known in _STDLIB_TEXT):
        return _stdlib
    if _classes.has_fields(kind):
        return _fields(kind)
    if _classes.is_of("numpy", kind):  # a subclass of the application's may have code of its own
        known = _classes.names_within("numpy", kind)
        if "generic" in known:
            return _numpy_scalar
        if "ndarray" in known:
            return _numpy_array
    return _unknown
