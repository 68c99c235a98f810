"""The pytest plugin: a marker that runs a test over a dataset, and a fixture that grades what a test has.

.. code-block:: python

    @pytest.mark.spangrade(dataset="faq.jsonl", evaluators=["overlap", exact], min_pass_rate=0.9)
    def test_faq(question, client):          # the task: question is of the item, client is a fixture
        return answer(client, question)      # what it returns is graded


    def test_one(spangrade):
        spangrade.assert_score(input="Capital of France?", output=answer("..."), expected="Paris", evaluators=[exact])


    def test_many(spangrade):
        results = spangrade.evaluate("faq.jsonl", answer, ["overlap"])
        spangrade.assert_results(results, fail_under={"overlap": 0.8})

The marker's arguments are those of `spangrade.evaluate` (dataset, evaluators, concurrency, repeats, baseline, name, metadata,
timeout, evaluator_timeout) and those of `Grader.assert_results`. A relative path of a dataset or baseline is looked for beside the test's file,
then in pytest's root, then in the working directory. One marked test is one test for pytest, so a pass rate is of the whole dataset
also under pytest-xdist. ``--spangrade-results FOLDER`` saves each one's results.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from spangrade.errors import ConfigError
from spangrade.experiments.dataset import Dataset, read_dataset
from spangrade.experiments.evaluators import evaluators_of
from spangrade.experiments.gate import findings, limits_of, worse_than_baseline, worst
from spangrade.experiments.item import COLUMNS, FIELD_OF
from spangrade.experiments.records import ScoreResult
from spangrade.experiments.results import Results
from spangrade.experiments.run import evaluate
from spangrade.experiments.task import WHOLE

_EVALUATE: Final = (
    "dataset", "evaluators", "concurrency", "repeats", "baseline", "name", "metadata", "timeout", "evaluator_timeout",
)  # fmt: skip
_LIMITS: Final = ("min_pass_rate", "fail_under", "max_error_rate", "no_worse")
_PLACEHOLDER: Final = object()


class Scores(Mapping[str, ScoreResult]):
    """The scores of one sample by name; a `ScoreResult` each, with ``value``, ``passed``, ``label`` and ``explanation``."""

    def __init__(self, scores: tuple[ScoreResult, ...]) -> None:
        self._scores = {score.name: score for score in scores}

    def __getitem__(self, name: str) -> ScoreResult:
        if name not in self._scores:
            raise KeyError(f"no score {name!r}; there are {', '.join(self._scores) or 'none'}")
        return self._scores[name]

    def __iter__(self) -> Any:
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
        turned = {one.info.name for one in evaluators_of(evaluators) if one.info.lower_is_better}
        bad = [
            line for score in scores.values() if (line := _misses(score, at_least, score.name.split(".")[0] in turned))
        ]
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
        return evaluate(self._placed(dataset), task, evaluators, **_placed_baseline(options, self._placed))

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
        return _placed(given, self._node.path, self._config)


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


def _value(score: ScoreResult) -> str:
    return str(score.label) if score.value is None else f"{score.value:.4g}"


# --- the marker ---------------------------------------------------------------------------------------------------------


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Take the parameters that an item fills from the fixtures."""
    with _said():
        names = _item_parameters(metafunc)
        if names:
            label = _label(_options(metafunc.definition).get("dataset"))
            metafunc.parametrize(names, [tuple(_PLACEHOLDER for _ in names)], ids=[label])


def _label(dataset: Any) -> str:
    return Path(dataset).name if isinstance(dataset, (str, Path)) else "dataset"


def run(item: pytest.Function) -> None:
    """The marked test over its dataset."""
    __tracebackhide__ = True
    with _said():
        results, limits = _results(item)
    Grader(item._request).assert_results(results, **limits)


