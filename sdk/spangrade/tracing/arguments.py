"""The arguments of a call, by name: all of them, or those that the application chose."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from spangrade._secrets import HIDDEN, is_secret, said
from spangrade.errors import ConfigError

_SKIPPED: Final = ("self", "cls")


class Arguments:
    """A function's parameter names, read once. One parameter (self and cls apart): its value is the input; several: a
    dict of those that were given, by name."""

    __slots__ = ("_names", "_rest", "_secret", "_single", "_skip", "more", "names")

    def __init__(self, fn: Callable[..., Any]) -> None:
        names: list[str] = []
        self._rest: str | None = None
        #: The name of ``**kwargs``; empty where the function cannot be asked: it may take anything.
        self.more: str | None = None
        try:
            parameters = list(inspect.signature(fn).parameters.values())
        except (TypeError, ValueError):
            parameters, self.more = [], ""
        for parameter in parameters:
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._rest = parameter.name
            elif parameter.kind is parameter.VAR_KEYWORD:
                self.more = parameter.name
            elif parameter.kind is not parameter.KEYWORD_ONLY:
                names.append(parameter.name)
        self._skip = 1 if names and names[0] in _SKIPPED else 0
        self._names = tuple(names)
        #: What may be recorded, in order.
        self.names = tuple(parameter.name for parameter in parameters)[self._skip :]
        self._single = len(self.names) == 1 and self._rest is None and self.more is None
        self._secret = self._single and said(self.names[0]) != 0

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The input of one call; None for a call without arguments."""
        given = args[self._skip :] if self._skip else args
        if self._single and bool(given) is not bool(kwargs):
            # What is too much is the function's TypeError to come.
            value = given[0] if given else next(iter(kwargs.values()))
            return HIDDEN if self._secret and is_secret(self.names[0], value) else value
        if not given and not kwargs:
            return None
        return self.bound(given, kwargs)

    def bound(self, given: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """What was ``given`` (self and cls apart), by name."""
        names = self._names[self._skip :]
        bound = dict(zip(names, given, strict=False))
        if len(given) > len(names):
            bound[self._rest or "args"] = list(given[len(names) :])
        bound.update(kwargs)
        return bound


class ChosenArguments(Arguments):
    """Some of a function's arguments: those ``only``, or all ``but`` those. Where one is left that can be given at all, its
    value is the input. The name of ``**kwargs`` stands for all that has no name of its own.

    Raises:
        ConfigError: a name that the function does not have, unless it takes ``**kwargs``.
    """

    __slots__ = ("_alone", "_but", "_only")

    def __init__(self, fn: Callable[..., Any], only: Sequence[str] | None, but: Sequence[str] = ()) -> None:
        super().__init__(fn)
        named = (*(only or ()), *but)
        unknown = [name for name in named if name not in self.names and not (name in but and name in _SKIPPED)]
        if unknown and self.more is None:
            has = ", ".join(self.names) or "none"
            raise ConfigError(
                f"trace: {getattr(fn, '__qualname__', fn)} has no parameter {unknown[0]!r}; its parameters: {has}"
            )
        self._only = None if only is None else frozenset(only)
        self._but = frozenset(but)
        left = only if only is not None else [name for name in self.names if name not in self._but]
        several = (self._rest, self.more)
        # Without a list of its own, anything may come by ``**kwargs`` that is not left out as a whole.
        whole = only is not None or self.more is None or self.more in self._but
        self._alone = whole and len(left) == 1 and left[0] not in several

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The input of one call; None where nothing of what was given is chosen."""
        given = args[self._skip :] if self._skip else args
        bound = self.bound(given, kwargs) if given or kwargs else {}
        chosen = {name: value for name, value in bound.items() if self._takes(name)}
        if self._alone and len(chosen) == 1:
            ((name, value),) = chosen.items()
            return HIDDEN if is_secret(name, value) else value
        return chosen or None

    def _takes(self, name: str) -> bool:
        kin = self.more if self.more and name not in self.names else name
        if self._only is not None:
            return name in self._only or kin in self._only
        return name not in self._but and kin not in self._but


class NoArguments(Arguments):
    """None of them."""

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ARG002
        """None."""
        return None


def arguments_by(
    capture: bool | Iterable[str] = True, ignore: Iterable[str] = ()
) -> Callable[[Callable[..., Any]], Arguments]:
    """What makes the `Arguments` of a function. ``capture``: all, none, or the names of those to record; ``ignore``: the
    names of those not to.

    Raises:
        ConfigError: names that are no list of texts; both were given. And what it returns, for a name that the function
            does not have.
    """
    if capture is True and ignore == ():  # as most have it; of a block that is written in a hot loop, too
        return Arguments
    but = _names("ignore_inputs", ignore)
    if capture is not True and but:
        raise ConfigError("trace: give capture_input or ignore_inputs, not both")
    if capture is False:
        return NoArguments
    if capture is True:
        return partial(ChosenArguments, only=None, but=but) if but else Arguments
    return partial(ChosenArguments, only=_names("capture_input", capture))


def _names(what: str, given: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(given, (str, bytes)) and isinstance(given, Iterable):
        names = tuple(given)
        if all(isinstance(name, str) for name in names):
            return names
    raise ConfigError(f"trace: {what} {given!r} is not a list of parameter names")
