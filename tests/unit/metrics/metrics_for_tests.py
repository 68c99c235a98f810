"""Metrics that a configuration file, or a worker process, finds by import path."""

import os

import spangrade as sg


@sg.discrete_metric(allowed_values=["acme", "other"], inputs={"tenant": "metadata.tenant"})
def whose(tenant: str) -> sg.MetricResult:
    """Whose call it is."""
    return sg.MetricResult(tenant, reason="the application says so")


@sg.numeric_metric(allowed_values=(0, 10_000_000), process=True)
def elsewhere(output: str) -> int:
    """Which process looked at it."""
    return os.getpid()


class Elsewhere(sg.BaseMetric[int]):
    """Which process looked at it."""

    process = True

    def evaluate(self, text: str | None) -> dict[str, int]:
        return self.result(os.getpid())


@sg.metric
def here(output: str) -> int:
    """Which process looked at it."""
    return os.getpid()
