"""Spans that are filled when somebody reads them. This room uses private parts of the OpenTelemetry SDK, so it is entered
only with versions that it was tried with; with any other, calls are traced through the public API, at three times the cost.

A span of the SDK costs its thread about as much again as what it records. Most of that is containers, checks and locks
for attributes that nobody reads before the span is exported. A `LazySpan` is a span of the SDK all the same (every
processor may read and write it, limits and links included); it makes these things at the first reading, which for a call
that is scored happens on a thread of ours.
"""

from typing import Final

from opentelemetry.sdk import version

#: The first version tried, and the first one not tried yet. `tests/unit/tracing/test_lazy.py` is what a version must pass.
TRIED: Final = ((1, 40), (1, 46))


def usable(installed: str = version.__version__) -> bool:
    """Whether this version of the SDK was tried with lazily filled spans."""
    parts = installed.split(".")
    if len(parts) < 3 or not (parts[0].isdigit() and parts[1].isdigit() and parts[2].isdigit()):
        return False  # a pre-release may differ
    return TRIED[0] <= (int(parts[0]), int(parts[1])) < TRIED[1]