def _results(item: pytest.Function) -> tuple[Results, dict[str, Any]]:
    options = _options(item)
    if "dataset" not in options or "evaluators" not in options:
        raise ConfigError("@pytest.mark.spangrade needs dataset=... and evaluators=[...]")
    said: dict[str, Any] = {name: options[name] for name in _EVALUATE[2:] if name in options}
    said = _placed_baseline({"name": item.name, **said}, lambda given: _placed(given, item.path, item.config))
    results = evaluate(_dataset(item), _task(item), options["evaluators"], **said)
    folder = item.config.getoption("--spangrade-results")
    if folder:
        _save(results, Path(folder), item.nodeid)
    return results, {name: options[name] for name in _LIMITS if name in options}


@contextmanager
def _said() -> Iterator[None]:
    """What cannot work is said in one sentence, without our own lines above it."""
    __tracebackhide__ = True
    try:
        yield
    except ConfigError as fault:
        pytest.fail(f"spangrade: {fault}", pytrace=False)


def _options(node: Any) -> dict[str, Any]:
    marker = node.get_closest_marker("spangrade")
    if len(marker.args) > 2:
        raise ConfigError("@pytest.mark.spangrade takes dataset and evaluators; give the rest by name")
    options = {**dict(zip(_EVALUATE, marker.args, strict=False)), **marker.kwargs}
    unknown = [name for name in options if name not in (*_EVALUATE, *_LIMITS)]
    if unknown:
        known = ", ".join((*_EVALUATE, *_LIMITS))
        raise ConfigError(f"@pytest.mark.spangrade has no {', '.join(unknown)}; it has {known}")
    return options


_read: Final = pytest.StashKey[dict[int, tuple[pytest.Mark, Dataset]]]()


def _dataset(node: Any) -> Dataset:
    """The marker's dataset, read once: a generator can be read only once."""
    marker = node.get_closest_marker("spangrade")
    read = node.config.stash.setdefault(_read, {})
    if id(marker) not in read:
        given = _options(node).get("dataset")
        read[id(marker)] = (marker, read_dataset(_placed(given, node.path, node.config)))
    found: Dataset = read[id(marker)][1]
    return found


def _item_parameters(metafunc: pytest.Metafunc) -> list[str]:
    """Those of a test's parameters that are fields of an item, or columns of its dataset."""
    names = [name for name in inspect.signature(metafunc.function).parameters if name in metafunc.fixturenames]
    known = {*FIELD_OF, *COLUMNS, *WHOLE, "sample"}
    if any(name not in known for name in names):
        known |= {key for one in _dataset(metafunc.definition).items for key in one["metadata"]}
    return [name for name in names if name in known]


def _task(item: pytest.Function) -> Any:
    """The test function as a task: the item's parameters from the item, the others as pytest has filled them."""
    parameters = inspect.signature(item.obj).parameters
    mine = [name for name in parameters if item.funcargs.get(name) is _PLACEHOLDER]
    fixtures = {name: item.funcargs[name] for name in parameters if name in item.funcargs and name not in mine}
    if not mine:
        raise ConfigError(
            f"{item.name}: a test marked with spangrade takes a field of its items, such as `input` or `item`"
        )
    function = item.obj
    signature = inspect.Signature([parameters[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in mine])

    def task(**fields: Any) -> Any:
        return function(**fields, **fixtures)

    async def async_task(**fields: Any) -> Any:
        return await function(**fields, **fixtures)

    chosen: Any = async_task if inspect.iscoroutinefunction(function) else task
    chosen.__signature__, chosen.__annotations__ = signature, dict(getattr(function, "__annotations__", {}))
    chosen.__qualname__ = item.name
    return chosen


def _placed_baseline(options: dict[str, Any], placed: Any) -> dict[str, Any]:
    return {**options, "baseline": placed(options["baseline"])} if "baseline" in options else options


def _placed(given: Any, test: Path, config: pytest.Config) -> Any:
    """A relative path, where the file is."""
    if not isinstance(given, (str, Path)) or Path(given).is_absolute():
        return given
    places = [test.parent / given, config.rootpath / given, Path(given)]
    return next((place for place in places if place.exists()), Path(given))


def _save(results: Results, folder: Path, nodeid: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    results.save(folder / (re.sub(r"[^\w.-]+", "_", nodeid).strip("_") + ".json"))
