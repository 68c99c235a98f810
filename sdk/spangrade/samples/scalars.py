"""Attribute values as the plain types that a reading holds, whatever the sender made of them.

Senders differ: token counts come as text or floats, lists as tuples or JSON or comma text, SDK 1.45 sends nested maps,
bytes and None. Rubbish is None, never a guess.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from spangrade._values import bounded, dumps, snapshot
from spangrade.samples.jsontext import loads, read_items, read_object

_MAX_COUNT: Final = 10**12
_MAX_NAMES: Final = 64
_DAY_S: Final = 86_400.0
MAX_TOOLS: Final = 256
_MAX_NAME: Final = 1_024


def name(value: Any) -> str | None:
    """A short text (a model, an id, a role), or None when there is none. Numbers become text."""
    if value is None:
        return None
    if isinstance(value, str):
        short = value.strip()
        return (short if len(short) <= _MAX_NAME and short.isascii() else bounded(short, _MAX_NAME)) or None
    if isinstance(value, int) and not isinstance(value, bool):
        plain = snapshot(value)
        return plain if isinstance(plain, str) else str(plain)
    return None


def first_name(attributes: Mapping[str, Any], *keys: str) -> str | None:
    """The `name` under the first of ``keys`` that has one."""
    for key in keys:
        value = attributes.get(key)
        if value is not None:
            found = name(value)
            if found is not None:
                return found
    return None


def text(value: Any) -> str | None:
    """Any value as bounded text: None stays None, a list or mapping becomes JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return bounded(value)
    plain = snapshot(value)
    return plain if isinstance(plain, str) else dumps(plain)


def count(value: Any) -> int | None:
    """A token count: a whole number of 0 or more, also as text or float; else None."""
    if type(value) is int:
        return value if 0 <= value <= _MAX_COUNT else None
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value) if len(value) < 32 else None
        except ValueError:
            return None
    if isinstance(value, float):
        value = int(value) if math.isfinite(value) and value == int(value) else None
    return value if isinstance(value, int) and 0 <= value <= _MAX_COUNT else None


USAGE: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def usage(
    attributes: Mapping[str, Any],
    inputs: Iterable[str],
    outputs: Iterable[str],
    cache_reads: Iterable[str] = (),
    cache_writes: Iterable[str] = (),
    reasoning: Iterable[str] = (),
) -> dict[str, int]:
    """Token counts named as in `USAGE`, each under the first key that holds a count; absent when unknown."""
    found: dict[str, int] = {}
    for field, keys in zip(USAGE, (inputs, outputs, cache_reads, cache_writes, reasoning), strict=True):
        for key in keys:
            held = attributes.get(key)
            if held is None:
                continue
            number = count(held)
            if number is not None:
                found[field] = number
                break
    return found


def seconds(value: Any) -> float | None:
    """A duration of 0 s to a day, also as text; else None."""
    if isinstance(value, str):
        try:
            value = float(value) if len(value) < 32 else None
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= _DAY_S else None  # NaN is not


def declared_tools(value: Any) -> tuple[dict[str, Any], ...]:
    """The tools of a list attribute, each as it was declared: JSON text, a list, or a mapping of each."""
    if value is None:
        return ()
    items = (read_object(item) for item in read_items(value).items[:MAX_TOOLS])
    return tuple(item for item in items if item)


def names(value: Any) -> tuple[str, ...]:
    """Several short texts: a sequence, a JSON list, or text separated by commas."""
    if value is None:
        return ()
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            try:
                value = loads(value)
            except ValueError:
                value = value.strip().strip("[]")
        if isinstance(value, str):
            value = value.split(",")
    if not isinstance(value, (list, tuple)):
        return ()
    found = (name(item) for item in value[:_MAX_NAMES])
    return tuple(item for item in found if item is not None)
