"""The attributes of a score: one table for every carrier.

Sources: ``gen_ai.evaluation.*`` and ``error.type`` from the GenAI conventions' event `gen_ai.evaluation.result`; target,
evaluator source and version as pydantic-evals writes them (Logfire's live evaluations read them); the rest is ours.
"""

import json
from typing import Any

from spangrade import semconv as s
from spangrade._values import bounded, dumps, snapshot
from spangrade.model.outcome import ScoreRecord

Attributes = dict[str, Any]
MAX_JSON = 16_384


def attributes_of(record: ScoreRecord) -> Attributes:
    """What is sent of one score or error; absent values have no key."""
    info, graded = record.evaluator, record.graded
    failed = record.error_type is not None
    found: dict[str, Any] = {
        s.EVALUATION_NAME: bounded(graded.name, 256),
        s.SCORE_VALUE: None if failed else graded.value,
        s.SCORE_LABEL: None if failed else graded.label,
        s.EXPLANATION: bounded(graded.explanation, 8_192) if graded.explanation else None,
        s.RESPONSE_ID: record.span.response_id,
        s.ERROR_TYPE: bounded(record.error_type, 256) if record.error_type else None,
        s.EVALUATION_TARGET: bounded(record.span.name, 256) or None,
        s.EVALUATOR_SOURCE: json.dumps({"name": info.name, "arguments": None}),
        s.EVALUATOR_VERSION: info.version,
        s.SCORE_ID: record.score_id,
        s.EVALUATOR_NAME: info.name,
        s.EVALUATOR_KIND: info.kind,
        s.CONFIG_HASH: info.config_hash or None,
        s.PASSED: None if failed else graded.passed,
        s.THRESHOLD: float(info.threshold) if info.threshold is not None else None,
        s.LOWER_IS_BETTER: True if info.lower_is_better else None,
        s.PROBABILITY: record.probability,
        s.SELECTION_REASON: record.selection_reason,
        s.TARGET: info.target,
        s.ASSEMBLY: "partial" if record.partial else None,
        s.VALUE_JSON: bounded(dumps(graded.structured), MAX_JSON)
        if graded.structured is not None and not failed
        else None,
        s.SCORE_METADATA: bounded(dumps(snapshot(graded.metadata)), MAX_JSON) if graded.metadata else None,
        s.DURATION: record.duration_s,
        s.SESSION_ID: record.span.session_id,
    }
    found.update(record.details)
    return {key: value for key, value in found.items() if value is not None}


def summary(record: ScoreRecord) -> str:
    """One short line for people: the body of a log event."""
    if record.error_type is not None:
        return bounded(f"evaluation: {record.graded.name} failed ({record.error_type})", 512)
    value = record.graded.label if record.graded.value is None else f"{record.graded.value:g}"
    return bounded(f"evaluation: {record.graded.name}={value}", 512)
