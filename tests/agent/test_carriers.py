"""The agent's late scores are counted by what became of the evaluation span that carries them (promise 3)."""

from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.hold import Held
from spangrade.delivery.sink import SpanSink
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome, ScoreRecord, SpanRef
from spangrade.model.score import Graded
from spangrade.scoring.outcomes import Counts, Ledger
from spangrade_agent.carriers import AgentCarriers, Origin

INFO = EvaluatorInfo("late")


class Queue:
    """In the place of a `ForwardQueue`: keeps the tokens, and says only when it is asked what became of them."""

    def __init__(self, *, takes: bool = True) -> None:
        self.tokens: list[Any] = []
        self._takes = takes

    def put(self, body: bytes, token: Any = None, *, force: bool = False) -> bool:
        if self._takes:
            self.tokens.append(token)
        return self._takes


def late_scores(carriers: AgentCarriers) -> Ledger:
    """A span that has left gets two scores of one evaluator."""
    ledger = Ledger()
    sink = SpanSink(ledger, carriers)
    carriers.sink = sink
    held = Held(Origin(ResourceSpans(), ScopeSpans(), Span()), None, 0, 0.0, gone=True)
    records = [ScoreRecord(SpanRef(1, 2), INFO, Graded(name, 1.0, None), 1) for name in ("one", "two")]
    ledger.met(INFO)
    ledger.ended(INFO, Outcome.SCORED)
    sink.scores(held, INFO, records, True)
    return ledger


def counts(ledger: Ledger) -> Counts:
    return ledger.snapshot()["late"]


@pytest.mark.parametrize(
    ("answers", "delivered", "undelivered"),
    [
        ([True, True], {"evaluation_span": 1}, {}),
        ([True, False], {}, {"bad_request": 1}),
        ([False, True], {}, {"bad_request": 1}),
    ],
)
def test_a_late_score_is_in_flight_until_the_upstream_has_answered_for_all_its_spans(
    answers: list[bool], delivered: dict[str, int], undelivered: dict[str, int]
) -> None:
    carriers, traces = AgentCarriers(ContentPolicy()), Queue()
    carriers.connect(traces, Queue())  # type: ignore[arg-type]
    carriers._logs_open = False  # the destination takes none
    ledger = late_scores(carriers)
    assert len(traces.tokens) == 2
    assert counts(ledger).in_flight == 1
    for token, ok in zip(traces.tokens, answers, strict=True):
        carriers.traces_sent([token], ok, "" if ok else "bad_request")
    assert (counts(ledger).delivered, counts(ledger).undelivered) == (delivered, undelivered)


def test_a_queue_that_takes_nothing_more_leaves_it_undelivered() -> None:
    carriers = AgentCarriers(ContentPolicy())
    carriers.connect(Queue(takes=False), Queue(takes=False))  # type: ignore[arg-type]
    carriers._logs_open = False
    ledger = late_scores(carriers)
    assert (counts(ledger).delivered, counts(ledger).undelivered) == ({}, {"no_carrier": 1})


def test_without_a_destination_the_page_has_it() -> None:
    ledger = late_scores(AgentCarriers(ContentPolicy()))
    assert counts(ledger).delivered == {"evaluation_span": 1}
