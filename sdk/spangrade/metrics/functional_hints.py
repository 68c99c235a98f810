"""The types in a function's signature, with annotations that are text resolved where that can be done."""

import collections.abc
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, ForwardRef, get_args, get_origin, get_type_hints

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
    if get_origin(hint) is collections.abc.Iterable:
        return list[get_args(hint)[0]]  # type: ignore[misc]
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
        fn = inspect.unwrap(fn)
        if hasattr(fn, "func"):  # functools.partial
            fn = fn.func
        elif hasattr(fn, "__func__"):  # a bound method
            fn = fn.__func__
        elif isinstance(fn, types.FunctionType) or not hasattr(type(fn), "__call__"):  # noqa: B004 - asked of the type
            return fn
        elif isinstance(call := type(fn).__call__, types.FunctionType):
            fn = call
        else:
            return fn


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
