"""Reads calls and their scores out of the spans that the receiver got. Nothing here knows what happened in-process."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from examples.demo.child_process import JsonObject

CALL_NAME = "answer"
RESULT_EVENT = "gen_ai.evaluation.result"


@dataclass(frozen=True)
class Result:
    """One score, or one error in its place, as it stood on the span."""

    name: str
    kind: str
    value: float | None
    label: str | None
    explanation: str | None
    error: str | None

    @property
    def in_words(self) -> str:
        if self.error is not None:
            return f"error: {self.error}"
        value = "" if self.value is None else f"{self.value:.2f}"
        return " ".join(part for part in (value, self.label) if part)


@dataclass(frozen=True)
class Call:
    """One answered question, as it arrived."""

    span_id: str
    question: str
    answer: str
    failed: bool
    results: tuple[Result, ...]

    def by(self, kind: str) -> list[Result]:
        """Results of metrics ("code") or judges ("llm")."""
        return [result for result in self.results if result.kind == kind]

    def result(self, name: str) -> Result | None:
        return next((result for result in self.results if result.name == name), None)


def calls_in(spans: Iterable[JsonObject]) -> list[Call]:
    """The application's calls: the root spans of its `answer` function, in the order in which they arrived."""
    return [_call(span) for span in spans if span["name"] == CALL_NAME and span["parent_span_id"] is None]


def _call(span: JsonObject) -> Call:
    attributes = span["attributes"]
    return Call(
        span_id=span["span_id"],
        question=_text(attributes.get("input.value", ""), "question"),
        answer=_text(attributes.get("output.value", ""), None),
        failed=span["status"]["code"] == "ERROR",
        results=tuple(_result(event["attributes"]) for event in span["events"] if event["name"] == RESULT_EVENT),
    )


def _result(attributes: dict[str, Any]) -> Result:
    return Result(
        name=attributes.get("gen_ai.evaluation.name", "?"),
        kind=attributes.get("spangrade.evaluator.kind", "?"),
        value=attributes.get("gen_ai.evaluation.score.value"),
        label=attributes.get("gen_ai.evaluation.score.label"),
        explanation=attributes.get("gen_ai.evaluation.explanation"),
        error=attributes.get("error.type"),
    )


def _text(value: str, argument: str | None) -> str:
    """The text itself. A function's arguments are written as JSON, `{"question": ...}`."""
    if argument is not None:
        try:
            value = json.loads(value)[argument]
        except (ValueError, KeyError, TypeError):
            pass  # a single argument may also be written as it is
    return str(value)


def what_is_missing(calls: list[Call], questions: int) -> list[str]:
    """One sentence for everything that a complete run of the demo would have shown and this one did not."""
    missing: list[str] = []
    if len(calls) != questions:
        missing.append(f"{questions} root spans named {CALL_NAME!r} were expected and {len(calls)} came.")
    for call in calls:
        metrics, judged = call.by("code"), call.by("llm")
        about = f"The span for {call.question!r}"
        if len(metrics) != 3:
            names = ", ".join(result.name for result in metrics) or "none"
            missing.append(f"{about} has {len(metrics)} metric events instead of 3 ({names}).")
        if len(judged) != 1:
            missing.append(f"{about} has {len(judged)} judge events instead of 1.")
        if call.failed:
            missing.append(f"{about} ended in an error.")
    overlaps = {result.value for call in calls if (result := call.result("overlap")) is not None}
    if len(overlaps) < 2:
        missing.append(f"The overlap scores are all equal: {sorted(map(str, overlaps)) or 'there are none'}.")
    return missing
