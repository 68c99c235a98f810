"""A judge is asked within its ceilings: of calls, and of money."""

from collections.abc import Mapping
from typing import Any

from spangrade.judges.prices import cost_of
from spangrade.model.allowance import allowing
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome
from spangrade.model.sample import Sample
from spangrade.scoring.ended import Ended
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.purse import Purse
from spangrade.scoring.seats import Seat
from spangrade.semconv import JUDGE_REPAIRS


def ask_judge(seat: Seat, sample: Sample) -> Any:
    """The judge's verdict (or an awaitable of it), or an `Ended` when a ceiling is reached; what is not asked costs nothing.

    Raises:
        Skip, JudgeError: the judge's.
    """
    if seat.purse is not None:
        return _paid(seat, seat.purse, sample)
    if not seat.budget.take():
        return Ended(Outcome.OVER_BUDGET, "calls")
    return seat.evaluate(sample)


def _paid(seat: Seat, purse: Purse, sample: Sample) -> Any:
    """The most that it can cost is held before, and what it did cost taken after. Tries that have to be made once more, though
    they may have been billed, are rare: money for them is held when it comes to that, and without it they are not made."""
    most = seat.placed.evaluator.most(sample)
    first = None if most is None else purse.reserve(most, seat.turn.timeout_s)
    if first is None:
        return Ended(Outcome.OVER_BUDGET, "usd")
    held = [first]

    def more(usd: float) -> bool:
        found = purse.reserve(usd, seat.turn.timeout_s)
        held.extend(() if found is None else (found,))
        return found is not None

    spent: float | None = 0.0
    try:
        if not seat.budget.take():
            return Ended(Outcome.OVER_BUDGET, "calls")
        spent = None
        with allowing(more):
            result = seat.evaluate(sample)
        spent = cost_of(result)
        return result
    except BaseException as fault:
        spent = cost_of(fault)
        raise
    finally:
        purse.settle_all(held, spent)


def count_repairs(ledger: Ledger, judge: EvaluatorInfo, details: Mapping[str, Any], *, scored: bool) -> None:
    """Count the replies of one grading that were asked for once more. ``details``: of its verdict, or of its error."""
    times = details.get(JUDGE_REPAIRS, 0)
    if times:
        ledger.repaired(judge, "mended" if scored else "in_vain", times)
