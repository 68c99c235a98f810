"""`evaluate` of a metric's class, checked when the class is defined: what it takes, what it gives, sync or async."""

import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

from spangrade.metrics.jsontype import ANY, Names, Shape, same, shape_of
from spangrade.model.sample import Sample

WRITE: Final = "def evaluate(self, text) -> dict[str, {T}]"
_SAMPLE: Final = re.compile(rf"\b{Sample.__name__}\b")
_UNKNOWN: Final = object()  # an annotation with names that are not known here: mypy knows them, and values are checked


@dataclass(frozen=True, slots=True)
class Signature:
    """How `evaluate` is called. ``takes_sample``: it gets the whole `Sample`, not the output's text."""

    takes_sample: bool
    is_async: bool


def read_signature(cls: type, shape: Shape, type_said: str) -> Signature:
    """The signature of ``cls.evaluate``, whose values are of ``shape``, called ``type_said`` in messages.

    Raises:
        TypeError: it cannot be called with one text or `Sample`, or says that it gives something else than a dict of these.
    """
    raw = inspect.getattr_static(cls, "evaluate")
    fn = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
    wanted = WRITE.format(T=type_said)
    what = f"{cls.__qualname__}.evaluate"
    if not callable(fn) or isinstance(fn, type):
        raise TypeError(f"{what} is {type(fn).__name__}, not a method; write {wanted}")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError(f"{what} yields where it must return once; write {wanted}")
    names = Names(getattr(inspect.unwrap(fn), "__globals__", {}), vars(cls))
    given = _given(raw, fn, what, wanted)
    found = _evaluated(given.annotation, names)
    takes_sample = _takes_sample(given, found, what, wanted)
    is_async = inspect.iscoroutinefunction(inspect.unwrap(fn))
    returns = _evaluated(_written(fn).return_annotation, names)
    is_async |= _check_returned(returns, names, shape, f"{what} says that it returns", wanted)
    return Signature(takes_sample, is_async)


def _written(fn: Any) -> inspect.Signature:
    try:
        return inspect.signature(fn)
    except NameError:  # Python 3.14 evaluates annotations here: one names what is imported for the type checker only
        import annotationlib  # type: ignore[import-not-found,unused-ignore]

        return inspect.signature(fn, annotation_format=annotationlib.Format.STRING)  # type: ignore[call-arg,unused-ignore]


def _given(raw: Any, fn: Any, what: str, wanted: str) -> inspect.Parameter:
    """The one parameter that gets the text or Sample."""
    try:
        parameters = list(_written(fn).parameters.values())
    except (TypeError, ValueError):
        raise TypeError(f"{what} has no signature that can be read; write {wanted}") from None
    own = parameters if isinstance(raw, staticmethod) else parameters[1:]
    named = [p for p in own if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    positional = [p for p in named if p.kind is not p.KEYWORD_ONLY]
    if not positional:
        raise TypeError(f"{what} takes nothing to evaluate; write {wanted}")
    more = [p.name for p in named if p is not positional[0] and p.default is p.empty]
    if more:
        raise TypeError(
            f"{what} needs {', '.join(more)} beside {positional[0].name}, which nobody gives it; take the whole sample "
            "(def evaluate(self, sample): sample.input, sample.expected, sample.documents), or put it in config_schema"
        )
    return positional[0]


def _takes_sample(given: inspect.Parameter, found: Any, what: str, wanted: str) -> bool:
    if found is _UNKNOWN and isinstance(given.annotation, str) and _SAMPLE.search(given.annotation):
        return True  # imported for the type checker only, maybe
    if found in (inspect.Parameter.empty, Any, object, _UNKNOWN):
        return given.name == "sample"
    parts = set(get_args(found)) if get_origin(found) in (Union, UnionType) else {found}
    if Sample in parts:
        return True
    if str in parts and parts <= {str, NoneType}:
        return False
    raise TypeError(
        f"{what}: {given.name} is said to be {_name(found)}, but it gets the output's text (str), or a Sample; write {wanted}"
    )


def _check_returned(returns: Any, names: Names, shape: Shape, says: str, wanted: str) -> bool:
    """True for an awaitable."""
    if returns in (inspect.Signature.empty, Any, _UNKNOWN):
        return False
    origin, args = get_origin(returns), get_args(returns)
    if origin in (Awaitable, Coroutine):
        _check_returned(args[-1], names, shape, says, wanted)
        return True
    if origin in (Union, UnionType):
        return sum(_check_returned(arg, names, shape, says, wanted) for arg in args) > 0  # all are checked
    if origin in (Iterator, Generator, AsyncIterator, AsyncGenerator):
        raise TypeError(f"{says} {_name(returns)}, where it must return once; write {wanted}")
    kind = origin or returns
    if not isinstance(kind, type) or not issubclass(kind, dict) or (args and args[0] is not str and args[0] is not Any):
        raise TypeError(
            f"{says} {_name(returns)}, not a dict of its results by name; write {wanted} and return self.result(value)"
        )
    if len(args) != 2 or _is_open(args[1]):
        return False
    try:
        key = shape_of(args[1], names).key
    except TypeError as fault:
        raise TypeError(f"{says} {_name(returns)}: {fault}") from None
    if not same(key, shape.key) and shape.key != ANY:
        raise TypeError(f"{says} {_name(returns)}, which is not what the class says; write {wanted}")
    return False


def _is_open(given: Any) -> bool:
    return isinstance(given, TypeVar) or bool(getattr(given, "__parameters__", ()))


def _evaluated(annotation: Any, names: Names) -> Any:
    if annotation is inspect.Parameter.empty:
        return annotation
    try:
        return names.evaluated(annotation)
    except Exception:  # noqa: BLE001 - whatever an annotation's text does when it is evaluated
        return _UNKNOWN


def _name(given: Any) -> str:
    return given.__name__ if isinstance(given, type) and not get_args(given) else str(given)
