"""Metric classes by name: the `Catalog` protocol, the process's own `MetricsCatalog`, and `register_metric`."""

import difflib
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol, TypeVar, overload, runtime_checkable

from spangrade.errors import ConfigError
from spangrade.metrics import importing, packages
from spangrade.metrics.base import BaseMetric
from spangrade.metrics.builtin.table import BUILTIN
from spangrade.model.evaluator import check_name

Metric = TypeVar("Metric", bound=type[BaseMetric[Any]])


@runtime_checkable
class Catalog(Protocol):
    """Where metric classes are found by name. Anything with these methods is one; `register_metric` writes into it."""

    def register(self, cls: Any, /, name: str | None = None) -> Any:
        """Take a class in, under ``name``, or its own. Another class under a taken name is an error."""

    def get(self, name: str) -> Any:
        """The class of that name; KeyError, naming near misses, where there is none."""

    def names(self) -> Iterable[str]:
        """All names."""

    def __contains__(self, name: object) -> bool: ...


class _Containing(type):
    """``name in MetricsCatalog``: the class itself is a catalog."""

    def __contains__(cls, name: object) -> bool:
        return cls.holds(name)  # type: ignore[attr-defined,no-any-return]


class MetricsCatalog(metaclass=_Containing):
    """The catalog of this process, by default where `register_metric` writes: ``MetricsCatalog.get("Words")``.

    It holds the built-in metrics, what was registered, and what installed packages offer by the entry point group
    ``spangrade.metrics``, which is loaded when it is asked for. What is registered comes before what a package offers. There is
    one: an instance is the same catalog. A subclass is a catalog of its own, which holds what is registered with it and nothing
    else.
    """

    _classes: ClassVar[dict[str, type[BaseMetric[Any]]]] = {}

    def __init_subclass__(cls) -> None:
        cls._classes = {}

    @classmethod
    def register(cls, metric: type[BaseMetric[Any]], name: str | None = None) -> None:
        """Take a class in, under ``name``; default its own ``name``. Once more is no fault, nor is it after a reload.

        Raises:
            TypeError: it is no metric's class, or one that is only a base for others.
            ConfigError: another class, or a built-in metric, has that name.
        """
        if not isinstance(metric, type) or not issubclass(metric, BaseMetric):
            raise TypeError(
                f"{metric!r} is no metric's class; derive it from BaseMetric[...] (a @metric needs no catalog)"
            )
        if metric._signature is None:
            raise TypeError(f"{metric.__qualname__} is a base for others; register the classes that derive from it")
        name = check_name(metric.name if name is None else name, "metric")
        if cls is MetricsCatalog and name in BUILTIN:
            raise ConfigError(f"{_place(metric)}: {name!r} is the name of a built-in metric; {_ANOTHER}")
        taken = cls._classes.get(name)
        if taken is not None and taken is not metric and not _is_again(taken, metric):
            raise ConfigError(f"{_place(metric)}: the name {name!r} is that of {_place(taken)} already; {_ANOTHER}")
        cls._classes[name] = metric

    @classmethod
    def get(cls, name: str) -> Any:
        """The class of that name; of a built-in or a package, whatever metric, or function that makes one, stands there.

        Raises:
            KeyError: there is none; the message names near misses.
            ConfigError: a package offers it and cannot be loaded, or two do; the message names them.
        """
        if name in cls._classes:
            return cls._classes[name]
        if cls is MetricsCatalog:
            if name in BUILTIN:
                return importing.at_path(BUILTIN[name].path)
            if name in packages.offers():
                return packages.load(name, cls._classes)
        near = difflib.get_close_matches(str(name), cls.names(), n=3)
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(cls.names()) or 'none'}"
        )
        raise KeyError(f"no metric {name!r} in {cls.__name__}; {hint}")

    @classmethod
    def names(cls) -> list[str]:
        """All names, sorted; nothing is loaded for it."""
        more = (*BUILTIN, *packages.offers()) if cls is MetricsCatalog else ()
        return sorted({*cls._classes, *more})

    @classmethod
    def registered(cls) -> dict[str, type[BaseMetric[Any]]]:
        """What was registered, by name: a copy."""
        return dict(cls._classes)

    @classmethod
    def holds(cls, name: object) -> bool:
        """``name in catalog``."""
        if name in cls._classes:
            return True
        return cls is MetricsCatalog and (name in BUILTIN or name in packages.offers())

    def __contains__(self, name: object) -> bool:
        return self.holds(name)


_ANOTHER = 'give another: @register_metric(name="...")'


@overload
def register_metric(cls: Metric, /) -> Metric: ...


@overload
def register_metric(*, name: str | None = None, catalog: Catalog | None = None) -> Callable[[Metric], Metric]: ...


def register_metric(cls: Any = None, /, *, name: str | None = None, catalog: Catalog | None = None) -> Any:
    """Write a metric's class into a catalog when it is defined: ``@register_metric``, or ``@register_metric(name="...")``.

    The name is the class's own where none is given; one that is given becomes the class's, unless the class says its
    ``name`` itself. ``catalog``: any `Catalog`; default `MetricsCatalog`.

    Raises:
        TypeError: it stands above something that is no metric's class, or ``catalog`` is none.
        ConfigError: the name is another's.
    """
    if cls is not None and not isinstance(cls, type):
        way = f"; write @register_metric(name={cls!r}) to give a name" if isinstance(cls, str) else f", not {cls!r}"
        raise TypeError(f"@register_metric stands above a class{way}")
    if catalog is not None and not hasattr(catalog, "register"):
        raise TypeError(f"@register_metric: catalog {catalog!r} is no catalog: it has no register(cls, name=None)")

    def register(metric: Any) -> Any:
        into: Any = MetricsCatalog if catalog is None else catalog
        into.register(metric, name)
        if name is not None and isinstance(metric, type) and issubclass(metric, BaseMetric) and not metric._says_name:
            metric._call(check_name(name, "metric"))
        return metric

    return register if cls is None else register(cls)


def _is_again(old: type, new: type) -> bool:
    """Whether it is the same class, defined once more: its module was reloaded, or the function that defines it was called."""
    if (old.__module__, old.__qualname__) != (new.__module__, new.__qualname__):
        return False
    return "<locals>" not in new.__qualname__ or _line(old) == _line(new)


def _line(cls: type) -> Any:
    code = getattr(getattr(cls, "evaluate", None), "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno)


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
