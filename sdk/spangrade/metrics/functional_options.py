"""What counts only when a functional metric scores Samples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spangrade.errors import ConfigError
from spangrade.metrics.checks import (
    check_config,
    check_flag,
    check_requires,
    check_threshold,
    check_timeout,
    check_version,
)
from spangrade.metrics.functional_paths import GRAMMAR, SamplePath
from spangrade.model.evaluator import Target, check_target


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """Where inputs are found, what identifies the metric, and how a number becomes pass or fail."""

    paths: Mapping[str, SamplePath]
    config: Mapping[str, Any]
    requires: tuple[str, ...]
    target: str
    timeout: float
    process: bool
    threshold: float | None
    lower_is_better: bool
    verdict: bool


def live_options(
    what: str,
    inputs: Any,
    version: int | str | None,
    config: Any,
    requires: Any,
    target: Target,
    timeout: float,
    process: bool,
    *,
    threshold: float | None = None,
    lower_is_better: bool = False,
    verdict: bool = True,
) -> LiveOptions:
    """A decorator's options, checked.

    Raises:
        ConfigError: for one that cannot work.
    """
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ConfigError(f"{what}: inputs {inputs!r} is no dict of parameter to path; {GRAMMAR}")
    settings: Any = {} if config is None else config
    check_version(version, what)
    if version is not None and isinstance(settings, Mapping):
        settings = {**settings, "version": version}
    return LiveOptions(
        {name: SamplePath(path, f"{what}: inputs[{name!r}]") for name, path in (inputs or {}).items()},
        check_config(settings, what),
        check_requires(requires, what),
        check_target(target, what),
        check_timeout(timeout, what),
        check_flag(process, "process", what),
        check_threshold(threshold, what),
        check_flag(lower_is_better, "lower_is_better", what),
        check_flag(verdict, "verdict", what),
    )
