"""The fixture ``spangrade``: grades what a test has, and says what fell under what."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade.experiments.dataset import read_dataset
from spangrade.experiments.evaluators import evaluators_of
from spangrade.experiments.gate import findings, limits_of, worse_than_baseline, worst
from spangrade.experiments.records import ScoreResult
from spangrade.experiments.results import Results
from spangrade.experiments.run import evaluate


class Scores(Mapping[str, ScoreResult]):
    """The scores of one sample by name; a `ScoreResult` each, with ``value``, ``passed``, ``label`` and ``explanation``."""

    def __init__(self, scores: tuple[ScoreResult, ...]) -> None:
        self._scores = {score.name: score for score in scores}

    def __getitem__(self, name: str) -> ScoreResult:
        if name not in self._scores:
            raise KeyError(f"no score {name!r}; there are {', '.join(self._scores) or 'none'}")
        return self._scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    @property
    def passed(self) -> bool:
        """Whether all came to a score and none of them is a fail."""
        return bool(self._scores) and all(
            score.outcome == "scored" and score.passed is not False for score in self.values()
        )


class Grader:
    """The fixture ``spangrade``."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._config = request.config
        self._node = request.node

    def score(self, sample: Any = None, evaluators: Any = None, **fields: Any) -> Scores:
        """Grade one sample.

        Args:
            sample: a `Sample`, or a dict of its fields; or leave it out and give the fields by name.
            evaluators: as in `spangrade.evaluate`.
            **fields: input, output, expected, documents, context, metadata, or their usual aliases.
        """
        if evaluators is None:
            raise ConfigError("spangrade.score needs evaluators=[...], such as ['overlap']")
        if sample is not None and fields:
            raise ConfigError(f"spangrade.score takes a sample, or its fields ({', '.join(fields)}), not both")
        given = fields if sample is None else sample
        (item,) = read_dataset([given]).items
        if item["output"] is None:
            raise ConfigError("spangrade.score: the sample has no output to grade; give output=...")
        return Scores(evaluate([item], None, evaluators).items[0].scores)

    def assert_score(
        self,
        sample: Any = None,
        evaluators: Any = None,
        *,
        at_least: float | Mapping[str, float] | None = None,
        **fields: Any,
    ) -> Scores:
        """Grade one sample, and fail the test unless every evaluator came to a score and none of them is a fail.

        Args:
            sample, evaluators, **fields: as of `score`.
            at_least: what values have to reach (``lower_is_better``: at most that), in place of the metrics' own thresholds: one number for all, or
                by name.
        """
        __tracebackhide__ = True
        scores = self.score(sample, evaluators, **fields)
        turned = {one.info.key for one in evaluators_of(evaluators) if one.info.lower_is_better}
        bad = [line for score in scores.values() if (line := _misses(score, at_least, _lower(score, turned)))]
        if isinstance(at_least, Mapping):
            bad += [
                f"{name}: was never scored (there are {', '.join(scores) or 'none'})"
                for name in at_least
                if name not in scores
            ]
        if bad or not scores:
            pytest.fail(
                "\n".join(["spangrade.assert_score:", *bad] if bad else ["no evaluator, so no score"]), pytrace=False
            )
        return scores

    def evaluate(self, dataset: Any, task: Any = None, evaluators: Any = (), **options: Any) -> Results:
        """`spangrade.evaluate`; relative paths are looked for as those of the marker are."""
        return evaluate(self._placed(dataset), task, evaluators, **with_placed_baseline(options, self._placed))

    def assert_results(
        self,
        results: Results,
        *,
        min_pass_rate: float | None = None,
        fail_under: Any = None,
        max_error_rate: float = 0.0,
        no_worse: bool = True,
    ) -> Results:
        """Fail the test unless the results reach their limits; the message has the table, the limits missed, and the runs that did not
        pass.

        Args:
            results: of `evaluate`.
            min_pass_rate: for every score with a verdict; errors, time-outs and failed tasks count as not passed. Default 1.0 where no
                other limit is said.
            fail_under: limits by name: ``{"overlap": 0.8}`` for a mean (``lower_is_better``: at most that), ``{"overlap.pass_rate": 0.9}``.
            max_error_rate: how many of the runs may fail for a mean to be believed.
            no_worse: with a baseline: also fail if the comparison shows a score to be worse.
        """
        __tracebackhide__ = True
        limits = limits_of(fail_under)
        if min_pass_rate is not None or not limits:
            limits = [*limits_of(1.0 if min_pass_rate is None else min_pass_rate), *limits]
        missed = [found.sentence for found in findings(results, limits, max_error_rate) if not found.met]
        if no_worse and results.comparison is not None:
            missed += worse_than_baseline(results)
        self._node.add_report_section("call", "spangrade", str(results))
        if missed:
            pytest.fail("\n".join([str(results), "", *missed, "", *worst(results)]).rstrip(), pytrace=False)
        return results

    def _placed(self, given: Any) -> Any:
        return placed(given, self._node.path, self._config)


def _misses(score: ScoreResult, at_least: float | Mapping[str, float] | None, turned: bool) -> str | None:
    why = f": {score.explanation}" if score.explanation else ""
    if score.outcome != "scored":
        return f"{score.name}: {score.outcome}: {score.reason or score.error_type or 'no score'}"
    least = at_least.get(score.name) if isinstance(at_least, Mapping) else at_least
    if least is None:
        return f"{score.name}: {_value(score)} is a fail{why}" if score.passed is False else None
    if score.value is None:
        return f"{score.name}: {score.label!r} is no number that could reach {least:g}{why}"
    if turned:
        return f"{score.name}: {score.value:.4g} is above {least:g}{why}" if score.value > least else None
    return f"{score.name}: {score.value:.4g} is under {least:g}{why}" if score.value < least else None


def _lower(score: ScoreResult, turned: set[str]) -> bool:
    return score.rule.lower_is_better if score.rule is not None else score.evaluator in turned


def _value(score: ScoreResult) -> str:
    return str(score.label) if score.value is None else f"{score.value:.4g}"


def with_placed_baseline(options: dict[str, Any], place: Callable[[Any], Any]) -> dict[str, Any]:
    """Options of `evaluate`, the baseline's path where the file is."""
    return {**options, "baseline": place(options["baseline"])} if "baseline" in options else options


def placed(given: Any, test: Path, config: pytest.Config) -> Any:
    """A relative path, where the file is."""
    if not isinstance(given, (str, Path)) or Path(given).is_absolute():
        return given
    places = [test.parent / given, config.rootpath / given, Path(given)]
    return next((place for place in places if place.exists()), Path(given))
