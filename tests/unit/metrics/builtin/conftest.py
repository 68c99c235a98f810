"""A metric on one Sample, as the pipeline would see the result."""

from collections.abc import Callable
from typing import Any

import pytest

from spangrade.metrics.catalog import resolve
from spangrade.model.sample import Sample
from spangrade.model.score import Graded

Grade = Callable[..., Graded]


@pytest.fixture
def grade() -> Grade:
    """The one score of a metric (or a built-in's name) on a Sample of these fields; `Skip` and `ReturnError` come through."""

    def make(metric: Any, **fields: Any) -> Graded:
        (score,) = resolve(metric).evaluate(Sample(**fields)).scores
        assert isinstance(score, Graded)
        return score

    return make
