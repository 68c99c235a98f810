"""Outcomes and delivery as OpenTelemetry instruments; free when the application has no MeterProvider.

| instrument | what |
|---|---|
| ``spangrade.pairs`` | counter of (sample, evaluator) pairs by evaluator, outcome and reason |
| ``spangrade.pairs.met`` | observable: pairs whose target was met, by evaluator |
| ``spangrade.pairs.pending`` | observable: pairs that have not ended, by evaluator |
| ``spangrade.scores.delivered`` | observable: scored pairs that left, by evaluator and carrier |
| ``spangrade.scores.undelivered`` | observable: scored pairs that could not leave, by evaluator and reason |
"""

from collections.abc import Callable, Iterable

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome
from spangrade.scoring.outcomes import Counts, Ledger
from spangrade.semconv import SCOPE


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
        ledger.report_to(self)

    def outcome(self, evaluator: EvaluatorInfo, outcome: Outcome, reason: str) -> None:
        """One pair ended."""
        self._pairs.add(1, {"evaluator": evaluator.name, "outcome": outcome.value, "reason": reason})
