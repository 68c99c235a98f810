"""A judge's grades beside people's labels: every figure of a calibration."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spangrade.experiments.calibration import agreement
from spangrade.experiments.calibration.agreement import Weights, cohen_kappa
from spangrade.experiments.calibration.bootstrap import kappa_interval
from spangrade.experiments.calibration.judging import (
    Grade,
    Round,
)
from spangrade.experiments.calibration.labels import Labelled, LabelScale, shown
from spangrade.experiments.calibration.result import Annotators, Calibration, Confusion, Figure
from spangrade.experiments.calibration.stability import Order, order_stability, retest_stability
from spangrade.experiments.calibration.threshold import Verdicts, choose, rates_at
from spangrade.experiments.stats import mean_interval, rate_interval

if TYPE_CHECKING:
    from spangrade.experiments.calibration.calibrating import Plan

_MOST_CATEGORIES = 12  # a confusion matrix with more is read by nobody
_NO_ORDER = "not applicable: the judge is shown neither several documents nor several examples"


@dataclass(frozen=True, slots=True)
class _Pair:
    """One grading beside people's label."""

    grade: Grade
    value: float
    unit: Hashable


def compared(plan: "Plan", first: Round, turned: Mapping[str, Round]) -> Calibration:
    """What gradings and labels tell together. ``first``: all items, as they are; ``turned``: what was asked again in another order."""
    judge, labels, how = plan.judge, plan.labels, plan.how
    rows = {row.item["item_id"]: row for row in labels.usable}
    pairs = [_Pair(grade, _counts(rows[grade.item_id]), rows[grade.item_id].cluster) for grade in first.grades]
    by_level = judge.scale != "binary" and labels.scale != "pass-fail"
    weights: Weights = "quadratic" if by_level else None
    units = [pair.unit for pair in pairs]
    unit_of = {item_id: row.cluster for item_id, row in rows.items()}
    judged = [pair.grade.passed for pair in pairs]
    human = [pair.value >= plan.label_pass for pair in pairs]
    verdict_agreement = _rate([j == h for j, h in zip(judged, human, strict=True)], units, how)
    verdict_kappa = Figure(cohen_kappa(judged, human), kappa_interval(judged, human, units, **how))
    scores, values = [pair.grade.score for pair in pairs], [pair.value for pair in pairs]
    exact, kappa, level_kappa = verdict_agreement, verdict_kappa, None
    if by_level:
        exact = _rate([s == v for s, v in zip(scores, values, strict=True)], units, how)
        kappa = Figure(cohen_kappa(scores, values, weights), kappa_interval(scores, values, units, weights, **how))
    if by_level and labels.scale == "1-5":  # of numbers that are no levels nearly every one is a grade of its own
        level_kappa = Figure(cohen_kappa(scores, values), kappa_interval(scores, values, units, **how))
    verdicts = Verdicts(tuple(scores), tuple(human), tuple(units))
    choice = (
        choose(verdicts, judge.threshold, plan.criterion, plan.folds, **how) if judge.scale != "binary" else _BINARY
    )
    level_weights: Weights = None if judge.scale == "binary" else "quadratic"
    people = {i: _counts(row) if by_level else float(_counts(row) >= plan.label_pass) for i, row in rows.items()}
    rounds = (first, *turned.values())
    return Calibration(
        judge=judge.name,
        config_hash=judge.info.config_hash,
        scale=judge.scale,
        threshold=judge.threshold,
        models=tuple(dict.fromkeys(model for one in rounds for model in one.models)),
        labels=labels.name,
        labels_hash=labels.hash,
        label_scale=labels.scale,
        label_pass=plan.label_pass,
        items=len(labels.rows),
        unlabelled=labels.unlabelled,
        split=labels.split,
        repeats=plan.repeats,
        gradings=len(rows) * plan.repeats,
        n=len(pairs),
        errors=first.errors,
        error_messages=first.first,
        clusters=len(set(units)),
        input_tokens=_total([one.input_tokens for one in rounds]),
        output_tokens=_total([one.output_tokens for one in rounds]),
        agreement=exact,
        kappa=kappa,
        weights=weights,
        level_kappa=level_kappa,
        verdict_agreement=verdict_agreement,
        verdict_kappa=verdict_kappa,
        bias=_mean([s - v for s, v in zip(scores, values, strict=True)], units, how) if by_level else None,
        confusion=_confusion(plan, pairs, judged, human),
        order=_orders(first, turned, people, unit_of, level_weights, weights, how),
        order_note=None if turned else _NO_ORDER if plan.order else "not asked for",
        cached=sum(one.cached for one in rounds),
        retest=retest_stability(first.grades, plan.repeats, unit_of, level_weights, how) if plan.repeats > 1 else None,
        annotators=_annotators(plan, first.grades, by_level),
        choice=None if isinstance(choice, str) else choice,
        choice_note=choice if isinstance(choice, str) else None,
        rates=rates_at(verdicts, judge.threshold, **how),
    )


