"""Lists flattened into attribute keys: ``llm.input_messages.10.message.role``.

Indices are read as numbers (text order puts 10 before 2), gaps are closed, and anything but a plain decimal below
10,000 is ignored, so that no sender can make us build a list of two thousand million elements.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

_MAX_DIGITS: Final = 4
MANY: Final = 64  # attributes; limits are rarely lower


def grouped(attributes: Mapping[str, Any], prefixes: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """For each of the ``prefixes`` (with their dot) that occurs, its elements in order.

    An element is a dict of rest-of-key to value. One pass over the attributes, however many prefixes.
    """
    wanted = tuple(prefixes)
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for key, value in attributes.items():
        if not isinstance(key, str) or not key.startswith(wanted):
            continue
        for prefix in wanted:
            if key.startswith(prefix):
                index, dot, rest = key[len(prefix) :].partition(".")
                if dot and is_index(index):
                    found.setdefault(prefix, {}).setdefault(int(index), {})[rest] = value
    return {prefix: [items[index] for index in sorted(items)] for prefix, items in found.items()}


def elements(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """`grouped` for one prefix."""
    return grouped(attributes, (prefix,)).get(prefix, [])


def under(attributes: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """What stands under ``prefix`` (with its dot), by the rest of its key, as it is."""
    return {key[len(prefix) :]: value for key, value in attributes.items() if key.startswith(prefix)}


def lost_its_beginning(attributes: Mapping[str, Any], prefixes: tuple[str, ...]) -> bool:
    """Whether this may be the rest of a span that had more attributes than its limit, by the elements that are left: the SDK
    drops the oldest, and what says the kind is set first (C054)."""
    return len(attributes) >= MANY and any(isinstance(key, str) and key.startswith(prefixes) for key in attributes)


def is_index(digits: str) -> bool:
    """A plain decimal of at most four digits: no sign, no leading zero."""
    return len(digits) <= _MAX_DIGITS and digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")
