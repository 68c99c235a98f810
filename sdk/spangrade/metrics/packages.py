"""Metrics that installed packages offer, by the entry point group ``spangrade.metrics``.

In a package's ``pyproject.toml``::

    [project.entry-points."spangrade.metrics"]
    cites = "acme.metrics:cites"      # a metric: a function's, a class, an instance
    tone = "acme.tone"                # or a module that registers one of that name when it is imported

Nothing is imported before it is asked for, and a package that is broken keeps nobody from the others'.
"""

import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Final

from spangrade.errors import ConfigError

GROUP: Final = "spangrade.metrics"


def offers() -> dict[str, list[EntryPoint]]:
    """What is offered, by name; two packages may offer one."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, []).append(point)
    return found


def package_of(point: EntryPoint) -> str:
    """The name of the distribution that an entry point is of."""
    return point.dist.name if point.dist is not None else "?"


def load(name: str, registered: Mapping[str, Any]) -> Any:
    """What is offered as ``name``. ``registered``: where a module that is offered has put its metric.

    Raises:
        ConfigError: two packages offer it; or it cannot be loaded, for whatever reason. The message names the package.
    """
    points = offers()[name]
    if len(points) > 1:
        which = " and ".join(f"{package_of(point)} ({_path(point)!r})" for point in points)
        raise ConfigError(f"metrics: {name!r} is offered by {which}; say which by its path")
    (point,) = points
    what = f"metrics: {name!r} of the package {package_of(point)!r}"
    try:
        importlib.invalidate_caches()
        found = point.load()
    except Exception as fault:
        raise ConfigError(f"{what} does not load ({point.value}): {type(fault).__name__}: {fault}") from fault
    if isinstance(found, ModuleType):
        if name not in registered:
            raise ConfigError(f"{what}: the module {point.value} registers no metric of that name when it is imported")
        return registered[name]
    return found


def _path(point: EntryPoint) -> str:
    return point.value.replace(" ", "")
