"""A live trace in the words of ``spangrade explain``: what was kept of its calls, samples and results."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from spangrade.model.outcome import Outcome
from spangrade.model.policy import Placed
from spangrade.model.span import SpanData
from spangrade.samples.explain import Finding, SpanNote
from spangrade.scoring.reasons import NotSeen, below_evaluator, not_seen
from spangrade_agent.explain.form import FORMAT, not_seen_form, note_form
from spangrade_agent.page.api import answer_json
from spangrade_agent.page.asgi import Answer
from spangrade_agent.page.records import StoredSample
from spangrade_agent.page.why import why

NOTE_CONTENT = "the agent keeps no text (store.content: none), so none is shown"


def explained_json(
    notes: Sequence[SpanNote], samples: Iterable[StoredSample], content: str, placed: Sequence[Placed] = ()
) -> Answer:
    """The answer for a trace. ``content``: what the store keeps of text; ``placed``: what scores here now."""
    held: dict[str, list[StoredSample]] = {}
    for sample in samples:
        held.setdefault(sample.span_id, []).append(sample)
    below, by_id = _below(notes), {note.span_id: note for note in notes}
    root = next((span_id for span_id, mine in held.items() if any(one.target == "root" for one in mine)), None)
    spans = [
        {
            **note_form(note),
            "samples": [_sample(one, _findings(note, below)) for one in held.get(note.span_id, ())],
            "not_seen": [
                not_seen_form(one) for one in _not_seen(note, held.get(note.span_id, ()), placed, root, by_id)
            ],
        }
        for note in notes
    ]
    return answer_json(200, {"format": FORMAT, "spans": spans, "notes": [NOTE_CONTENT] if content == "none" else []})


def _not_seen(
    note: SpanNote,
    samples: Iterable[StoredSample],
    placed: Sequence[Placed],
    root: str | None,
    by_id: Mapping[str, SpanNote],
) -> Iterable[NotSeen]:
    """Who does not look at a call, as far as that can be told without its attributes, which are not kept."""
    if not note.is_call:
        return ()
    mine = {
        f"{result.evaluator}@{result.config_hash}" if result.config_hash else result.evaluator
        for sample in samples
        for result in sample.results
    }
    resource = {} if note.service is None else {"service.name": note.service}
    span = SpanData(0, 0, None, note.name, 0, 0, {}, resource=resource, scope_name=note.scope)
    return not_seen(span, note, placed, mine, root, judged=below_evaluator(note, by_id))


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
