"""The one place where a metric's name is looked up: built-ins, then what was registered, then what packages offer.

A name cannot be both a built-in's and registered (`MetricsCatalog` refuses the second). What a package offers under a name
that is taken here is hidden by it, and reached by its path. ``module:attribute`` is a path and no name.
"""

import difflib
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, Final, Literal

from spangrade.errors import ConfigError
from spangrade.metrics import packages
from spangrade.metrics.builtin.table import BUILTIN, BuiltIn
from spangrade.metrics.importing import at_path

Origin = Literal["built-in", "registered", "package", "path"]
_DISTRIBUTION: Final = "spangrade"


@dataclass(frozen=True, slots=True)
class Entry:
    """A metric that can be had by name, not loaded yet.

    Attributes:
        name: by which it is asked for.
        origin: built-in, registered, package or path.
        where: ``module:attribute``, or the package.
        summary: one line, where it is known without loading.
        extra: the extra of this distribution that it needs, or empty.
        factory: what is there is a function that makes the metric.
    """

    name: str
    origin: Origin
    where: str
    summary: str = ""
    extra: str = ""
    factory: bool = False

    def load(self) -> Any:
        """What is there: a metric, its class, or a function that makes it.

        Raises:
            ConfigError: it does not import; the message says what, and of a built-in which extra is missing.
        """
        if self.origin in ("registered", "package"):
            from spangrade.metrics.registry import MetricsCatalog

            return MetricsCatalog.get(self.name)
        return at_path(self.where, missing_extra(self.extra) if self.extra else "")


def find(name: str) -> Entry:
    """The metric meant by a name, or by a path ``module:attribute``.

    Raises:
        ConfigError: there is none; near misses are named.
    """
    if ":" in name:
        line = next((line for line in BUILTIN.values() if line.path == name), None)
        return Entry(name, "path", name) if line is None else replace(_entry(name, line), origin="path")
    if name in BUILTIN:
        return _built_in(name)
    registered = _all_registered()
    if name in registered:
        return _registered(name, registered[name])
    offers = packages.offers()
    if name in offers:
        return _offered(name, offers[name])
    known = sorted({*BUILTIN, *registered, *offers})
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(known)}"
    raise ConfigError(
        f"metrics: there is no metric {name!r}; {hint} (your own: 'module:name', or @register_metric in a module that is imported)"
    )


def entries() -> list[Entry]:
    """All that can be had by name, in the order of precedence, each sorted; what is hidden by another is left out."""
    registered = _all_registered()
    found = [_built_in(name) for name in sorted(BUILTIN)]
    found += [_registered(name, registered[name]) for name in sorted(registered)]
    taken = {entry.name for entry in found}
    return found + [_offered(name, points) for name, points in sorted(packages.offers().items()) if name not in taken]


def missing_extra(extra: str) -> str:
    """What to install for an extra of this distribution, or ``""`` where all that it needs is there."""
    try:
        needed = requires(_DISTRIBUTION) or ()
    except PackageNotFoundError:  # it runs from its source, and nobody can tell
        return ""
    for requirement in needed:
        name, _, marker = requirement.partition(";")
        if f"extra == '{extra}'" not in marker.replace('"', "'"):
            continue
        plain = name.split("[")[0].strip().rstrip(")")
        for mark in "<>=!~ (":
            plain = plain.split(mark)[0]
        try:
            version(plain)
        except PackageNotFoundError:
            return f'pip install "{_DISTRIBUTION}[{extra}]"'
    return ""


def _all_registered() -> dict[str, Any]:
    from spangrade.metrics.registry import MetricsCatalog  # classes are imported where a name is no built-in's

    return MetricsCatalog.registered()


def _built_in(name: str) -> Entry:
    return _entry(name, BUILTIN[name])


def _entry(name: str, line: BuiltIn) -> Entry:
    return Entry(name, "built-in", line.path, line.summary, line.extra, line.factory)


def _registered(name: str, cls: type) -> Entry:
    return Entry(name, "registered", f"{cls.__module__}:{cls.__qualname__}")


def _offered(name: str, points: Any) -> Entry:
    return Entry(name, "package", " and ".join(packages.package_of(point) for point in points))
