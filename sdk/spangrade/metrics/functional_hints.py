"""The types in a function's signature, with annotations that are text resolved where that can be done."""

import collections.abc
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ForwardRef, Union, get_args, get_origin, get_type_hints

from spangrade.errors import ConfigError

Unusable = Callable[[str, Any, str], None]


def signature(fn: Callable[..., Any], what: str) -> dict[str, inspect.Parameter]:
    """A function's parameters by name. A decorated one that takes just anything takes what it wraps.

    Raises:
        ConfigError: it has no signature (some builtins).
    """
    try:
        own = _signature(fn, follow_wrapped=isinstance(fn, staticmethod))
        return dict((_signature(fn) if _takes_anything(own) else own).parameters)
    except (TypeError, ValueError):
        raise ConfigError(f"{what}: {fn!r} does not say which inputs it takes; wrap it in a def") from None


def _signature(fn: Callable[..., Any], follow_wrapped: bool = True) -> inspect.Signature:
    if sys.version_info >= (3, 14):  # there annotations are evaluated when they are asked for
        from annotationlib import Format

        return inspect.signature(fn, follow_wrapped=follow_wrapped, annotation_format=Format.FORWARDREF)
    return inspect.signature(fn, follow_wrapped=follow_wrapped)


def _takes_anything(own: inspect.Signature) -> bool:
    return any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in own.parameters.values())


class Hints:
    """The annotations of parameters, and where their names are looked for: ``scope`` (the names around the definition),
    the function's closure, its module."""

    def __init__(
        self, fn: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], scope: Mapping[str, Any]
    ) -> None:
        self._raw = {name: parameter.annotation for name, parameter in parameters.items()}
        defined = _defined(fn)
        self._globals = getattr(defined, "__globals__", {})
        self._locals: dict[str, Any] = {}
        if any(_has_text(annotation) for annotation in self._raw.values()):
            self._locals = {**scope, **_closure(defined)}

    def resolve(self, unusable: Unusable | None = None) -> dict[str, Any]:
        """The type of each parameter; Any for one without annotation.

        Raises:
            NameError: a name is not known, and nobody is to be told (``unusable(parameter, annotation, why)``).
        """
        return {name: self._one(name, annotation, unusable) for name, annotation in self._raw.items()}

    def forget(self) -> None:
        """Once they are resolved: what stood around the definition is not kept alive."""
        self._locals = {}

    def _one(self, name: str, annotation: Any, unusable: Unusable | None) -> Any:
        if annotation is inspect.Parameter.empty:
            return Any

        def holder() -> None: ...

        holder.__annotations__ = {name: annotation}
        try:
            hint = get_type_hints(holder, self._globals, self._locals, include_extras=True)[name]
        except Exception as fault:
            if unusable is None:
                raise NameError(str(fault)) from fault
            unusable(name, annotation, str(fault))
            return Any
        return _checkable(hint)


def _checkable(hint: Any) -> Any:
    """A type that can be checked before the function runs: an Iterable is read into a list (pydantic would check its items
    only when they are taken), a protocol that `isinstance` does not take is not checked."""
    origin, members = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[_checkable(members[0]), *hint.__metadata__]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(_checkable, members))]  # noqa: UP007 - of members that are known here only
    if collections.abc.Iterable in (hint, origin):
        return list[members[0]] if members else list  # type: ignore[valid-type]
    if getattr(hint, "_is_protocol", False) and not getattr(hint, "_is_runtime_protocol", False):
        return Any
    return hint


def _has_text(annotation: Any) -> bool:
    if isinstance(annotation, (str, ForwardRef)):
        return True
    return any(_has_text(part) for part in get_args(annotation))


def _defined(fn: Any) -> Any:
    """The function whose module and closure the annotations were written in."""
    while True:
        if hasattr(fn, "__wrapped__") and _shows_wrapped(fn):
            fn = fn.__wrapped__
        elif hasattr(fn, "func"):  # functools.partial
            fn = fn.func
        elif hasattr(fn, "__func__"):  # a bound method
            fn = fn.__func__
        elif isinstance(fn, types.FunctionType):
            return fn
        elif isinstance(call := getattr(type(fn), "__call__", None), types.FunctionType):  # noqa: B004 - of the type
            fn = call
        else:
            return fn


def _shows_wrapped(fn: Any) -> bool:
    try:
        return isinstance(fn, staticmethod) or _takes_anything(_signature(fn, follow_wrapped=False))
    except (TypeError, ValueError):
        return True


def _closure(fn: Any) -> dict[str, Any]:
    found = {}
    for name, cell in zip(
        getattr(getattr(fn, "__code__", None), "co_freevars", ()), getattr(fn, "__closure__", None) or (), strict=False
    ):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found
