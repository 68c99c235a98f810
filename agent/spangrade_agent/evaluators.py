"""What the agent scores with, by its configuration."""

from collections.abc import Sequence
from typing import Any

from spangrade.model.policy import Placed
from spangrade.scoring.evaluators import placed_evaluators
from spangrade_agent.config import DEFAULT_METRICS, AgentConfig


def evaluators_of(config: AgentConfig) -> list[Placed]:
    """The file's metrics and judges; without either a few built-in metrics, so that a first look shows something.

    Raises:
        ConfigError: one of them cannot work.
    """
    named = config.metrics or config.judges
    metrics: Sequence[Any] = list(config.metrics) if named else list(DEFAULT_METRICS)
    return placed_evaluators(metrics, list(config.judges), config.judge_endpoints)
