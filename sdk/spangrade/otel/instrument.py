"""Switching on the ecosystem's own instrumentations. We write none of our own."""

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any

from spangrade import _guard
from spangrade._log import once

_GROUPS = ("openinference_instrumentor", "opentelemetry_instrumentor")


def switch_on(names: Sequence[str], provider: Any) -> None:
    """Instrument the named libraries (``"openai"``) with what is installed; says once which are missing."""
    for name in names:
        found = [point for group in _GROUPS for point in entry_points(group=group, name=name)]
        if not found:
            once(
                f"instrument:{name}",
                "no installed instrumentation for this library; install one, such as "
                f"openinference-instrumentation-{name} or opentelemetry-instrumentation-{name}",
                library=name,
            )
            continue
        with _guard.guard(f"instrument.{name}"):
            instrumentor = found[0].load()()
            if not getattr(instrumentor, "is_instrumented_by_opentelemetry", False):
                instrumentor.instrument(tracer_provider=provider)
