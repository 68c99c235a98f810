"""Conditions on a sample and what the metrics said of it, as a judge's policy writes them.

| condition | holds when |
|---|---|
| ``overlap.fail`` | the metric's result is that: pass, fail, error or skipped |
| ``overlap < 0.3`` | its value compares so: ``<``, ``<=``, ``>``, ``>=``, ``==``, ``!=`` |
| ``call.error``, ``call.ok`` | the call itself ended so |
| ``metadata.tenant = acme*`` | the Sample's metadata has a value like that, with ``*`` and ``?`` |
| ``context.model = gpt-*`` | likewise its context |
| ``attributes.http.route = /chat/*`` | likewise an attribute of the span |

A score of several that one metric gives is named as on the wire, ``metric.key``.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.model.sample import Sample

RESULTS: Final = ("pass", "fail", "error", "skipped")
_COMPARED: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_NUMERIC: Final = re.compile(r"(?P<name>.+?)\s*(?P<sign><=|>=|==|!=|<|>)\s*(?P<number>[+-]?[0-9.]+(?:[eE][+-]?\d+)?)")
_LIKE: Final = re.compile(r"(?P<place>metadata|context|attributes)\.(?P<key>[^=]+?)\s*=\s*(?P<pattern>.+)")
_KINDS: Final = (
    "'metric.result' with a result of pass, fail, error, skipped; 'metric < 0.5'; 'call.error'; "
    "'metadata.key = value*', and likewise context and attributes"
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What conditions look at. ``results``: name to pass, fail, error, skipped or a label; ``values``: name to number;
    ``attributes``: the span's."""

    sample: Sample
    results: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)


Holds = Callable[[Facts], bool]


def condition(text: Any) -> Holds:
    """The condition that ``text`` writes.

    Raises:
        ConfigError: it writes none; the message says what there is.
    """
    written = text.strip() if isinstance(text, str) else ""
    found = _by_call(written) or _by_content(written) or _by_value(written) or _by_result(written)
    if found is None:
        raise ConfigError(f"when {text!r} is no condition; there are {_KINDS}")
    return found


def _by_call(text: str) -> Holds | None:
    if text not in ("call.error", "call.ok"):
        return None
    status = text.removeprefix("call.")
    return lambda facts: facts.sample.context.get("status") == status


def _by_content(text: str) -> Holds | None:
    match = _LIKE.fullmatch(text)
    if match is None:
        return None
    place, key, pattern = match["place"], match["key"].strip(), match["pattern"].strip()

    def holds(facts: Facts) -> bool:
        held = facts.attributes if place == "attributes" else getattr(facts.sample, place)
        value = held.get(key)
        return value is not None and fnmatchcase(_said(value), pattern)

    return holds


def _by_value(text: str) -> Holds | None:
    match = _NUMERIC.fullmatch(text)
    if match is None:
        return None
    try:
        number = float(match["number"])
    except ValueError:
        return None
    name, compared = match["name"].strip(), _COMPARED[match["sign"]]
    return lambda facts: name in facts.values and compared(facts.values[name], number)


def _by_result(text: str) -> Holds | None:
    name, _, result = text.rpartition(".")
    if not name or result not in RESULTS:
        return None
    return lambda facts: facts.results.get(name) == result


def _said(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
