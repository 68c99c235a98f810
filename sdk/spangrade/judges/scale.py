"""The scales a judge may grade on: what it is asked for, what is accepted back, and the score that comes of it.

A scale is strict. What it cannot read for certain it refuses, since a failure is never a number (promise 4). Issue 2
offers `1-5` and `binary`; a further scale is one more `Range`.
"""

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spangrade.errors import ConfigError

_NUMBER: Final = re.compile(r"([+-]?\d{1,15}(?:\.\d{1,15})?)(?:\s*(?:/|out of)\s*(\d{1,15}(?:\.\d{1,15})?))?")
_ORNAMENTS: Final = " \t\r\n`*_\"'“”\u2018\u2019"
_SIGNS: Final = str.maketrans(
    {"\u066b": ".", "\uff0e": ".", "\uff0f": "/"}
)  # Arabic and full-width point, full-width slash
_WORDS: Final = {"pass": True, "passed": True, "fail": False, "failed": False}


class NotAGrade(ValueError):
    """The value is no grade of the scale at all."""


class OutOfScale(ValueError):
    """The value is a plain number, but none that the scale has."""


def _plain(text: str) -> str:
    """Digits of any script as ASCII; quotes and markdown around, and a full stop after, taken off.

    Nothing is taken off before a number but quotes and markdown: a leading point or sign is part of it.
    """
    text = text.translate(_SIGNS).strip(_ORNAMENTS).rstrip(".!" + _ORNAMENTS)
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from ``low`` to ``high``, only whole ones where ``whole``; the score is the place between the ends."""

    name: str
    low: int
    high: int
    whole: bool = True

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a reply under which the verdict may stand."""
        return ("score",)

    @property
    def rule(self) -> str:
        """What the judge is told of the scale."""
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low} (worst) to {self.high} (best)"

    @property
    def form(self) -> str:
        """The reply that is asked for, as it stands in the prompt."""
        if not self.whole:
            return f'{{"reasoning": "<two or three sentences>", "score": <{self.low} to {self.high}>}}'
        levels = [str(n) for n in range(self.low, self.high + 1)]
        return f'{{"reasoning": "<two or three sentences>", "score": <{", ".join(levels[:-1])} or {levels[-1]}>}}'

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the reply, within what strict structured outputs accept."""
        if self.whole:
            return _schema("score", {"type": "integer", "enum": list(range(self.low, self.high + 1))})
        return _schema("score", {"type": "number", "minimum": self.low, "maximum": self.high})

    def read(self, raw: object) -> float:
        """The grade that ``raw`` (a JSON value) states: a number, or text such as ``"4"``, ``"4/5"``, ``"4 out of 5"``.

        Raises:
            NotAGrade: true, words, percentages, fractions of another whole, lists, and so on.
            OutOfScale: a number that the scale does not have.
        """
        if isinstance(raw, str):
            match = _NUMBER.fullmatch(_plain(raw))
            if match is None:
                raise NotAGrade("it is not a number")
            if match[2] is not None and float(match[2]) != self.high:
                raise NotAGrade(f"it is a fraction of {match[2]}, on a scale that ends at {self.high}")
            raw = float(match[1])
        if isinstance(raw, bool) or not isinstance(raw, (int, float)):
            raise NotAGrade("it is not a number")
        if not self.low <= raw <= self.high or not math.isfinite(raw):
            raise OutOfScale(f"it is outside {self.low} to {self.high}")
        if self.whole and raw != int(raw):
            raise OutOfScale(f"it is not one of the whole numbers {self.low} to {self.high}")
        return int(raw) if self.whole else float(raw)

    def value(self, grade: float) -> float:
        """The score of a grade: 0 for the lowest, 1 for the highest."""
        return (grade - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class PassFail:
    """Pass is 1 and fail is 0."""

    name: str = "binary"

    @property
    def keys(self) -> tuple[str, ...]:
        """``verdict``; a model's habitual ``score`` too, as long as it says pass, fail, true or false there."""
        return ("verdict", "score")

    @property
    def rule(self) -> str:
        """What the judge is told of the scale."""
        return '"pass" or "fail"'

    @property
    def form(self) -> str:
        """The reply that is asked for, as it stands in the prompt."""
        return '{"reasoning": "<two or three sentences>", "verdict": <"pass" or "fail">}'

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the reply, within what strict structured outputs accept."""
        return _schema("verdict", {"type": "string", "enum": ["pass", "fail"]})

    def read(self, raw: object) -> bool:
        """True for pass. Numbers are refused: a habitual 1 of 5 is not a pass.

        Raises:
            NotAGrade: anything but true, false, and the words pass and fail.
        """
        if isinstance(raw, bool):
            return raw
        word = _plain(raw).casefold() if isinstance(raw, str) else None
        if word not in _WORDS:
            raise NotAGrade("it is neither pass nor fail")
        return _WORDS[word]

    def value(self, grade: float) -> float:
        """The score of a grade: 1 or 0."""
        return 1.0 if grade else 0.0


Scale = Range | PassFail
SCALES: Final[Mapping[str, Scale]] = {"1-5": Range("1-5", 1, 5), "binary": PassFail()}


def scale_named(name: Any, what: str) -> Scale:
    """The scale called ``name``, or `ConfigError`."""
    if not isinstance(name, str) or name not in SCALES:
        raise ConfigError(f"{what}: scale {name!r} is not one of {', '.join(map(repr, SCALES))}")
    return SCALES[name]


def _schema(key: str, verdict: dict[str, Any]) -> dict[str, Any]:
    # Reasoning first: models write the keys in the schema's order, and the verdict should follow from the reasons.
    return {
        "type": "object",
        "properties": {"reasoning": {"type": "string"}, key: verdict},
        "required": ["reasoning", key],
        "additionalProperties": False,
    }
