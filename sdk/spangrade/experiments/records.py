"""What an experiment leaves behind: its run, its evaluators, its items, and a score or a reason for every pair."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spangrade.model.evaluator import EvaluatorInfo, Kind
from spangrade.model.outcome import Outcome
from spangrade.model.sample import FrozenDict
from spangrade.model.score import Rule


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """One score of one run of an item or, where there is none, why: the end of one (item, repeat, evaluator).

    An evaluator that gives several scores has one of these for each.

    Attributes:
        item_id, repeat: the run that was scored; repeats count from 0.
        name: the score's name: the evaluator's, or ``metric.key``.
        evaluator: `EvaluatorRecord.key` of who gave it.
        outcome: scored, skipped, error or timeout.
        value: a finite number; None unless scored, and where the score is a label only.
        label, passed: the category and the verdict, where there is one.
        explanation: why, in the evaluator's words.
        reason: why there is no score: what is missing, or the error's message; None when scored.
        error_type: the exception's class, or a judge's kind of failure; None unless outcome is error or timeout.
        structured: a list or dict value, plain JSON.
        metadata: what the evaluator added.
        path: which leaf of which tree gave it (``tree/branch/leaf``), for a composite metric.
        rule: the leaf's own threshold and direction; None: the evaluator's count.
        duration_s: seconds that the evaluator took; None where that is not known.
        details: how it came about (``spangrade.judge.model`` and the like).
        score_id: the score's id on the wire; None where it was not sent.
        span_id: the span that was scored, where it is not the item's own (an evaluator with another target).
    """

    item_id: str
    repeat: int
    name: str
    evaluator: str
    outcome: Outcome
    value: float | None = None
    label: str | None = None
    passed: bool | None = None
    explanation: str | None = None
    reason: str | None = None
    error_type: str | None = None
    structured: Any = None
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict)
    path: str | None = None
    rule: Rule | None = None
    duration_s: float | None = None
    details: Mapping[str, Any] = field(default_factory=FrozenDict)
    score_id: str | None = None
    span_id: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the evaluator failed: an error or a time-out, which is no score."""
        return self.outcome in (Outcome.ERROR, Outcome.TIMEOUT)


@dataclass(frozen=True, slots=True)
class TaskError:
    """Why a task gave no output: the exception's class and message, or ``timeout``."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class ItemResult:
    """One run of one dataset item: what went in, what came out, and its scores.

    Attributes:
        item_id: the dataset item, the same in every run over it.
        repeat: 0 for the first run of the item.
        input, expected, context, metadata: of the dataset.
        output: what the task returned, or the dataset's own; None when the task failed.
        documents: those retrieved in the task; without any, the dataset's.
        scores: in the order of the evaluators; empty when the task failed, since no evaluator ran then.
        error: why the task failed; None when it did not.
        duration_s: seconds that the task took; None without a task.
        trace_id, span_id: of the traced run, as hex digits; None where nothing was traced.
    """

    item_id: str
    repeat: int = 0
    input: Any = None
    output: Any = None
    expected: Any = None
    documents: tuple[Mapping[str, Any], ...] = ()
    context: Mapping[str, Any] = field(default_factory=FrozenDict)
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict)
    scores: tuple[ScoreResult, ...] = ()
    error: TaskError | None = None
    duration_s: float | None = None
    trace_id: str | None = None
    span_id: str | None = None

    def score(self, name: str) -> ScoreResult | None:
        """The first score of that name, or None."""
        return next((score for score in self.scores if score.name == name), None)


@dataclass(frozen=True, slots=True)
class EvaluatorRecord:
    """Who gave scores, in which version and configuration.

    ``source_hash`` changes when a metric's code does; None where the source cannot be read, and for judges.
    ``judge_model``: the model asked for; each score's ``details`` has the one that answered.
    """

    name: str
    kind: Kind = "code"
    version: str | None = None
    config_hash: str = ""
    source_hash: str | None = None
    threshold: float | None = None
    lower_is_better: bool = False
    verdict: bool = True
    target: str = "root"
    requires: tuple[str, ...] = ()
    judge_model: str | None = None

    @property
    def key(self) -> str:
        """``name@confighash``, as on the wire."""
        return f"{self.name}@{self.config_hash}" if self.config_hash else self.name

    def ruled(self, rule: Rule | None) -> "EvaluatorRecord":
        """The same with the threshold and direction of one of its scores."""
        if rule is None:
            return self
        return replace(self, threshold=rule.threshold, lower_is_better=rule.lower_is_better, verdict=rule.verdict)

    @classmethod
    def of(
        cls, info: EvaluatorInfo, source_hash: str | None = None, judge_model: str | None = None
    ) -> "EvaluatorRecord":
        """The record of a running evaluator."""
        return cls(
            name=info.name,
            kind=info.kind,
            version=info.version,
            config_hash=info.config_hash,
            source_hash=source_hash,
            threshold=info.threshold,
            lower_is_better=info.lower_is_better,
            verdict=info.verdict,
            target=info.target,
            requires=info.requires,
            judge_model=judge_model,
        )


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The experiment itself, and where it ran.

    Attributes:
        name: the experiment's name.
        dataset, dataset_hash: the dataset's name, and 16 hex digits that change when its content does.
        task: the task's name; None where the outputs came with the dataset.
        dataset_items: how many items the dataset has (``Results.items`` has one entry for each of its runs).
        repeats, concurrency: as asked for.
        started: ISO 8601, UTC.
        duration_s: seconds.
        spangrade, python: versions.
        metadata: what the caller added, such as a commit or a model's name.
        interrupted: True when the run was stopped before all items were done.
    """

    name: str = "experiment"
    dataset: str = "dataset"
    dataset_hash: str = ""
    task: str | None = None
    dataset_items: int = 0
    repeats: int = 1
    concurrency: int = 1
    started: str = ""
    duration_s: float = 0.0
    spangrade: str = ""
    python: str = ""
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict)
    interrupted: bool = False
