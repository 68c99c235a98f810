"""Outcomes and delivery as OpenTelemetry instruments; free when the application has no MeterProvider.

| instrument | what |
|---|---|
| ``spangrade.pairs`` | counter of (sample, evaluator) pairs by evaluator, outcome and reason |
| ``spangrade.pairs.met`` | observable: pairs whose target was met, by evaluator |
| ``spangrade.pairs.pending`` | observable: pairs that have not ended, by evaluator |
| ``spangrade.scores.delivered`` | observable: scored pairs that left, by evaluator and carrier |
| ``spangrade.scores.undelivered`` | observable: scored pairs that could not leave, by evaluator and reason |
| ``spangrade.judge.canaries`` | observable: samples with a known verdict, by evaluator and result (right, wrong, error, unasked) |
| ``spangrade.judge.repairs`` | observable: replies that could not be read and were asked for once more, by evaluator and result (mended, in_vain) |
| ``spangrade.judge.spent``, ``.reserved``, ``.left`` | observable: US dollars of a judge's budget, by evaluator and window (hour, day) |
| ``spangrade.judge.concurrency.limit``, ``.in_flight`` | observable: calls at once that an endpoint takes, and those under way, by endpoint (its host) |
| ``spangrade.judge.circuit`` | observable: 0 closed, 1 half open, 2 open (judges' pairs are dropped), by endpoint (its host) |
| ``spangrade.assembly.partial``, ``.sessions.partial`` | observable: samples and conversations that were decided as they were, by reason |
| ``spangrade.assembly.late`` | observable: what came after that, by what (call, turn) |
| ``spangrade.assembly.log_records`` | observable: log records with content, by result (joined, or the bound at which they were lost) |
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.gate import GateState, by_host
from spangrade.model.outcome import Outcome
from spangrade.samples.tally import COUNTED
from spangrade.scoring.outcomes import Counts, Ledger
from spangrade.semconv import SCOPE

_MONEY: Final = {
    "spent": "US dollars that a judge has spent in this window",
    "reserved": "US dollars held for calls under way",
    "left": "US dollars that may still be reserved",
}


def _money(ledger: Ledger, amount: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def callback(_options: CallbackOptions) -> Iterable[Observation]:
        for name, states in ledger.budgets().items():
            for state in states:
                window = state.kind.removeprefix("usd_per_")
                yield Observation(getattr(state, amount), {"evaluator": name, "window": window})

    return callback


CIRCUITS: Final = {"closed": 0, "half_open": 1, "open": 2}
_ENDPOINTS: Final[Mapping[str, tuple[str, str, Callable[[GateState], int]]]] = {
    "concurrency.limit": ("{call}", "Calls that an endpoint of judges takes at once, as found out", lambda s: s.limit),
    "concurrency.in_flight": ("{call}", "Calls to an endpoint of judges that are under way", lambda s: s.in_flight),
    "circuit": ("{state}", "Of an endpoint of judges: 0 closed, 1 half open, 2 open", lambda s: CIRCUITS[s.circuit]),
}


def _endpoints(ledger: Ledger, read: Callable[[GateState], int]) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def callback(_options: CallbackOptions) -> Iterable[Observation]:
        for state in by_host(ledger.endpoints()):
            yield Observation(read(state), {"endpoint": state.host})

    return callback


def _assembly(ledger: Ledger, counter: str, label: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def callback(_options: CallbackOptions) -> Iterable[Observation]:
        for value, number in dict(getattr(ledger.tally, counter)).items():
            yield Observation(number, {label: value})

    return callback


class OutcomeInstruments:
    """Reports a ledger to a meter provider."""

    def __init__(self, ledger: Ledger, provider: MeterProvider) -> None:
        meter = provider.get_meter(SCOPE)
        self._pairs = meter.create_counter(
            "spangrade.pairs", unit="{pair}", description="Ended (sample, evaluator) pairs by outcome"
        )

        def observed(
            read: Callable[[Counts], Iterable[tuple[int, dict[str, str]]]],
        ) -> Callable[[CallbackOptions], Iterable[Observation]]:
            def callback(_options: CallbackOptions) -> Iterable[Observation]:
                for counts in ledger.snapshot().values():
                    for value, extra in read(counts):
                        yield Observation(value, {"evaluator": counts.name, **extra})

            return callback

        meter.create_observable_counter(
            "spangrade.pairs.met", [observed(lambda c: [(c.met, {})])], "{pair}", "Pairs whose target was met"
        )
        meter.create_observable_up_down_counter(
            "spangrade.pairs.pending", [observed(lambda c: [(c.pending, {})])], "{pair}", "Pairs not ended yet"
        )
        meter.create_observable_counter(
            "spangrade.scores.delivered",
            [observed(lambda c: [(n, {"carrier": carrier}) for carrier, n in c.delivered.items()])],
            "{pair}",
            "Scored pairs that left, by carrier",
        )
        meter.create_observable_counter(
            "spangrade.scores.undelivered",
            [observed(lambda c: [(n, {"reason": reason}) for reason, n in c.undelivered.items()])],
            "{pair}",
            "Scored pairs that could not leave, by reason",
        )
        meter.create_observable_counter(
            "spangrade.judge.canaries",
            [observed(lambda c: [(n, {"result": result}) for result, n in c.canaries.items()])],
            "{sample}",
            "Samples with a known verdict that a judge was asked about, by result",
        )
        meter.create_observable_counter(
            "spangrade.judge.repairs",
            [observed(lambda c: [(n, {"result": result}) for result, n in c.repairs.items()])],
            "{call}",
            "Judges' replies that could not be read and were asked for once more, by result",
        )
        for name, said in _MONEY.items():
            meter.create_observable_gauge(f"spangrade.judge.{name}", [_money(ledger, name)], "{USD}", said)
        for name, (unit, said, read) in _ENDPOINTS.items():
            meter.create_observable_gauge(f"spangrade.judge.{name}", [_endpoints(ledger, read)], unit, said)
        for what, (counter, label, said) in COUNTED.items():
            observed_counts = [_assembly(ledger, counter, label)]
            meter.create_observable_counter(f"spangrade.assembly.{what}", observed_counts, "{item}", said)
        ledger.report_to(self)

    def outcome(self, evaluator: EvaluatorInfo, outcome: Outcome, reason: str) -> None:
        """One pair ended."""
        self._pairs.add(1, {"evaluator": evaluator.name, "outcome": outcome.value, "reason": reason})
