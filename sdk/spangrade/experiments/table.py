"""Results as a table of plain text."""

from typing import TYPE_CHECKING

from spangrade.experiments.summary import ScoreSummary

if TYPE_CHECKING:
    from spangrade.experiments.results import Results

_HEAD = ("score", "n", "mean", "pass rate", "skipped", "errors", "timeouts")


def of(results: "Results") -> str:
    """A title, one line for each score name, and what went wrong."""
    run = results.run
    count = len({item.item_id for item in results.items})
    items = f"{count} item{'s' * (count != 1)}"
    runs = f"{len(results.items)} runs of {items}" if run.repeats > 1 else items
    title = f"{run.name}: {runs} of {run.dataset}, {run.duration_s:.1f} s" + (
        "  (interrupted)" if run.interrupted else ""
    )
    rows = [_HEAD, *(_row(line) for line in results.summary().values())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [title, *("  ".join(_cells(row, widths)).rstrip() for row in rows)]
    lines.insert(2, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    if results.failures:
        first = results.failures[0]
        assert first.error is not None
        share = f"{len(results.failures)} of {len(results.items)}"
        lines.append(
            f"the task failed in {share} runs, first on {first.item_id}: {first.error.type}: {first.error.message}"
        )
    return "\n".join(lines)


def _row(line: ScoreSummary) -> tuple[str, ...]:
    return (
        line.name,
        str(line.n),
        "-" if line.mean is None else f"{line.mean:.4g}",
        "-" if line.pass_rate is None else f"{line.pass_rate:.1%}",
        str(line.skipped),
        str(line.errors),
        str(line.timeouts),
    )


def _cells(row: tuple[str, ...], widths: list[int]) -> list[str]:
    return [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
