"""The same as JSON, for programs. Field names are those of the records."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from spangrade.scoring.outcomes import Counts
from spangrade_agent.page.asgi import Answer
from spangrade_agent.page.records import StoredSample

JSON: Final = "application/json"


def answer_json(status: int, value: Any) -> Answer:
    """ASCII only, so that lone surrogates and marks that turn text round stay escapes."""
    body = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Answer(status, body.encode("ascii"), JSON)


def samples_json(samples: list[StoredSample], limit: int) -> Answer:
    """``samples``: one more than ``limit`` where there are older ones; ``next`` is then the ``before`` to go on with."""
    shown = samples[:limit]
    after = shown[-1].id if len(samples) > limit and shown else None
    return answer_json(200, {"samples": [asdict(sample) for sample in shown], "next": after})


def sample_json(sample: StoredSample) -> Answer:
    """One sample."""
    return answer_json(200, asdict(sample))


def trace_json(trace_id: str, samples: list[StoredSample], content: str) -> Answer:
    """All samples of a trace. ``content``: what the store keeps of text: ``keep``, ``redacted`` or ``none``."""
    found = {"trace_id": trace_id, "content": content, "samples": [asdict(sample) for sample in samples]}
    return answer_json(200, found)


def outcomes_json(counts: Mapping[str, Counts]) -> Answer:
    """Promise 3's laws per evaluator: met = pending + all outcomes; scored = delivered + undelivered + in_flight."""
    return answer_json(200, {"evaluators": [_counts(key, one) for key, one in sorted(counts.items())]})


def _counts(key: str, one: Counts) -> dict[str, Any]:
    outcomes = [
        {"outcome": outcome.value, "reason": reason, "count": count}
        for (outcome, reason), count in one.outcomes.items()
    ]
    return {
        "evaluator": one.name,
        "key": key,
        "met": one.met,
        "pending": one.pending,
        "outcomes": outcomes,
        "delivered": dict(one.delivered),
        "undelivered": dict(one.undelivered),
        "in_flight": one.in_flight,
        "again": dict(one.also),
    }
