"""Why a pair ended as it did, and why an evaluator does not look at a call: sentences for people, with what would change it."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spangrade._text import bounded
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome
from spangrade.model.policy import Placed
from spangrade.model.span import SpanData
from spangrade.model.target import rule_of
from spangrade.samples.dialects.base import session_id
from spangrade.samples.explain import Finding, SpanNote, missing
from spangrade.samples.reading import ROOT_KINDS
from spangrade.scoring.wants import SESSION, Wanted
from spangrade.semconv import SCORED_BY


@dataclass(frozen=True, slots=True)
class NotSeen:
    """Why an evaluator does not look at a call by itself."""

    evaluator: EvaluatorInfo
    says: str
    fix: str | None = None


def words(
    outcome: str, reason: str, findings: Sequence[Finding], *, searched: bool = False, probability: float | None = None
) -> Finding:
    """Why a pair ended like that, and what would change it, for a person. The page says the same."""
    if outcome == Outcome.SKIPPED:
        if reason.endswith(" missing"):
            lacking = [word.strip() for word in reason.removesuffix(" missing").split(",")]
            return missing(lacking, findings, searched=searched)
        return Finding("skipped", "it had nothing to say of this sample")
    if outcome == Outcome.NOT_SAMPLED:
        if reason == "when":
            return Finding(
                "not_sampled",
                "none of its conditions holds for this sample",
                "change its live.when, or the strata of its rate",
            )
        of = f" (p = {probability:.3g})" if probability is not None and probability < 1 else ""
        return Finding("not_sampled", f"this trace is not among those that it grades{of}", "raise its live.rate")
    if outcome == Outcome.OVER_BUDGET:
        return Finding("over_budget", "its budget is spent", "raise its live.budget, or lower its rate")
    if outcome == Outcome.TIMEOUT:
        return Finding("timeout", "it gave no result in time", "raise its timeout, or make it faster")
    if outcome == Outcome.DROPPED:
        return _DROPPED.get(reason, Finding("dropped", f"dropped: {reason}"))
    if outcome == Outcome.ERROR:
        return Finding("error", f"it failed: {reason}")
    return Finding(outcome, outcome)


_DROPPED: Final[Mapping[str, Finding]] = {
    "queue_full": Finding("dropped", "scoring could not keep up", "fewer or faster evaluators, or a lower rate"),
    "overload": Finding("dropped", "too much waited to be scored", "fewer or faster evaluators, or a lower rate"),
    "paused": Finding("dropped", "it timed out repeatedly and is paused for a while", "raise its timeout, or mend it"),
    "circuit_open": Finding("dropped", "its model's endpoint fails, and is left alone for a while"),
    "rate_limited": Finding("dropped", "its model's endpoint takes no more calls now"),
    "shutdown": Finding("dropped", "the process ended first"),
    "switched_off": Finding("dropped", "scoring was switched off (SPANGRADE_SCORING)"),
}


def not_seen(
    span: SpanData, note: SpanNote, placed: Sequence[Placed], mine: Container[str], root: str | None, *, judged: bool
) -> Iterable[NotSeen]:
    """Who of ``placed`` does not look at a call by itself, and why. ``mine``: the keys of those that do; ``root``: the span
    that carries the trace's root sample; ``judged``: an evaluator is at work above it."""
    already = span.attributes.get(SCORED_BY) or ()
    for one in placed:
        info = one.evaluator.info
        if info.key in mine:
            continue
        if judged:
            yield NotSeen(info, "it is the work of an evaluator, which nobody scores")
        elif info.key in ((already,) if isinstance(already, str) else already):
            yield NotSeen(info, "it was scored by it already, at an earlier hop")
        elif not one.applies_to(span.resource):
            wanted = ", ".join(f"{key}={pattern}" for key, pattern in one.match.items())
            yield NotSeen(info, f"it looks at {wanted} only", "change its match")
        elif info.target == SESSION:
            yield _of_conversations(info, span)
        elif Wanted.of((info.target,)).by_itself(note.kind or "", span.name, span.scope_name, span.attributes):
            yield NotSeen(info, "another span tells of the same call, which is scored once")
        elif info.target != "root":
            yield _no_target(info, note)
        else:
            yield _not_root(info, note, root)


def _of_conversations(info: EvaluatorInfo, span: SpanData) -> NotSeen:
    looks = "it looks at whole conversations, when nothing of them has come for a while"
    session = session_id(span.attributes)
    if session is not None:
        return NotSeen(info, f"{looks}; this is of session {bounded(session, 64)}")
    return NotSeen(info, f"{looks}; this call names none", "give it a session.id (sg.set_session)")


def _no_target(info: EvaluatorInfo, note: SpanNote) -> NotSeen:
    if rule_of(info.target) is not None:
        return NotSeen(info, f"it looks at calls with {info.target}, which this one does not meet", "change its target")
    fix = f"with target: {note.kind} it looks at each such call"
    return NotSeen(info, f"it looks at {info.target} calls; this is {_a(note.kind)} call", fix)


def _not_root(info: EvaluatorInfo, note: SpanNote, root: str | None) -> NotSeen:
    fix = f"with target: {note.kind} it looks at each such call"
    if note.kind not in ROOT_KINDS:
        return NotSeen(info, f"it looks at root calls, which {_a(note.kind)} call never is", fix)
    if root is None:
        return NotSeen(info, "it looks at root calls, and this is below another call", fix)
    return NotSeen(info, f"it looks at root calls; this is a part of the one that span {root} carries", fix)


def _a(kind: str | None) -> str:
    word = kind or "unknown"
    return f"an {word}" if word[0] in "aeiou" or word == "llm" else f"a {word}"


def below_evaluator(note: SpanNote, notes: Mapping[str, SpanNote]) -> bool:
    """Whether an evaluator is above it."""
    seen: set[str] = set()
    at = note.parent_span_id
    while at is not None and at not in seen and at in notes:
        seen.add(at)
        if notes[at].evaluator:
            return True
        at = notes[at].parent_span_id
    return False
