"""The evaluators of a pipeline, each with the state that its policy and its lane need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.policy import CALLS, MONEY, Placed
from spangrade.model.sample import Sample
from spangrade.scoring.clock import Clock
from spangrade.scoring.processes import START_S, Processes, Remote
from spangrade.scoring.purse import Purse
from spangrade.scoring.purse_store import purse_store
from spangrade.scoring.selection import Budget, Selector
from spangrade.scoring.settings import Settings
from spangrade.scoring.turn import Turn
from spangrade.semconv import SCORED_BY


@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """An evaluator in the pipeline: its policy's state, and its place in a lane. ``is_judge``, ``is_remote``: in the
    judges' lane, or that of the metrics which run in worker processes; ``evaluate`` runs it."""

    placed: Placed
    info: EvaluatorInfo
    selector: Selector
    budget: Budget
    turn: Turn
    evaluate: Callable[[Sample], Any]
    is_judge: bool
    is_remote: bool
    purse: Purse | None = None


def is_remote(placed: Placed) -> bool:
    """Whether the evaluator asks for a process of its own."""
    return getattr(placed.evaluator, "process", False) is True


def seats_of(placed: Sequence[Placed], settings: Settings, clock: Clock, processes: Processes) -> list[Seat]:
    """New seats. One judge alone may have all the judges' threads; of several, none may take more than half of them. The
    same goes for metrics and worker processes. A judge whose endpoint nobody limits gets few threads.

    Raises:
        ConfigError: a metric cannot run in a worker process.
    """
    judges = sum(p.evaluator.info.kind != "code" for p in placed)
    remotes = sum(map(is_remote, placed))
    loop_limit = max(1, min(settings.async_limit, settings.async_steps // max(1, len(placed))))
    judge_limit = _share(settings.judge_threads, judges)
    remote_limit = _share(settings.metric_processes, remotes)
    seats: list[Seat] = []
    for p in placed:
        evaluator, info = p.evaluator, p.evaluator.info
        judge, remote = info.kind != "code", is_remote(p)
        gate = getattr(evaluator, "gate", None) if judge else None
        if judge:
            limit = judge_limit if gate is not None else min(judge_limit, settings.judge_limit)
        else:
            limit = remote_limit if remote else settings.metric_limit
        # A worker that is late is ended, and the thread that waits for it comes back: its lane gives it the time for that.
        timeout = evaluator.timeout + (2 * START_S if remote else 0)
        # A worker process is ended as a whole, and with it what the parts have found.
        parts = () if judge or remote else tuple(Turn(name, s, limit) for name, s in getattr(evaluator, "parts", ()))
        money = p.policy.budget_of(MONEY) if judge else {}
        seats.append(
            Seat(
                p,
                info,
                Selector(info, p.policy, clock),
                Budget(p.policy.budget_of(CALLS), clock),
                Turn(
                    info.name,
                    timeout,
                    limit,
                    max(loop_limit, limit) if gate is not None else loop_limit,
                    gate=gate,
                    beyond_gate=getattr(evaluator, "beyond_gate", False) is True,
                    parts=parts,
                ),
                partial(processes.evaluate, Remote.of(evaluator)) if remote else evaluator.evaluate,
                judge,
                remote,
                Purse(info.name, money, purse_store(settings.budget_store), clock) if money else None,
            )
        )
    return seats


def _share(places: int, evaluators: int) -> int:
    return places if evaluators <= 1 else max(1, places // 2)


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
