"""What the configurable built-ins share: options checked when the metric is made, extras that may be missing."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spangrade._log import once
from spangrade.errors import ConfigError
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import SAMPLE_FIELDS
from spangrade.model.score import Skip


def extra(module: str, name: str) -> Any:
    """The module of an extra.

    Raises:
        Skip: it is not installed; the sentence names the extra. A partial install counts as missing.
    """
    try:
        return importlib.import_module(module)
    except ImportError as fault:
        raise Skip(missing(module, name, fault)) from None


def missing(module: str, name: str, fault: ImportError) -> str:
    """The sentence for a missing extra, also logged once."""
    gone = fault.name or module
    sentence = f'{gone} is not installed: pip install "spangrade[{name}]"'
    once(f"extra:{name}:{gone}", f"a metric is skipped: {sentence}")
    return sentence


def measurement(
    fn: Callable[..., Any],
    *,
    name: str,
    threshold: float | None,
    target: str = "root",
    requires: tuple[str, ...] = (),
    config: Mapping[str, Any] | None = None,
    timeout: float = 5.0,
) -> LocalMetric:
    """A metric that only measures, and with a threshold passes what is at most that."""
    return LocalMetric(
        fn,
        name,
        threshold,
        {**(config or {}), "version": 1},
        requires,
        target,
        lower_is_better=True,
        verdict=threshold is not None,
        timeout=timeout,
    )


def field_name(what: str, value: Any) -> str:
    """One of the Sample's fields, or `ConfigError`."""
    if value not in SAMPLE_FIELDS:
        raise ConfigError(f"{what}: field {value!r} is not one of {', '.join(SAMPLE_FIELDS)}")
    return str(value)


def several(what: str, option: str, given: Any) -> tuple[str, ...]:
    """One text or several, as a tuple of non-empty texts, or `ConfigError`."""
    items: Iterable[Any] = (given,) if isinstance(given, str) else given
    if not isinstance(items, (list, tuple, set, frozenset)):
        raise ConfigError(f"{what}: {option} {given!r} is not a list of texts")
    for item in items:
        if not isinstance(item, str) or not item.strip():
            raise ConfigError(f"{what}: {option} holds {item!r}; give non-empty texts")
    return tuple(sorted(items) if isinstance(items, (set, frozenset)) else items)


def share(what: str, option: str, value: Any) -> float:
    """A number from 0 to 1, or `ConfigError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ConfigError(f"{what}: {option} {value!r} is not a number from 0 to 1")
    return float(value)


def one_of(what: str, option: str, value: Any, choices: Iterable[str]) -> str:
    """One of the choices, or `ConfigError`."""
    allowed = tuple(choices)
    if value not in allowed:
        raise ConfigError(f"{what}: {option} {value!r} is not one of {', '.join(allowed)}")
    return str(value)
