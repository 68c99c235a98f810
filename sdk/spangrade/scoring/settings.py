"""The pipeline's bounds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Bounds. Times in seconds.

    ``metric_hold`` and ``judge_hold``: how long a span may wait for metrics only, and for a judge.
    """

    metric_hold: float = 1.0
    judge_hold: float = 5.0
    metric_threads: int = 2
    judge_threads: int = 8
    max_offers: int = 10_000
    max_steps: int = 10_000
    metric_limit: int = 2  # threads that one metric may occupy
