"""What was said of one run of an item, as the page shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spangrade.experiments.comparison_table import figure
from spangrade.experiments.records import EvaluatorRecord, ItemResult, ScoreResult
from spangrade.experiments.report.texts import Text, text_of
from spangrade.model.outcome import Outcome
from spangrade.model.score import Rule

if TYPE_CHECKING:
    from spangrade.experiments.results import Results


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """One score: its words, and the look that goes with them (the words say it too)."""

    name: str
    look: str
    verdict: str
    value: str
    label: str
    why: Text | None
    origin: str


def score_line(score: ScoreResult, record: EvaluatorRecord | None) -> ScoreLine:
    """A score in words."""
    record = record and record.ruled(score.rule)
    _, look, verdict = ends(score)
    label = score.label or ""
    why = score.explanation if score.outcome is Outcome.SCORED else score.reason
    said = text_of(why)
    if score.structured is not None:
        said = text_of({"value": score.structured, "explanation": why} if why else score.structured)
    return ScoreLine(
        name=score.name,
        look=look,
        verdict=verdict,
        value="" if score.value is None else figure(score.value),
        label="" if label in ("pass", "fail") and score.passed is not None else label or score.error_type or "",
        why=said,
        origin=_origin(score, record),
    )


def ends(score: ScoreResult) -> tuple[str, str, str]:
    """How a score ended: its word in the filter, its look, and how it reads."""
    if score.outcome is not Outcome.SCORED:
        return (
            ("skipped", "soft", "skipped")
            if score.outcome is Outcome.SKIPPED
            else ("error", "warn", f"! {score.outcome}")
        )
    if score.passed is None:
        return "none", "soft", ""
    return ("pass", "pass", "✓ pass") if score.passed else ("fail", "fail", "✗ fail")


def tone(item: ItemResult) -> str:
    """The worst that was said of a run."""
    found = [ends(score)[0] for score in item.scores]
    if item.error is not None or "error" in found:
        return "warn" if "fail" not in found else "fail"
    return "fail" if "fail" in found else "pass" if "pass" in found else ""


def badness(results: "Results") -> dict[int, tuple[float, ...]]:
    """For each run by its place: what to sort by, the worst first. Failed tasks, then failures and failed verdicts, then low ranks."""
    records = {record.key: record for record in results.evaluators}
    by_name: dict[tuple[str, str], list[tuple[float, int]]] = {}
    rules: dict[tuple[str, str], Rule | None] = {}
    for place, item in enumerate(results.items):
        for score in item.scores:
            if score.value is not None:
                by_name.setdefault((score.name, score.evaluator), []).append((score.value, place))
                rules.setdefault((score.name, score.evaluator), score.rule)
    ranks: dict[int, list[float]] = {}
    for (name, key), placed in by_name.items():
        record = records.get(key)
        record = None if record is None else record.ruled(rules.get((name, key)))
        if record is not None and not record.verdict:
            continue
        sign = -1.0 if record is not None and record.lower_is_better else 1.0
        first: dict[float, int] = {}
        for rank, (value, place) in enumerate(sorted(placed, key=lambda one: sign * one[0])):
            ranks.setdefault(place, []).append(first.setdefault(value, rank) / len(placed))
    found: dict[int, tuple[float, ...]] = {}
    for place, item in enumerate(results.items):
        outcomes = [ends(score)[0] for score in item.scores]
        mine = ranks.get(place, [])
        found[place] = (
            0.0 if item.error is not None else 1.0,
            -float(outcomes.count("error") + outcomes.count("fail")),
            sum(mine) / len(mine) if mine else 1.0,
        )
    return found


def places(results: "Results") -> dict[tuple[str, str], list[int]]:
    """Where the scores of a name and evaluator stand among the results' names.

    An evaluator of several scores that failed as a whole did so under its own name, and for all of them.
    """
    found: dict[tuple[str, str], list[int]] = {}
    whole: dict[str, list[int]] = {}
    for place, line in enumerate(results.summary().values()):
        found[line.score, line.evaluator] = [place]
        whole.setdefault(line.evaluator, []).append(place)
    for record in results.evaluators:
        found.setdefault((record.name, record.key), whole.get(record.key, []))
    return found


def tokens(item: ItemResult, at: Mapping[tuple[str, str], Sequence[int]]) -> str:
    """What the page's filter looks at: ``0:pass 2:error``, the scores by their place among the names."""
    if item.error is not None:
        return " ".join(f"{place}:error" for place in sorted({place for some in at.values() for place in some}))
    found = ((place, ends(score)[0]) for score in item.scores for place in at.get((score.name, score.evaluator), ()))
    return " ".join(f"{place}:{outcome}" for place, outcome in found)


def _origin(score: ScoreResult, record: EvaluatorRecord | None) -> str:
    parts = []
    if record is not None:
        if record.name != score.name:
            parts.append(f"by {record.name}")
        parts.append("judge" if record.kind == "llm" else "metric")
        if record.version is not None:
            parts.append(f"version {record.version}")
        if record.threshold is not None:
            parts.append(f"passes at {figure(record.threshold)} or {'less' if record.lower_is_better else 'more'}")
    if score.path:
        parts.append(f"in {score.path}")
    model = score.details.get("spangrade.judge.model")
    if model:
        parts.append(str(model))
    if score.duration_s is not None:
        parts.append(f"{score.duration_s * 1000:.3g} ms" if score.duration_s < 1 else f"{score.duration_s:.3g} s")
    return " · ".join(parts)
