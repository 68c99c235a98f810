"""A comparison as a table of plain text."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from spangrade.experiments.comparison import Comparison, ScoreComparison, Side

_HEAD: Final = ("score", "a", "b", "delta", "95 % interval", "pairs", "shows", "detectable")
_MOST_ROWS: Final = 60


def of(comparison: "Comparison") -> str:
    """A title, a line for each score and slice, then what to bear in mind (of slices `notes` has it, and the JSON)."""
    a, b = comparison.a.run, comparison.b.run
    units = f"{comparison.items:,} items" + (
        f" in {comparison.clusters:,} clusters ({comparison.cluster})" if comparison.clusters is not None else ""
    )
    title = f"a: {a.name} ({a.dataset})   b: {b.name} ({b.dataset})   {units}; delta is b - a"
    head = (*_HEAD[:4], f"{100 * comparison.confidence:.4g} % interval", *_HEAD[5:])
    shown = comparison.rows[:_MOST_ROWS]
    rows = [cells(row) for row in shown]
    table = [head, *(row for row in rows if len(row) == len(head))]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    widths[0] = max(widths[0], *(len(row[0]) for row in rows), 0)
    lines = [title, _line(head, widths), "-" * (sum(widths) + 2 * (len(widths) - 1))]
    for row in rows:
        lines.append(_line(row, widths) if len(row) == len(head) else f"{row[0].ljust(widths[0])}  {row[1]}")
    if len(comparison.rows) > len(shown):
        lines.append(f"... {len(comparison.rows) - len(shown):,} more rows: to_pandas() and to_json() have them all")
    lines += [f"! {warning}" for warning in comparison.warnings]
    lines += [f"! {row.name}: {note}" for row in comparison.rows if row.by is None for note in notes(row)]
    if any(row.smallest_difference is not None for row in shown):
        lines.append(
            "detectable: the smallest true difference that so many pairs would show in 4 of 5 such experiments"
        )
    if any(row.interval is not None and row.interval.caution for row in shown):
        lines.append(
            "?: an interval that should not be relied on, since few items, or few that differ, stand behind it"
        )
    return "\n".join(lines)


def cells(row: "ScoreComparison") -> tuple[str, ...]:
    """The row's cells, or its name and why it has no figures."""
    indent = "  " if row.by is not None else ""
    name = indent + (f"{row.by}={row.slice}" if row.by is not None else row.name)
    if row.delta is None or row.interval is None:
        return name, f"{row.status}: {row.reason}{_sides(row)}"
    return (
        name,
        figure(row.a.mean),
        figure(row.b.mean),
        signed(row.delta),
        interval(row),
        str(row.n),
        row.shows or "-",
        "-" if row.smallest_difference is None else figure(row.smallest_difference),
    )


def notes(row: "ScoreComparison") -> list[str]:
    """A row's cautions, its interval's among them, items without a score, and how far repeats lie apart."""
    said = [f"interval unreliable, {row.interval.caution}"] if row.interval is not None and row.interval.caution else []
    if row.status == "compared" and (row.a.lost or row.b.lost):
        said.append(
            "; ".join(f"without a score in {name}: {lost(side)}" for name, side in (("a", row.a), ("b", row.b)))
        )
    said += row.cautions
    spread = [
        f"{figure(side.repeat_sd)} in {name}"
        for name, side in (("a", row.a), ("b", row.b))
        if side.repeat_sd is not None
    ]
    if spread:
        said.append(f"repeats of one item lie {' and '.join(spread)} apart (standard deviation)")
    return said


def lost(side: "Side") -> str:
    """How many items have no score, by reason."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(side.lost.items())) or "none"


def interval(row: "ScoreComparison") -> str:
    """``low to high``, marked where it should not be relied on."""
    if row.interval is None or row.interval.low is None or row.interval.high is None:
        return "-"
    return f"{signed(row.interval.low)} to {signed(row.interval.high)}" + ("?" if row.interval.caution else "")


def figure(value: float | None) -> str:
    """Four digits."""
    return "-" if value is None else f"{value:.4g}"


def signed(value: float) -> str:
    """With its sign; 0 has none."""
    text = f"{value:+.3g}"
    return "0" if float(text) == 0 else text


def _sides(row: "ScoreComparison") -> str:
    means = [
        f"mean {figure(side.mean)} in {name}" for name, side in (("a", row.a), ("b", row.b)) if side.mean is not None
    ]
    return f" ({', '.join(means)})" if means else ""


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    aligned = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:6], widths[1:6], strict=True))]
    aligned += [row[6].ljust(widths[6]), row[7].rjust(widths[7])]
    return "  ".join(aligned).rstrip()
