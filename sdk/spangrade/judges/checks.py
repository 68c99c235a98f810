"""What a judge may be made of. Each check returns the value as it is kept, or says what is wrong and what is right."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from spangrade._values import snapshot
from spangrade.errors import ConfigError
from spangrade.judges.scale import NotAGrade, OutOfScale, Range, Scale
from spangrade.model.sample import FrozenDict, freeze, is_empty

MAX_EXAMPLES: Final = 5
MAX_TEXT: Final = 32_768
_EXAMPLE_TEXTS: Final = ("output", "input", "expected", "reasoning")


def text(value: Any, what: str) -> str:
    """Text that says something."""
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{what} {value!r} is empty; it must be text")
    if len(value) > MAX_TEXT:
        raise ConfigError(f"{what} is {len(value)} characters long; at most {MAX_TEXT}")
    return value.strip()


def flag(value: Any, what: str) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ConfigError(f"{what} {value!r} is not True or False; a rate goes into sg.live(judge, rate=...)")
    return value


def number(value: Any, low: float, high: float, what: str) -> float:
    """A number from ``low`` to ``high``."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or not low <= value <= high
    ):
        raise ConfigError(f"{what} {value!r} is not a number from {low} to {high}")
    return float(value)


def fields(value: Any, known: Sequence[str], what: str) -> tuple[str, ...]:
    """Known field names, each once, output among them."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"{what}: fields {value!r} is not a list of names, such as ('input', 'output')")
    names = tuple(value)
    for name in names:
        if name not in known:
            raise ConfigError(f"{what}: field {name!r} is not one of {', '.join(sorted(known))}")
    if len(set(names)) != len(names):
        raise ConfigError(f"{what}: fields {names!r} name one twice")
    if "output" not in names:
        raise ConfigError(f"{what}: fields {names!r} leave out 'output', which is what is graded; add it")
    return cast("tuple[str, ...]", names)


def levels(value: Any, scale: Scale, what: str) -> Mapping[int, str] | None:
    """A text per level of a scale that has levels; keys may be digits as text, as JSON has them."""
    if value is None:
        return None
    if not isinstance(scale, Range):
        raise ConfigError(f"{what}: levels are for scale '1-5'; say in the criteria what passes")
    if not isinstance(value, Mapping):
        raise ConfigError(f"{what}: levels {value!r} is not a dict such as {{5: '...', 1: '...'}}")
    kept: dict[int, str] = {}
    for key, said in value.items():
        kept[_level(key, scale, f"{what}: levels key")] = text(said, f"{what}: levels[{key!r}]")
    return cast("Mapping[int, str]", FrozenDict(cast("Any", kept)))


def examples(value: Any, scale: Scale, what: str) -> tuple[Mapping[str, Any], ...]:
    """At most `MAX_EXAMPLES`, each with an output and a grade of the scale."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        raise ConfigError(
            f"{what}: examples {value!r} is not a list of dicts such as {{'output': '...', {_grade_form(scale)}}}"
        )
    kept = tuple(_example(example, scale, f"{what}: example {n}") for n, example in enumerate(value, 1))
    if len(kept) > MAX_EXAMPLES:
        raise ConfigError(f"{what}: {len(kept)} examples; at most {MAX_EXAMPLES}, so leave out the least telling")
    return kept


def _example(value: Any, scale: Scale, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{what} is not a dict such as {{'output': '...', {_grade_form(scale)}}}")
    grade_key = "level" if isinstance(scale, Range) else "verdict"
    for key in value:
        if key not in (*_EXAMPLE_TEXTS, grade_key):
            raise ConfigError(f"{what}: key {key!r} is not one of {', '.join((*_EXAMPLE_TEXTS, grade_key))}")
    if is_empty(value.get("output")):
        raise ConfigError(f"{what} has no output; give it one, and its grade: {_grade_form(scale)}")
    if grade_key not in value:
        raise ConfigError(f"{what} has no {grade_key}; give it one on scale {scale.name!r}: {_grade_form(scale)}")
    kept = {key: snapshot(item) for key, item in value.items()}
    if isinstance(scale, Range):
        kept["level"] = _level(value["level"], scale, f"{what}: level")
    else:
        if value["verdict"] not in ("pass", "fail"):
            raise ConfigError(f"{what}: verdict {value['verdict']!r} is not 'pass' or 'fail'")
        kept["verdict"] = str(value["verdict"])
    return cast("Mapping[str, Any]", freeze(kept))


def _level(value: Any, scale: Range, what: str) -> int:
    try:
        return int(scale.read(value))
    except (NotAGrade, OutOfScale):
        raise ConfigError(f"{what} {value!r} is not a whole number from {scale.low} to {scale.high}") from None


def _grade_form(scale: Scale) -> str:
    return "'level': 2" if isinstance(scale, Range) else "'verdict': 'fail'"
