"""`calibrate`: a judge over labelled items, and everything that its grades and people's labels tell together."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spangrade.errors import ConfigError
from spangrade.experiments.calibration.comparing import compared
from spangrade.experiments.calibration.judging import (
    Estimate,
    Round,
    estimate,
    graded,
    reads_order_of_documents,
    with_documents_reversed,
    with_examples_reversed,
)
from spangrade.experiments.calibration.labels import Labels, LabelScale, read_labels
from spangrade.experiments.calibration.result import Calibration
from spangrade.experiments.calibration.threshold import CRITERIA, FOLDS
from spangrade.experiments.defaults import CONFIDENCE, RESAMPLES, SEED
from spangrade.experiments.item import Item
from spangrade.experiments.run import CONCURRENCY
from spangrade.experiments.stats import need_numpy
from spangrade.judges.judge import LlmJudge


@dataclass(frozen=True, slots=True)
class Plan:
    """What a calibration will do, checked before anything is asked: `cost` says how much, `run` does it.

    Made by `plan`; its attributes are `calibrate`'s arguments.
    """

    judge: LlmJudge
    labels: Labels
    label_pass: float
    repeats: int
    order: bool
    folds: int
    criterion: str
    concurrency: int
    progress: bool | None
    how: Mapping[str, Any]

    @property
    def items(self) -> tuple[Item, ...]:
        """Those with a label that counts."""
        return tuple(row.item for row in self.labels.usable)

    @property
    def turned(self) -> tuple[Item, ...]:
        """The items whose documents can stand in another order, in that order."""
        items = [item for item in self.items if self.order and reads_order_of_documents(self.judge, item)]
        return tuple(with_documents_reversed(item) for item in items)

    @property
    def turns_examples(self) -> bool:
        """Whether the judge has examples that can stand in another order."""
        return self.order and len(self.judge.examples) > 1

    def cost(self) -> Estimate:
        """Calls and tokens, before any is spent."""
        rounds: list[tuple[Sequence[Item], int]] = [(self.items, self.repeats), (self.turned, 1)]
        return estimate(self.judge, [*rounds, (self.items, 1)] if self.turns_examples else rounds)

    def run(self) -> Calibration:
        """Ask the judge, and compare."""
        first = self._graded(self.judge, self.items, self.repeats, "")
        turned = {}
        if self.turned:
            turned["documents"] = self._graded(self.judge, self.turned, 1, ", documents reversed")
        if self.turns_examples:
            judge = with_examples_reversed(self.judge)
            turned["examples"] = self._graded(judge, self.items, 1, ", examples reversed")
        return compared(self, first, turned)

    def _graded(self, judge: LlmJudge, items: Sequence[Item], repeats: int, what: str) -> Round:
        return graded(
            judge,
            items,
            repeats=repeats,
            concurrency=self.concurrency,
            progress=self.progress,
            name=f"calibrate {judge.name}{what}",
        )


def calibrate(judge: LlmJudge, labels: "str | os.PathLike[str] | Iterable[Any]", **options: Any) -> Calibration:
    """Hold a judge against people's labels; see `plan` for the options."""
    return plan(judge, labels, **options).run()


def plan(
    judge: LlmJudge,
    labels: "str | os.PathLike[str] | Iterable[Any]",
    *,
    repeats: int = 1,
    order: bool = True,
    cluster: str | None = None,
    label_scale: LabelScale | None = None,
    label_pass: float | None = None,
    folds: int = FOLDS,
    criterion: str = "balanced_accuracy",
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Plan:
    """Read and check everything that a calibration takes.

    Args:
        judge: it is asked through its own client, or where the environment says; its cache should be off.
        labels: a path, or rows; see `read_labels`.
        repeats: how often each item is graded; from 2 on test-retest stability is told. Every grading counts in the agreement,
            and intervals draw whole items.
        order: grade once more with documents, and examples, in the other order, where there are several.
        cluster: a metadata key; items with the same value are drawn, and held out, together.
        label_scale: ``pass-fail``, ``1-5`` or ``0-1``; default what the labels tell.
        label_pass: the least label that is a pass, as it stands in the file; default the least that reaches the judge's
            threshold.
        folds: of the cross-validation that chooses a threshold.
        criterion: what the chosen threshold makes largest: ``balanced_accuracy`` (Youden's J), ``accuracy``, ``f1``, ``kappa``.
        concurrency: gradings under way at once.
        progress: a bar on standard error; default where that is a terminal.
        confidence, resamples, seed: of the intervals.

    Raises:
        ConfigError: something that cannot work.
    """
    need_numpy()
    if criterion not in CRITERIA:
        raise ConfigError(f"criterion {criterion!r} is not one of {', '.join(CRITERIA)}")
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise ConfigError(f"folds {folds!r}: held-out folds are at least 2")
    if judge.resolved_model() is None:
        judge.with_pinned_model()  # which says what is missing
    read = read_labels(labels, label_scale, cluster)
    return Plan(
        judge,
        read,
        _pass_mark(label_pass, read.scale, judge.threshold),
        repeats,
        order,
        folds,
        criterion,
        concurrency,
        progress,
        {"confidence": confidence, "resamples": resamples, "seed": seed},
    )


def _pass_mark(given: float | None, scale: LabelScale, threshold: float) -> float:
    """The least label, as a score, that is a pass."""
    if scale == "pass-fail":
        if given is not None:
            raise ConfigError("label_pass is for labels that are numbers; these are pass and fail")
        return 1.0
    if given is None:
        return threshold
    low, high = (1, 5) if scale == "1-5" else (0, 1)
    if not low <= given <= high:
        raise ConfigError(f"label_pass {given!r} is not from {low} to {high}, as the labels are")
    return (given - low) / (high - low)
