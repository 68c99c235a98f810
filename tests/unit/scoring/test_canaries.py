"""Canaries: samples with a known verdict, graded at a low rate beside production traffic; only counted."""

from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from spangrade.delivery.instruments import OutcomeInstruments
from spangrade.errors import ConfigError, JudgeError
from spangrade.judges import JudgeReply, JudgeRequest
from spangrade.judges.live import live
from spangrade.model.outcome import Outcome
from spangrade.testing import ScriptedJudgeClient

from .conftest import PASSING, call_span, judge

FAILING = PASSING.replace("pass", "fail")
GOOD = {"input": "2+2", "output": "known good", "verdict": "pass"}
BAD = {"input": "2+2", "output": "known bad", "verdict": "fail"}


def says(known_good: Any, known_bad: Any) -> Any:
    """A judge's client that passes all traffic, and says this of the canaries."""

    def answer(request: JudgeRequest) -> Any:
        text = request.messages[1].content
        return known_good if "known good" in text else known_bad if "known bad" in text else PASSING

    return ScriptedJudgeClient(answer, answer)


def run(harness: Any, client: Any, calls: int = 40, **policy: Any) -> Any:
    placed = live(judge(client), rate=1.0, canaries=[GOOD, BAD], **{"canary_rate": 1.0, **policy})
    h = harness(placed, judge_threads=1, judge_limit=1)
    for n in range(1, calls + 1):
        h.send(call_span(n))
    assert h.pipeline.drain(20, judges=True)
    h.pipeline.shutdown(20)  # what was on its way is through, or is counted
    return h


@pytest.mark.parametrize(
    ("good", "bad", "expected"),
    [
        (PASSING, FAILING, {"right"}),
        (FAILING, PASSING, {"wrong"}),
        (PASSING, PASSING, {"right", "wrong"}),
        (JudgeError("connection", "down"), RuntimeError("a bug"), {"error"}),
        (JudgeReply("hm"), JudgeReply("hm"), {"error"}),
    ],
)
def test_a_judge_is_right_or_wrong_about_what_is_known(harness: Any, good: Any, bad: Any, expected: set[str]) -> None:
    h = run(harness, says(good, bad))
    counts = h.counts("helpful")
    assert set(counts.canaries) - {"unasked"} == expected
    assert counts.canaries.total() == 40
    assert counts.met == counts.of(Outcome.SCORED) == 40
    assert {r.graded.passed for r in h.sink.records} == {True}
    assert len(h.sink.records) == 40


def test_they_are_few_and_none_without_being_asked_for(harness: Any) -> None:
    h = run(harness, says(PASSING, FAILING), calls=200, canary_rate=0.1)
    assert 5 < h.counts("helpful").canaries.total() < 45
    plain = harness(live(judge(ScriptedJudgeClient(PASSING)), rate=1.0))
    plain.send(call_span())
    assert plain.pipeline.drain(20, judges=True)
    assert not plain.counts("helpful").canaries


def test_they_cost_what_samples_cost_and_are_not_asked_beyond_a_ceiling(harness: Any) -> None:
    client = says(PASSING, FAILING)
    h = run(harness, client, calls=10, budget={"calls_per_day": 6})
    assert len(client.requests) == 6
    counts = h.counts("helpful")
    assert counts.of(Outcome.SCORED) + counts.canaries["right"] == 6
    assert counts.canaries["unasked"] == 10 - counts.canaries["right"]


def test_a_judge_with_a_cache_is_asked_about_a_canary_each_time(harness: Any) -> None:
    client = says(PASSING, FAILING)
    placed = live(judge(client).with_cache(), rate=1.0, canaries=[GOOD], canary_rate=1.0)
    h = harness(placed, judge_threads=1, judge_limit=1)
    for _ in range(5):
        h.send(call_span(1))
        assert h.pipeline.drain(20, judges=True)
    h.pipeline.shutdown(20)
    asked = sum("known good" in request.messages[1].content for request in client.requests)
    assert asked == h.counts("helpful").canaries["right"] >= 2


def test_the_counter_tells_them(harness: Any) -> None:
    h = run(harness, says(PASSING, FAILING), calls=8)
    reader = InMemoryMetricReader()
    OutcomeInstruments(h.pipeline.ledger, MeterProvider([reader]))
    data = reader.get_metrics_data()
    assert data is not None
    (found,) = [m for m in data.resource_metrics[0].scope_metrics[0].metrics if m.name == "spangrade.judge.canaries"]
    told = {p.attributes["result"]: p.value for p in found.data.data_points}
    assert sum(told.values()) == 8
    assert told["right"] >= 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("text", "not a list"),
        ([3], "canary 1 is not a dict"),
        ([{"output": "x"}], "verdict None is not 'pass' or 'fail'"),
        ([GOOD, {"verdict": "pass"}], "canary 2 has no output"),
        ([{**GOOD, "label": 1}], "key 'label'"),
    ],
)
def test_what_is_no_canary_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        live(judge(ScriptedJudgeClient(PASSING)), canaries=given)
    with pytest.raises(ConfigError, match="canary_rate"):
        live(judge(ScriptedJudgeClient(PASSING)), canaries=[GOOD], canary_rate=2)
