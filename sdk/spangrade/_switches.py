"""The kill switches: environment variables that act at once, also when the application sets them while it runs."""

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

# `os.environ` decodes what it is asked for, which takes longer than the rest of an untraced call; below it is a dict of
# what the system has. Where that should not be so, it is asked itself.
held: Final[Mapping[Any, Any]] = getattr(os.environ, "_data", os.environ)
_encode: Final[Callable[[str], Any]] = os.environ.encodekey if held is not os.environ else str

#: What the environment holds under a switch's ``key``; ``key in held`` says at the least cost whether it is set at all.
raw: Final = held.get


class Switch:
    """Call it: whether the environment variable ``name`` is one of ``values`` (in any case) now."""

    __slots__ = ("_last", "_name", "_values", "key")

    def __init__(self, name: str, *values: str) -> None:
        self._name = name
        self._values = values
        self.key = _encode(name)
        self._last: tuple[Any, bool] = (self, False)  # what was seen (at first no variable's value), and what it means

    def __call__(self) -> bool:
        seen, on = self._last
        value = raw(self.key)
        if value is not seen:
            on = os.environ.get(self._name, "").strip().lower() in self._values
            self._last = (value, on)  # in one step: threads may be here at once
        return on


disabled: Final = Switch("SPANGRADE_DISABLED", "true", "1", "yes", "on")
sdk_disabled: Final = Switch("OTEL_SDK_DISABLED", "true")
scoring_off: Final = Switch("SPANGRADE_SCORING", "off", "false", "0", "no")


def scoring_stopped() -> bool:
    """Whether nothing is to be scored: ``SPANGRADE_SCORING=off``, or ``SPANGRADE_DISABLED``, which stops all."""
    return scoring_off() or disabled()
