"""Slices and clusters: a key, a path or a function says to which group an item belongs."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.experiments.pairing import canonical
from spangrade.experiments.records import ItemResult

Key = str | Callable[[ItemResult], Any]
By = Key | Sequence[Key] | Mapping[str, Key] | None

#: The slice of items that have nothing under the key.
NONE: Final = "(none)"
_FIELDS: Final = ("input", "expected", "context", "metadata")
_ABSENT: Final = object()


def named_keys(by: By) -> dict[str, Key]:
    """What was given as ``by``, under the names it is shown with.

    Raises:
        ConfigError: it is neither a key, a function, nor several of these.
    """
    if by is None:
        return {}
    if isinstance(by, Mapping):
        named = dict(by)
    else:
        several = [by] if isinstance(by, str) or callable(by) else by
        if not isinstance(several, Sequence):
            raise ConfigError(
                f"by: {by!r} is neither a metadata key, a path, a function of the item, nor a list of these"
            )
        named = {}
        for key in several:
            name = name_of(key, "slice")
            named[name if name not in named else f"{name} {len(named) + 1}"] = key
    for name, key in named.items():
        if not isinstance(name, str) or not (isinstance(key, str) or callable(key)):
            raise ConfigError(f"by: {key!r} is neither a metadata key, a path, nor a function of the item")
    return named


def slices(name: str, key: Key, items: Sequence[ItemResult]) -> dict[str, list[str]]:
    """Item ids by slice, the slices in order. A list puts its item into every slice that it names.

    Raises:
        ConfigError: the key is not there in any item, or the function failed.
    """
    found: dict[str, list[str]] = {}
    order: dict[str, tuple[int, float, str]] = {}
    values = values_of("by", name, key, items)
    for item, value in zip(items, values, strict=True):
        groups = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
        for group, one in {_shown(one): one for one in groups or [None]}.items():
            order[group] = _place(one)
            found.setdefault(group, []).append(item.item_id)
    return {group: found[group] for group in sorted(found, key=order.__getitem__)}


def clusters(key: Key, items: Sequence[ItemResult]) -> dict[str, str]:
    """The cluster of each item by its id. An item without one is a cluster of its own.

    Raises:
        ConfigError: the key is not there in any item, or the function failed.
    """
    if not (isinstance(key, str) or callable(key)):
        raise ConfigError(f"cluster: {key!r} is neither a metadata key, a path, nor a function of the item")
    values = values_of("cluster", name_of(key, "cluster"), key, items)
    return {
        item.item_id: f"item {item.item_id}" if value is None else f"cluster {canonical(value)}"
        for item, value in zip(items, values, strict=True)
    }


def values_of(what: str, name: str, key: Key, items: Sequence[ItemResult]) -> list[Any]:
    """The key's value for each item, None where it is not there."""
    if not isinstance(key, str):
        return [_call(what, name, key, item) for item in items]
    values = [_look_up(item, key) for item in items]
    if items and all(value is _ABSENT for value in values):
        there = list(dict.fromkeys(key for item in items for key in item.metadata))
        raise ConfigError(
            f"{what}: no item has {key!r}; the items' metadata has {', '.join(map(repr, there)) or 'nothing'}. Give a metadata "
            f"key, a path such as 'input.topic' (of {', '.join(_FIELDS)}), or a function of the item"
        )
    return [None if value is _ABSENT else value for value in values]


def _look_up(item: ItemResult, key: str) -> Any:
    if key in item.metadata:
        return item.metadata[key]
    first, *rest = key.split(".")
    if first not in _FIELDS:
        first, rest = "metadata", [first, *rest]
    value = getattr(item, first)
    for part in rest:
        if not isinstance(value, Mapping) or part not in value:
            return _ABSENT
        value = value[part]
    return value


def _call(what: str, name: str, key: Callable[[ItemResult], Any], item: ItemResult) -> Any:
    try:
        return key(item)
    except Exception as fault:
        raise ConfigError(
            f"{what}: the function {name!r} failed on item {item.item_id!r}: {type(fault).__name__}: {fault}"
        ) from fault


def name_of(key: Any, otherwise: str) -> str:
    """What a key is called on the page; a lambda has no name of its own."""
    if isinstance(key, str):
        return key
    name = getattr(key, "__name__", type(key).__name__)
    return otherwise if name == "<lambda>" else str(name)


def _place(value: Any) -> tuple[int, float, str]:
    """Numbers by size, then texts, then the slice of those that have none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return 0, float(value), ""
    return 2 if value is None else 1, 0.0, _shown(value)


def _shown(value: Any) -> str:
    if value is None:
        return NONE
    return value if isinstance(value, str) else canonical(value)
