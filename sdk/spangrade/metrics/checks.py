"""What every kind of metric takes beside its function, checked when the metric is made."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from spangrade._values import snapshot
from spangrade.errors import ConfigError
from spangrade.metrics.binding import field_of
from spangrade.model.sample import SAMPLE_FIELDS, freeze


def check_requires(requires: Any, what: str) -> tuple[str, ...]:
    """Names of Sample fields (or aliases) as the fields, or `ConfigError`."""
    found: list[str] = []
    alone = isinstance(requires, str) or not isinstance(requires, Iterable)
    for required in [requires] if alone else requires:
        field_name = field_of(required) if isinstance(required, str) else None
        if field_name is None:
            raise ConfigError(f"{what} requires {required!r}; a Sample has {', '.join(SAMPLE_FIELDS)}")
        found.append(field_name)
    return tuple(dict.fromkeys(found))


def check_config(config: Any, what: str) -> Any:
    """A frozen plain copy of a metric's config, or `ConfigError`."""
    if not isinstance(config, Mapping):
        raise ConfigError(f"{what}: config {config!r} is not a dict of settings, such as {{'version': 2}}")
    return freeze(snapshot(dict(config)))


def check_threshold(threshold: Any, what: str) -> float | None:
    """A finite number or None, or `ConfigError`."""
    if threshold is not None and not (_is_number(threshold) and math.isfinite(threshold)):
        raise ConfigError(f"{what}: threshold {threshold!r} is not a number")
    return threshold  # type: ignore[no-any-return]


def check_timeout(timeout: Any, what: str) -> float:
    """A number of seconds above 0, or `ConfigError`."""
    if not _is_number(timeout) or not timeout > 0:
        raise ConfigError(f"{what}: timeout {timeout!r} is not a number of seconds above 0")
    return timeout  # type: ignore[no-any-return]


def check_flag(value: Any, option: str, what: str) -> bool:
    """True or False, or `ConfigError`: the text "no" is true."""
    if not isinstance(value, bool):
        raise ConfigError(f"{what}: {option} {value!r} is neither True nor False")
    return value


def check_version(version: Any, what: str) -> int | str | None:
    """A whole number, a text or None, or `ConfigError`."""
    if version is not None and (isinstance(version, bool) or not isinstance(version, (int, str))):
        raise ConfigError(f"{what}: version {version!r} is neither a whole number nor a text")
    return version


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
