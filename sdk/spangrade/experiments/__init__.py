"""Offline: `spangrade.evaluate`, `spangrade.compare`, and what they return."""

from typing import Any, Final

_PLACES: Final = {
    "EvaluationInterrupted": "run",
    "EvaluatorRecord": "records",
    "ItemResult": "records",
    "Results": "results",
    "RunRecord": "records",
    "ScoreResult": "records",
    "ScoreSummary": "summary",
    "SourceChanged": "run",
    "TaskError": "records",
}


def __getattr__(name: str) -> Any:
    """The names of results, imported when they are asked for: this package is loaded with ``import spangrade``."""
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
