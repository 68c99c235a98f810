"""A judge is asked within its ceilings: of calls, and of money."""

from collections.abc import Callable, Mapping
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
    def ask() -> Any:
        return seat.evaluate(sample) if seat.budget.take() else Ended(Outcome.OVER_BUDGET, "calls")

    result = within(purse, seat.placed.evaluator.most(sample), seat.turn.timeout_s, ask, cost_of)
    return Ended(Outcome.OVER_BUDGET, "usd") if result is None else result


def within(
    purse: Purse, most: float | None, seconds: float, ask: Callable[[], Any], cost: Callable[[Any], float | None]
) -> Any:
    """What ``ask`` gives; None where there is no money for it, or nobody knows what it can cost.

    The most that it can cost is held before, and what it did cost taken after. Tries that have to be made once more, though
    they may have been billed, are rare: money for them is held when it comes to that, and without it they are not made.

    Args:
        most: US dollars.
        seconds: that it takes at most.
        cost: of what ``ask`` gave, in US dollars; None: the most.
    """
    first = None if most is None else purse.reserve(most, seconds)
    if first is None:
        return None
    held = [first]

    def more(usd: float) -> bool:
        found = purse.reserve(usd, seconds)
        held.extend(() if found is None else (found,))
        return found is not None

    spent: float | None = None
    try:
        with allowing(more):
            result = ask()
        spent = 0.0 if isinstance(result, Ended) else cost(result)
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
