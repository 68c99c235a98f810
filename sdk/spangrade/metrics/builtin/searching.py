"""Regular expressions that end: a search has a second, and other threads run meanwhile.

Python's own ``re`` holds the interpreter's lock and cannot be stopped: ``(a+)+$`` on forty letters stops the whole
application for hours. The package ``regex`` (extra ``rules``) reads the same syntax, takes a time limit and lets go of the
lock; without it ``re`` is used, and that is said once in the log.
"""

import importlib
import re
from collections.abc import Iterable
from typing import Any, Final

from spangrade._log import once
from spangrade.errors import ConfigError

LIMIT_S: Final = 1.0
_FLAGS: Final = {
    "ASCII": re.ASCII,
    "IGNORECASE": re.IGNORECASE,
    "MULTILINE": re.MULTILINE,
    "DOTALL": re.DOTALL,
    "VERBOSE": re.VERBOSE,
    "UNICODE": re.UNICODE,
}
_LETTERS: Final = {"a": "ASCII", "i": "IGNORECASE", "m": "MULTILINE", "s": "DOTALL", "x": "VERBOSE", "u": "UNICODE"}


class TookTooLong(Exception):
    """A search that was stopped."""


class Pattern:
    """A compiled pattern.

    Args:
        pattern: in Python's syntax.
        flags: those of ``re``, as a number; or for a configuration file as letters (``"im"``) or names (``["IGNORECASE"]``).
        what: whose pattern it is, for messages.

    Raises:
        ConfigError: the pattern does not compile, or a flag is unknown.
    """

    __slots__ = ("_compiled", "_limited", "names", "text")

    def __init__(self, pattern: str, flags: Any = 0, what: str = "regex") -> None:
        self.text = pattern
        self.names = flag_names(flags, what)
        if not isinstance(pattern, str) or not pattern:
            raise ConfigError(f"{what}: pattern {pattern!r} is not a regular expression; give a text")
        combined = re.RegexFlag(0)
        for name in self.names:
            combined |= _FLAGS[name]
        try:
            self._compiled: Any = re.compile(pattern, combined)
        except (re.error, RecursionError, OverflowError) as fault:
            raise ConfigError(f"{what}: pattern {pattern[:200]!r} is not a regular expression: {fault}") from None
        engine = _engine()
        self._limited = False
        if engine is not None:
            try:
                self._compiled = engine.compile(pattern, sum(getattr(engine, name) for name in self.names))
                self._limited = True
            except Exception as fault:  # noqa: BLE001 - a corner where its syntax differs: Python's own reads the pattern
                once(
                    f"regex:{pattern[:200]}",
                    "a pattern runs without a time limit",
                    pattern=pattern[:200],
                    why=str(fault),
                )

    def search(self, text: str) -> Any:
        """The first match or None.

        Raises:
            TookTooLong: after `LIMIT_S` seconds.
        """
        if not self._limited:
            return self._compiled.search(text)
        try:
            return self._compiled.search(text, timeout=LIMIT_S)
        except TimeoutError:
            raise TookTooLong(
                f"the pattern {self.text[:80]!r} took longer than {LIMIT_S:g} s on {len(text)} characters; it goes back "
                "over the same text again and again (nested repetition)"
            ) from None


def flag_names(flags: Any, what: str) -> tuple[str, ...]:
    """Names of flags in a fixed order, or `ConfigError`."""
    given = flags
    if isinstance(flags, str):
        flags = [_LETTERS.get(letter, letter) for letter in flags] if flags.islower() else [flags]
    if isinstance(flags, int) and not isinstance(flags, bool):
        names = [name for name, flag in _FLAGS.items() if int(flags) & int(flag)]
        known = sum(int(_FLAGS[name]) for name in names) == int(flags)
    elif isinstance(flags, Iterable):
        names = [str(flag).upper() for flag in flags]
        known = all(name in _FLAGS for name in names)
    else:
        names, known = [], False
    if not known:
        raise ConfigError(f"{what}: flags {given!r} are not flags of re; give for example 'im' or ['IGNORECASE']")
    return tuple(sorted(set(names)))


def _engine() -> Any:
    try:
        return importlib.import_module("regex")
    except ImportError:
        once(
            "regex:unlimited",
            "patterns of metrics run without a time limit, since the package regex is not installed: "
            'pip install "spangrade[rules]"',
        )
        return None
