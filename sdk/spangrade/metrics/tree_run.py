"""A tree on one sample: every leaf runs, whatever the others do; then the aggregates."""

import asyncio
import inspect
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from spangrade.metrics.aggregate import aggregated, name_of
from spangrade.metrics.base import rule_of
from spangrade.metrics.leaf import LeafRun, failure_of, run_leaf
from spangrade.metrics.local import DEFAULT_TIMEOUT_S
from spangrade.metrics.tree_plan import Leaf, Plan, Whole
from spangrade.model.evaluator import Failure
from spangrade.model.returned import ScoreReader
from spangrade.model.score import Graded, Score, Skip

_MISSING: Final = "incomplete"


@dataclass(slots=True)
class TreeRun:
    """What a tree gave. ``scores`` and ``failures`` are named by key alone, each with its path and rule; ``skipped``: key → why."""

    raw: dict[str, Any] = field(default_factory=dict)
    scores: list[Graded] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


def run(plan: Plan, given: Any) -> TreeRun | Awaitable[TreeRun]:
    """Run the tree on a `Sample` or a text. An awaitable where a leaf gave one: the others have run by then, on this thread."""
    outcomes = [_attempt(leaf, given) for leaf in plan.leaves]
    if any(inspect.isawaitable(outcome) for outcome in outcomes):
        return _later(plan, outcomes)
    return _merged(plan, outcomes)


async def _later(plan: Plan, outcomes: list[Any]) -> TreeRun:
    waiting = {
        i: asyncio.ensure_future(_settled(plan.leaves[i], o)) for i, o in enumerate(outcomes) if inspect.isawaitable(o)
    }
    try:
        found = await asyncio.gather(*waiting.values())
    finally:  # given up from outside: none of them runs on
        for task in waiting.values():
            task.cancel()
    for i, outcome in zip(waiting, found, strict=True):
        outcomes[i] = outcome
    return _merged(plan, outcomes)


def _attempt(leaf: Leaf, given: Any) -> Any:
    """What the leaf gave: a `LeafRun`, an awaitable of one, or what it raised."""
    try:
        return run_leaf(leaf.metric, given)
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - a metric's fault is a failure of its own
        return fault


async def _settled(leaf: Leaf, outcome: Awaitable[LeafRun]) -> Any:
    limit = leaf.metric.timeout or DEFAULT_TIMEOUT_S
    try:
        async with asyncio.timeout(limit) as timer:
            return await outcome
    except TimeoutError as fault:
        return _TooLate(f"gave no result within {limit:g} s") if timer.expired() else fault
    except (Exception, SystemExit) as fault:  # noqa: BLE001
        return fault


class _TooLate(Exception):
    pass


def _merged(plan: Plan, outcomes: list[Any]) -> TreeRun:
    found = TreeRun()
    for leaf, outcome in zip(plan.leaves, outcomes, strict=True):
        _take(found, leaf, outcome)
    for whole in plan.wholes:
        _add_whole(found, whole)
    return found


def _take(found: TreeRun, leaf: Leaf, outcome: Any) -> None:
    key, rule = leaf.metric.result_key, rule_of(leaf.metric)
    if isinstance(outcome, LeafRun):
        for name, value in outcome.raw.items():
            if name in found.raw:
                said = f"the result key {name!r} is another metric's of the tree already"
                found.failures.append(Failure(f"{key}.{name}", "duplicate_key", said, leaf.path, rule))
                continue
            found.raw[name] = value
            found.scores += [replace(g, path=leaf.path, rule=rule) for g in outcome.scores if g.name == name]
        found.failures += [replace(failure, path=leaf.path, rule=rule) for failure in outcome.failures]
        if outcome.skipped:
            found.skipped[key] = outcome.skipped
    elif isinstance(outcome, Skip):
        found.skipped[key] = str(outcome) or "skipped"
    elif isinstance(outcome, _TooLate):
        found.failures.append(Failure(key, "timeout", str(outcome), leaf.path, rule))
    else:
        found.failures.append(replace(failure_of(key, outcome), path=leaf.path, rule=rule))


def _add_whole(found: TreeRun, whole: Whole) -> None:
    numbers = {graded.name: graded.value for graded in found.scores if graded.value is not None}
    there = [part for part in whole.parts if part.key in numbers]
    missing = [part for part in whole.parts if part.key not in numbers]
    if not there and all(part.key in found.skipped for part in missing):
        found.skipped[whole.key] = "all that it is made of was skipped"
        return
    without = ", ".join(f"{part.key} ({_why(found, part.key)})" for part in missing)
    if missing and not (whole.ignores_missing and there):
        said = f"no aggregate without {without}; on_missing='ignore' aggregates the rest"
        found.failures.append(Failure(whole.key, _MISSING, said, whole.path, whole.rule))
        return
    try:
        value = aggregated(whole.how, [numbers[part.key] for part in there], [part.weight for part in there])
        parts = ", ".join(f"{p.key} {numbers[p.key]:g}" + ("" if p.weight == 1 else f" x{p.weight:g}") for p in there)
        said = f"{name_of(whole.how)} of {parts}" + (f"; without {without}" if missing else "")
        graded = ScoreReader(whole.key, whole.rule)(Score(value, explanation=said)).scores[0]
    except Exception as fault:  # noqa: BLE001 - an application's function
        found.failures.append(replace(failure_of(whole.key, fault), path=whole.path, rule=whole.rule))
        return
    found.raw[whole.key] = value
    found.scores.append(replace(graded, path=whole.path, rule=whole.rule))


def _why(found: TreeRun, key: str) -> str:
    if key in found.skipped:
        return "skipped"
    if any(failure.name == key for failure in found.failures):
        return "failed"
    return "no number" if found.raw.get(key) is not None else "nothing said"
