"""What is wrong with one value where JSON must have a form for it: a sentence that begins with its place, or empty text."""

import math
import numbers
from collections.abc import Callable
from typing import Any, Final

from spangrade._values import type_name

Wrong = Callable[[Any, str], str]  # of a value and its place

MAX_DEPTH: Final = 64  # of a value; deeper is no score, and the walk's own stack has an end


def wrong_none(value: Any, at: str) -> str:
    """It must be None."""
    return "" if value is None else f"{at} is {short(value)}, not None"


def wrong_bool(value: Any, at: str) -> str:
    """It must be True or False, numpy's too."""
    good = isinstance(value, bool) or type_name(value) in ("numpy.bool", "numpy.bool_")
    return "" if good else f"{at} is {short(value)}, not bool"


def wrong_int(value: Any, at: str) -> str:
    """It must be a whole number."""
    # The exact types first: to ask an abstract class costs as much as all the rest.
    return "" if type(value) is int or isinstance(value, numbers.Integral) else f"{at} is {short(value)}, not int"


def wrong_float(value: Any, at: str) -> str:
    """It must be a finite number."""
    if type(value) is float and -math.inf < value < math.inf:
        return ""
    if not isinstance(value, numbers.Real):
        return f"{at} is {short(value)}, not float"
    if not isinstance(value, numbers.Integral) and not math.isfinite(value):
        return f"{at} is {float(value)}, which JSON has no number for"
    return ""


def wrong_any(value: Any, at: str) -> str:
    """It must be what JSON has a form for, whatever it is."""
    if value is None or isinstance(value, (str, int)):
        return ""
    if isinstance(value, numbers.Real):
        return wrong_float(value, at)
    if at.count("[") > MAX_DEPTH:
        return f"{at[:60]}... is nested more than {MAX_DEPTH} deep"
    if isinstance(value, (list, tuple)):
        return next((said for i, held in enumerate(value) if (said := wrong_any(held, f"{at}[{i}]"))), "")
    if isinstance(value, dict):
        for name, held in value.items():
            if not isinstance(name, str):
                return f"{at} has the key {short(name)}, not a str"
            if said := wrong_any(held, f"{at}[{name!r}]"):
                return said
        return ""
    return f"{at} is {short(value)}, which JSON has no form for"


def short(value: Any) -> str:
    """A value for a message: small numbers and words as they are, everything else by its type. It may be a secret, or long."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)[:40] if not isinstance(value, int) or abs(value) < 10**20 else "a large int"
    kind = type_name(value).removeprefix("builtins.")
    return f"{'an' if kind[:1].lower() in tuple('aeiou') else 'a'} {kind}"
