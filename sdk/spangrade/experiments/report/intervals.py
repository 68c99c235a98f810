"""Means, rates and differences as a dot on a line, with their intervals: one strip for each table row."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from markupsafe import Markup

from spangrade.experiments.comparison_table import figure, interval, signed
from spangrade.experiments.report.svg import element, line, strip

if TYPE_CHECKING:
    from spangrade.experiments.comparison import ScoreComparison
    from spangrade.experiments.stats import Interval


def rate_strip(name: str, rate: float, within: "Interval") -> Markup:
    """A pass rate as a bar from 0 to 1, its interval as a line."""
    parts = [
        element("rect", x=0, y=6, width=100, height=8, class_="track"),
        element("rect", x=0, y=6, width=100 * rate, height=8, class_="pass"),
    ]
    if within.low is not None and within.high is not None:
        parts += _whiskers(100 * within.low, 100 * within.high, "ink")
    return strip(f"{name}: pass rate {rate:.1%}, {percent(within)}", *parts)


def share_strip(name: str, share: float) -> Markup:
    """How large a part, as a bar."""
    track = element("rect", x=0, y=6, width=100, height=8, class_="track")
    return strip(f"{name}: {share:.1%}", track, element("rect", x=0, y=6, width=100 * share, height=8, class_="calm"))


def reach(rows: "Iterable[ScoreComparison]") -> float:
    """How far from 0 the intervals of these rows go: they share one scale."""
    ends = [
        abs(end) for row in rows if row.interval for end in (row.interval.low, row.interval.high) if end is not None
    ]
    deltas = [abs(row.delta) for row in rows if row.delta is not None]
    return max([*ends, *deltas, 1e-12])


def difference_strip(row: "ScoreComparison", far: float) -> Markup | None:
    """A difference as a dot with its interval; 0 in the middle, ``far`` at both edges."""
    if row.delta is None or row.interval is None:
        return None

    def at(value: float) -> float:
        return 50 + 46 * value / far

    look = {"better": "pass", "worse": "fail"}.get(row.shows or "", "ink")
    parts = [line(50, 0, 50, 20, "zero")]
    if row.interval.low is not None and row.interval.high is not None:
        parts += _whiskers(at(row.interval.low), at(row.interval.high), look)
    parts.append(line(at(row.delta), 10, at(row.delta), 10, f"dot {look}"))
    name = row.name if row.by is None else f"{row.name}, {row.by}={row.slice}"
    return strip(f"{name}: {signed(row.delta)}, {interval(row)}, {row.shows}", *parts)


def percent(within: "Interval") -> str:
    """An interval of a rate in words."""
    if within.low is None or within.high is None:
        return "no interval"
    return f"{within.low:.1%} to {within.high:.1%}{'?' if within.caution else ''}"


def plain(within: "Interval") -> str:
    """An interval of a mean in words."""
    if within.low is None or within.high is None:
        return "no interval"
    return f"{figure(within.low)} to {figure(within.high)}{'?' if within.caution else ''}"


def _whiskers(low: float, high: float, look: str) -> list[Markup]:
    return [
        line(low, 10, high, 10, f"span {look}"),
        line(low, 6, low, 14, f"span {look}"),
        line(high, 6, high, 14, f"span {look}"),
    ]
