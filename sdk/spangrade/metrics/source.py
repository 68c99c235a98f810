"""The source text of a metric's function, in a few digits."""

import functools
import hashlib
import inspect
from collections.abc import Callable
from typing import Any


def source_hash(fn: Callable[..., Any]) -> str | None:
    """16 hex digits of the function's source text; None where there is none to read (a builtin, a REPL, C).

    No part of a metric's identity: two runs that compare a metric by name and config can tell by it that the code changed
    while its ``version`` did not. What the function calls is not looked at.
    """
    try:
        source = inspect.getsource(inspect.unwrap(_code_of(fn)))
    except (OSError, TypeError, ValueError):
        return None
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()[:16]


def _code_of(fn: Any) -> Any:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn if inspect.isroutine(fn) else getattr(type(fn), "__call__", fn)  # noqa: B004 - a callable object's
