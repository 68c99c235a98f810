"""Canaries on their way through the judges' lane: no pair and no score, only a count of whether the judge was right."""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from spangrade._switches import scoring_stopped
from spangrade.model.evaluator import Verdict
from spangrade.scoring.asking import ask_judge, count_repairs
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.seats import Seat
from spangrade.scoring.selection import chosen, position
from spangrade.scoring.turn import Turn

#: ``unasked``: there was no room, time or money for it.
Result = Literal["right", "wrong", "error", "unasked"]
_SPACE: Final = 2**56


def due(seat: Seat, trace_id: int, trace_state: str) -> Any:
    """The canary that goes with a graded trace, if one does: at the seat's rate, by a hash of the trace id, so that a trace
    that several processes see has it once."""
    placed = seat.placed
    if not placed.canaries or not chosen(trace_id, f"canary:{seat.info.name}", placed.canary_rate, trace_state):
        return None
    turn = position(trace_id, f"which:{seat.info.name}", trace_state)
    return placed.canaries[turn * len(placed.canaries) // _SPACE]


@dataclass(eq=False, slots=True)
class CanaryStep:
    """One canary, graded by its judge like any sample, at the cost of one."""

    seat: Seat
    canary: Any
    ledger: Ledger

    @property
    def turn(self) -> Turn:
        """Where it stands."""
        return self.seat.turn

    def run(self) -> Any:
        """Runs on a lane's thread."""
        if scoring_stopped():
            return None
        judge = self.seat.placed.evaluator
        fresh = judge.without_cache() if hasattr(judge, "without_cache") else judge  # as it is now, not as it was
        return ask_judge(replace(self.seat, evaluate=fresh.evaluate), self.canary.sample)

    def done(self, result: Any, fault: BaseException | None, _duration_s: float) -> None:
        """The judge came back."""
        details = getattr(result if fault is None else fault, "details", {})
        count_repairs(self.ledger, self.seat.info, details, scored=fault is None)
        if fault is not None:
            self._count("error")
        elif not isinstance(result, Verdict) or not result.scores:
            self._count("unasked")
        else:
            self._count("right" if result.scores[0].passed is self.canary.passes else "wrong")

    def gave_up(self, why: str, _duration_s: float) -> None:
        """It did not come back in time, or never ran."""
        self._count("error" if why == "timeout" else "unasked")

    def _count(self, result: Result) -> None:
        self.ledger.canary(self.seat.info, result)
