"""A comparison as a pandas DataFrame."""

from typing import TYPE_CHECKING, Any

from spangrade.errors import ConfigError
from spangrade.experiments.comparison import Comparison, ScoreComparison
from spangrade.experiments.comparison_table import notes

if TYPE_CHECKING:
    import pandas


def frame_of(comparison: "Comparison") -> "pandas.DataFrame":
    """See `Comparison.to_pandas`."""
    try:
        import pandas
    except ImportError as fault:
        raise ConfigError('to_pandas needs pandas: pip install "spangrade[experiments]"') from fault
    rows = [_comparison_row(row) for row in comparison.rows]
    return pandas.DataFrame(rows, columns=list(_comparison_row(ScoreComparison(""))))


def _comparison_row(row: ScoreComparison) -> dict[str, Any]:
    return {
        "score": row.name,
        "by": row.by,
        "slice": row.slice,
        "status": row.status,
        "reason": row.reason,
        "measure": row.measure,
        "mean_a": row.a.mean,
        "mean_b": row.b.mean,
        "delta": row.delta,
        "low": row.interval.low if row.interval else None,
        "high": row.interval.high if row.interval else None,
        "p_value": row.p_value,
        "p_adjusted": row.p_adjusted,
        "n": row.n,
        "up": row.up,
        "down": row.down,
        "same": row.same,
        "smallest_difference": row.smallest_difference,
        "shows": row.shows,
        "pass_rate_a": row.a.pass_rate,
        "pass_rate_b": row.b.pass_rate,
        "lost_a": sum(row.a.lost.values()),
        "lost_b": sum(row.b.lost.values()),
        "repeat_sd_a": row.a.repeat_sd,
        "repeat_sd_b": row.b.repeat_sd,
        "cautions": "; ".join(notes(row)),
    }
