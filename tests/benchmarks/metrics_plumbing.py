"""What a metric costs beside its function: `LocalMetric.evaluate`, and one (sample, metric) pair in the pipeline.

``make bench-plumbing``, or ``python -m tests.benchmarks.metrics_plumbing``. A thousand metrics that do nothing are run on
one Sample: as plain functions, by `evaluate`, and by the pipeline, from the offered span to the sink. Rounds are interleaved, what is
printed is the median; on a machine that others use too the ratios say more than the microseconds. Processor time, since
the pipeline works on threads of its own.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from spangrade import semconv as s
from spangrade.metrics.local import LocalMetric
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import ScoreRecord
from spangrade.model.policy import Placed
from spangrade.model.sample import Sample
from spangrade.model.score import Score
from spangrade.model.span import SpanData
from spangrade.samples.window import Lineage
from spangrade.scoring.pipeline import Pipeline, Settings
from spangrade.scoring.seam import Offer, Ticket

METRICS = 1_000
LIMIT_US = 2.0

numbers = itertools.count(0.25)

KINDS: dict[str, Callable[..., Any]] = {
    "a number, by name": lambda output: 0.5,
    "each time another one": lambda output: next(numbers),
    "a bool, of the sample": lambda sample: True,
    "a label": lambda output: "good",
    "a Score, explained": lambda output: Score(0.5, explanation="why"),
}


class Sink:
    """Takes everything and keeps nothing: what is measured ends where a host begins."""

    def expect(self, ticket: Ticket, pairs: int) -> None: ...

    def until(self, ticket: Ticket, deadline: float) -> None: ...

    def taken(self, ticket: Ticket, evaluators: Sequence[EvaluatorInfo]) -> None: ...

    def scores(
        self, ticket: Ticket, evaluator: EvaluatorInfo, records: Sequence[ScoreRecord], scored: bool
    ) -> None: ...

    def settle(self, ticket: Ticket) -> None: ...

    def expire(self, now: float) -> float | None:
        return None

    def release_all(self) -> None: ...


def per_call(work: Callable[[], Any]) -> float:
    """Microseconds of processor time for each of `METRICS` calls."""
    began = time.process_time_ns()
    work()
    return (time.process_time_ns() - began) / METRICS / 1_000


def plain(functions: Sequence[Callable[[Any], Any]], argument: Any) -> None:
    for fn in functions:
        fn(argument)


def graded(metrics: Sequence[LocalMetric], sample: Sample) -> None:
    for metric in metrics:
        metric.evaluate(sample)


def piped(pipeline: Pipeline, number: int) -> None:
    attributes = {s.OI_KIND: "CHAIN", s.OI_INPUT: "q", s.OI_OUTPUT: "a"}
    span = SpanData(number, number, None, "answer", 0, 1, attributes)
    pipeline.offer(Offer(span, Ticket(), Lineage(number, False), time.monotonic()))
    assert pipeline.drain(60, judges=False)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    sample = Sample(input="q", output="a")
    print(f"{METRICS} metrics on one Sample, {rounds} rounds, median processor time in µs for each metric")
    print(f"{'returns':24}{'function':>10}{'evaluate':>10}{'beside':>8}{'pipeline':>10}{'beside':>8}{'x function':>12}")
    for kind, fn in KINDS.items():
        metrics = [LocalMetric(fn, name=f"m{n}") for n in range(METRICS)]
        functions, argument = [fn] * METRICS, "a" if "sample" not in kind else sample
        pipeline = Pipeline([Placed(m) for m in metrics], Sink(), Settings(metric_hold=3600))
        times: list[tuple[float, float, float]] = []
        for number in range(1, rounds + 3):
            one = per_call(lambda: plain(functions, argument))  # noqa: B023
            two = per_call(lambda: graded(metrics, sample))  # noqa: B023
            three = per_call(lambda: piped(pipeline, number))  # noqa: B023
            times.append((one, two, three))
        pipeline.shutdown(5)
        (counts,) = {c.pending for c in pipeline.ledger.snapshot().values()}
        assert counts == 0
        by, evaluate, pipe = (statistics.median(column) for column in zip(*times[2:], strict=True))
        print(
            f"{kind:24}{by:>10.2f}{evaluate:>10.2f}{evaluate - by:>8.2f}{pipe:>10.2f}{pipe - by:>8.2f}{evaluate / by:>12.1f}"
        )
    print(f"the issue's bound for what evaluate costs beside the function: {LIMIT_US:g} µs")


if __name__ == "__main__":
    main()
