"""What evaluators would do with given spans, and why: the real pipeline, with evaluators that are not run (or metrics that
are; judges never are) in the places of the real ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spangrade.errors import SpangradeError
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome, ScoreRecord
from spangrade.model.policy import Placed
from spangrade.model.sample import Sample
from spangrade.model.score import Skip
from spangrade.model.span import SpanData
from spangrade.samples.explain import Finding, SpanNote, note_of
from spangrade.samples.reading import Call
from spangrade.scoring.pipeline import Pipeline
from spangrade.scoring.reasons import NotSeen, below_evaluator, not_seen, words
from spangrade.scoring.seam import Offer, Ticket
from spangrade.scoring.settings import Settings
from spangrade.scoring.wants import SESSION

WOULD_RUN: Final = "would_run"  # a metric that was not run
WOULD_GRADE: Final = "would_grade"  # a judge, which never is asked here
DEPENDS: Final = "depends"  # a judge's condition that asks metrics, which were not run
DRAIN_S: Final = 120.0
_NOT_RUN: Final = "not run by explain"


@dataclass(frozen=True, slots=True)
class PairNote:
    """What one evaluator does with one sample.

    ``outcome``: `WOULD_RUN`, `WOULD_GRADE`, `DEPENDS`, or an `Outcome`'s value (skipped, not_sampled; and how it ended, where metrics
    were run). ``records``: what a metric that was run gave. ``says``, ``fix``: as of `Finding`.
    """

    evaluator: EvaluatorInfo
    outcome: str
    says: str | None = None
    fix: str | None = None
    probability: float = 1.0
    records: tuple[ScoreRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class SampleNote:
    """A Sample that evaluators of one target would see, and what each would do with it. It is carried by ``span_id``."""

    span_id: str
    target: str
    sample: Sample
    partial: bool
    pairs: tuple[PairNote, ...]


@dataclass(frozen=True, slots=True)
class SpanStory:
    """One span: what it is, the samples that it carries, and who does not look at it."""

    note: SpanNote
    samples: tuple[SampleNote, ...] = ()
    not_seen: tuple[NotSeen, ...] = ()


class ExplainError(SpangradeError):
    """The pipeline did not finish in time."""


def explain(
    spans: Iterable[SpanData], placed: Sequence[Placed], *, run: bool = False, timeout: float = DRAIN_S
) -> list[SpanStory]:
    """The story of each span, by trace in order of their first start, and by start within one.

    Args:
        placed: the evaluators, with their policies.
        run: run the metrics, too (never a judge). Conditions of judges that ask metrics can be decided only then.
        timeout: seconds that one trace may take.

    Raises:
        ExplainError: metrics did not come back in time.
    """
    traces: dict[int, list[SpanData]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    stories: list[SpanStory] = []
    for trace in sorted(traces.values(), key=lambda found: min(span.start_ns for span in found)):
        stories += _explained(trace, placed, run, timeout)
    return stories


def _explained(trace: list[SpanData], placed: Sequence[Placed], run: bool, timeout: float) -> list[SpanStory]:
    watcher = _Notes()
    settings = Settings(max_offers=len(trace) + 1, max_steps=len(trace) * len(placed) + 1, max_bytes=2**40)
    ours = [_stand_in(one, run) for one in placed if one.evaluator.info.target != SESSION]  # which is no trace's
    pipeline = Pipeline(ours, _NoSink(), settings, watcher=watcher)
    try:
        for span in sorted(trace, key=lambda span: (span.end_ns, span.span_id)):
            pipeline.offer(Offer(span, Ticket(), None, pipeline.clock.monotonic()))
        if not pipeline.drain(timeout, judges=True):
            raise ExplainError(
                f"the metrics did not come back within {timeout:g} s; leave out --run to do without them"
            )
    finally:
        pipeline.shutdown(0.0)
    notes = {span.span_hex: note_of(span) for span in trace}
    policies = {one.evaluator.info.key: one for one in placed}
    samples: dict[str, list[SampleNote]] = {}
    for (_, span_id, target), begun in watcher.begun.items():
        findings = _findings_under(f"{span_id:016x}", notes)
        pairs = tuple(
            _pair(policies[info.key], watcher.ends.get(((_, span_id, target), info.key)), begun.sample, findings, run)
            for info in begun.evaluators
        )
        held = SampleNote(f"{span_id:016x}", target, begun.sample, begun.partial, pairs)
        samples.setdefault(held.span_id, []).append(held)
    ordered = sorted(trace, key=lambda span: (span.start_ns, span.end_ns, span.span_id))
    return [
        SpanStory(
            notes[span.span_hex],
            tuple(samples.get(span.span_hex, ())),
            tuple(_not_seen(span, notes, placed, samples)) if notes[span.span_hex].is_call else (),
        )
        for span in ordered
    ]


# --- the pipeline, with stand-ins -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Unrun:
    """Has an evaluator's identity, and gives nothing."""

    info: EvaluatorInfo
    timeout: float = 60.0
    is_async: bool = False

    def evaluate(self, sample: Sample) -> Any:  # noqa: ARG002 - the seam's signature
        raise Skip(_NOT_RUN)


