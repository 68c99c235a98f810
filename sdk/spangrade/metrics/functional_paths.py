"""Paths into a `Sample`, such as ``metadata.tenant`` or ``documents[].content``.

    path   = field, step*
    field  = input | output | expected | documents | context | metadata | trace_id | item_id, or an alias such as answer
    step   = "." name        the value under that key; dots in a key may be written plainly: metadata.service.name
           | '["' text '"]'  the same for any key: metadata["a key [with] anything"]
           | "[" n "]"       the item at that place; -1 is the last
           | "[]"            a list of what the rest of the path finds in each item

What is not there is `MISSING`, and so is None. Behind ``[]`` an item in which the rest is not found counts as None, so that
two lists from the same path stay in step.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.metrics.binding import field_of
from spangrade.model.sample import SAMPLE_FIELDS, Sample


class _Missing:
    """The type of `MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


class _Each:
    """The step ``[]``."""


_EACH: Final = _Each()
_Step = str | int | _Each
_STEP: Final = re.compile(
    r"""\.(?P<name>[^.\[\]"']+)|\[(?P<index>-?\d{1,9})\]|(?P<each>\[\])|\[(?P<key>"(?:[^"\\]|\\.)*"|'[^'\\]*')\]"""
)
_FIELD: Final = re.compile(r"[A-Za-z_]\w*")
GRAMMAR: Final = (
    "a path is a field of the Sample and steps: metadata.tenant, documents[].content, context.messages[0].role"
)


class SamplePath:
    """A path, read once.

    Raises:
        ConfigError: for text that is no path, or that begins with no field of a Sample.
    """

    def __init__(self, text: Any, what: str) -> None:
        if not isinstance(text, str) or not text:
            raise ConfigError(f"{what}: {text!r} is no path; {GRAMMAR}")
        self.text = text
        found = _FIELD.match(text)
        name = found.group() if found else ""
        known = field_of(name)
        if known is None:
            raise ConfigError(
                f"{what}: path {text!r} begins with no field of a Sample; these are {', '.join(SAMPLE_FIELDS)}"
            )
        self.field = known
        self._steps = tuple(_read_steps(text, len(name), what))
        if self.field == "documents" and self._steps and isinstance(self._steps[0], str):
            rest = text[len(name) :]
            raise ConfigError(
                f"{what}: path {text!r} looks for a key in a list; write {name}[]{rest} or {name}[0]{rest}"
            )

    def read(self, sample: Sample) -> Any:
        """What is there, or `MISSING`."""
        found = getattr(sample, self.field)
        if self._steps:
            found = _walk(found, self._steps)
        return MISSING if found is None else found

    def __repr__(self) -> str:
        return f"SamplePath({self.text!r})"


def _read_steps(text: str, at: int, what: str) -> list[_Step]:
    steps: list[_Step] = []
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise ConfigError(f"{what}: path {text!r} cannot be read from {text[at:]!r} on; {GRAMMAR}")
        at = found.end()
        name, index, each, key = found.group("name", "index", "each", "key")
        if name is not None:
            steps.append(name)
        elif index is not None:
            steps.append(int(index))
        elif each is not None:
            steps.append(_EACH)
        else:
            steps.append(_quoted(key, text, what))
    return steps


def _quoted(key: str, text: str, what: str) -> str:
    if key[0] == "'":
        return key[1:-1]
    try:
        return str(json.loads(key))
    except ValueError:
        raise ConfigError(f"{what}: path {text!r} has {key}, which is no JSON text; {GRAMMAR}") from None


def _walk(value: Any, steps: tuple[_Step, ...]) -> Any:
    for at, step in enumerate(steps):
        if isinstance(step, str):
            if not isinstance(value, Mapping):
                return MISSING
            if step not in value:
                return _dotted(value, steps[at:])
            value = value[step]
        elif not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            return MISSING
        elif isinstance(step, int):
            if not -len(value) <= step < len(value):
                return MISSING
            value = value[step]
        else:
            rest = steps[at + 1 :]
            found = [_walk(item, rest) for item in value]
            return [None if item is MISSING else item for item in found]
    return value


def _dotted(value: Mapping[Any, Any], steps: tuple[_Step, ...]) -> Any:
    """``metadata.service.name`` where ``service.name`` is one key."""
    key = steps[0]
    for at, step in enumerate(steps[1:], 1):
        if not isinstance(step, str):
            break
        key = f"{key}.{step}"
        if key in value:
            return _walk(value[key], steps[at + 1 :])
    return MISSING
