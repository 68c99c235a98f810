"""Previews cost what judges cost: all of them together are kept within the ceilings of ``registry.budget``."""

from collections.abc import Mapping
from typing import Any, Final

from spangrade.judges.judge import LlmJudge
from spangrade.judges.prices import cost_of
from spangrade.judges.responses import EvaluatorPreviewResponse
from spangrade.model.policy import CALLS, MONEY, Policy
from spangrade.model.sample import Sample
from spangrade.scoring.asking import within
from spangrade.scoring.clock import Clock, SystemClock
from spangrade.scoring.purse import Purse
from spangrade.scoring.purse_store import purse_store
from spangrade.scoring.selection import Budget

KEY: Final = "(previews)"  # in the store of money


class Previews:
    """Grades samples that somebody wants to see graded.

    Args:
        budget: as of a judge: ``calls_per_day``, ``usd_per_day`` and so on. Calls are counted in this process, money in the
            store, where agents that share it share the ceiling.
        store: see `purse_store`.
    """

    def __init__(self, budget: Mapping[str, float], store: str | None = None, clock: Clock | None = None) -> None:
        policy, clock = Policy(budget=budget), clock or SystemClock()
        money = policy.budget_of(MONEY)
        self._calls = Budget(policy.budget_of(CALLS), clock)
        self._purse = Purse(KEY, money, purse_store(store), clock) if money else None

    def graded(self, judge: LlmJudge, sample: Sample) -> EvaluatorPreviewResponse:
        """See `LlmJudge.preview`; the error is ``over_budget`` where there are no calls or no money for it."""

        def ask() -> Any:
            return judge.previewed(sample)

        purse = self._purse
        if purse is not None and (judge.price is None or judge.price.cost(1, 1) is None):
            return _refused(f"no price is known for the model {judge.model!r}, and registry.budget is in US dollars")
        if not self._calls.take():
            return _refused("the calls that registry.budget has for previews are used up for now")
        found = (
            ask() if purse is None else within(purse, judge.most(sample), judge.timeout, ask, lambda f: cost_of(f[1]))
        )
        if found is None:
            return _refused("what registry.budget has for previews in US dollars is used up for now")
        response: EvaluatorPreviewResponse = found[0]
        return response


def _refused(why: str) -> EvaluatorPreviewResponse:
    return EvaluatorPreviewResponse(None, None, "", f"over_budget: {why}; nothing was sent")
