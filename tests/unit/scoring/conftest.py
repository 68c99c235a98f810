"""A pipeline with a collecting sink, and spans for it."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from spangrade import semconv as s
from spangrade.judges.judge import LlmJudge
from spangrade.model.policy import Placed
from spangrade.model.span import SpanData
from spangrade.samples.window import Lineage
from spangrade.scoring.outcomes import Counts
from spangrade.scoring.pipeline import Pipeline, Settings
from spangrade.scoring.seam import Offer, Ticket
from spangrade.scoring.turn import Turn
from spangrade.testing import CollectingSink, FakeClock, ScriptedJudgeClient

PASSING = '{"reasoning": "fine", "verdict": "pass"}'


def call_span(n: int = 1, **attributes: Any) -> SpanData:
    """An ended chain call that is its own local root."""
    return SpanData(
        trace_id=n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128 or 1,
        span_id=n,
        parent_span_id=None,
        name="answer",
        start_ns=1_000,
        end_ns=2_000,
        attributes={s.OI_KIND: "CHAIN", s.OI_INPUT: f"question {n}", s.OI_OUTPUT: f"answer {n}", **attributes},
    )


def offer(span: SpanData) -> tuple[Offer, Ticket]:
    ticket = Ticket()
    return Offer(span, ticket, Lineage(span.span_id, False), 1_000.0), ticket


class Harness:
    """A pipeline with a collecting sink."""

    def __init__(
        self, *evaluators: Any, clock: FakeClock | None = None, sink: Any = None, on_fork: Any = None, **settings: Any
    ) -> None:
        self.sink = sink or CollectingSink()
        self.clock = clock or FakeClock()
        placed = [e if isinstance(e, Placed) else Placed(e) for e in evaluators]
        self.pipeline = Pipeline(placed, self.sink, Settings(**settings), self.clock, on_fork=on_fork)

    def send(self, span: SpanData) -> Ticket:
        one, ticket = offer(span)
        self.pipeline.offer(one)
        return ticket

    def counts(self, name: str) -> Counts:
        found = [c for c in self.pipeline.ledger.snapshot().values() if c.name == name]
        return found[0] if found else Counts(name)


def judge(client: ScriptedJudgeClient, name: str = "helpful", **options: Any) -> LlmJudge:
    return LlmJudge(name=name, criteria="is helpful", scale="binary", model="m", **options).with_client(client)


class Step:
    """A step that runs a function and says how it ended."""

    def __init__(self, turn: Turn, fn: Any = lambda: "ok") -> None:
        self.turn = turn
        self.fn = fn
        self.ended = threading.Event()
        self.how: Any = None

    def run(self) -> Any:
        return self.fn()

    def done(self, result: Any, fault: BaseException | None, duration_s: float) -> None:
        self.how = ("fault", type(fault)) if fault is not None else ("result", result)
        self.ended.set()

    def gave_up(self, why: str, duration_s: float) -> None:
        self.how = ("gave_up", why)
        self.ended.set()


@pytest.fixture
def harness() -> Iterator[Any]:
    made: list[Harness] = []

    def make(*evaluators: Any, **options: Any) -> Harness:
        made.append(Harness(*evaluators, **options))
        return made[-1]

    yield make
    for one in made:
        one.pipeline.shutdown(1.0)
