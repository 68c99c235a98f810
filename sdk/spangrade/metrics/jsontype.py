"""Which types ``json.dumps`` writes, read from the type itself; and whether a value is of one.

One walk over the type gives both, when a metric's class is defined: a `Shape`, whose ``key`` tells equal types (`Optional[int]`
is ``int | None``) and whose ``wrong`` says what is wrong with a value.

Serialisable are None, bool, int, float, str and enums of these, list, tuple, dict with str keys, Literal, Union, Annotated,
NewType, TypedDict and type aliases of them, also recursive ones. ``Any`` is checked by its values alone. Not so what JSON has
no form for (set, bytes, datetime, Decimal, models, plain classes): the error says what to return in its place. Values are
held to the rules of typing: an int is a float too, a bool an int; numbers of numpy count as what they say they are; NaN and
infinities are no JSON (RFC 8259).
"""

import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, ForwardRef, Literal, TypeVar, Union, get_args, get_origin

from spangrade.metrics.jsonvalue import (
    MAX_DEPTH,
    Wrong,
    short,
    wrong_any,
    wrong_bool,
    wrong_float,
    wrong_int,
    wrong_none,
)

ANY: Final = "any"
_WAYS_OUT: Final[Mapping[str, str]] = {
    "set": "a list", "frozenset": "a list", "deque": "a list", "bytes": "str", "bytearray": "str",
    "complex": "a list of two floats", "Decimal": "float", "datetime": "str (isoformat())", "date": "str (isoformat())",
    "time": "str (isoformat())", "timedelta": "float (total_seconds())", "UUID": "str", "Path": "str", "PosixPath": "str",
    "Mapping": "dict[str, ...]", "Sequence": "list[...]", "Iterable": "list[...]", "OrderedDict": "dict[str, ...]",
    "object": "float, str, bool, list[...] or dict[str, ...]",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """A type that JSON has a form for. ``key``: equal for equal types. ``wrong(value, at)``: what is wrong, or ``""``."""

    key: Any  # hashable
    wrong: Wrong


class Names:
    """Where the names of forward references are looked up."""

    def __init__(self, module: Mapping[str, Any], local: Mapping[str, Any]) -> None:
        self._globals = dict(module)
        self._local = dict(local)

    @classmethod
    def of(cls, kind: type) -> "Names":
        """Those of a class: its module's and its own."""
        module = sys.modules.get(kind.__module__)
        return cls(vars(module) if module is not None else {}, vars(kind))

    def evaluated(self, annotation: Any) -> Any:
        """The type that an annotation means.

        Raises:
            NameError: a name in it is not known here.
        """

        def holder() -> None: ...

        holder.__annotations__ = {"x": annotation}
        return typing.get_type_hints(holder, self._globals, self._local, include_extras=True)["x"]


def shape_of(given: Any, names: Names) -> Shape:
    """The shape of a type.

    Raises:
        TypeError: JSON has no form for it, or for something in it; the message says which, and the way out.
    """
    return _Reader(names).read(given)


def same(a: Any, b: Any) -> bool:
    """Whether two keys mean one type; Any is the same as anything."""
    if a == b or ANY in (a, b):
        return True
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    return False


class _Reader:
    """One walk over a type. ``_known``: what has been met by identity, so that a recursive type ends."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[Any, Shape] = {}
        self._alive: list[Any] = []  # types in `_known`, kept so that no id is used twice

    def read(self, given: Any) -> Shape:
        if given is Any:
            return Shape(ANY, wrong_any)
        if given is None or given is NoneType:
            return Shape(NoneType, wrong_none)
        if isinstance(given, (str, ForwardRef)):
            return self._reference(given)
        if isinstance(given, TypeVar):
            raise TypeError(f"{given} is still open where a type is needed")
        origin = get_origin(given)
        if origin in (Union, UnionType):
            return self._union(get_args(given))
        if origin is Literal:
            return self._literal(get_args(given))
        if origin is typing.Annotated or origin in (typing.Required, typing.NotRequired):
            return self.read(get_args(given)[0])
        if hasattr(given, "__supertype__"):  # NewType
            return self.read(given.__supertype__)
        if origin is not None and hasattr(origin, "__value__"):  # generic type alias
            return self.read(filled(origin.__value__, dict(zip(origin.__type_params__, get_args(given), strict=False))))
        if hasattr(given, "__value__"):  # type alias
            return self._recursive(given, lambda: self.read(given.__value__), given.__name__)
        return self._class(given, origin or given, get_args(given))

    def _class(self, given: Any, kind: Any, args: tuple[Any, ...]) -> Shape:
        if typing.is_typeddict(kind):
            return self._recursive(kind, lambda: self._typed_dict(kind))
        if kind is list:
            return _list(self.read(args[0] if args else Any))
        if kind is tuple:
            return self._tuple(args)
        if kind is dict:
            return self._dict(args)
        if isinstance(kind, type) and (found := _scalar(kind)) is not None:
            return found
        raise TypeError(f"{_said(given)} is not JSON-serialisable{_way_out(kind)}")

    def _union(self, args: tuple[Any, ...]) -> Shape:
        parts = [self.read(arg) for arg in args]

        def wrong(value: Any, at: str) -> str:
            found = [part.wrong(value, at) for part in parts]
            return "" if "" in found else f"{at} is {short(value)}, none of {', '.join(_said(arg) for arg in args)}"

        return Shape(("union", frozenset(part.key for part in parts)), wrong)

    def _literal(self, values: tuple[Any, ...]) -> Shape:
        for value in values:
            if not isinstance(value, (str, int, bool, NoneType)) or isinstance(value, bytes):
                raise TypeError(f"Literal[{value!r}] is not JSON-serialisable; use a str")
        pairs = frozenset((type(value), value) for value in values)

        def wrong(value: Any, at: str) -> str:
            if isinstance(value, (str, int, bool, NoneType)) and (type(value), value) in pairs:
                return ""
            return f"{at} is {short(value)}, not one of {', '.join(map(repr, values))}"

        return Shape(("literal", pairs), wrong)

    def _tuple(self, args: tuple[Any, ...]) -> Shape:
        if not args or (len(args) == 2 and args[1] is Ellipsis):
            return _list(self.read(args[0] if args else Any), "tuple")
        items = [] if args == ((),) else [self.read(arg) for arg in args]

        def wrong(value: Any, at: str) -> str:
            if not isinstance(value, (list, tuple)) or len(value) != len(items):
                return f"{at} is {short(value)}, not a tuple of {len(items)}"
            each = enumerate(zip(items, value, strict=True))
            return next((said for i, (shape, item) in each if (said := shape.wrong(item, f"{at}[{i}]"))), "")

        return Shape(("tuple", tuple(item.key for item in items)), wrong)

    def _dict(self, args: tuple[Any, ...]) -> Shape:
        key, item = (self.read(args[0]), self.read(args[1])) if args else (Shape(str, wrong_any), self.read(Any))
        literal = isinstance(key.key, tuple) and key.key[0] == "literal"
        if key.key != ANY and not literal and not (isinstance(key.key, type) and issubclass(key.key, str)):
            raise TypeError(
                f"dict[{_said(args[0])}, ...] is not JSON-serialisable: keys of JSON are text; use dict[str, ...]"
            )

        def wrong(value: Any, at: str) -> str:
            if not isinstance(value, dict):
                return f"{at} is {short(value)}, not a dict"
            for name, held in value.items():
                if not isinstance(name, str):
                    return f"{at} has the key {short(name)}, not a str"
                if literal and (said := key.wrong(name, f"{at}'s key")):
                    return said
                if said := item.wrong(held, f"{at}[{name!r}]"):
                    return said
            return ""

        return Shape(("dict", key.key, item.key), wrong)

    def _typed_dict(self, kind: Any) -> Shape:
        try:
            hints = typing.get_type_hints(kind)
        except NameError as fault:
            raise TypeError(f"{_said(kind)}: {fault}") from None
        items = {name: self.read(hint) for name, hint in hints.items()}
        required = kind.__required_keys__

        def wrong(value: Any, at: str) -> str:
            if not isinstance(value, dict):
                return f"{at} is {short(value)}, not a dict"
            if missing := sorted(required - value.keys()):
                return f"{at} lacks {', '.join(map(repr, missing))}"
            if unknown := [name for name in value if name not in items]:
                return f"{at} has the key {short(unknown[0])}, which {_said(kind)} has not"
            return next(
                (said for name, held in value.items() if (said := items[name].wrong(held, f"{at}[{name!r}]"))), ""
            )

        return Shape(("typed dict", kind), wrong)

    def _reference(self, given: str | ForwardRef) -> Shape:
        name = given if isinstance(given, str) else given.__forward_arg__
        if name in self._known:
            return self._known[name]
        try:
            meant = self._names.evaluated(name)
        except NameError as fault:
            raise TypeError(
                f"{name!r} is not known where the class is defined ({fault}); define it before the class"
            ) from None
        return self._recursive(meant, lambda: self.read(meant), name)

    def _recursive(self, meant: Any, read: Callable[[], Shape], name: str | None = None) -> Shape:
        """``read()``, with what stands for it while it is read: a type within itself, by identity or ``name``."""
        keys = [key for key in (id(meant), name) if key is not None]
        for key in keys:
            if key in self._known:
                return self._known[key]
        found: list[Shape] = []

        def wrong(value: Any, at: str) -> str:
            if at.count("[") > MAX_DEPTH:
                return f"{at[:60]}... is nested more than {MAX_DEPTH} deep"
            return found[0].wrong(value, at)

        self._alive.append(meant)
        self._known.update((key, Shape(("type", keys[-1]), wrong)) for key in keys)
        found.append(read())
        self._known.update((key, found[0]) for key in keys)
        return found[0]


def filled(given: Any, values: Mapping[Any, Any]) -> Any:
    """A generic type with its type variables replaced."""
    if isinstance(given, TypeVar):
        return values.get(given, given)
    variables = getattr(given, "__parameters__", ())
    return given[tuple(values.get(variable, variable) for variable in variables)] if variables else given


def _list(item: Shape, what: str = "list") -> Shape:
    kinds = list if what == "list" else (list, tuple)

    def wrong(value: Any, at: str) -> str:
        if not isinstance(value, kinds):
            return f"{at} is {short(value)}, not a {what}"
        return next((said for i, held in enumerate(value) if (said := item.wrong(held, f"{at}[{i}]"))), "")

    return Shape((what, item.key), wrong)


def _scalar(kind: type) -> Shape | None:
    if issubclass(kind, Enum):  # of text or numbers: json.dumps writes its value
        return Shape(kind, _instance(kind)) if issubclass(kind, (str, int, float)) else None
    if kind is bool:
        return Shape(bool, wrong_bool)
    if kind is int:
        return Shape(int, wrong_int)
    if kind is float:
        return Shape(float, wrong_float)
    return Shape(kind, _instance(kind)) if issubclass(kind, (str, int, float)) else None


def _instance(kind: type) -> Wrong:
    return lambda value, at: "" if isinstance(value, kind) else f"{at} is {short(value)}, not {_said(kind)}"


def _said(given: Any) -> str:
    if isinstance(given, type) and not get_args(given):
        return given.__name__
    return str(given).replace("typing.", "")


def _way_out(kind: Any) -> str:
    name = getattr(kind, "__name__", "")
    if name in _WAYS_OUT:
        return f"; use {_WAYS_OUT[name]}"
    if hasattr(kind, "model_dump"):
        return "; use dict[str, Any] of its model_dump(mode='json'), or a TypedDict"
    if hasattr(kind, "__dataclass_fields__"):
        return "; use dict[str, Any] of dataclasses.asdict(...), or a TypedDict"
    return "; use str, int, float, bool, None, list[...], dict[str, ...] or a TypedDict of these"
