"""What an object is and stores, without running anything that its class or metaclass may have redefined."""

import itertools
from collections.abc import Callable
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

from pydantic import BaseModel

from spangrade._text import valid

# A class's attributes as `type` has them: a metaclass may answer `cls.__module__` with code of its own.
_mro: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
_own: Final[Callable[[type], Any]] = type.__dict__["__dict__"].__get__
_module: Final[Callable[[type], Any]] = type.__dict__["__module__"].__get__
_name: Final[Callable[[type], Any]] = type.__dict__["__name__"].__get__
_qualname: Final[Callable[[type], Any]] = type.__dict__["__qualname__"].__get__


_SIZED: Final = ("__next__", "__iter__", "__len__")


def type_name(value: object) -> str:
    """``module.Type`` of a value, without asking the value."""
    kind = type(value)
    return valid(f"{module(kind)}.{qualname(kind)}")


def module(kind: type) -> str:
    """``__module__`` of a class; a class may hold anything there."""
    return _text(_module(kind))


def name(kind: type) -> str:
    """``__name__`` of a class."""
    return _text(_name(kind))


def qualname(kind: type) -> str:
    """``__qualname__`` of a class."""
    return _text(_qualname(kind))


def _text(found: Any) -> str:
    return found[:200] if type(found) is str else "?"


def is_of(package: str, kind: type) -> bool:
    """Whether a class was made in a package, as far as it says."""
    return module(kind).partition(".")[0] == package


def names_within(package: str, kind: type) -> set[str]:
    """The names of a class and of its bases, of those that were made in a package."""
    return {qualname(base) for base in _mro(kind) if is_of(package, base)}


def has_fields(kind: type) -> bool:
    """Whether it is a pydantic model, a dataclass or an attrs class."""
    for base in _mro(kind):
        if base is BaseModel:
            return True
        own = _own(base)
        if "__dataclass_fields__" in own or "__attrs_attrs__" in own:
            return True
    return False


def tuple_fields(kind: type) -> tuple[str, ...]:
    """The names of a named tuple's items; empty for any other class."""
    for base in _mro(kind):
        names = _own(base).get("_fields")
        if type(names) is tuple and all(type(name) is str for name in names):
            return names
    return ()


def reads_once(kind: type) -> bool:
    """Whether to iterate over an object of this class may take something from whoever does so next: an iterator, or an
    iterable that cannot tell its length."""
    has = {name for base in _mro(kind) for name in _SIZED if name in _own(base)}
    return "__next__" in has or ("__iter__" in has and "__len__" not in has and BaseModel not in _mro(kind))


class Fields:
    """The public fields that objects of a class store; properties and computed fields are not run."""

    __slots__ = ("_extra", "_held", "_kind", "_members", "_texts")

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._members: dict[str, Any] = {}
        self._texts: dict[str, str | None] = {}  # of the class itself, by the names that were asked for
        self._held: Any = None
        self._extra: Any = None
        for base in _mro(kind):
            own = _own(base)
            slots = own.get("__slots__")
            for name in slots if type(slots) is tuple else ():
                if type(own.get(name)) is MemberDescriptorType:
                    self._members.setdefault(name, own[name])
            if self._held is None and type(own.get("__dict__")) in (GetSetDescriptorType, MemberDescriptorType):
                self._held = own["__dict__"]
            if base is BaseModel:
                self._extra = own.get(
                    "__pydantic_extra__"
                )  # where a model keeps what it was given and does not declare

    def of(self, value: Any, most: int) -> dict[str, Any]:
        """Those of one object, ``most`` at most."""
        found: dict[str, Any] = {}
        for name, member in self._members.items():
            try:
                found[name] = member.__get__(value)
            except AttributeError:
                continue  # never set
        held = self._held.__get__(value) if self._held is not None else None
        if type(held) is dict:
            found.update(tuple(itertools.islice(held.items(), most)))
        if self._extra is not None and (extra := self._extras(value)):
            found.update(tuple(itertools.islice(extra.items(), most)))
        return {name: item for name, item in found.items() if type(name) is str and not name.startswith("_")}

    def one(self, value: Any, name: str) -> Any:
        """What one object holds in one of them, or its class as a text; None where it holds nothing."""
        if name in self._members:
            try:
                return self._members[name].__get__(value)
            except AttributeError:
                return None  # never set
        held = self._held.__get__(value) if self._held is not None else None
        if type(held) is dict and name in held:
            return held[name]
        if self._extra is not None and (extra := self._extras(value)) and name in extra:
            return extra[name]
        try:
            return self._texts[name]
        except KeyError:
            said = next((_own(base)[name] for base in _mro(self._kind) if name in _own(base)), None)
            self._texts[name] = said = said if type(said) is str else None
            return said

    def _extras(self, value: Any) -> dict[str, Any] | None:
        try:
            held = self._extra.__get__(value)
        except AttributeError:  # made without its constructor
            return None
        return held if type(held) is dict else None
