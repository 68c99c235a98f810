"""Which judges grade production traffic, and how often. The policy stands beside the judge, not in its `config()`."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from spangrade._log import once
from spangrade.errors import ConfigError
from spangrade.judges import checks
from spangrade.judges.canary import DEFAULT_RATE
from spangrade.judges.canary import canaries as read_canaries
from spangrade.judges.cascade import Cascade
from spangrade.judges.judge import LlmJudge
from spangrade.judges.prices import unpriced
from spangrade.model.evaluator import Evaluator, Target, check_target
from spangrade.model.policy import DEFAULT_JUDGE_RATE, MONEY, Placed, Policy, When
from spangrade.model.sample import Sample

JUDGES: Final = (LlmJudge, Cascade)  # those that know of models, endpoints and targets


def live(
    judge: Evaluator,
    rate: float | Mapping[str, float] | None = None,
    when: When | None = None,
    max_per_minute: float | None = None,
    budget: Mapping[str, float] | None = None,
    target: Target = "root",
    *,
    min_per_minute: float | None = None,
    group: str | None = None,
    price: Mapping[str, float] | None = None,
    canaries: Iterable[Mapping[str, Any]] = (),
    canary_rate: float = DEFAULT_RATE,
) -> Placed:
    """The judge, placed on production traffic.

    Args:
        judge: an `LlmJudge` (or another evaluator of kind ``llm``); its own ``live`` does not matter here.
        rate: share of matching samples that are graded; 0.1 unless given. Or one for each kind of sample, by conditions:
            ``{"groundedness.fail": 1.0, "else": 0.02}``.
        when, max_per_minute, min_per_minute, budget, group: see `Policy`.
        target: what is graded: root, llm, retriever, tool, agent, ..., or a rule on name and attributes such as
            ``"name = answer*"`` (see `spangrade.model.target`); ``root`` leaves the judge's own target.
        price: of the judge's model, in US dollars per million tokens, ``{"input": 0.4, "output": 1.6}``; by default that of
            the installed list (extra ``cost``).
        canaries: samples whose verdict is known, ``{"input": ..., "output": ..., "verdict": "fail"}``. One of them is graded
            beside a share ``canary_rate`` of what is graded, within the same ceilings; nothing is emitted but the counter
            ``spangrade.judge.canaries`` (right, wrong, error, unasked).

    Raises:
        ConfigError: not a judge, or an argument that cannot work.
    """
    _check_judge(judge, "sg.live")
    if price is not None:
        if not isinstance(judge, LlmJudge):
            raise ConfigError(
                f"sg.live: price is for one model; give each judge its own, as in judge.with_price({price!r})"
            )
        judge = judge.with_price(price)
    if check_target(target, "sg.live") != "root":
        if not isinstance(judge, JUDGES):
            raise ConfigError(
                f"sg.live: {judge.info.name!r} is no LlmJudge, so it takes no target; make it with its target"
            )
        judge = judge.with_target(target)
    policy = Policy(DEFAULT_JUDGE_RATE if rate is None else rate, when, max_per_minute, budget, min_per_minute, group)
    what = f"judge {judge.info.name!r}"
    share = checks.number(canary_rate, 0, 1, f"{what}: canary_rate")
    return Placed(judge, policy, canaries=read_canaries(canaries, what), canary_rate=share)


def place(judge: Any) -> Placed:
    """What ``judges=[...]`` may hold, ready for the pipeline: with a policy, and with its model pinned.

    Takes what `live` returned, or a judge made with ``live=True``, which is placed at the default rate (0.1).

    Raises:
        ConfigError: a judge that is not live, one without a model, or something that is no judge.
    """
    if isinstance(judge, Placed):
        _check_judge(judge.evaluator, "judges=")
        placed = judge
    else:
        _check_judge(judge, "judges=")
        if not (isinstance(judge, LlmJudge) and judge.live):
            raise ConfigError(
                f"judge {judge.info.name!r} is not live, so it would grade no production traffic and cost nothing; "
                f"make it with live=True (grades {DEFAULT_JUDGE_RATE:.0%}), or give sg.live(judge, rate=0.05)"
            )
        placed = live(judge)
    if isinstance(placed.evaluator, JUDGES):
        placed = replace(placed, evaluator=placed.evaluator.with_pinned_model())
    if placed.policy.budget_of(MONEY):
        _check_priced(placed.evaluator)
        _check_affordable(placed)
    return placed


def _check_priced(judge: Any) -> None:
    """A ceiling in money needs to know what a call costs."""
    for one in judge.models() if isinstance(judge, JUDGES) else ():
        price = one.price
        if price is None or price.cost(1, 1) is None:
            raise unpriced(one.model or "")
    if not isinstance(judge, JUDGES):
        raise ConfigError(
            f"judge {judge.info.name!r} has a budget in US dollars and no price; give it one in calls (calls_per_day)"
        )


def _check_affordable(placed: Placed) -> None:
    """A ceiling may be 0, to ask nobody. Say so where one is below what a grading is reserved for, since then nobody is asked."""
    most = placed.evaluator.most(Sample(output="."))
    for kind, limit in placed.policy.budget_of(MONEY).items():
        if most is not None and 0 < limit < most:
            once(
                f"budget:{placed.evaluator.info.name}:{kind}",
                "a judge's budget is below what one grading can cost at most, so it will grade nothing: raise it",
                judge=placed.evaluator.info.name,
                budget=f"{kind} {limit:g}",
                one_grading=f"{most:.2g} or more",
            )


def _check_judge(judge: Any, where: str) -> None:
    if isinstance(judge, type) or not isinstance(judge, Evaluator) or judge.info.kind != "llm":
        raise ConfigError(
            f"{where} takes an LlmJudge, not {type(judge).__name__}; "
            "metrics go into metrics=, where every sample is scored"
        )
