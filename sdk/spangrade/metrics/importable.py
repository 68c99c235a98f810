"""Where a metric can be imported from, so that it is pickled by name, and what stands in the way where it cannot.

A decorated function's name leads to the metric and not to the function, so neither pickles by itself: a metric that its
module has under its own name is pickled as that name, and one made of such a function or metric (`dataclasses.replace`,
`LocalMetric(helper)`) as its parts, the function by its place.
"""

import functools
import io
import pickle
import sys
from importlib import import_module
from typing import Any

from spangrade.errors import ConfigError

_HOW = "define it at the top of a module that can be imported (not in a function, a REPL or the script that runs)"


def place_of(thing: Any) -> str | None:
    """``module:qualified.name`` of ``thing``, if that is where it is found again; None otherwise."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        return None
    found = _found(module, name)
    return f"{module}:{name}" if found is thing or (found is not None and _inside(found) is thing) else None


def at(place: str) -> Any:
    """What is at `place_of`'s place."""
    module, _, name = place.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def function_at(place: str) -> Any:
    """The same; of a metric, its function."""
    found = at(place)
    inside = _inside(found)
    return found if inside is None else inside


def dumped(metric: Any, what: str) -> bytes:
    """``metric`` pickled for another process of this program.

    Raises:
        ConfigError: it cannot be imported there; the message says why, and what to do.
    """
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(metric)
    except _NotImportable as fault:
        raise ConfigError(f"{what}: process=True needs a metric that another process can import; {fault}") from None
    except Exception as fault:
        raise ConfigError(
            f"{what}: process=True needs a metric that another process can import; {_why(metric)}; {_HOW}"
        ) from fault
    return buffer.getvalue()


class _NotImportable(Exception):
    pass


class _Pickler(pickle.Pickler):
    """Refuses what lives in the script that runs: another process would have to run the script again to have it, with all
    that it does."""

    def reducer_override(self, obj: Any) -> Any:
        if getattr(obj, "__module__", None) == "__main__" and (
            isinstance(obj, type) or getattr(obj, "__qualname__", None) is not None
        ):
            raise _NotImportable(f"{obj.__qualname__!r} is defined in the script that runs (__main__); {_HOW}")
        return NotImplemented


def _why(metric: Any) -> str:
    fn = getattr(metric, "fn", metric)
    while isinstance(fn, functools.partial):
        fn = fn.func
    name = getattr(fn, "__qualname__", "") or type(fn).__qualname__
    if "<lambda>" in name:
        return "it is a lambda"
    if "<locals>" in name:
        return f"{name.partition('.<locals>')[0]!r} makes it while it runs"
    return f"{name!r} cannot be pickled"


def _found(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _inside(found: Any) -> Any:
    """The function of a metric; None of anything else. (Asked of the instance's dict: nothing of a user's runs.)"""
    return getattr(found, "__dict__", {}).get("fn") if getattr(type(found), "evaluate", None) is not None else None
