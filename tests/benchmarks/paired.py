"""Medians and ratios of things that are measured in turns. Machines are noisy: only what was measured beside each other
can be compared, so every round measures both, and the ratio is the median of the rounds' ratios."""

import statistics
from collections.abc import Callable
from typing import NamedTuple

from tests.benchmarks.calls import Timed


class Pair(NamedTuple):
    """Microseconds, medians over the rounds of the median call; and the median of the rounds' ratios."""

    bare: float
    ours: float
    ratio: float


def paired(bare: Timed, ours: Timed, rounds: int, calls: int, between: Callable[[], object]) -> Pair:
    """Measure ``bare`` and ``ours`` in turns; ``between`` is called after each, for what runs beside them to end."""
    found = []
    for _ in range(rounds):
        one = statistics.median(bare(calls)) / 1e3
        between()
        other = statistics.median(ours(calls)) / 1e3
        between()
        found.append((one, other))
    return Pair(
        statistics.median(one for one, _ in found),
        statistics.median(other for _, other in found),
        statistics.median(other / one for one, other in found),
    )