_BINARY = "the judge says pass or fail, so every threshold above 0 is the same; scale '1-5' has one to choose"


def _counts(row: Labelled) -> float:
    assert row.value is not None  # of the usable rows
    return row.value


def _rate(hits: Sequence[bool], units: Sequence[Hashable], how: Mapping[str, Any]) -> Figure:
    if not hits:
        return Figure(None)
    return Figure(sum(hits) / len(hits), rate_interval([float(hit) for hit in hits], units, **how))


def _mean(values: Sequence[float], units: Sequence[Hashable], how: Mapping[str, Any]) -> Figure:
    return Figure(sum(values) / len(values), mean_interval(values, units, **how)) if values else Figure(None)


def _orders(
    first: Round,
    turned: Mapping[str, Round],
    people: Mapping[str, float],
    units: Mapping[str, Hashable],
    weights: Weights,
    human_weights: Weights,
    how: Mapping[str, Any],
) -> tuple[Order, ...]:
    return tuple(
        order_stability(what, first.grades, one.grades, people, units, weights, human_weights, one.errors, how)
        for what, one in turned.items()
    )


def _annotators(plan: "Plan", grades: Sequence[Grade], by_level: bool) -> Annotators | None:
    """Of each annotator the labels of all rows; the judge's are those of its first grading of each."""
    names = plan.labels.annotators
    if len(names) < 2:
        return None
    all_rows = plan.labels.rows
    level: agreement.Level = "nominal" if not by_level else "ordinal" if plan.labels.scale == "1-5" else "interval"
    weights: Weights = "quadratic" if by_level else None

    def said(value: float | None) -> float | None:
        return value if by_level or value is None else float(value >= plan.label_pass)

    people = [[said(row.annotators.get(name)) for row in all_rows] for name in names]
    judged = {grade.item_id: grade.score if by_level else float(grade.passed) for grade in grades if grade.repeat == 0}
    judge = [judged.get(row.item["item_id"]) for row in all_rows]
    pairs = agreement.pairwise_kappas([*people, judge], weights)
    among = [kappa for (_, j), (kappa, _) in pairs.items() if j < len(names) and kappa is not None]
    return Annotators(
        names=names,
        alpha=agreement.krippendorff_alpha(people, level),
        alpha_with_judge=agreement.krippendorff_alpha([*people, judge], level),
        level=level,
        kappa_among=sum(among) / len(among) if among else None,
        kappa_judge={name: pairs[i, len(names)] for i, name in enumerate(names)},
    )


def _confusion(plan: "Plan", pairs: Sequence[_Pair], judged: Sequence[bool], human: Sequence[bool]) -> Confusion:
    """By levels where there are few; else by verdicts."""
    judge_scale: LabelScale = "pass-fail" if plan.judge.scale == "binary" else "1-5"
    label_scale = plan.labels.scale
    if len({pair.value for pair in pairs}) > _MOST_CATEGORIES:
        said = [(float(h), float(j)) for h, j in zip(human, judged, strict=True)]
        label_scale, judge_scale = "pass-fail", "pass-fail"
    else:
        said = [(pair.value, pair.grade.score) for pair in pairs]
    people, graded_as = _levels(label_scale, [h for h, _ in said]), _levels(judge_scale, [j for _, j in said])
    counts = tuple(tuple(said.count((h, j)) for j in graded_as) for h in people)
    return Confusion(
        tuple(shown(h, label_scale) for h in people), tuple(shown(j, judge_scale) for j in graded_as), counts
    )


def _levels(scale: str, values: Sequence[float]) -> list[float]:
    """All levels of a scale that has them; else those that were given."""
    if scale == "pass-fail":
        return [0.0, 1.0]
    return [0.0, 0.25, 0.5, 0.75, 1.0] if scale == "1-5" else sorted(set(values))


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
