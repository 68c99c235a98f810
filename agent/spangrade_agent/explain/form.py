"""The explanation as JSON: what ``--json`` prints and the agent answers; the text is made of it too.

``spans``: each with ``span_id``, ``name``, ``kind`` (null: no call), ``dialects``, ``findings`` (``code``, ``says``, ``fix``),
``samples`` (``target``, ``input``, ``output``, ``documents``, ``context``, ``metadata``, ``partial``, ``pairs``) and ``not_seen``. A
pair: ``evaluator``, ``outcome``, ``says``, ``fix``, ``probability``, ``scores``.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from spangrade.errors import JudgeError
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import ScoreRecord
from spangrade.model.sample import Sample, thaw
from spangrade.samples.explain import Finding, SpanNote
from spangrade.scoring.explain import PairNote, SampleNote, SpanStory
from spangrade.scoring.reasons import NotSeen
from spangrade.scoring.redaction import redacted

FORMAT: Final = 1
Redact = Callable[[str], str]


def explanation(
    stories: Iterable[SpanStory], notes: Iterable[str] = (), redact: Redact | None = None
) -> dict[str, Any]:
    """All of it. ``redact``: the configured hook; a text that it cannot redact is left out."""
    return {"format": FORMAT, "spans": [_story(story, redact) for story in stories], "notes": list(notes)}


def note_form(note: SpanNote) -> dict[str, Any]:
    """A span, without samples."""
    return {
        "trace_id": note.trace_id,
        "span_id": note.span_id,
        "parent_span_id": note.parent_span_id,
        "name": note.name,
        "service": note.service,
        "scope": note.scope,
        "kind": note.kind,
        "dialects": list(note.dialects),
        "evaluator": note.evaluator,
        "findings": [finding_form(finding) for finding in note.findings],
    }


def finding_form(finding: Finding) -> dict[str, Any]:
    return {"code": finding.code, "says": finding.says, "fix": finding.fix, "harmless": finding.harmless}


def _story(story: SpanStory, redact: Redact | None) -> dict[str, Any]:
    return {
        **note_form(story.note),
        "samples": [_sample(held, redact) for held in story.samples],
        "not_seen": [not_seen_form(one) for one in story.not_seen],
    }


def _sample(held: SampleNote, redact: Redact | None) -> dict[str, Any]:
    sample = held.sample
    if redact is not None:
        try:
            sample = redacted(sample, redact)
        except JudgeError as fault:
            sample = Sample(metadata={"redaction": str(fault)})
    return {
        "target": held.target,
        "partial": held.partial,
        "input": thaw(sample.input),
        "output": thaw(sample.output),
        "documents": thaw(sample.documents),
        "context": thaw(sample.context),
        "metadata": thaw(sample.metadata),
        "pairs": [_pair(pair) for pair in held.pairs],
    }


def _pair(pair: PairNote) -> dict[str, Any]:
    return {
        **_evaluator(pair.evaluator),
        "outcome": pair.outcome,
        "says": pair.says,
        "fix": pair.fix,
        "probability": pair.probability,
        "scores": [_score(record) for record in pair.records],
    }


def _evaluator(info: EvaluatorInfo) -> dict[str, Any]:
    return {"evaluator": info.name, "kind": info.kind, "version": info.version, "target": info.target}


def _score(record: ScoreRecord) -> dict[str, Any]:
    graded = record.graded
    return {
        "name": graded.name,
        "value": graded.value,
        "label": graded.label,
        "passed": graded.passed,
        "explanation": graded.explanation,
        "error_type": record.error_type,
    }


def not_seen_form(one: NotSeen) -> dict[str, Any]:
    return {**_evaluator(one.evaluator), "says": one.says, "fix": one.fix}
