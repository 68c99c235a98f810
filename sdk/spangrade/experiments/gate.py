"""A gate for CI: limits that results have to reach, and a sentence for each that says whether they do."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.experiments.results import Results
from spangrade.experiments.summary import ScoreSummary

_RATE: Final = ".pass_rate"
_ROUNDING: Final = 1e-9  # ten times 0.7 may be a hair less than 7


@dataclass(frozen=True, slots=True)
class Limit:
    """What a score has to reach.

    Attributes:
        name: the score's; None: every score that has a verdict.
        least: its mean (``lower_is_better``: at most so much), or its pass rate.
        rate: whether the pass rate is meant. It is where ``name`` is None, and where the score has no numbers.
    """

    name: str | None
    least: float
    rate: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One limit, met or not: ``sentence`` says by what."""

    name: str
    met: bool
    sentence: str


def limits_of(given: Iterable[str] | Mapping[str, float] | float | None) -> list[Limit]:
    """Limits from texts (``0.9``: every pass rate; ``overlap=0.8``: a mean; ``overlap.pass_rate=0.9``), a mapping of such
    names to numbers, or one number.

    Raises:
        ConfigError: one that is no number, or a pass rate that is no share.
    """
    if given is None:
        return []
    if isinstance(given, (int, float)):
        return [_limit(None, given)]
    if isinstance(given, Mapping):
        return [_limit(name, least) for name, least in given.items()]
    limits = []
    for text in [given] if isinstance(given, str) else given:
        name, _, number = str(text).rpartition("=")
        limits.append(_limit(name.strip() or None, number))
    return limits


def _limit(name: str | None, given: Any) -> Limit:
    rate = name is None or name.endswith(_RATE)
    said = f"fail-under {name}={given}" if name is not None else f"fail-under {given}"
    try:
        least = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        least = math.nan
    if not math.isfinite(least):
        raise ConfigError(f"{said} is no limit; write a pass rate such as 0.9, or NAME=0.8 for the mean of a score")
    if rate and not 0 <= least <= 1:
        raise ConfigError(f"{said}: a pass rate is a share from 0 to 1, such as {min(least / 100, 1):g}")
    return Limit(name.removesuffix(_RATE) if name is not None else None, least, rate)


def findings(results: Results, limits: Iterable[Limit], max_error_rate: float = 0.0) -> list[Finding]:
    """Whether the results reach each limit.

    In a pass rate errors, time-outs and failed tasks count as not passed, and what was skipped does not count. A mean is of
    what was scored, so it is believed only if at most ``max_error_rate`` of the runs failed. A score that was never given
    meets no limit, and nor do results without any run.
    """
    found: list[Finding] = []
    for limit in limits:
        if limit.name is None:
            found += _every_rate(results, limit.least)
        else:
            found.append(_one(results, limit, max_error_rate))
    return found


def _every_rate(results: Results, least: float) -> list[Finding]:
    found = []
    for name, line in results.summary().items():
        if line.passed + line.failed or (not line.n and results.evaluator(name).verdict):
            found.append(_rate(results, name, line, least))
    return found or [Finding("", False, "no score has a verdict, so there is no pass rate")]


def _one(results: Results, limit: Limit, max_error_rate: float) -> Finding:
    name = str(limit.name)
    line = results.summary().get(name)
    if line is None:
        there = ", ".join(results.names()) or "none"
        return Finding(name, False, f"{name} was never scored: there is no score of that name (there are {there})")
    if limit.rate:
        return _rate(results, name, line, limit.least)
    if not line.n:
        return Finding(name, False, _never(results, name, line))
    if line.mean is None:
        if line.passed + line.failed:
            return _rate(results, name, line, limit.least)
        return Finding(
            name, False, f"{name} has neither numbers nor verdicts, only labels: it cannot reach {limit.least:g}"
        )
    failed = line.errors + line.timeouts + line.not_run
    runs = line.n + line.skipped + failed
    if failed > max_error_rate * runs:
        why = _failures(line)
        return Finding(
            name, False, f"{name} is known of {line.n} of {runs} runs only: {why} (--max-error-rate allows some)"
        )
    if results.evaluator(name).lower_is_better:
        met, word = line.mean <= limit.least + _ROUNDING, "above"
    else:
        met, word = line.mean >= limit.least - _ROUNDING, "under"
    said = "reaches" if met else f"is {word}"
    return Finding(name, met, f"{name}: mean {line.mean:.4g} {said} {limit.least:g} (n={line.n})")


def _rate(results: Results, name: str, line: ScoreSummary, least: float) -> Finding:
    failed = line.errors + line.timeouts + line.not_run
    counted = line.passed + line.failed + failed
    if not line.n:
        return Finding(name, False, _never(results, name, line))
    if not line.passed + line.failed:
        return Finding(name, False, f"{name} has no verdicts, so it has no pass rate")
    rate = line.passed / counted
    met = rate >= least - _ROUNDING
    also = f", {_failures(line)} counted as not passed" if failed else ""
    said = "reaches" if met else "is under"
    return Finding(name, met, f"{name}: pass rate {rate:.1%} ({line.passed} of {counted}{also}) {said} {least:.1%}")


def _never(results: Results, name: str, line: ScoreSummary) -> str:
    reasons = dict.fromkeys(score.reason for score in results.scores(name) if score.reason)
    why = [part for part in (f"{line.skipped} skipped" if line.skipped else "", _failures(line)) if part]
    because = f": {', '.join(why)}" if why else ""
    return f"{name} was never scored{because}" + (f" ({'; '.join(list(reasons)[:3])})" if reasons else "")


def _failures(line: ScoreSummary) -> str:
    counts = ((line.errors, "errors"), (line.timeouts, "time-outs"), (line.not_run, "failed tasks"))
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def worse_than_baseline(results: Results) -> list[str]:
    """A sentence for each score that the comparison shows to be worse; none without a baseline."""
    if results.comparison is None:
        return []
    return [
        f"{one.name} is worse than in the baseline: {_number(one.a.mean)} → {_number(one.b.mean)} over {one.n} items"
        for one in results.comparison.worse
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def worst(results: Results, shown: int = 10) -> list[str]:
    """The runs that did not pass, one line each, those with an error first: item, input, output, score and explanation."""
    lines = []
    for item in results.items:
        where = item.item_id if results.run.repeats == 1 else f"{item.item_id} (repeat {item.repeat})"
        asked = f"{where}  {_short(item.input)}"
        if item.error is not None:
            lines.append((0, f"{asked}\n    task failed: {item.error.type}: {_short(item.error.message, 300)}"))
            continue
        bad = [score for score in item.scores if score.failed or score.passed is False]
        if bad:
            said = [f"{asked} → {_short(item.output)}"]
            said += [f"    {_score(score)}" for score in bad]
            lines.append((1, "\n".join(said)))
    lines.sort(key=lambda line: line[0])
    more = [f"... and {len(lines) - shown} more"] if len(lines) > shown else []
    return [line for _, line in lines[:shown]] + more


def _score(score: Any) -> str:
    if score.failed:
        return f"{score.name}: {score.outcome} {score.error_type}: {_short(score.reason, 300)}"
    value = score.label if score.value is None else f"{score.value:.4g}"
    label = f" ({score.label})" if score.label and score.value is not None else ""
    return f"{score.name}: {value}{label}" + (f": {_short(score.explanation, 300)}" if score.explanation else "")


def _short(value: Any, limit: int = 80) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
