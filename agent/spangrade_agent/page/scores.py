"""One result, as a line that a person reads: verdict, number, why, and where it comes from."""

from collections.abc import Sequence
from typing import Final

from spangrade.model.outcome import Outcome
from spangrade.samples.explain import Finding
from spangrade_agent.page.markup import Html, element, joined
from spangrade_agent.page.records import PENDING, StoredResult, StoredSample
from spangrade_agent.page.why import why
from spangrade_agent.page.words import duration, long_text, number, share

#: With nothing to read but the word itself.
_QUIET: Final = (PENDING, Outcome.SKIPPED, Outcome.NOT_SAMPLED, Outcome.OVER_BUDGET)
_WORDS: Final = {
    PENDING: ("soft", "… pending"),
    Outcome.SKIPPED: ("soft", "skipped"),
    Outcome.NOT_SAMPLED: ("soft", "not sampled"),
    Outcome.OVER_BUDGET: ("soft", "over budget"),
    Outcome.ERROR: ("warn", "! error"),
    Outcome.TIMEOUT: ("warn", "! timeout"),
    Outcome.DROPPED: ("warn", "! dropped"),
}


def tone(results: Sequence[StoredResult]) -> str | None:
    """The worst that was said of a sample: ``fail``, ``warn``, ``pass``, or None where nobody gave a verdict."""
    if any(r.passed is False for r in results):
        return "fail"
    if any(r.outcome in (Outcome.ERROR, Outcome.TIMEOUT, Outcome.DROPPED) for r in results):
        return "warn"
    return "pass" if any(r.passed for r in results) else None


def score_list(sample: StoredSample, *, whole: bool) -> Html:
    """All results of a sample. ``whole``: with ids and details; otherwise those who gave nothing share one line."""
    results = sample.results
    shown = [r for r in results if whole or r.outcome not in _QUIET]
    quiet = [r for r in results if not whole and r.outcome in _QUIET]
    lines = [element("li", _one(r, sample, whole=whole)) for r in shown]
    if quiet:
        lines.append(
            element("li", element("p", [element("span", _quietly(r), class_="name") for r in quiet], class_="by"))
        )
    if not lines:
        return element("p", "No evaluator took this call.", class_="none")
    return element("ul", lines, class_="scores")


def _quietly(result: StoredResult) -> str:
    said = f"{result.name} {_WORDS[result.outcome][1].removeprefix('… ')}"
    if result.outcome == Outcome.SKIPPED and result.reason not in ("", "none"):
        return f"{said}, {result.reason}"
    always = result.probability is None or result.probability >= 1
    return said if always else f"{said}, {share(result.probability)}"


def _one(result: StoredResult, sample: StoredSample, *, whole: bool) -> Html:
    scored = result.outcome == Outcome.SCORED
    value = None if result.value is None else element("span", number(result.value), class_="num")
    line = element("div", element("span", result.name, class_="who name"), _chips(result), value, class_="line")
    said = result.explanation
    reason = why(result, sample) if whole and not said else None
    return joined(
        line,
        _bar(result) if scored else None,
        None
        if result.structured is None
        else element("div", long_text(result.structured, 160, code=True), class_="why"),
        None if not said else element("div", long_text(said, 4_000 if whole else 240), class_="why"),
        None if reason is None else finding_line(reason, [finding.fix for finding in sample.findings]),
        element("p", [element("span", part, class_="name") for part in _origin(result)], class_="by"),
        _details(result) if whole else None,
    )


def finding_line(finding: Finding, said: Sequence[str | None] = ()) -> Html:
    """What it says, and what would change it, unless that is ``said`` already."""
    fix = None if finding.fix is None or finding.fix in said else element("p", f"→ {finding.fix}", class_="by")
    return element("div", finding.says, fix, class_="why")


def _chips(result: StoredResult) -> list[Html]:
    if result.outcome != Outcome.SCORED:
        look, said = _WORDS.get(result.outcome, ("soft", result.outcome))
        chips = [element("span", said, class_=f"chip {look}")]
        what = result.error_type or result.reason
        if what and what not in (result.outcome, "none"):
            chips.append(element("span", what, class_="chip soft name"))
        return chips
    chips = []
    if result.passed is not None:
        look, said = ("pass", "✓ pass") if result.passed else ("fail", "✗ fail")
        chips.append(element("span", said, class_=f"chip {look}"))
    if result.label is not None and (result.passed is None or result.label not in ("pass", "fail")):
        chips.append(element("span", result.label, class_="chip soft name", dir="auto"))
    return chips


def _bar(result: StoredResult) -> Html | None:
    """The value between 0 and 1, with the threshold as a tick; none for other numbers, whose range nobody knows."""
    value, limit = result.value, result.threshold
    if value is None or not 0 <= value <= 1 or (limit is not None and not 0 <= limit <= 1):
        return None
    look = "" if result.passed is None else (" pass" if result.passed else " fail")
    parts = [element("rect", class_="track", width=100, height=7, rx=1)]
    parts.append(element("rect", class_="fill", width=f"{value * 100:.1f}", height=7, rx=1))
    if limit is not None:
        at = f"{limit * 100:.1f}"
        parts.append(element("line", class_="limit", x1=at, x2=at, y1=-2, y2=9))
    shape = {"viewBox": "0 0 100 7", "preserveAspectRatio": "none", "aria_hidden": "true"}
    return element("svg", parts, class_=f"bar{look}", **shape)


def _origin(result: StoredResult) -> list[str]:
    parts = [] if result.evaluator == result.name else [f"by {result.evaluator}"]
    parts.append("judge" if result.kind == "llm" else "metric" if result.kind == "code" else result.kind)
    if result.version:
        parts.append(f"version {result.version}")
    if result.threshold is not None:
        parts.append(f"passes at {number(result.threshold)} or {'less' if result.lower_is_better else 'more'}")
    if result.judge_model:
        parts.append(result.judge_model)
    if result.probability is not None:
        parts.append(share(result.probability))
    if result.duration_s is not None:
        parts.append(duration(result.duration_s))
    return parts


def _details(result: StoredResult) -> Html | None:
    rows = {
        "score id": result.score_id,
        "configuration": result.config_hash or None,
        "selection": result.selection_reason,
        "reason": None if result.reason in ("", "none", result.outcome) else result.reason,
        **{name.removeprefix("spangrade."): str(value) for name, value in result.details.items()},
    }
    parts = [(name, value) for name, value in rows.items() if value is not None]
    if not parts:
        return None
    return element("p", [element("span", name, " ", element("code", value)) for name, value in parts], class_="by")
