"""Results as a pandas DataFrame."""

from typing import TYPE_CHECKING, Any

from spangrade.errors import ConfigError
from spangrade.experiments.records import ItemResult, ScoreResult

if TYPE_CHECKING:
    import pandas

    from spangrade.experiments.results import Results


def frame_of(results: "Results") -> "pandas.DataFrame":
    """See `Results.to_pandas`."""
    try:
        import pandas
    except ImportError as fault:
        raise ConfigError('to_pandas needs pandas: pip install "spangrade[experiments]"') from fault
    hashes = {record.key: record.config_hash for record in results.evaluators}
    keys = list(dict.fromkeys(key for item in results.items for key in item.metadata))
    rows = [_row(item, score, hashes, keys) for item in results.items for score in item.scores or (None,)]
    frame = pandas.DataFrame(rows, columns=[*_row(ItemResult(""), None, {}, []), *(f"metadata.{key}" for key in keys)])
    frame["value"] = frame["value"].astype(float)
    return frame


def _row(item: ItemResult, score: ScoreResult | None, hashes: dict[str, str], keys: list[str]) -> dict[str, Any]:
    return {
        "item_id": item.item_id,
        "repeat": item.repeat,
        "score": score.name if score else None,
        "value": score.value if score else None,
        "label": score.label if score else None,
        "passed": score.passed if score else None,
        "outcome": str(score.outcome) if score else None,
        "explanation": score.explanation if score else None,
        "reason": score.reason if score else None,
        "error_type": score.error_type if score else None,
        "evaluator": score.evaluator if score else None,
        "config_hash": hashes.get(score.evaluator) if score else None,
        "duration_s": score.duration_s if score else None,
        "input": item.input,
        "output": item.output,
        "expected": item.expected,
        "task_error": f"{item.error.type}: {item.error.message}" if item.error else None,
        "trace_id": item.trace_id,
        **{f"metadata.{key}": item.metadata.get(key) for key in keys},
    }
