"""A tree on one sample: every leaf runs, whatever the others do; then the aggregates."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from spangrade.metrics.aggregate import aggregated, name_of
from spangrade.metrics.leaf import LeafRun, failure_of
from spangrade.metrics.local import DEFAULT_TIMEOUT_S
from spangrade.metrics.tree_plan import Leaf, Plan, Whole
from spangrade.model.evaluator import Failure
from spangrade.model.returned import ScoreReader
from spangrade.model.score import Graded, Rule, Score, Skip


@dataclass(slots=True)
class TreeRun:
    """What a tree gave. ``scores`` and ``failures`` each have their path and rule. By result key: ``raw``, ``numbers``, and
    ``skipped`` (why)."""

    named: Callable[[str], str] = str  # result key → the score's name
    raw: dict[str, Any] = field(default_factory=dict)
    scores: list[Graded] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def add(self, key: str, graded: Graded, path: str, rule: Rule) -> None:
        """One score, under ``key``."""
        if graded.value is not None:
            self.numbers[key] = graded.value
        self.scores.append(
            Graded(
                self.named(key),
                graded.value,
                graded.label,
                graded.passed,
                graded.explanation,
                graded.structured,
                graded.metadata,
                path,
                rule,
            )
        )

    def fail(self, key: str, kind: str, message: str, path: str, rule: Rule) -> None:
        """One failure, under ``key``."""
        self.failed.add(key)
        self.failures.append(Failure(self.named(key), kind, message, path, rule))


def run(plan: Plan, given: Any, named: Callable[[str], str] = str) -> TreeRun | Awaitable[TreeRun]:
    """Run the tree on a `Sample` or a text. An awaitable where a leaf gave one: the others have run by then, on this thread.

    ``named``: a result key → its score's name; default the key itself.
    """
    outcomes = [_attempt(leaf, given) for leaf in plan.leaves]
    if any(inspect.isawaitable(outcome) for outcome in outcomes):
        return _later(plan, outcomes, named)
    return _merged(plan, outcomes, named)


async def _later(plan: Plan, outcomes: list[Any], named: Callable[[str], str]) -> TreeRun:
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
    return _merged(plan, outcomes, named)


def _attempt(leaf: Leaf, given: Any) -> Any:
    """What the leaf gave: a `LeafRun`, an awaitable of one, or what it raised."""
    try:
        return leaf.run(given)
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


def _merged(plan: Plan, outcomes: list[Any], named: Callable[[str], str]) -> TreeRun:
    found = TreeRun(named)
    for leaf, outcome in zip(plan.leaves, outcomes, strict=True):
        _take(found, leaf, outcome)
    for whole in plan.wholes:
        _add_whole(found, whole)
    return found


def _take(found: TreeRun, leaf: Leaf, outcome: Any) -> None:
    key, path, rule = leaf.metric.result_key, leaf.path, leaf.run.rule
    if isinstance(outcome, LeafRun):
        taken = [name for name in outcome.raw if name in found.raw]
        for name in taken:
            said = f"the result key {name!r} is another metric's of the tree already"
            found.fail(f"{key}.{name}", "duplicate_key", said, path, rule)
        for graded in outcome.scores:  # named by key alone
            if graded.name not in taken:
                found.add(graded.name, graded, path, rule)
        found.raw.update((name, value) for name, value in outcome.raw.items() if name not in taken)
        for failure in outcome.failures:
            found.fail(failure.name, failure.kind, failure.message, path, rule)
        if outcome.skipped:
            found.skipped[key] = outcome.skipped
    elif isinstance(outcome, Skip):
        found.skipped[key] = str(outcome) or "skipped"
    elif isinstance(outcome, _TooLate):
        found.fail(key, "timeout", str(outcome), path, rule)
    else:
        failure = failure_of(key, outcome)
        found.fail(key, failure.kind, failure.message, path, rule)


def _add_whole(found: TreeRun, whole: Whole) -> None:
    numbers = found.numbers
    there = [part for part in whole.parts if part.key in numbers]
    missing = [part for part in whole.parts if part.key not in numbers]
    if not there and all(part.key in found.skipped for part in missing):
        found.skipped[whole.key] = "all that it is made of was skipped"
        return
    without = ", ".join(f"{part.key} ({_why(found, part.key)})" for part in missing)
    if missing and not (whole.ignores_missing and there):
        said = f"no aggregate without {without}; on_missing='ignore' aggregates the rest"
        found.fail(whole.key, "incomplete", said, whole.path, whole.rule)
        return
    try:
        value = aggregated(whole.how, [numbers[part.key] for part in there], [part.weight for part in there])
        parts = ", ".join(f"{p.key} {numbers[p.key]:g}" + ("" if p.weight == 1 else f" x{p.weight:g}") for p in there)
        said = f"{name_of(whole.how)} of {parts}" + (f"; without {without}" if missing else "")
        graded = ScoreReader(whole.key, whole.rule)(Score(value, explanation=said)).scores[0]
    except Exception as fault:  # noqa: BLE001 - an application's function
        failure = failure_of(whole.key, fault)
        found.fail(whole.key, failure.kind, failure.message, whole.path, whole.rule)
        return
    found.raw[whole.key] = value
    found.add(whole.key, graded, whole.path, whole.rule)


def _why(found: TreeRun, key: str) -> str:
    if key in found.skipped:
        return "skipped"
    if key in found.failed:
        return "failed"
    return "no number" if found.raw.get(key) is not None else "nothing said"
