"""A configuration file's entry → the metric, or the whole tree of them, that it means."""

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from spangrade.config import ChildMetric, ChildTree, MetricOptions, TreeEntry, TreeShape, UseEntry
from spangrade.errors import ConfigError
from spangrade.metrics import lookup
from spangrade.metrics.adapter import evaluator_of
from spangrade.metrics.aggregate import NAMES
from spangrade.metrics.base import BaseMetric
from spangrade.metrics.catalog import instance_of, node_of
from spangrade.metrics.composite import CompositeMetric
from spangrade.metrics.options import with_options
from spangrade.model.evaluator import Evaluator


def evaluator_from(entry: UseEntry | TreeEntry) -> Evaluator:
    """The evaluator of one of the file's ``metrics``.

    Raises:
        ConfigError: it cannot work; in a tree the message begins with the place in it.
    """
    node = _tree(entry.tree) if isinstance(entry, TreeEntry) else _metric(entry)
    return evaluator_of(node) if isinstance(node, BaseMetric) else node


def _options(entry: MetricOptions) -> dict[str, Any]:
    return {name: value for name in MetricOptions.model_fields if (value := getattr(entry, name)) is not None}


def _metric(entry: UseEntry) -> BaseMetric[Any] | Evaluator:
    found = lookup.find(entry.use)
    thing, options = found.load(), _options(entry)
    if found.factory:
        node = node_of(_made(thing, {**_taken(thing, options), **(entry.config or {})}, entry.use))
    elif isinstance(thing, type) and issubclass(thing, BaseMetric):
        node = instance_of(thing) if entry.config is None else thing.from_config(entry.config)
    else:
        if entry.config:
            raise ConfigError(
                f"metric {entry.use!r} takes no config; {_first_key(entry.config)} is none of its parameters"
            )
        node = (
            copy.copy(thing) if isinstance(thing, BaseMetric) else node_of(thing)
        )  # each entry is a metric of its own
    return with_options(node, options)


def _taken(factory: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Those of ``options`` that are parameters of the factory, which knows best what they mean; taken out of ``options``."""
    names = inspect.signature(factory).parameters
    taken = {}
    for option in list(options):
        parameter = "name" if option == "result_key" else option
        if parameter in names:
            taken[parameter] = options.pop(option)
    return taken


def _first_key(config: Mapping[str, Any]) -> str:
    return repr(next(iter(config)))


def _made(factory: Any, config: Mapping[str, Any], name: str) -> Any:
    """What a factory makes of ``config``; its parameters are keywords."""
    signature = inspect.signature(factory)
    unknown = [key for key in config if key not in signature.parameters]
    known = ", ".join(signature.parameters)
    if unknown:
        raise ConfigError(f"metric {name!r}: there is no parameter {', '.join(map(repr, unknown))} (it takes {known})")
    try:
        signature.bind(**config)
    except TypeError as fault:
        raise ConfigError(f"metric {name!r}: config: {fault} (it takes {known})") from None
    try:
        return factory(**config)
    except (TypeError, ValueError) as fault:
        if isinstance(fault, ConfigError):
            raise
        raise ConfigError(f"metric {name!r}: config: {fault} (it takes {known})") from fault


def _tree(shape: TreeShape) -> CompositeMetric:
    aggregate = _aggregate(shape.aggregate)
    tree = CompositeMetric(shape.name, aggregate=aggregate, on_missing=shape.on_missing, **_options(shape))
    for i, child in enumerate(shape.children):
        with _at(f"{shape.name}.children[{i}]"):
            tree.add(_child(child), weight=child.weight)
    return tree


def _child(child: ChildMetric | ChildTree) -> Any:
    return _tree(child.tree) if isinstance(child, ChildTree) else _metric(child)


def _aggregate(said: str | None) -> Any:
    if said is None or said in NAMES or ":" not in said:
        return said
    return lookup.find(said).load()


@contextmanager
def _at(place: str) -> Iterator[None]:
    try:
        yield
    except ValueError as fault:
        raise ConfigError(f"{place}: {str(fault).removeprefix('metrics: ')}") from fault
