"""`Results`: what `spangrade.evaluate` returns."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spangrade.errors import ConfigError
from spangrade.experiments import format as file_format
from spangrade.experiments import table
from spangrade.experiments.records import EvaluatorRecord, ItemResult, RunRecord, ScoreResult
from spangrade.experiments.summary import ScoreSummary, summarise

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Results:
    """The results of one experiment. Read-only; ``print(results)`` shows them as a table.

    Attributes:
        items: one `ItemResult` for each item and repeat, in the dataset's order, an item's repeats together.
        evaluators: who scored.
        run: the experiment: dataset, task, versions, times.
        comparison: with ``baseline=``, what `spangrade.compare` says of the two; else None. Not saved with the results.
    """

    items: tuple[ItemResult, ...] = ()
    evaluators: tuple[EvaluatorRecord, ...] = ()
    run: RunRecord = field(default_factory=RunRecord)
    comparison: Any = None

    @cached_property
    def _summary(self) -> dict[str, ScoreSummary]:
        return summarise(self.items, self.evaluators)

    def summary(self) -> dict[str, ScoreSummary]:
        """For each score name: how many were scored, mean, pass rate, errors, time-outs, skipped."""
        return dict(self._summary)

    def names(self) -> list[str]:
        """The score names, in the evaluators' order."""
        return list(self._summary)

    def scores(self, name: str) -> list[ScoreResult]:
        """Every score of that name, in the items' order: those that failed or were skipped are among them, without a
        value.

        Raises:
            KeyError: there is no such score; the message says which there are.
        """
        self._check_name(name)
        line = self._summary.get(name)
        of, key = (name, None) if line is None else (line.score, line.evaluator)
        every = (score for item in self.items for score in item.scores)
        return [score for score in every if score.name == of and key in (None, score.evaluator)]

    def evaluator(self, name: str) -> EvaluatorRecord:
        """Who gives the score of that name; of a leaf of a tree, with the leaf's threshold and direction.

        Raises:
            KeyError: as `scores`.
        """
        self._check_name(name)
        scores = self.scores(name)
        line = self._summary.get(name)
        key = line.evaluator if line is not None else scores[0].evaluator
        record = next(record for record in self.evaluators if record.key == key)
        return record.ruled(next((score.rule for score in scores if score.rule is not None), None))

    @property
    def failures(self) -> list[ItemResult]:
        """The runs whose task failed."""
        return [item for item in self.items if item.error is not None]

    def _check_name(self, name: str) -> None:
        if name not in self._summary and not any(item.score(name) for item in self.items):
            raise KeyError(f"no score {name!r}; there are {', '.join(self._summary) or 'none'}")

    def __str__(self) -> str:
        return table.of(self)

    def __repr__(self) -> str:
        return f"<Results {self.run.name!r}: {len(self.items)} runs, scores {', '.join(self._summary) or 'none'}>"

    # --- out and in -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """What `to_json` writes, as plain values."""
        return file_format.to_plain(self.run, self.evaluators, self.items, self._summary)

    def to_json(self, indent: int | None = None) -> str:
        """Strict JSON (no NaN), with the file's format version under ``format``."""
        return file_format.to_text(self.to_dict(), indent)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file, whole or not at all.

        Raises:
            ConfigError: the file cannot be written.
        """
        write_whole(Path(path), self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """Read what `save` wrote.

        Raises:
            ConfigError: the file cannot be read, is no results file, or has a format that this version does not know.
        """
        run, evaluators, items = file_format.read_file(Path(path))
        return cls(items, evaluators, run)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Results":
        """The results that `to_dict` gave.

        Raises:
            ConfigError: it is no such dict, or of another format.
        """
        run, evaluators, items = file_format.read_plain(plain, "the dict")
        return cls(items, evaluators, run)

    def to_pandas(self) -> "pandas.DataFrame":
        """One row for each item, repeat and score; a run without scores (its task failed) has one row without a score.

        Columns: item_id, repeat, score, value, label, passed, outcome, explanation, reason, error_type, evaluator,
        config_hash, duration_s, input, output, expected, task_error, trace_id, and ``metadata.<key>`` for each key of the
        items' metadata. What is not there is None (NaN in ``value``).

        Raises:
            ConfigError: pandas is not installed; the message says how to.
        """
        from spangrade.experiments.frame import frame_of

        return frame_of(self)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML file with plots that needs nothing beside it and loads nothing.

        Raises:
            ConfigError: the file cannot be written, or what makes the report is not installed (extra ``experiments``).
        """
        from spangrade.experiments.report import html_of

        write_whole(Path(path), html_of(self))


def write_whole(path: Path, text: str) -> None:
    """Write a text file so that a reader, or a crash, never sees half of it.

    Raises:
        ConfigError: it cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as fault:
        beside.unlink(missing_ok=True)
        raise ConfigError(f"{str(path)!r} cannot be written: {fault.strerror or fault}") from fault
