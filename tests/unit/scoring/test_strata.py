"""Judges whose rate depends on the sample: who is graded, what the score says of it, and that every pair is counted."""

from collections import Counter
from typing import Any

from spangrade.judges.live import live
from spangrade.metrics.local import LocalMetric
from spangrade.model.outcome import Outcome
from spangrade.testing import ScriptedJudgeClient

from .conftest import PASSING, call_span, judge

EVEN = LocalMetric(lambda sample: int(str(sample.output).split()[-1]) % 2 == 0, name="even")
SIZE = LocalMetric(lambda sample: float(str(sample.output).split()[-1]), name="size", verdict=False)


def test_all_that_failed_are_graded_and_a_share_of_the_rest_each_with_its_own_probability(harness: Any) -> None:
    client = ScriptedJudgeClient(PASSING)
    h = harness(EVEN, live(judge(client), rate={"even.fail": 1.0, "else": 0.1}))
    for n in range(1, 401):
        h.send(call_span(n))
    assert h.pipeline.drain(20, judges=True)
    graded = [r for r in h.sink.records if r.graded.name == "helpful"]
    by_reason = Counter((r.selection_reason, r.probability) for r in graded)
    assert by_reason["even.fail", 1.0] == 200
    assert 5 < by_reason["else", 0.1] < 40
    counts = h.counts("helpful")
    assert counts.met == 400
    assert counts.of(Outcome.SCORED) == len(client.requests) == len(graded)
    assert counts.outcomes[Outcome.NOT_SAMPLED, "else"] == 400 - len(graded)


def test_a_sample_of_no_stratum_is_not_graded(harness: Any) -> None:
    client = ScriptedJudgeClient(PASSING)
    h = harness(SIZE, live(judge(client), rate={"size >= 7": 1.0}))
    for n in range(1, 9):
        h.send(call_span(n))
    assert h.pipeline.drain(10, judges=True)
    assert len(client.requests) == 2
    assert h.counts("helpful").outcomes[Outcome.NOT_SAMPLED, "when"] == 6


def test_the_spans_attributes_and_a_function_of_the_applications_decide_too(harness: Any) -> None:
    first, second = ScriptedJudgeClient(PASSING), ScriptedJudgeClient(PASSING)
    h = harness(
        EVEN,
        live(judge(first, "of_chat"), rate=1.0, when="attributes.http.route = /chat*"),
        live(judge(second, "by_code"), rate=1.0, when=lambda sample, results: results["even"] == "pass"),
    )
    for n in range(1, 9):
        h.send(call_span(n, **{"http.route": "/chat/1" if n <= 3 else "/other"}))
    assert h.pipeline.drain(10, judges=True)
    assert (len(first.requests), len(second.requests)) == (3, 4)
    for name, left in (("of_chat", 5), ("by_code", 4)):
        assert h.counts(name).outcomes[Outcome.NOT_SAMPLED, "when"] == left
        assert h.counts(name).pending == 0


def test_a_condition_of_the_applications_that_raises_is_that_pairs_error(harness: Any) -> None:
    client = ScriptedJudgeClient(PASSING)
    h = harness(live(judge(client), rate=1.0, when=lambda sample, results: 1 / 0 > 0))
    h.send(call_span())
    assert h.pipeline.drain(10, judges=True)
    assert h.counts("helpful").outcomes[Outcome.ERROR, "ZeroDivisionError"] == 1
    assert client.requests == []
