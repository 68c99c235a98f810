"""Switching on the ecosystem's own instrumentations. We write none of our own."""

import sys
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from spangrade._log import once
from spangrade.otel.instrumentors import Found, installed, like, plain, to_install

_lock = threading.RLock()
_ours: dict[str, tuple[Any, Any]] = {}  # what we switched on: the instrumentor, and the provider that it traces through


class _Report:
    """What became of each name, said in one line of each kind."""

    def __init__(self) -> None:
        self.on: list[str] = []
        self.already: list[str] = []
        self.missing: list[str] = []
        self.install: list[str] = []
        self.unknown: list[str] = []
        self.failed: list[str] = []
        self.blind: list[str] = []

    def say(self) -> None:
        """Each line once in this process, and none without a name in it."""
        self._line("info", "instrumentations are switched on", on=self.on, already_on=self.already)
        install = ["pip install " + " ".join(self.install)] if self.install else []
        self._line(
            "warning",
            "no instrumentation is installed for some libraries, whose calls are not traced",
            missing=self.missing,
            install=install,
            unknown=self.unknown,
        )
        self._line(
            "warning",
            "some instrumentations could not be switched on; the application is not affected",
            failed=self.failed,
        )
        self._line(
            "warning",
            "some instrumentations are set to leave the text out of their spans, so there is nothing to score in those; "
            "set what is named in the environment, before the start, to have it in",
            no_content=self.blind,
        )

    @staticmethod
    def _line(level: str, event: str, **lists: list[str]) -> None:
        fields = {key: ", ".join(values) for key, values in lists.items() if values}
        if fields:
            once(f"instrument:{event}:{fields}", event, level=level, **fields)


def switch_on(names: Sequence[str], provider: Any) -> None:
    """Instrument the named libraries (``"openai"``) with what is installed, one instrumentation for each library.

    Where several are installed: one that is on already, else OpenInference's, else another that puts text on its spans by
    default, else OpenTelemetry's own; a package's name in place of the library's asks for just that one. One that does
    not support the installed library gives way to the next. Said in
    one line each: what is on, what is missing and the command to install it, what failed, and what leaves the text out
    of its spans. Never raises; sets no environment variable.
    """
    report = _Report()
    with _lock:
        for name in {plain(each): each for each in names}.values():
            found = installed(name)
            if found:
                _one(name, found, provider, report)
            elif package := to_install(name):
                report.missing.append(name)
                report.install.append(package)
            else:
                close = like(name)
                report.unknown.append(f"{name!r}" + (f" (did you mean {close!r}?)" if close else ""))
    report.say()


def _one(name: str, found: list[Found], provider: Any, report: _Report) -> None:
    """Exactly one of ``found``: two would trace each call twice."""
    for candidate in found:
        if _is_on(candidate):
            known = _ours.get(candidate.where)
            if known is None:
                report.already.append(f"{name} ({candidate.package})")
            elif known[1] is not provider:
                _again(name, candidate, known[0], provider, report)
            return
    faults = []
    for candidate in found:
        try:
            instrumentor = candidate.load()()
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - its import is somebody else's code
            faults.append(f"{candidate.package}: {type(fault).__name__}")
            continue
        failure = _start(instrumentor, provider)
        if failure is None:
            _ours[candidate.where] = (instrumentor, provider)
            report.on.append(f"{name} ({candidate.package})")
            if setting := candidate.blind():
                report.blind.append(f"{name} ({candidate.package}: {setting})")
            return
        faults.append(f"{candidate.package}: {failure.why}")
        if not failure.harmless:
            break  # it may have changed half of the library; the next one would be put on top of that
    report.failed.append(f"{name} ({'; '.join(faults)})")


def _is_on(candidate: Found) -> bool:
    """Asked of what is imported only, and not by making an instrumentor: some reset their settings when made again."""
    module = sys.modules.get(candidate.module)
    made = getattr(getattr(module, candidate.attr, None), "_instance", None)
    return bool(getattr(made, "is_instrumented_by_opentelemetry", False))


class _Failure(NamedTuple):
    why: str
    harmless: bool  # nothing has been changed


def _start(instrumentor: Any, provider: Any) -> _Failure | None:
    """None when it is on."""
    try:
        # Otherwise a library of another version is logged, as an error and by a logger that prints where none is set up.
        instrumentor.instrument(tracer_provider=provider, raise_exception_on_conflict=True)
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - somebody else's code
        kind = type(fault).__name__
        if kind == "DependencyConflictError":  # its text is made of packages' names and versions, so it may be said
            return _Failure(str(fault).replace("\n", " ")[:300], harmless=True)
        return _Failure(kind, harmless=False)
    if getattr(instrumentor, "is_instrumented_by_opentelemetry", True):
        return None
    return _Failure("does not support the library that is installed", harmless=True)


def _again(name: str, candidate: Found, instrumentor: Any, provider: Any, report: _Report) -> None:
    """One that we switched on for the provider of an earlier `configure`."""
    try:
        instrumentor.uninstrument()
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - somebody else's code
        report.failed.append(f"{name} ({candidate.package}: {type(fault).__name__})")
        return
    failure = _start(instrumentor, provider)
    if failure is not None:
        report.failed.append(f"{name} ({candidate.package}: {failure.why})")
        return
    _ours[candidate.where] = (instrumentor, provider)
    report.on.append(f"{name} ({candidate.package})")
