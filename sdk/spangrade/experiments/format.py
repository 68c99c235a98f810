"""Results as JSON, and back. The file carries a format version; a summary is in it for readers, and not read."""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from spangrade._values import dumps
from spangrade.errors import ConfigError
from spangrade.experiments.records import EvaluatorRecord, ItemResult, RunRecord, ScoreResult, TaskError
from spangrade.experiments.summary import ScoreSummary
from spangrade.model.sample import freeze

FORMAT: Final = 1
_OF_THE_ITEM: Final = ("item_id", "repeat")  # a score's, which stands inside its item


def to_plain(
    run: RunRecord,
    evaluators: tuple[EvaluatorRecord, ...],
    items: tuple[ItemResult, ...],
    summary: Mapping[str, ScoreSummary],
) -> dict[str, Any]:
    """The file's content, as plain values."""
    return {
        "format": FORMAT,
        "run": _said(run),
        "summary": {name: _all(line) for name, line in summary.items()},
        "evaluators": [_said(evaluator) for evaluator in evaluators],
        "items": [
            {
                **_said(item, leave_out=("scores", "error")),
                **({"error": _said(item.error)} if item.error is not None else {}),
                "scores": [_said(score, leave_out=_OF_THE_ITEM) for score in item.scores],
            }
            for item in items
        ],
    }


def to_text(plain: Mapping[str, Any], indent: int | None = None) -> str:
    """Strict JSON."""
    if indent is None:
        return dumps(plain)
    return json.dumps(json.loads(dumps(plain)), indent=indent, ensure_ascii=False, allow_nan=False)


def _all(line: ScoreSummary) -> dict[str, Any]:
    return {field.name: getattr(line, field.name) for field in fields(line) if field.name != "name"}


def _said(record: Any, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """A record's fields, without those that say nothing."""
    found = {field.name: getattr(record, field.name) for field in fields(record) if field.name not in leave_out}
    return {name: value for name, value in found.items() if value is not None and value not in ((), {}, [])}


def read_file(path: Path) -> tuple[RunRecord, tuple[EvaluatorRecord, ...], tuple[ItemResult, ...]]:
    """What `to_text` wrote.

    Raises:
        ConfigError: the file cannot be read, is no results file, or has a format that this version does not know.
    """
    what = f"results file {str(path)!r}"
    try:
        raw = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as fault:
        raise ConfigError(f"{what} cannot be read: {fault.strerror or fault}") from fault
    except ValueError as fault:  # no JSON, or no UTF-8
        raise ConfigError(f"{what} is not JSON: {fault}") from fault
    return read_plain(raw, what)


def read_plain(raw: Any, what: str) -> tuple[RunRecord, tuple[EvaluatorRecord, ...], tuple[ItemResult, ...]]:
    """What `to_plain` gave; ``what`` names it in errors."""
    if not isinstance(raw, dict) or "format" not in raw:
        raise ConfigError(f"{what} is no results file of spangrade: it has no 'format' (write one with Results.save)")
    if type(raw["format"]) is not int or raw["format"] != FORMAT:
        raise ConfigError(
            f"{what} has format {raw['format']!r}; this version of spangrade reads format {FORMAT}: "
            "it was written by another version, so read it with that one, or run the evaluation again"
        )
    from pydantic import TypeAdapter, ValidationError

    try:
        run = TypeAdapter(RunRecord).validate_python(raw.get("run", {}))
        evaluators = TypeAdapter(tuple[EvaluatorRecord, ...]).validate_python(raw.get("evaluators", []))
        items = TypeAdapter(tuple[ItemResult, ...]).validate_python([_with_ids(item) for item in raw.get("items", [])])
    except (ValidationError, TypeError, AttributeError) as fault:
        raise ConfigError(f"{what} is damaged: {_first_line(fault)}") from fault
    return _frozen(run), tuple(_frozen(one) for one in evaluators), tuple(_frozen(item) for item in items)


def _with_ids(item: Mapping[str, Any]) -> dict[str, Any]:
    ids = {"item_id": item.get("item_id"), "repeat": item.get("repeat", 0)}
    return {**item, "scores": [{**score, **ids} for score in item.get("scores", [])]}


def _frozen(record: Any) -> Any:
    """The record with read-only containers, as it was before it was written."""
    if isinstance(record, (ItemResult, ScoreResult, RunRecord)):
        for field in fields(record):
            value = getattr(record, field.name)
            if isinstance(value, tuple):
                object.__setattr__(record, field.name, tuple(_frozen(one) for one in value))
            elif not isinstance(value, TaskError):
                object.__setattr__(record, field.name, freeze(value))
        return record
    return freeze(record)


def _first_line(fault: Exception) -> str:
    from pydantic import ValidationError

    if isinstance(fault, ValidationError):
        first = fault.errors(include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return str(fault)
