"""Which returned objects are streams, and so are followed to their end: decided by their class alone, once for each.

Followed is what gives its items one after the other and only so:

- an object of a Python class with ``__next__`` or ``__anext__``: what client libraries return;
- an object of a Python class that can only be iterated over, once as far as anybody can tell: it has ``__aiter__``, or
  ``__iter__`` as a generator function or beside a way to close it, and no other public method;
- an iterator of Python's own (map, filter, zip, ``iter(list)``, itertools), which cannot do anything else;
- an HTTP response whose body is such a thing (see `responses`).

Never followed, because its reader may take what is in it in a way that we do not see, or never, and the call would then
last for nothing: what knows its length or has an index (a collection, a result that can be read again); what is awaited (a
future); what can also be read or written by call (a file, a socket, a database cursor); a record that happens to be
iterable (a dataclass, a pydantic model); an iterable with further methods, or that passes everything on to something
else. Nor what cannot be followed without running code that its class has for subclasses: a metaclass, ``__init_subclass__``.

A proxy that adds ``__next__`` to a class that says a length for all that it stands for is a stream all the same.
"""

import inspect
import types
import typing
import weakref
from abc import ABCMeta
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final

from spangrade import _classes

# As in `_classes`: without running what a metaclass may have redefined.
_mro: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
_own: Final[Callable[[type], Any]] = type.__dict__["__dict__"].__get__
_flags: Final[Callable[[type], int]] = type.__dict__["__flags__"].__get__

#: Own attribute of the classes that we put in the place of others: what they stand for.
STANDS_FOR: Final = "__spangrade_stands_for__"

STEPS: Final = ("__next__", "__anext__")
ITERATORS: Final = ("__iter__", "__aiter__")
ENDS: Final = ("close", "aclose", "__exit__", "__aexit__")
_KNOWN_BEFORE: Final = ("__len__", "__getitem__", "__await__", "__contains__")
_BY_CALL: Final = ("read", "readline", "write", "fileno", "fetchone", "fetchmany", "fetchall", "recv")
_PASSES_ON: Final = ("__getattr__", "__call__", "__await__")
# A generator in all but its type is sent to as well; anything else that is sent to is a connection.
_SENDS: Final = (("send", "throw"), ("asend", "athrow"))
_RESPONDS: Final = ("__call__", "streaming_content")  # an ASGI or WSGI application by itself; Django's
_METACLASSES: Final = (type, ABCMeta, type(typing.Protocol))
_HARMLESS: Final = (object, typing.Generic, typing.Protocol)
_HEAP_TYPE: Final = 1 << 9


class Way(Enum):
    """How an object is followed."""

    NOT = auto()
    ITERATOR = auto()  # whoever else holds it: it is the same object for everybody
    ITERABLE = auto()  # if nobody else holds it
    BUILTIN = auto()  # likewise, by an iterator of ours
    RESPONSE = auto()  # if its body is a stream
    FOLLOWED = auto()  # it is already


class Verdict:
    """What is known of one class. ``stand_in``: see `stand_ins`."""

    __slots__ = ("kind", "stand_in", "way")

    def __init__(self, kind: type, way: Way) -> None:
        self.kind = weakref.ref(kind, _forget(id(kind)))
        self.way = way
        self.stand_in: weakref.ref[type] | None = None


# By id, since to hash a class may run its metaclass.
_verdicts: Final[dict[int, Verdict]] = {}


def _forget(key: int) -> Callable[[Any], None]:
    def gone(_kind: Any) -> None:
        _verdicts.pop(key, None)

    return gone


def verdict_of(kind: type) -> Verdict:
    """The verdict on a class; it costs next to nothing the second time."""
    verdict = _verdicts.get(id(kind))
    if verdict is None or verdict.kind() is not kind:
        verdict = _verdicts[id(kind)] = Verdict(kind, _way(kind))
    return verdict


def found(kind: type, name: str) -> Any:
    """An attribute of a class as it is stored, or None."""
    for base in _mro(kind):
        own = _own(base)
        if name in own:
            return own[name]
    return None


def has_step(kind: type, name: str) -> bool:
    """Whether objects of the class have this special method."""
    return found(kind, name) is not None


def _depth(kind: type, names: tuple[str, ...]) -> int | None:
    """How far up the first class stands that one of the names is from; the class itself is 0. None takes a name away."""
    mro = _mro(kind)
    depths = []
    for name in names:
        depth = next((depth for depth, base in enumerate(mro) if name in _own(base)), None)
        if depth is not None and _own(mro[depth])[name] is not None:
            depths.append(depth)
    return min(depths, default=None)


def _way(kind: type) -> Way:
    if STANDS_FOR in _own(kind):
        return Way.FOLLOWED
    steps, iterates, heap = _depth(kind, STEPS), _depth(kind, ITERATORS), _flags(kind) & _HEAP_TYPE
    if heap and steps is None and any(found(kind, name) is not None for name in _RESPONDS):
        return Way.RESPONSE if type not in _mro(kind) else Way.NOT
    if steps is None and iterates is None:
        return Way.NOT
    if _classes.module(kind) in ("builtins", "itertools"):
        return Way.BUILTIN if steps is not None and not _methods(kind) else Way.NOT
    if not heap or not _may_be_subclassed(kind) or _by_call(kind):
        return Way.NOT
    if steps is not None:
        otherwise = _depth(kind, _KNOWN_BEFORE)
        return Way.ITERATOR if otherwise is None or steps < otherwise else Way.NOT
    return Way.ITERABLE if _only_iterable(kind) else Way.NOT


def _may_be_subclassed(kind: type) -> bool:
    if type(kind) not in _METACLASSES:
        return False
    return next(base for base in _mro(kind) if "__init_subclass__" in _own(base)) in _HARMLESS


def _by_call(kind: type) -> bool:
    if any(found(kind, name) is not None for name in _BY_CALL):
        return True
    return any(found(kind, send) is not None and found(kind, throw) is None for send, throw in _SENDS)


def _only_iterable(kind: type) -> bool:
    if _depth(kind, (*_KNOWN_BEFORE, *_PASSES_ON)) is not None or _classes.has_fields(kind):
        return False
    if found(kind, "__getattribute__") is not object.__getattribute__ or not set(_methods(kind)) <= set(ENDS):
        return False
    if found(kind, "__aiter__") is not None or any(found(kind, name) is not None for name in ENDS):
        return True
    return inspect.isgeneratorfunction(found(kind, "__iter__"))


def _methods(kind: type) -> list[str]:
    """Public methods of objects of the class; constructors that stand on it are none."""
    return [
        name
        for base in _mro(kind)
        for name, held in _own(base).items()
        if type(name) is str
        and not name.startswith("_")
        and type(held) in (types.FunctionType, types.MethodDescriptorType)
    ]
