"""Numbers, durations and sizes as people write them in a configuration file."""

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES: Final = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def duration(value: Any) -> Any:
    """``24h``, ``30m``, ``5s``, ``1d`` or a number of seconds → seconds."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd])\s*", value) if isinstance(value, str) else None
    return float(found.group(1)) * _UNITS[found.group(2)] if found else value


def size(value: Any) -> Any:
    """``64MiB``, ``2GB`` or a number of bytes → bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value) if isinstance(value, str) else None
    if found is None or found.group(2).upper() not in _SIZES:
        return value
    return int(float(found.group(1)) * _SIZES[found.group(2).upper()])


def no_flag(value: Any) -> Any:
    """YAML reads ``no``, ``off`` and ``yes`` as False and True, which pydantic would take for 0 and 1."""
    if isinstance(value, bool):
        raise ValueError("Input should be a number; yes, no, on and off are true and false")
    return value


Number = Annotated[float, BeforeValidator(no_flag)]
Seconds = Annotated[float, BeforeValidator(duration), Field(gt=0, allow_inf_nan=False)]
SecondsOrZero = Annotated[float, BeforeValidator(duration), Field(ge=0, allow_inf_nan=False)]
Bytes = Annotated[int, BeforeValidator(size), Field(gt=0)]
