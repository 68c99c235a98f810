"""Every pair's difference, sorted: whether all moved a little or a few moved far."""

from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from spangrade.experiments.comparison_table import signed
from spangrade.experiments.report.svg import element, line, picture

if TYPE_CHECKING:
    from spangrade.experiments.comparison import ScoreComparison

_WIDTH: Final = 340.0
_HEIGHT: Final = 150.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 8.0, 10.0, 10.0
_MOST_BARS: Final = 280


def differences(row: "ScoreComparison") -> Markup:
    """One bar for each pair, the largest fall first; of more than 280 pairs, evenly spaced ones."""
    ordered = sorted(pair.delta for pair in row.pairs)
    shown = ordered
    if len(ordered) > _MOST_BARS:
        shown = [ordered[round(i * (len(ordered) - 1) / (_MOST_BARS - 1))] for i in range(_MOST_BARS)]
    low, high = min(0.0, ordered[0]), max(0.0, ordered[-1])
    if low == high:
        low, high = -1.0, 1.0
    across, up = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def y(value: float) -> float:
        return _TOP + (high - value) / (high - low) * up

    step = across / len(shown)
    gap = min(1.0, step / 4)
    bars = [
        element(
            "rect",
            x=_LEFT + index * step + gap / 2,
            y=min(y(value), y(0.0)),
            width=step - gap,
            height=max(abs(y(value) - y(0.0)), 0.75),
            class_=_look(row, value),
        )
        for index, value in enumerate(shown)
    ]
    marks = [line(_LEFT, y(0.0), _WIDTH - _RIGHT, y(0.0), "axis")]
    for value in {low, 0.0, high}:
        marks.append(element("text", signed(value), x=_LEFT - 6, y=y(value) + 4, text_anchor="end"))
    if row.delta is not None:
        marks.append(line(_LEFT, y(row.delta), _WIDTH - _RIGHT, y(row.delta), "limit"))
    return picture(f"Differences of {row.name}", said(row), bars, marks, width=_WIDTH, height=_HEIGHT)


def said(row: "ScoreComparison") -> str:
    """The picture in words."""
    words = "rose", "fell"
    if row.verdict:
        better_up = not (row.lower_is_better and row.measure == "value")
        words = ("better", "worse") if better_up else ("worse", "better")
    parts = [f"{row.n:,} pairs: {row.up:,} {words[0]} (up), {row.down:,} {words[1]} (down), {row.same:,} the same"]
    parts.append(f"mean {signed(row.delta or 0.0)} (dashed)")
    if row.n > _MOST_BARS:
        parts.append(f"{_MOST_BARS} of them drawn, evenly spaced")
    return "; ".join(parts)


def _look(row: "ScoreComparison", value: float) -> str:
    if not row.verdict or value == 0:
        return "calm"
    return "pass" if (value > 0) is not (row.lower_is_better and row.measure == "value") else "fail"
