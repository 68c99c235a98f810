"""A live trace in the words of ``spangrade explain``: what was kept of its calls, samples and results."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from spangrade.model.outcome import Outcome
from spangrade.samples.explain import Finding, SpanNote
from spangrade_agent.explain.form import FORMAT, note_form
from spangrade_agent.page.api import answer_json
from spangrade_agent.page.asgi import Answer
from spangrade_agent.page.records import StoredSample
from spangrade_agent.page.why import why

NOTE_CONTENT = "the agent keeps no text (store.content: none), so none is shown"


def explained_json(notes: Sequence[SpanNote], samples: Iterable[StoredSample], content: str) -> Answer:
    """The answer for a trace. ``content``: what the store keeps of text."""
    held: dict[str, list[StoredSample]] = {}
    for sample in samples:
        held.setdefault(sample.span_id, []).append(sample)
    below = _below(notes)
    spans = [
        {
            **note_form(note),
            "samples": [_sample(one, _findings(note, below)) for one in held.get(note.span_id, ())],
            "not_seen": [],
        }
        for note in notes
    ]
    return answer_json(200, {"format": FORMAT, "spans": spans, "notes": [NOTE_CONTENT] if content == "none" else []})


def _sample(sample: StoredSample, findings: Sequence[Finding]) -> dict[str, Any]:
    fields = {name: _value(sample, name) for name in ("input", "output")}
    return {
        "target": sample.target,
        "partial": sample.partial,
        **fields,
        "documents": [asdict(document) for document in sample.documents],
        "context": {"searched": sample.searched, **({"model": sample.model} if sample.model else {})},
        "metadata": None if sample.metadata is None else _parsed(sample.metadata),
        "pairs": _pairs(sample, findings),
    }


def _pairs(sample: StoredSample, findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """One for each evaluator, with its scores."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for result in sample.results:
        reason = why(result, sample, findings)
        pair = found.setdefault(
            (result.evaluator, result.config_hash),
            {
                "evaluator": result.evaluator,
                "kind": result.kind,
                "version": result.version,
                "target": sample.target,
                "outcome": result.outcome,
                "says": None if reason is None else reason.says,
                "fix": None if reason is None else reason.fix,
                "probability": result.probability,
                "scores": [],
            },
        )
        if result.outcome == Outcome.SCORED or result.error_type is not None:
            keys = ("name", "value", "label", "passed", "explanation", "error_type")
            pair["scores"].append({key: getattr(result, key) for key in keys})
    return list(found.values())


def _value(sample: StoredSample, name: str) -> Any:
    text = getattr(sample, name)
    return _parsed(text) if name in sample.json_fields and text is not None else text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # cut
        return text


def _below(notes: Sequence[SpanNote]) -> dict[str | None, list[SpanNote]]:
    found: dict[str | None, list[SpanNote]] = {}
    for note in notes:
        found.setdefault(note.parent_span_id, []).append(note)
    return found


def _findings(note: SpanNote, below: dict[str | None, list[SpanNote]]) -> list[Finding]:
    """Of a call, and of those right below it: what they lack, its sample lacks."""
    return [finding for one in (note, *below.get(note.span_id, ())) for finding in one.findings]
