"""Anything that a user may give as a metric → what the pipeline, or a tree, can run."""

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

from spangrade.errors import ConfigError
from spangrade.metrics import lookup
from spangrade.metrics.builtin.table import BUILTIN
from spangrade.metrics.local import metric
from spangrade.model.evaluator import Evaluator

if TYPE_CHECKING:  # classes and trees are imported with the first of them: most applications have none
    from spangrade.metrics.base import BaseMetric

__all__ = ["BUILTIN", "as_leaf", "node_of", "resolve"]


def resolve(given: Any) -> Evaluator:
    """The evaluator meant by a metric of any family (an instance, or a class that needs no parameters), a plain function, a
    name (built-in, registered, or of a package; see `spangrade.metrics.lookup`), or an import path ``module:name``.

    Raises:
        ConfigError: the name is unknown (near misses are named), the module does not import, or the thing is no metric.
    """
    node = node_of(given)
    if not _is_class_metric(node):
        return node  # type: ignore[return-value]
    from spangrade.metrics.adapter import evaluator_of

    return evaluator_of(node)


def as_leaf(given: Any) -> "BaseMetric[Any]":
    """The same as a node of a tree.

    Raises:
        TypeError: the thing is no metric.
        ConfigError: as of `resolve`.
    """
    if not isinstance(given, (str, Evaluator)) and not callable(given):
        raise TypeError(f"{given!r} is no metric; {_WHAT_IS}")
    from spangrade.metrics.leaf import EvaluatorLeaf

    node = node_of(given)
    return node if _is_class_metric(node) else EvaluatorLeaf(node)  # type: ignore[arg-type]


def node_of(given: Any) -> "BaseMetric[Any] | Evaluator":
    """The same: a class metric or tree as it is, everything else as an evaluator."""
    if isinstance(given, str):
        entry = lookup.find(given)
        found = entry.load()
        return node_of(made(found, given) if entry.factory else found)
    if _is_class_metric(given):
        return given
    if isinstance(given, type):
        return instance_of(given)
    if isinstance(given, Evaluator):
        return given
    if callable(given):
        name = _built_in_factory(given)
        return metric(given) if name is None else node_of(name)
    raise ConfigError(f"metrics: {given!r} is no metric; {_WHAT_IS}")


def _is_class_metric(given: Any) -> "TypeGuard[BaseMetric[Any]]":
    module = sys.modules.get("spangrade.metrics.base")  # where it is not imported yet, nothing is one
    return module is not None and isinstance(given, module.BaseMetric)


def _built_in_factory(given: Any) -> str | None:
    """The name of the built-in that a function makes: ``metrics=[pii]`` means what ``metrics=["pii"]`` does."""
    path = f"{getattr(given, '__module__', '')}:{getattr(given, '__qualname__', '')}"
    return next((name for name, entry in BUILTIN.items() if entry.factory and entry.path == path), None)


_WHAT_IS = (
    "give a function, a @metric, a BaseMetric, or a name: 'overlap', 'module:name' (spangrade metrics list shows all)"
)


def instance_of(cls: type) -> "BaseMetric[Any]":
    """An instance of a metric's class that needs no parameters."""
    from spangrade.metrics.base import BaseMetric

    if not issubclass(cls, BaseMetric):
        raise ConfigError(f"metrics: {cls.__qualname__} is a class, and no BaseMetric; {_WHAT_IS}")
    if cls._signature is None:
        raise ConfigError(f"metrics: {cls.__qualname__} is a base for others; give a class that derives from it")
    try:
        return cls.from_config()
    except ConfigError as fault:
        raise ConfigError(f"{fault}; give an instance, {cls.__name__}({{...}}), or in a file config: {{...}}") from None
    except TypeError as fault:
        raise ConfigError(
            f"metrics: {cls.__qualname__} cannot be made without arguments ({fault}); give an instance"
        ) from fault


def made(factory: Any, name: str) -> Any:
    """The metric of a factory that is given no parameters."""
    try:
        return factory()
    except TypeError as fault:
        raise ConfigError(f"metric {name!r} needs parameters ({fault}); in a file, config: {{...}}") from None
