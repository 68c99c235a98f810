"""How a pair ended, before anything is sent of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spangrade.model.evaluator import Verdict
from spangrade.model.outcome import Outcome


@dataclass(slots=True)  # not frozen: there is one for every pair, and that costs three times as much
class Ended:
    """How a pair ended. ``verdict``: what it gave; of an *error*, one that has only failures, if any. ``details``: wire
    attributes of an error that has no verdict."""

    outcome: Outcome
    reason: str = ""
    verdict: Verdict | None = None
    error_type: str | None = None
    message: str = ""
    duration_s: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
