"""Every pair is accounted for (promise 3).

Two laws hold at every moment, per evaluator:

    met    = pending + scored + skipped + error + timeout + not_sampled + over_budget + dropped
    scored = delivered + undelivered + in flight

``in flight`` is empty once the pipeline and its exporters have shut down.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.gate import GateState
from spangrade.model.outcome import Outcome
from spangrade.samples.tally import Tally
from spangrade.scoring.purse import State
from spangrade.scoring.shield import shield


@dataclass
class Counts:
    """One evaluator's pairs. ``outcomes`` is keyed by (outcome, reason); ``also`` counts second carriers of one score."""

    name: str
    met: int = 0
    outcomes: Counter[tuple[Outcome, str]] = field(default_factory=Counter)
    delivered: Counter[str] = field(default_factory=Counter)
    undelivered: Counter[str] = field(default_factory=Counter)
    also: Counter[str] = field(default_factory=Counter)
    canaries: Counter[str] = field(default_factory=Counter)  # right, wrong, error, unasked
    repairs: Counter[str] = field(default_factory=Counter)  # mended, in_vain

    def of(self, outcome: Outcome) -> int:
        """How many pairs ended as ``outcome``, for whatever reason."""
        return sum(n for (kind, _), n in self.outcomes.items() if kind is outcome)

    @property
    def pending(self) -> int:
        """Pairs that have not ended yet."""
        return self.met - sum(self.outcomes.values())

    @property
    def in_flight(self) -> int:
        """Scores handed to a carrier that has not said yet how it went."""
        return self.of(Outcome.SCORED) - sum(self.delivered.values()) - sum(self.undelivered.values())


class Reporter(Protocol):
    """Hears of every outcome as it happens; `delivery.instruments` is one."""

    def outcome(self, evaluator: EvaluatorInfo, outcome: Outcome, reason: str) -> None: ...


class Ledger:
    """Thread-safe counts for all evaluators of one pipeline, past ones included."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._counts: dict[str, Counts] = {}
        self._reporters: tuple[Reporter, ...] = ()
        self.budgets: Callable[[], Mapping[str, Sequence[State]]] = (
            dict  # by judge; asks the store. The pipeline says it
        )
        self.endpoints: Callable[[], Sequence[GateState]] = list  # of judges' models. The pipeline says it
        self.tally = Tally()  # of samples, on their way here

    def report_to(self, reporter: Reporter) -> None:
        """Tell ``reporter`` of every outcome from now on."""
        self._reporters += (reporter,)

    def _of(self, evaluator: EvaluatorInfo) -> Counts:
        counts = self._counts.get(evaluator.key)
        if counts is None:
            counts = self._counts[evaluator.key] = Counts(evaluator.name)
        return counts

    def met(self, *evaluators: EvaluatorInfo) -> None:
        """A span met the target of each."""
        with self._lock:
            for evaluator in evaluators:
                self._of(evaluator).met += 1

    def ended(self, evaluator: EvaluatorInfo, outcome: Outcome, reason: str = "") -> None:
        """A pair ended. Called once per pair."""
        with self._lock:
            self._of(evaluator).outcomes[outcome, reason] += 1
        for reporter in self._reporters:
            with shield("ledger.report"):
                reporter.outcome(evaluator, outcome, reason)

    def delivered(self, evaluator: EvaluatorInfo, carrier: str) -> None:
        """A scored pair left by ``carrier``, its first."""
        with self._lock:
            self._of(evaluator).delivered[carrier] += 1

    def undelivered(self, evaluator: EvaluatorInfo, reason: str) -> None:
        """A scored pair could not leave."""
        with self._lock:
            self._of(evaluator).undelivered[reason] += 1

    def also(self, evaluator: EvaluatorInfo, carrier: str) -> None:
        """A score left by a second carrier."""
        with self._lock:
            self._of(evaluator).also[carrier] += 1

    def canary(self, evaluator: EvaluatorInfo, result: str) -> None:
        """A sample whose verdict is known was graded, or was not."""
        with self._lock:
            self._of(evaluator).canaries[result] += 1

    def repaired(self, evaluator: EvaluatorInfo, result: str, times: int) -> None:
        """Replies of a judge could not be read, and it was asked once more for each."""
        with self._lock:
            self._of(evaluator).repairs[result] += times

    def close(self, reason: str) -> None:
        """Nothing will be exported any more: what is still in flight could not leave."""
        with self._lock:
            for counts in self._counts.values():
                if counts.in_flight > 0:
                    counts.undelivered[reason] += counts.in_flight

    def snapshot(self) -> dict[str, Counts]:
        """A consistent copy, by evaluator key."""
        with self._lock:
            return {
                key: Counts(
                    c.name,
                    c.met,
                    c.outcomes.copy(),
                    c.delivered.copy(),
                    c.undelivered.copy(),
                    c.also.copy(),
                    c.canaries.copy(),
                    c.repairs.copy(),
                )
                for key, c in self._counts.items()
            }

    def after_fork(self) -> None:
        """In a forked child: the counts are the parent's, and so may be whoever held the lock."""
        self._lock = threading.RLock()
        self._counts = {}
        self.tally = Tally()
