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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from spangrade.errors import ConfigError
from spangrade.experiments.dataset import Dataset, read_dataset
from spangrade.experiments.item import field_named
from spangrade.experiments.pytest_grader import Grader, placed, with_placed_baseline
from spangrade.experiments.results import Results
from spangrade.experiments.run import evaluate
from spangrade.experiments.task import WHOLE

_EVALUATE: Final = (
    "dataset", "evaluators", "concurrency", "repeats", "baseline", "name", "metadata", "timeout", "evaluator_timeout",
)  # fmt: skip
_LIMITS: Final = ("min_pass_rate", "fail_under", "max_error_rate", "no_worse")
_PLACEHOLDER: Final = object()


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
    said = with_placed_baseline({"name": item.name, **said}, lambda given: placed(given, item.path, item.config))
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
        read[id(marker)] = (marker, read_dataset(placed(given, node.path, node.config)))
    found: Dataset = read[id(marker)][1]
    return found


def _item_parameters(metafunc: pytest.Metafunc) -> list[str]:
    """Those of a test's parameters that are fields of an item, or columns of its dataset."""
    names = [name for name in inspect.signature(metafunc.function).parameters if name in metafunc.fixturenames]
    usual = {name for name in names if field_named(name) or name in WHOLE or name == "sample"}
    columns: set[str] = set()
    if len(usual) < len(names):
        columns = {key for one in _dataset(metafunc.definition).items for key in one["metadata"]}
    return [name for name in names if name in usual or name in columns]


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


def _save(results: Results, folder: Path, nodeid: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    results.save(folder / (re.sub(r"[^\w.-]+", "_", nodeid).strip("_") + ".json"))
