"""The evaluators of a pipeline, each with the state that its policy and its lane need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.policy import Placed
from spangrade.scoring.clock import Clock
from spangrade.scoring.selection import Budget, Selector
from spangrade.scoring.settings import Settings
from spangrade.scoring.turn import Turn
from spangrade.semconv import SCORED_BY


@dataclass(frozen=True, slots=True)
class Seat:
    """An evaluator in the pipeline: its policy's state, and its place in a lane."""

    placed: Placed
    selector: Selector
    budget: Budget
    turn: Turn

    @property
    def info(self) -> EvaluatorInfo:
        """The evaluator's identity."""
        info: EvaluatorInfo = self.placed.evaluator.info
        return info

    @property
    def is_judge(self) -> bool:
        """Whether it runs in the judges' lane."""
        return self.info.kind != "code"


def seats_of(placed: Sequence[Placed], settings: Settings, clock: Clock) -> list[Seat]:
    """New seats. One judge alone may have all the judges' threads; of several, none may take more than half of them."""
    judges = sum(p.evaluator.info.kind != "code" for p in placed)
    loop_limit = max(1, min(settings.async_limit, settings.async_steps // max(1, len(placed))))
    judge_limit = settings.judge_threads if judges <= 1 else max(1, settings.judge_threads // 2)
    return [
        Seat(
            p,
            Selector(p.evaluator.info, p.policy, clock),
            Budget(p.policy.budget or {}, clock),
            Turn(
                p.evaluator.info.name,
                p.evaluator.timeout,
                judge_limit if p.evaluator.info.kind != "code" else settings.metric_limit,
                loop_limit,
            ),
        )
        for p in placed
    ]


def meets(
    seats: Sequence[Seat], targets: Sequence[str], span: Mapping[str, Any], resource: Mapping[str, Any]
) -> list[Seat]:
    """Those whose target is one of ``targets`` and that nobody else has taken. ``span``, ``resource``: attributes."""
    already = span.get(SCORED_BY) or ()
    if isinstance(already, str):
        already = (already,)
    return [
        s for s in seats if s.info.target in targets and s.info.key not in already and s.placed.applies_to(resource)
    ]
