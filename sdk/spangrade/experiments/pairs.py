"""Samples and evaluators → scores, by the live pipeline's own lanes: the same threads, time limits and event loop.

What differs from live: nothing is selected, nothing is held, and whoever hands a sample in is told how each of its pairs
ended. A step that hangs is left behind on its daemon thread, and an evaluator that times out again and again is paused.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spangrade.model.evaluator import Evaluator, EvaluatorInfo
from spangrade.model.outcome import Outcome, ScoreRecord
from spangrade.model.policy import Placed
from spangrade.model.sample import Sample
from spangrade.samples.reading import Call
from spangrade.scoring.clock import Clock
from spangrade.scoring.ended import Ended
from spangrade.scoring.job import Job
from spangrade.scoring.jobs import Jobs, Surroundings
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.records import records_of
from spangrade.scoring.redaction import Redact
from spangrade.scoring.seam import Ticket
from spangrade.scoring.seats import Seat
from spangrade.scoring.selection import Selection
from spangrade.scoring.settings import Settings
from spangrade.scoring.shield import shield
from spangrade.scoring.timer import Timer

MAX_THREADS: Final = 32
_NO_LIMIT: Final = 2**31
_JOIN_S: Final = 1.0
_WHY: Final = {
    "paused": "it timed out again and again, so it was given up for a while",
    "queue_full": "no thread was free for it",
    "shutdown": "the run was stopped before it had its turn",
    "switched_off": "scoring was switched off while the run went on (SPANGRADE_SCORING, SPANGRADE_DISABLED)",
}


@dataclass(frozen=True, slots=True)
class PairEnd:
    """How one (sample, evaluator) ended: the outcome (scored, skipped, error or timeout), why, and the records of its
    scores and failures."""

    evaluator: EvaluatorInfo
    outcome: Outcome
    reason: str | None
    error_type: str | None
    records: tuple[ScoreRecord, ...]
    duration_s: float | None


Done = Callable[[list[PairEnd]], None]


class _Waiting:
    """The pairs of one sample that have not ended."""

    def __init__(self, left: int, done: Done) -> None:
        self.left, self.done = left, done
        self.ends: list[PairEnd] = []


class Pairs:
    """Grades the samples that it is given, up to ``concurrency`` at once. Use it in a ``with`` block: at its end what has
    not ended is dropped, and nobody waits for it."""

    def __init__(self, evaluators: Sequence[Evaluator], concurrency: int, redact: Redact | None, clock: Clock) -> None:
        threads = max(2, min(concurrency, MAX_THREADS))
        settings = Settings(
            metric_threads=threads,
            judge_threads=threads,
            metric_limit=threads,
            max_offers=_NO_LIMIT,
            max_steps=_NO_LIMIT,
            max_bytes=_NO_LIMIT,
        )
        around = Surroundings(_Nowhere(), Ledger(), settings, clock, redact)
        self._timer = Timer(_nothing, self._tick, lambda: None, clock)
        self._jobs = _Jobs([Placed(one) for one in evaluators], around, self._timer.wake, self._ended)
        self._count: dict[str, int] = {}
        for one in evaluators:
            self._count[one.info.target] = self._count.get(one.info.target, 0) + 1
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[tuple[int, int, str], _Waiting] = {}

    def __enter__(self) -> "Pairs":
        self._timer.ensure()
        self._jobs.ensure_workers()
        return self

    def __exit__(self, *_: object) -> None:
        self._jobs.close()
        self._timer.stop(_JOIN_S)

    def grade(self, call: Call, sample: Sample, target: str, done: Done) -> None:
        """Grade a sample of ``call`` by the evaluators of a target; ``done`` gets the ends of all its pairs, once, on any
        thread."""
        count = self._count.get(target, 0)
        if not count:
            done([])
            return
        with self._lock:
            self._waiting[(call.span.trace_id, call.span.span_id, target)] = _Waiting(count, done)
        self._jobs.start(call, sample, _Nobodys(), target, False)

    def _tick(self) -> float:
        upcoming = self._jobs.check(self._clock.monotonic())
        return float("inf") if upcoming is None else upcoming

    def _ended(self, job: Job, info: EvaluatorInfo, selection: Selection, ended: Ended) -> None:
        records: list[ScoreRecord] = []
        with shield("experiment.records"):
            records = records_of(job, info, selection, ended, self._clock.time_ns())
        with self._lock:
            waiting = self._waiting[job.key]
            waiting.ends.append(_end(info, ended, tuple(records)))
            waiting.left -= 1
            if waiting.left:
                return
            del self._waiting[job.key]
        waiting.done(waiting.ends)


def _end(info: EvaluatorInfo, ended: Ended, records: tuple[ScoreRecord, ...]) -> PairEnd:
    if ended.outcome in (Outcome.SCORED, Outcome.SKIPPED, Outcome.ERROR, Outcome.TIMEOUT):
        reason = ended.message or None
        return PairEnd(info, ended.outcome, reason, ended.error_type, records, ended.duration_s)
    why = _WHY.get(ended.reason, ended.reason)  # offline nothing is left out by policy, so what was dropped is missing
    return PairEnd(info, Outcome.ERROR, why, ended.reason or str(ended.outcome), (), ended.duration_s)


class _Jobs(Jobs):
    """Tells of every pair's end."""

    def __init__(
        self,
        placed: Sequence[Placed],
        around: Surroundings,
        wake: Callable[[], None],
        tell: Callable[[Job, EvaluatorInfo, Selection, Ended], None],
    ) -> None:
        super().__init__(placed, around, wake)
        self._tell = tell

    def pair_ended(self, job: Job, seat: Seat, selection: Selection, ended: Ended) -> None:
        """See `Jobs`."""
        try:
            super().pair_ended(job, seat, selection, ended)
        finally:
            self._tell(job, seat.info, selection, ended)


class _Nobodys(Ticket):
    """No span waits."""

    __slots__ = ()


class _Nowhere:
    """A `Sink` that holds and sends nothing."""

    def expect(self, ticket: Ticket, pairs: int) -> None:
        """See `Sink`."""

    def until(self, ticket: Ticket, deadline: float) -> None:
        """See `Sink`."""

    def taken(self, ticket: Ticket, evaluators: Sequence[EvaluatorInfo]) -> None:
        """See `Sink`."""

    def scores(self, ticket: Ticket, evaluator: EvaluatorInfo, records: Sequence[ScoreRecord], scored: bool) -> None:
        """See `Sink`."""

    def later(self, ticket: Ticket) -> Ticket:
        """See `Sink`."""
        return ticket

    def settle(self, ticket: Ticket) -> None:
        """See `Sink`."""

    def expire(self, now: float) -> float | None:  # noqa: ARG002 - the protocol's
        """See `Sink`."""
        return None

    def release_all(self) -> None:
        """See `Sink`."""


def _nothing(_item: Any) -> None:
    """Nobody offers spans here."""
