"""How a (sample, evaluator) pair ended, and the record of a score that is to be delivered."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.sample import FrozenDict
from spangrade.model.score import Graded


class Outcome(StrEnum):
    """The one counted end of a (sample, evaluator) pair."""

    SCORED = "scored"
    SKIPPED = "skipped"
    ERROR = "error"
    TIMEOUT = "timeout"
    NOT_SAMPLED = "not_sampled"
    OVER_BUDGET = "over_budget"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class SpanRef:
    """The span that a score belongs to: enough to find it, or to be parented to it."""

    trace_id: int
    span_id: int
    trace_flags: int = 1
    trace_state: str = ""
    name: str = ""
    end_ns: int = 0
    response_id: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """One score, or one error, on its way out.

    ``probability`` is that with which the pair was selected, in (0, 1]. ``error_type`` set means: no value, no label.
    """

    span: SpanRef
    evaluator: EvaluatorInfo
    graded: Graded
    time_ns: int
    probability: float = 1.0
    selection_reason: str = "always"
    partial: bool = False
    duration_s: float | None = None
    error_type: str | None = None
    details: Mapping[str, Any] = field(default_factory=FrozenDict)

    @property
    def score_id(self) -> str:
        """32 hex digits, the same in every carrier and every resend; of a conversation by its session, so that it has one
        score of each evaluator, whichever turn was the last."""
        of_session = self.evaluator.target == "session" and self.span.session_id is not None
        whose = ("session", self.span.session_id or "")
        parts = (
            *(whose if of_session else (f"{self.span.trace_id:032x}", f"{self.span.span_id:016x}")),
            self.graded.name,
            self.evaluator.name,
            self.evaluator.version or "",
            self.evaluator.config_hash,
        )
        return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()[:32]
