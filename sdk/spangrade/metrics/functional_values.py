"""The allowed values of a functional metric: a set of categories, a range of numbers, or the length of a list.

Each is checked once, when the metric is made, and then asked of every value that the function returns.
"""

import math
import reprlib
from collections.abc import Sequence, Set
from typing import Any, Final, Literal, Protocol

from spangrade._text import valid
from spangrade._values import type_name
from spangrade.errors import ConfigError
from spangrade.model.score import ReturnError, number

Kind = Literal["discrete", "numeric", "ranking"]
_MAX_SHOWN: Final = 200


class NotAllowed(Exception):
    """A returned value that is none of the allowed ones; the message says what was expected instead."""


class AllowedValues(Protocol):
    """What a metric may return."""

    @property
    def given(self) -> Any:
        """The allowed values as the application reads them."""

    def take(self, value: Any) -> Any:
        """``value``, as it is to be kept; raises `NotAllowed`."""


class Categories:
    """One of a set of categories. What equals a category counts as it (Python's ``==``: True is 1, ``"1"`` is not)."""

    def __init__(self, given: Any, what: str) -> None:
        hint = "give a list of categories, such as ['pass', 'fail']"
        if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, Set)):
            raise ConfigError(f"{what}: allowed_values {shown(given)} is no list; {hint}")
        self.given = sorted(given, key=repr) if isinstance(given, Set) else list(given)  # a set has no order to hash
        if not self.given:
            raise ConfigError(f"{what}: allowed_values is empty; {hint}")
        self._members: dict[Any, Any] = {}
        for category in self.given:
            if category is None:
                raise ConfigError(f"{what}: allowed_values has None, which stands for no result; {hint}")
            try:
                twice = category in self._members
            except TypeError:
                raise ConfigError(
                    f"{what}: allowed_values has {shown(category)}, a {type_name(category)}, which is no category; {hint}"
                ) from None
            if category != category:  # noqa: PLR0124 - NaN: nothing equals it, not even itself
                raise ConfigError(f"{what}: allowed_values has {shown(category)}, which equals nothing; {hint}")
            if twice:
                raise ConfigError(
                    f"{what}: allowed_values has {shown(category)} twice (equal values count as one); drop one"
                )
            self._members[category] = category

    def take(self, value: Any) -> Any:
        """The category that ``value`` equals."""
        try:
            return self._members[value]
        except Exception:  # noqa: BLE001 - not there, no hash, or a comparison of the application's that raises
            raise NotAllowed(f"expected one of {_shown_list(self.given)}") from None


class Range:
    """A finite number from ``low`` to ``high``, both included, or one of a `range`."""

    def __init__(self, given: Any, what: str) -> None:
        hint = "give (lowest, highest), such as (0.0, 1.0), or a range of whole numbers"
        if isinstance(given, range):
            if not given:
                raise ConfigError(f"{what}: allowed_values {given} is empty; {hint}")
            self.given: Any = given
            return
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise ConfigError(f"{what}: allowed_values {shown(given)} is no range; {hint}")
        for bound in given:
            if isinstance(bound, bool) or not hasattr(bound, "__float__") or isinstance(bound, str) or bound != bound:  # noqa: PLR0124
                raise ConfigError(f"{what}: allowed_values has {shown(bound)}, which is no number; {hint}")
        low, high = given
        if low > high:
            raise ConfigError(f"{what}: allowed_values ({low}, {high}) has its ends the wrong way round; {hint}")
        self.given = (low, high)

    def take(self, value: Any) -> Any:
        """``value`` itself. A bool is 1 or 0; what says so itself (numpy, Decimal) is a number, text is none."""
        kind = type(value)
        plain = value
        if kind is not float and kind is not int:
            try:
                plain = number(value)
            except ReturnError:
                raise NotAllowed(self._expected()) from None
        given = self.given
        inside = plain in given if type(given) is range else given[0] <= plain <= given[1]
        if not inside or (kind is float and not math.isfinite(value)):
            raise NotAllowed(self._expected())
        return value

    def _expected(self) -> str:
        return f"expected value in range {self.given}, a finite number"


class Length:
    """A list of a given length."""

    def __init__(self, given: Any, what: str) -> None:
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise ConfigError(
                f"{what}: allowed_values {shown(given)} is no length; give the number of items in the ranking, 1 or more"
            )
        self.given = given

    def take(self, value: Any) -> Any:
        """``value`` itself."""
        if not isinstance(value, list):
            raise NotAllowed(f"expected {self.given} items in a list (return list(...))")
        if len(value) != self.given:
            raise NotAllowed(f"expected {self.given} items, not {len(value)}")
        return value


def allowed(kind: Kind, given: Any, what: str) -> AllowedValues:
    """The allowed values of a metric of that kind, or `ConfigError`."""
    if kind == "discrete":
        return Categories(given, what)
    return Range(given, what) if kind == "numeric" else Length(given, what)


_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _MAX_SHOWN
_repr.maxlist = _repr.maxtuple = _repr.maxset = _repr.maxdict = 10


def shown(value: Any) -> str:
    """``value`` in a message: its repr in few characters, or its type where that cannot be had."""
    try:
        text = _repr.repr(value)
    except Exception:  # noqa: BLE001 - an application's repr may do anything; so may an int of more than 4,300 digits
        return f"a {type_name(value)}"
    return valid(text)


def _shown_list(given: list[Any]) -> str:
    if len(given) <= 20:
        return f"[{', '.join(map(shown, given))}]"
    return f"[{', '.join(map(shown, given[:20]))}, … {len(given)} in all]"
