"""`Comparison`: what `spangrade.compare` returns."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from spangrade._values import dumps
from spangrade.experiments import comparison_table
from spangrade.experiments.defaults import CONFIDENCE, RESAMPLES, SEED
from spangrade.experiments.results import Results, write_whole
from spangrade.experiments.stats import Interval
from spangrade.model.sample import FrozenDict

if TYPE_CHECKING:
    import pandas

FORMAT: Final = 1

Status = Literal["compared", "config mismatch", "labels only", "no pairs", "only in a", "only in b"]
Verdict = Literal["better", "worse", "higher", "lower", "no difference shown"]


@dataclass(frozen=True, slots=True)
class Pair:
    """One item that has a number on both sides."""

    item_id: str
    a: float
    b: float

    @property
    def delta(self) -> float:
        """b - a, 0 where only rounding tells them apart."""
        difference = self.b - self.a
        return 0.0 if abs(difference) <= 1e-12 * max(abs(self.a), abs(self.b)) else difference


@dataclass(frozen=True, slots=True)
class Side:
    """One side of one row.

    Attributes:
        mean: the mean over the row's pairs; over the side's own items where nothing is paired (config mismatch).
        pass_rate: the share that passes, over the same items; None without verdicts.
        items: items with a number.
        lost: items without one, by reason: error, timeout, skipped, not run (the task failed), not given, no number.
        lost_runs: of the items that have a number, the repeats that gave none.
        repeat_sd: how far the repeats of one item lie apart: the standard deviation within items, pooled; None without repeats.
        labels: how often each category was given.
    """

    mean: float | None = None
    pass_rate: float | None = None
    items: int = 0
    lost: Mapping[str, int] = field(default_factory=FrozenDict)
    lost_runs: int = 0
    repeat_sd: float | None = None
    labels: Mapping[str, int] = field(default_factory=FrozenDict)


@dataclass(frozen=True, slots=True)
class ScoreComparison:
    """One score, over all items or over one slice of them.

    Attributes:
        name: the score's; of a second evaluator with that name ``name@confighash``.
        by, slice: which slice of which key; None over all items.
        status: ``compared``, or why there is no delta.
        reason: the status in words; a config mismatch names both configurations.
        measure: what the numbers are: ``value``, or ``pass rate`` for an evaluator that gives verdicts without numbers.
        lower_is_better, verdict: the evaluator's; without ``verdict`` the score is a measurement, which is higher or lower.
        a, b: each side.
        delta: mean of b less mean of a, over the pairs.
        interval: the interval of delta; its ``caution`` says why it should not be relied on.
        p_value: of the exact or random sign-flip test of the pairs.
        p_adjusted: in slices, after Holm's method over all slices of the comparison; else None.
        smallest_difference: the smallest true difference that so many pairs would show in 4 of 5 experiments.
        shows: better, worse (higher, lower), or no difference shown; None without a delta.
        up, down, same: pairs whose number rose, fell, stayed.
        cautions: what to bear in mind, in words.
        pairs: the pairs themselves, by item id.
    """

    name: str
    by: str | None = None
    slice: str | None = None
    status: Status = "compared"
    reason: str | None = None
    measure: Literal["value", "pass rate"] = "value"
    lower_is_better: bool = False
    verdict: bool = True
    a: Side = field(default_factory=Side)
    b: Side = field(default_factory=Side)
    delta: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    smallest_difference: float | None = None
    shows: Verdict | None = None
    cautions: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = field(default=(), repr=False)

    @property
    def n(self) -> int:
        """How many pairs."""
        return len(self.pairs)

    @property
    def up(self) -> int:
        """Pairs whose number rose."""
        return sum(pair.delta > 0 for pair in self.pairs)

    @property
    def down(self) -> int:
        """Pairs whose number fell."""
        return sum(pair.delta < 0 for pair in self.pairs)

    @property
    def same(self) -> int:
        """Pairs whose number stayed."""
        return self.n - self.up - self.down

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without the pairs."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "pairs"}
        plain["a"], plain["b"] = _plain(self.a), _plain(self.b)
        plain["interval"] = _plain(self.interval) if self.interval else None
        return {
            **plain,
            "cautions": list(self.cautions),
            "n": self.n,
            "up": self.up,
            "down": self.down,
            "same": self.same,
        }


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two results, score by score and item by item. Read-only; iterating gives its rows, ``print`` shows them as a table.

    Attributes:
        rows: for each score name one `ScoreComparison` over all items, then one for each slice.
        warnings: what to know of the whole, in words.
        only_in_a, only_in_b: ids of items that the other side does not have.
        changed: ids of items that are in both with another input or expected answer; they are not compared.
        items: how many items are in both, and the same in both.
        clusters: how many clusters they form; None where none were asked for.
        cluster: the clusters' name.
        confidence, resamples, seed: of the intervals.
        a, b: the results.
    """

    rows: tuple[ScoreComparison, ...] = ()
    warnings: tuple[str, ...] = ()
    only_in_a: tuple[str, ...] = ()
    only_in_b: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    items: int = 0
    clusters: int | None = None
    cluster: str | None = None
    confidence: float = CONFIDENCE
    resamples: int = RESAMPLES
    seed: int = SEED
    a: Results = field(default_factory=Results)
    b: Results = field(default_factory=Results)

    def __iter__(self) -> Iterator[ScoreComparison]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> ScoreComparison:
        """The row of that score over all items.

        Raises:
            KeyError: there is no such score; the message says which there are.
        """
        for row in self.rows:
            if row.name == name and row.by is None:
                return row
        raise KeyError(f"no score {name!r}; there are {', '.join(self.names()) or 'none'}")

    def names(self) -> list[str]:
        """The score names."""
        return list(dict.fromkeys(row.name for row in self.rows))

    def slices(self, name: str, by: str | None = None) -> list[ScoreComparison]:
        """The rows of that score by slice, of one key or of all.

        Raises:
            KeyError: there is no such score.
        """
        self[name]
        return [row for row in self.rows if row.name == name and row.by is not None and by in (None, row.by)]

    @property
    def worse(self) -> list[ScoreComparison]:
        """The rows that show b to be worse."""
        return [row for row in self.rows if row.shows == "worse"]

    @property
    def better(self) -> list[ScoreComparison]:
        """The rows that show b to be better."""
        return [row for row in self.rows if row.shows == "better"]

    @property
    def mismatches(self) -> list[ScoreComparison]:
        """The rows whose evaluators are not the same on both sides."""
        return [row for row in self.rows if row.status == "config mismatch"]

    def __repr__(self) -> str:
        return f"<Comparison of {self.b.run.name!r} with {self.a.run.name!r}: {self.items} items, scores {', '.join(self.names()) or 'none'}>"

    def __str__(self) -> str:
        return comparison_table.of(self)

    def to_dict(self) -> dict[str, Any]:
        """What `to_json` writes, as plain values."""
        return {
            "format": FORMAT,
            "a": _plain(self.a.run),
            "b": _plain(self.b.run),
            "items": self.items,
            "clusters": self.clusters,
            "cluster": self.cluster,
            "confidence": self.confidence,
            "resamples": self.resamples,
            "seed": self.seed,
            "warnings": list(self.warnings),
            "only_in_a": list(self.only_in_a),
            "only_in_b": list(self.only_in_b),
            "changed": list(self.changed),
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_json(self, indent: int | None = None) -> str:
        """Strict JSON (no NaN), with a format version under ``format``."""
        return json.dumps(json.loads(dumps(self.to_dict())), indent=indent, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file, whole or not at all.

        Raises:
            ConfigError: the file cannot be written.
        """
        write_whole(Path(path), self.to_json() + "\n")

    def to_pandas(self) -> "pandas.DataFrame":
        """One row for each `ScoreComparison`.

        Columns: score, by, slice, status, reason, measure, mean_a, mean_b, delta, low, high, p_value, p_adjusted, n, up, down,
        same, smallest_difference, shows, pass_rate_a, pass_rate_b, lost_a, lost_b, repeat_sd_a, repeat_sd_b, cautions.

        Raises:
            ConfigError: pandas is not installed; the message says how to.
        """
        from spangrade.experiments.comparison_frame import frame_of

        return frame_of(self)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML file with plots that needs nothing beside it and loads nothing.

        Raises:
            ConfigError: the file cannot be written, or what makes the report is not installed (extra ``experiments``).
        """
        from spangrade.experiments.report import html_of_comparison

        write_whole(Path(path), html_of_comparison(self))


def _plain(record: Any) -> dict[str, Any]:
    return {f.name: getattr(record, f.name) for f in fields(record)}
