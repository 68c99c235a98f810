"""Replies that could not be read and were asked for once more: counted, whatever became of the pair."""

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from spangrade.delivery.instruments import OutcomeInstruments
from spangrade.judges import JudgeRequest
from spangrade.judges.cascade import Cascade
from spangrade.judges.live import live
from spangrade.model.outcome import Outcome
from spangrade.testing import ScriptedJudgeClient

from .conftest import PASSING, call_span, judge

RUBBISH = "I would rather not use JSON today."


def run(harness: Any, evaluator: Any, calls: int = 1, **policy: Any) -> Any:
    h = harness(live(evaluator, rate=1.0, **policy), judge_threads=1, judge_limit=1)
    for n in range(1, calls + 1):
        h.send(call_span(n))
    assert h.pipeline.drain(20, judges=True)
    h.pipeline.shutdown(20)
    return h


def test_repairs_are_counted_by_whether_they_helped(harness: Any) -> None:
    client = ScriptedJudgeClient(PASSING, RUBBISH, PASSING, RUBBISH, RUBBISH)
    counts = run(harness, judge(client), calls=3).counts("helpful")
    assert (counts.of(Outcome.SCORED), counts.of(Outcome.ERROR)) == (2, 1)
    assert counts.repairs == {"mended": 1, "in_vain": 1}


def test_without_repairs_nothing_is_counted(harness: Any) -> None:
    assert not run(harness, judge(ScriptedJudgeClient(PASSING)), calls=3).counts("helpful").repairs


def test_those_of_all_judges_of_a_cascade_are_counted(harness: Any) -> None:
    cascade = Cascade(
        [
            judge(ScriptedJudgeClient(RUBBISH, RUBBISH), name="cheap"),
            judge(ScriptedJudgeClient(RUBBISH, PASSING), name="strong"),
        ]
    )
    assert run(harness, cascade).counts("strong").repairs == {"mended": 2}


def test_those_of_canaries_are_counted(harness: Any) -> None:
    def answer(request: JudgeRequest) -> Any:
        first = len(request.messages) == 2
        return RUBBISH if first and "known good" in request.messages[1].content else PASSING

    known = {"input": "2+2", "output": "known good", "verdict": "pass"}
    judged = judge(ScriptedJudgeClient(answer, answer))
    counts = run(harness, judged, calls=20, canaries=[known], canary_rate=1.0).counts("helpful")
    assert counts.canaries["right"] > 0
    assert counts.repairs == {"mended": counts.canaries["right"]}


def test_the_instrument_says_judge_and_result(harness: Any) -> None:
    reader = InMemoryMetricReader()
    h = run(harness, judge(ScriptedJudgeClient(RUBBISH, PASSING)))
    OutcomeInstruments(h.pipeline.ledger, MeterProvider([reader]))
    data = reader.get_metrics_data()
    assert data is not None
    points = [
        (dict(point.attributes or {}), point.value)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "spangrade.judge.repairs"
        for point in metric.data.data_points
    ]
    assert points == [({"evaluator": "helpful", "result": "mended"}, 1)]
