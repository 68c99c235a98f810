"""The pipeline's bounds."""

import os
from dataclasses import dataclass, field

from spangrade.samples.bounds import DEFAULT, AssemblyBounds


@dataclass(frozen=True, slots=True)
class Settings:
    """Bounds. Times in seconds.

    ``metric_hold`` and ``judge_hold``: how long a span may wait for metrics only, and for a judge. ``max_bytes``: text of
    offers that nobody has read yet and of samples that are being graded, as estimated (`Offer.size`).
    """

    metric_hold: float = 1.0
    judge_hold: float = 5.0
    metric_threads: int = 2
    judge_threads: int = 200  # started as they are needed: of judges whose endpoint has a limiter, which says how many
    judge_limit: int = 8  # threads of one judge whose client has none
    max_offers: int = 10_000
    max_steps: int = 10_000
    metric_limit: int = 2  # threads that one metric may occupy
    metric_processes: int = field(
        default_factory=lambda: min(2, os.cpu_count() or 1)
    )  # of all metrics with process=True
    max_bytes: int = 64 * 2**20
    budget_store: str | None = None  # where judges' money is kept; see `purse_store`
    async_limit: int = 64  # steps of one async evaluator that are under way at once
    async_steps: int = 1_024  # and of all of them
    assembly: AssemblyBounds = DEFAULT  # what samples wait for
