"""A metric as a value: pickled by its place, hashed, copied, and told from another version of itself."""

import asyncio
import copy
import dataclasses
import functools
import pickle
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade.metrics.importable import dumped
from spangrade.metrics.local import LocalMetric, metric
from spangrade.model.sample import Sample


@metric(threshold=0.5, version=3, requires=["contexts"])
def decorated(output: str) -> float:
    """Half."""
    return 0.5


def helper(output: str, limit: int = 3) -> bool:
    return len(output) <= limit


named = LocalMetric(helper, name="short", config={"limit": 3})


class Length:
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __call__(self, output: str) -> bool:
        return len(output) <= self.limit


def test_a_decorated_metric_pickles_as_its_place_and_is_itself_again() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated
    assert len(pickle.dumps(decorated)) < 200


@pytest.mark.parametrize(
    "given",
    [
        named,
        dataclasses.replace(decorated, threshold=0.9),
        dataclasses.replace(named, timeout=1.0),
        LocalMetric(functools.partial(helper, limit=9), config={"limit": 9}),
        LocalMetric(Length(4), name="length"),
    ],
)
def test_any_other_metric_of_what_can_be_imported_pickles_with_its_settings(given: LocalMetric) -> None:
    again = pickle.loads(pickle.dumps(given))
    assert again.info == given.info
    assert (again.timeout, again.process) == (given.timeout, given.process)
    sample = Sample(output="four", documents=[{"content": "d"}])
    assert again.evaluate(sample) == given.evaluate(sample)


def test_metrics_can_be_members_of_a_set_and_equal_ones_are_one() -> None:
    assert len({named, LocalMetric(helper, name="short", config={"limit": 3}), decorated}) == 2


def test_what_another_process_cannot_import_is_refused_with_the_reason_and_the_way_out() -> None:
    def local(output: str) -> int:
        return 1

    for made, why in (
        (
            metric(local),
            "'test_what_another_process_cannot_import_is_refused_with_the_reason_and_the_way_out' makes it",
        ),
        (metric(lambda output: 1), "it is a lambda"),
        (metric(functools.partial(lambda output: 1)), "it is a lambda"),
    ):
        with pytest.raises(
            ConfigError, match=r"process=True needs a metric that another process can import; "
        ) as caught:
            dumped(made, "metric 'm'")
        assert why in str(caught.value)
        assert "define it at the top of a module" in str(caught.value)


def test_what_lives_in_the_script_that_runs_is_refused_since_it_would_have_to_run_again() -> None:
    import __main__

    def of_script(output: str) -> int:
        return 1

    of_script.__module__, of_script.__qualname__ = "__main__", "of_script"
    made = metric(of_script)
    __main__.of_script = made  # type: ignore[attr-defined]
    try:
        with pytest.raises(ConfigError, match=r"'of_script' is defined in the script that runs \(__main__\)"):
            dumped(made, "metric 'of_script'")
    finally:
        del __main__.of_script  # type: ignore[attr-defined]


def test_the_source_hash_changes_with_the_source_and_is_no_part_of_the_identity() -> None:
    def first() -> LocalMetric:
        def check(output: str) -> int:
            return 1

        return metric(version=1)(check)

    def second() -> LocalMetric:
        def check(output: str) -> int:
            return 2

        return metric(version=1)(check)

    assert first().info == second().info
    assert first().source_hash == first().source_hash != second().source_hash
    assert first().source_hash is not None
    assert LocalMetric(functools.partial(helper, limit=9)).source_hash == LocalMetric(helper).source_hash
    assert LocalMetric(Length(3)).source_hash is not None
    assert LocalMetric(len, name="len").source_hash is None
    assert LocalMetric(eval("lambda output: 1"), name="typed").source_hash is None


def test_an_async_metric_gives_an_awaitable_and_what_that_hides_is_awaited_too() -> None:
    async def later(output: str) -> Any:
        return 0.75

    async def hides(output: str) -> Any:
        return later(output)

    for fn in (later, hides, lambda output: later(output), functools.partial(later)):  # noqa: PLW0108 - not known as async
        awaitable: Any = LocalMetric(fn, name="m").evaluate(Sample(output="a"))

        async def wait(one: Any = awaitable) -> Any:
            return await one

        assert asyncio.run(wait()).scores[0].value == 0.75
