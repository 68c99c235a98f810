"""How much memory what others wrote takes, about: the one measure of every bound in bytes."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

_NO_TEXT: Final = frozenset((int, float, bool, type(None)))


def text_size(value: Any) -> int:
    """About how many bytes a value holds: its text, and a flat rate for every item of a container."""
    if isinstance(value, (str, bytes)):
        return len(value)
    items: Iterable[Any]
    if isinstance(value, (dict, MappingProxyType)):  # the common ones first: to ask an ABC costs as much as the rest
        items = value.values()
    elif isinstance(value, (list, tuple)):
        items = value
    elif isinstance(value, Mapping):
        items = value.values()
    else:
        return 0
    size = 0
    for item in items:
        kind = type(item)
        size += 64 + (len(item) if kind is str else 0 if kind in _NO_TEXT else text_size(item))
    return size
