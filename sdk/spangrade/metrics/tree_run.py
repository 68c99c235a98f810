"""What a tree gave: its leaves' results merged, and its aggregates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spangrade.metrics.aggregate import aggregated, name_of
from spangrade.metrics.leaf import LeafRun, failure_of
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


@dataclass(frozen=True, slots=True)
class Left:
    """Of a part that nobody waits for: the kind of its failure, and why."""

    kind: str
    why: str


def merged(plan: Plan, outcomes: Mapping[int, Any], named: Callable[[str], str], left: Left | None) -> TreeRun:
    """What the leaves gave, in order, and the aggregates of it.

    Args:
        outcomes: by a leaf's place in the plan: a `LeafRun`, a `Left`, or what it raised.
        named: a result key → its score's name.
        left: the aggregates are not to be made, for this reason.
    """
    found = TreeRun(named)
    for i, leaf in enumerate(plan.leaves):
        _take(found, leaf, outcomes[i])
    for whole in plan.wholes:
        if left is None:
            _add_whole(found, whole)
        else:
            found.fail(whole.key, left.kind, left.why, whole.path, whole.rule)
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
    elif isinstance(outcome, Left):
        found.fail(key, outcome.kind, outcome.why, path, rule)
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
