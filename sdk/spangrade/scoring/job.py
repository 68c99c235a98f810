"""One sample's way through both lanes: its metrics, then the judges chosen for it."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from spangrade._switches import scoring_stopped
from spangrade.errors import EvaluatorError
from spangrade.model.condition import Facts
from spangrade.model.evaluator import EvaluatorInfo, Verdict
from spangrade.model.gate import CIRCUIT_OPEN, RATE_LIMITED
from spangrade.model.outcome import Outcome, SpanRef
from spangrade.model.parts import PartedEvaluator, Parts
from spangrade.model.sample import Sample
from spangrade.model.score import FAIL, PASS, Graded, Skip
from spangrade.samples.conversation import transcript
from spangrade.samples.reading import Call
from spangrade.scoring.asking import ask_judge
from spangrade.scoring.ended import Ended
from spangrade.scoring.redaction import Redact, redacted
from spangrade.scoring.seam import Ticket
from spangrade.scoring.seats import Seat
from spangrade.scoring.selection import NOT_MET, Selection
from spangrade.scoring.turn import Turn
from spangrade.scoring.wants import SESSION
from spangrade.semconv import CONVERSATION_ID, SESSION_ID


class Owner(Protocol):
    """The pipeline, as a job sees it."""

    @property
    def redact(self) -> Redact | None: ...

    def pair_ended(self, job: "Job", seat: Seat, selection: Selection, ended: Ended) -> None: ...

    def metrics_ended(self, job: "Job") -> None: ...

    def go_on(self, step: "PairStep") -> None: ...


@dataclass(eq=False)
class Job:
    """A sample with everything that grades it. ``results`` (name of a metric, and of each of its scores where it gives
    several → pass, fail, error, skipped, or the label) and ``values`` (likewise
    → number) feed the judges' conditions."""

    owner: Owner
    call: Call
    sample: Sample
    ticket: Ticket
    partial: bool
    target: str
    metrics: Sequence[tuple[Seat, Selection]]
    judges: Sequence[tuple[Seat, Selection]]
    pairs: int  # that have not ended, those of judges that were not chosen included
    epoch: int
    size: int
    results: dict[str, str] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    unit: tuple[int, str] = (0, "")  # what is selected by: trace id and state, or what stands for a conversation
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _left: int = 0
    _redacting: threading.Lock = field(default_factory=threading.Lock)
    _redacted: Sample | None = None
    _span_ref: SpanRef | None = None

    def __post_init__(self) -> None:
        self._left = len(self.metrics)

    @property
    def key(self) -> tuple[int, int, str]:
        """Trace id, span id, target: what tells this sample from all others."""
        return self.call.span.trace_id, self.call.span.span_id, self.target

    @property
    def span_ref(self) -> SpanRef:
        """The span as its scores name it."""
        ref = self._span_ref
        if ref is None:
            ref = self._span_ref = _ref_of(self.call, self.sample)
        return ref

    def sample_for_judges(self) -> Sample:
        """The sample with its texts redacted, once for all judges: the hook may be slow, or cost something.

        Raises:
            JudgeError: see `redacted`.
        """
        redact = self.owner.redact
        if redact is None and self.target != SESSION:
            return self.sample
        with self._redacting:
            if self._redacted is None:
                given = self.sample
                if self.target == SESSION:  # a judge is shown all that was said before the last answer
                    given = replace(given, input=transcript(given))
                self._redacted = given if redact is None else redacted(given, redact)
            return self._redacted

    def decided(self, seat: Seat) -> Selection:
        """What a policy with conditions says of the sample, now that its metrics have ended. Runs the policy's code."""
        span = self.call.span
        facts = Facts(self.sample, self.results, self.values, span.attributes)
        stratum = seat.placed.policy.stratum(facts)
        if stratum is None:
            return NOT_MET
        return seat.selector.decide(*self.unit, stratum)

    def is_last(self) -> bool:
        """Count one of the pairs as ended; True for the last."""
        with self._lock:
            self.pairs -= 1
            return self.pairs == 0

    def metric_ended(self, name: str, ended: Ended) -> None:
        """Note a metric's result; after the last one the judges' turn comes."""
        with self._lock:
            self.results.update(_results(name, ended))
            if ended.verdict is not None:
                self.values.update((g.name, g.value) for g in ended.verdict.scores if g.value is not None)
            self._left -= 1
            last = self._left == 0
        if last:
            self.owner.metrics_ended(self)


def _ref_of(call: Call, sample: Sample) -> SpanRef:
    span = call.span
    session = span.attributes.get(SESSION_ID) or span.attributes.get(CONVERSATION_ID)
    session = session or sample.context.get("session_id")
    return SpanRef(
        span.trace_id,
        span.span_id,
        span.trace_flags,
        span.trace_state,
        span.name,
        span.end_ns,
        call.reading.response_id,
        session if isinstance(session, str) else None,
    )


def _results(name: str, ended: Ended) -> dict[str, str]:
    verdict = ended.verdict
    if verdict is None or (len(verdict.scores) == 1 and not verdict.failures and verdict.scores[0].name == name):
        return {name: _result(name, ended)}
    each = {failure.name: "error" for failure in verdict.failures}
    each.update((graded.name, _said(graded)) for graded in verdict.scores)
    return each | {name: _result(name, ended)}


def _result(name: str, ended: Ended) -> str:
    if ended.outcome is Outcome.SCORED and ended.verdict is not None:
        for graded in ended.verdict.scores:
            if graded.name == name:  # a tree's aggregate speaks for the tree
                return _said(graded)
        verdicts = [g.passed for g in ended.verdict.scores if g.passed is not None]
        if verdicts:
            return PASS if all(verdicts) else FAIL
        return "error" if ended.verdict.failures else _said(ended.verdict.scores[0])
    return "skipped" if ended.outcome is Outcome.SKIPPED else "error"


