"""How the values of one score are spread."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from spangrade.experiments.comparison_table import figure
from spangrade.experiments.report.svg import element, line, picture

_WIDTH: Final = 340.0
_HEIGHT: Final = 150.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, 8.0, 12.0, 22.0
_BINS: Final = 20
_TWO: Final = 2  # values that are all 0 or 1
_LOOKS: Final = ((False, "fail"), (None, "calm"), (True, "pass"))


@dataclass(frozen=True, slots=True)
class Spread:
    """Values with their verdicts, and the mark they passed or failed by."""

    name: str
    values: Sequence[tuple[float, bool | None]]
    threshold: float | None = None
    lower_is_better: bool = False


def histogram(spread: Spread) -> Markup:
    """Bars of equal width; stacked by verdict, with the threshold as a line."""
    numbers = [value for value, _ in spread.values]
    low, high = _range(numbers, spread.threshold)
    count = _TWO if set(numbers) <= {0.0, 1.0} else _BINS
    bins: list[dict[bool | None, int]] = [{} for _ in range(count)]
    for value, passed in spread.values:
        place = bins[min(count - 1, int((value - low) / (high - low) * count))]
        place[passed] = place.get(passed, 0) + 1
    tallest = max(sum(place.values()) for place in bins)
    across, up = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    base = _HEIGHT - _BOTTOM
    width = across / count
    gap = 1.5 if count == _BINS else width / 2
    bars = []
    for index, place in enumerate(bins):
        y = base
        for verdict, look in _LOOKS:
            tall = up * place.get(verdict, 0) / tallest
            if tall:
                y -= tall
                bars.append(
                    element("rect", x=_LEFT + index * width + gap / 2, y=y, width=width - gap, height=tall, class_=look)
                )
    marks = [line(_LEFT, base, _WIDTH - _RIGHT, base, "axis")]
    if count == _TWO:
        ticks = [(_LEFT + across / 4, "0", "middle"), (_LEFT + 3 * across / 4, "1", "middle")]
    else:
        middle = figure((low + high) / 2)
        ticks = [
            (_LEFT, figure(low), "start"),
            (_LEFT + across / 2, middle, "middle"),
            (_LEFT + across, figure(high), "end"),
        ]
    for x, said_there, anchor in ticks:
        marks.append(element("text", said_there, x=x, y=base + 15, text_anchor=anchor))
    marks.append(element("text", str(tallest), x=_LEFT - 6, y=_TOP + 8, text_anchor="end"))
    marks.append(element("text", "0", x=_LEFT - 6, y=base, text_anchor="end"))
    if spread.threshold is not None and count != _TWO:
        x = _LEFT + (spread.threshold - low) / (high - low) * across
        marks.append(line(x, _TOP - 6, x, base, "limit"))
    return picture(f"Distribution of {spread.name}", said(spread), bars, marks, width=_WIDTH, height=_HEIGHT)


def said(spread: Spread) -> str:
    """The picture in words."""
    ordered = sorted(value for value, _ in spread.values)
    n = len(ordered)
    passed = sum(verdict is True for _, verdict in spread.values)
    failed = sum(verdict is False for _, verdict in spread.values)
    parts = [f"{n:,} value{'s' if n != 1 else ''}"]
    if ordered[0] == ordered[-1]:
        parts[0] += f", {'all' if n > 1 else 'it is'} {figure(ordered[0])}"
    elif set(ordered) == {0.0, 1.0}:
        parts[0] += f": {ordered.count(1.0):,} of 1, {ordered.count(0.0):,} of 0"
    else:
        parts[0] += f" from {figure(ordered[0])} to {figure(ordered[-1])}"
        parts.append(f"half of them between {figure(ordered[n // 4])} and {figure(ordered[(3 * n - 1) // 4])}")
    if passed or failed:
        parts.append(f"{passed:,} pass, {failed:,} fail")
    if spread.threshold is not None:
        parts.append(f"passes at {figure(spread.threshold)} or {'less' if spread.lower_is_better else 'more'}")
    return "; ".join(parts)


def _range(numbers: Sequence[float], threshold: float | None) -> tuple[float, float]:
    shown = [*numbers, *([threshold] if threshold is not None else [])]
    low, high = min(shown), max(shown)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        return low - 0.5, high + 0.5
    return low, high
