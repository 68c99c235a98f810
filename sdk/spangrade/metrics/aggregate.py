"""One number of several weighted ones: what a tree of metrics says as a whole."""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from spangrade.errors import ConfigError

Aggregate = Literal["mean", "min", "max"] | Callable[..., float]
NAMES: Final = ("mean", "min", "max")


def check_aggregate(given: Any, what: str) -> Any:
    """``given``, if it is an aggregate or None.

    Raises:
        ConfigError: it is none.
    """
    if given is None or given in NAMES or callable(given):
        return given
    raise ConfigError(
        f"{what}: aggregate {given!r} is not one of {', '.join(NAMES)}, or a function of a list of numbers"
    )


def check_weight(given: Any, what: str) -> float:
    """A weight: a finite number, 0 or more. 0 leaves a metric out of the aggregate."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given < math.inf:
        raise ConfigError(f"{what}: weight {given!r} is not a number, 0 or more")
    return float(given)


def aggregated(how: Any, values: Sequence[float], weights: Sequence[float]) -> float:
    """``mean`` is sum(w * v) / sum(w); ``min`` and ``max`` are of the values alone. A function gets the list of values, and, if
    it needs a second parameter, that of weights.

    Raises:
        ValueError: a function gave no finite number.
    """
    if how == "mean":
        exponent = math.frexp(max(weights))[1]  # scaled exactly, so that no product over- or underflows
        shares = [math.ldexp(weight, -exponent) for weight in weights]
        return math.fsum(w * v for w, v in zip(shares, values, strict=True)) / math.fsum(shares)
    if how == "min":
        return min(values)
    if how == "max":
        return max(values)
    found = how(list(values), list(weights)) if _needs_two(how) else how(list(values))
    if isinstance(found, bool) or not hasattr(found, "__float__") or isinstance(found, str):
        raise ValueError(f"the aggregate {name_of(how)} returned {type(found).__name__}, not a number")
    number = float(found)
    if not math.isfinite(number):
        raise ValueError(f"the aggregate {name_of(how)} returned {number}")
    return number


def name_of(how: Any) -> str:
    """For messages and hashes: a function by where it is defined."""
    if isinstance(how, str):
        return how
    return f"{getattr(how, '__module__', '')}.{getattr(how, '__qualname__', type(how).__qualname__)}"


def _needs_two(how: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(how).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.default is p.empty and p.kind in positional for p in parameters) == 2