def _said(graded: Graded) -> str:
    if graded.passed is None:
        return graded.label or "scored"
    return PASS if graded.passed else FAIL


@dataclass(eq=False, slots=True)
class PairStep:
    """One (sample, evaluator) pair on its way through a lane. ``parts``: of an evaluator in parts, how far it has come."""

    job: Job
    seat: Seat
    selection: Selection
    parts: Parts | None = None

    @property
    def turn(self) -> Turn:
        """Where it stands."""
        return self.seat.turn

    @property
    def part(self) -> int:
        """See `PartedStep`. Its lane asks, under its lock, before the step runs: so there is one beginning."""
        return self._begun().at

    def leave(self, part: int, kind: str) -> bool:
        """See `PartedStep`."""
        why = f"gave no result within {self.turn.parts[part].timeout_s:g} s"
        return self._begun().leave(part, kind, why if kind == "timeout" else f"{why} again and again")

    def run(self) -> Any:
        """Runs on a lane's thread; what it raises becomes the outcome."""
        if scoring_stopped():  # since the sample came: a switch that lets a queue of judges run on is none
            return Ended(Outcome.DROPPED, "switched_off")
        seat, sample = self.seat, self.job.sample
        if seat.placed.policy.asks_code:  # here, where code that hangs costs its judge
            self.selection = self.job.decided(seat)
            if not self.selection.chosen:
                return Ended(Outcome.NOT_SAMPLED, self.selection.reason)
        info = seat.info
        if info.requires:
            _check_required(info, sample)
        if seat.turn.parts:
            return self._begun().run()
        if seat.budget.unlimited and not seat.is_judge:
            return seat.evaluate(sample)
        if seat.budget.full():
            return Ended(Outcome.OVER_BUDGET, "calls")
        if info.kind == "llm":
            sample = self.job.sample_for_judges()
            _check_required(info, sample)
        return ask_judge(seat, sample)  # last of all: what is skipped costs nothing

    def _begun(self) -> Parts:
        if self.parts is None:
            self.parts = cast("PartedEvaluator", self.seat.placed.evaluator).begin(self.job.sample)
        return self.parts

    def done(self, result: Any, fault: BaseException | None, duration_s: float) -> None:
        """The evaluator came back."""
        self._end(_ended(result, fault, duration_s))

    def gave_up(self, why: str, duration_s: float) -> None:
        """The evaluator did not come back in time, or never ran."""
        limit = self.turn.timeout_s
        if why == "timeout" and self.parts is not None:
            self.parts.leave_awaited(why, f"gave no result within {limit:g} s")
            self.job.owner.go_on(self)
        elif why == "timeout":
            self._end(Ended(Outcome.TIMEOUT, why, None, "timeout", f"gave no result within {limit:g} s", duration_s))
        else:
            self._end(Ended(Outcome.DROPPED, why))

    def _end(self, ended: Ended) -> None:
        try:
            self.job.owner.pair_ended(self.job, self.seat, self.selection, ended)
        finally:
            if not self.seat.is_judge:
                self.job.metric_ended(self.seat.info.name, ended)


def _check_required(info: EvaluatorInfo, sample: Sample) -> None:
    missing = sample.missing(info.requires)
    if missing:
        raise Skip(f"{', '.join(missing)} missing")


def _ended(result: Any, fault: BaseException | None, duration_s: float) -> Ended:
    if fault is None and type(result) is Verdict and result.scores:
        return Ended(Outcome.SCORED, "", result, duration_s=duration_s)
    if isinstance(fault, Skip):
        why = _text(fault)
        return Ended(Outcome.SKIPPED, _reason(why), message=why, duration_s=duration_s)
    if isinstance(fault, EvaluatorError):
        if fault.kind == "timeout":
            return Ended(Outcome.TIMEOUT, "timeout", None, "timeout", str(fault), duration_s, fault.details)
        if fault.kind in (CIRCUIT_OPEN, RATE_LIMITED):  # nothing was sent
            return Ended(Outcome.DROPPED, fault.kind)
        return Ended(Outcome.ERROR, fault.kind, None, fault.kind, str(fault), duration_s, fault.details)
    if fault is not None:
        kind = type(fault).__name__
        return Ended(Outcome.ERROR, kind, None, kind, _text(fault), duration_s)
    if isinstance(result, Ended):
        return result
    if isinstance(result, Verdict) and result.failures:
        first = result.failures[0]
        kinds = {failure.kind for failure in result.failures} - {"incomplete"}  # an aggregate, for want of the others
        if kinds == {"paused"}:
            return Ended(Outcome.DROPPED, "paused")
        if kinds == {"timeout"}:
            return Ended(Outcome.TIMEOUT, "timeout", result, "timeout", first.message, duration_s)
        return Ended(Outcome.ERROR, first.kind, result, first.kind, first.message, duration_s)
    kind = type(result).__name__
    message = f"the evaluator returned {kind} where the pipeline needs a Verdict with at least one score"
    return Ended(Outcome.ERROR, "no_verdict", None, "no_verdict", message, duration_s)


def _reason(text: str) -> str:
    # A counter's reason must stay low in cardinality: "documents missing" yes, a sentence about this sample no.
    return text if text.endswith("missing") and len(text) <= 64 else "none"


def _text(fault: BaseException) -> str:
    try:
        return str(fault)[:1000]
    except Exception:  # noqa: BLE001 - str() of a user's exception is user code
        return "(its message could not be read)"
