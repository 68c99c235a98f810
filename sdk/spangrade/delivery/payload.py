"""The attributes of a score: one table for every carrier.

Sources: ``gen_ai.evaluation.*`` and ``error.type`` from the GenAI conventions' event `gen_ai.evaluation.result`; target,
evaluator source and version as pydantic-evals writes them (Logfire's live evaluations read them); the rest is ours.
"""

import json
from functools import lru_cache
from typing import Any

from spangrade import semconv as s
from spangrade._values import bounded, dumps, snapshot
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import ScoreRecord
from spangrade.model.score import Graded, Rule

Attributes = dict[str, Any]
MAX_JSON = 16_384


def attributes_of(record: ScoreRecord) -> Attributes:
    """What is sent of one score or error; absent values have no key."""
    info, graded, span = record.evaluator, record.graded, record.span
    found: dict[str, Any] = {
        s.EVALUATION_NAME: bounded(graded.name, 256),
        **_of_evaluator(info),
        s.SCORE_ID: record.score_id,
        s.PROBABILITY: record.probability,
        s.SELECTION_REASON: record.selection_reason,
    }
    if graded.path is not None:
        found[s.EVALUATOR_PATH] = bounded(graded.path, 512)
    if graded.rule is not None:
        _say_rule(graded.rule, found)
    if record.error_type is not None:
        found[s.ERROR_TYPE] = bounded(record.error_type, 256)
    else:
        found.update(_of_value(graded))
    if graded.explanation:
        found[s.EXPLANATION] = bounded(graded.explanation, 8_192)
    if graded.metadata:
        found[s.SCORE_METADATA] = bounded(dumps(snapshot(graded.metadata)), MAX_JSON)
    if span.name:
        found[s.EVALUATION_TARGET] = bounded(span.name, 256)
    if span.response_id is not None:
        found[s.RESPONSE_ID] = span.response_id
    if span.session_id is not None:
        found[s.SESSION_ID] = span.session_id
    if record.partial:
        found[s.ASSEMBLY] = "partial"
    if record.duration_s is not None:
        found[s.DURATION] = record.duration_s
    if record.details:
        found.update((key, value) for key, value in record.details.items() if value is not None)
    return found


def _say_rule(rule: Rule, found: Attributes) -> None:
    """A leaf's threshold and direction in place of its tree's."""
    found.pop(s.THRESHOLD, None)
    found.pop(s.LOWER_IS_BETTER, None)
    if rule.threshold is not None:
        found[s.THRESHOLD] = float(rule.threshold)
    if rule.lower_is_better:
        found[s.LOWER_IS_BETTER] = True


def _of_value(graded: Graded) -> Attributes:
    found: dict[str, Any] = {}
    if graded.value is not None:
        found[s.SCORE_VALUE] = graded.value
    if graded.label is not None:
        found[s.SCORE_LABEL] = graded.label
    if graded.passed is not None:
        found[s.PASSED] = graded.passed
    if graded.structured is not None:
        found[s.VALUE_JSON] = bounded(dumps(graded.structured), MAX_JSON)
    return found


@lru_cache(maxsize=1_024)
def _of_evaluator(info: EvaluatorInfo) -> Attributes:
    """What is the same for all scores of an evaluator; not to be changed."""
    found: dict[str, Any] = {
        s.EVALUATOR_SOURCE: json.dumps({"name": info.name, "arguments": None}),
        s.EVALUATOR_VERSION: info.version,
        s.EVALUATOR_NAME: info.name,
        s.EVALUATOR_KIND: info.kind,
        s.CONFIG_HASH: info.config_hash or None,
        s.THRESHOLD: float(info.threshold) if info.threshold is not None else None,
        s.LOWER_IS_BETTER: True if info.lower_is_better else None,
        s.TARGET: info.target,
    }
    return {key: value for key, value in found.items() if value is not None}


def summary(record: ScoreRecord) -> str:
    """One short line for people: the body of a log event."""
    if record.error_type is not None:
        return bounded(f"evaluation: {record.graded.name} failed ({record.error_type})", 512)
    value = record.graded.label if record.graded.value is None else f"{record.graded.value:g}"
    return bounded(f"evaluation: {record.graded.name}={value}", 512)