def _stand_in(placed: Placed, run: bool) -> Placed:
    info = placed.evaluator.info
    if run and info.kind == "code":
        return placed
    # Ceilings are of the real calls; without metrics' results a condition is none that could be asked.
    policy = replace(placed.policy, budget=None)
    if placed.policy.conditional and not run:
        policy = replace(policy, when=None, rate=max(stratum.rate for stratum in policy.strata))
    return Placed(_Unrun(info), policy, placed.match)


@dataclass
class _Begun:
    sample: Sample
    evaluators: Sequence[EvaluatorInfo]
    partial: bool


class _Notes:
    """Implements `Watcher`; read after the pipeline has drained."""

    def __init__(self) -> None:
        self.begun: dict[tuple[int, int, str], _Begun] = {}
        self.ends: dict[tuple[tuple[int, int, str], str], tuple[Outcome, str, tuple[ScoreRecord, ...], float]] = {}

    def took(self, call: Call) -> None: ...

    def began(
        self,
        key: tuple[int, int, str],
        call: Call,  # noqa: ARG002 - the seam's signature
        sample: Sample,
        evaluators: Sequence[EvaluatorInfo],
        partial: bool,
    ) -> None:
        self.begun[key] = _Begun(sample, evaluators, partial)

    def ended(
        self,
        key: tuple[int, int, str],
        evaluator: EvaluatorInfo,
        outcome: Outcome,
        reason: str,
        records: Sequence[ScoreRecord],
        probability: float,
    ) -> None:
        self.ends[key, evaluator.key] = (outcome, reason, tuple(records), probability)


class _NoSink:
    """Implements `Sink`: nothing is held, nothing is sent."""

    def expect(self, ticket: Ticket, pairs: int) -> None: ...
    def until(self, ticket: Ticket, deadline: float) -> None: ...
    def taken(self, ticket: Ticket, evaluators: Sequence[EvaluatorInfo]) -> None: ...
    def scores(
        self, ticket: Ticket, evaluator: EvaluatorInfo, records: Sequence[ScoreRecord], scored: bool
    ) -> None: ...
    def later(self, ticket: Ticket) -> Ticket:
        return ticket

    def settle(self, ticket: Ticket) -> None: ...
    def expire(self, now: float) -> float | None:  # noqa: ARG002 - the seam's signature
        return None

    def release_all(self) -> None: ...


# --- words --------------------------------------------------------------------------------------------------------------------


def _pair(
    placed: Placed,
    end: tuple[Outcome, str, tuple[ScoreRecord, ...], float] | None,
    sample: Sample,
    findings: Sequence[Finding],
    run: bool,
) -> PairNote:
    info = placed.evaluator.info
    outcome, reason, records, probability = end or (Outcome.DROPPED, "lost", (), 1.0)
    lacking = sample.missing(info.requires)
    if outcome is Outcome.SKIPPED and not lacking and info.kind != "code":
        return _chosen(placed, probability, run)
    if outcome is Outcome.SKIPPED and not lacking and not run:
        return PairNote(info, WOULD_RUN)
    searched = sample.context.get("searched") is True
    said = words(outcome.value, reason, findings, searched=searched, probability=probability)
    return PairNote(info, outcome.value, said.says, said.fix, probability, records)


def _chosen(placed: Placed, probability: float, run: bool) -> PairNote:
    info, policy = placed.evaluator.info, placed.policy
    if policy.conditional and not run:
        asked = " or ".join(policy.conditions()) or "its function" if policy.when is not None else "its strata"
        said = f"it depends on {asked}, which asks results of metrics"
        return PairNote(info, DEPENDS, said, "run the metrics, too: --run", probability)
    share = "every sample" if probability >= 1 else f"1 in {round(1 / probability):,} (p = {probability:.3g})"
    return PairNote(info, WOULD_GRADE, f"this trace is among those that it grades: {share}", None, probability)


def _findings_under(span_id: str, notes: Mapping[str, SpanNote]) -> list[Finding]:
    """Of a span, and then of those below it."""
    below: dict[str | None, list[SpanNote]] = {}
    for note in notes.values():
        below.setdefault(note.parent_span_id, []).append(note)
    found: list[Finding] = []
    todo, seen = [span_id], set()
    while todo:
        at = todo.pop(0)
        if at in seen:
            continue
        seen.add(at)
        if at in notes and notes[at].is_call:
            found += notes[at].findings
        todo += [note.span_id for note in below.get(at, ())]
    return found


def _not_seen(
    span: SpanData, notes: Mapping[str, SpanNote], placed: Sequence[Placed], samples: Mapping[str, Sequence[SampleNote]]
) -> Iterable[NotSeen]:
    note = notes[span.span_hex]
    mine = {pair.evaluator.key for held in samples.get(note.span_id, ()) for pair in held.pairs}
    root = next((held.span_id for some in samples.values() for held in some if held.target == "root"), None)
    return not_seen(span, note, placed, mine, root, judged=below_evaluator(note, notes))
