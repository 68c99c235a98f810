"""The arguments of a call, by name."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_SKIPPED: Final = ("self", "cls")


class Arguments:
    """A function's parameter names, read once. One parameter (self and cls apart): its value is the input; several: a
    dict of those that were given, by name."""

    __slots__ = ("_names", "_rest", "_single", "_skip")

    def __init__(self, fn: Callable[..., Any]) -> None:
        names: list[str] = []
        self._rest: str | None = None
        more = False
        try:
            parameters = list(inspect.signature(fn).parameters.values())
        except (TypeError, ValueError):
            parameters, more = [], True
        for parameter in parameters:
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._rest = parameter.name
            elif parameter.kind is parameter.VAR_KEYWORD:
                more = True
            elif parameter.kind is not parameter.KEYWORD_ONLY:
                names.append(parameter.name)
        keyword_only = sum(p.kind is p.KEYWORD_ONLY for p in parameters)
        self._skip = 1 if names and names[0] in _SKIPPED else 0
        self._names = tuple(names)
        self._single = len(names) - self._skip + keyword_only == 1 and self._rest is None and not more

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The input of one call; None for a call without arguments."""
        given = args[self._skip :] if self._skip else args
        if self._single and bool(given) is not bool(kwargs):
            # What is too much is the function's TypeError to come.
            return given[0] if given else next(iter(kwargs.values()))
        if not given and not kwargs:
            return None
        names = self._names[self._skip :]
        bound = dict(zip(names, given, strict=False))
        if len(given) > len(names):
            bound[self._rest or "args"] = list(given[len(names) :])
        bound.update(kwargs)
        return bound
