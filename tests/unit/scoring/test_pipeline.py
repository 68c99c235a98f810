"""The pipeline: every pair accounted for, whatever evaluators do."""

import json
import threading
from typing import Any

import pytest

from spangrade import semconv as s
from spangrade.judges.live import live
from spangrade.metrics.local import LocalMetric, metric
from spangrade.model.evaluator import EvaluatorInfo, Failure, Verdict
from spangrade.model.outcome import Outcome
from spangrade.model.policy import Placed
from spangrade.model.sample import Sample
from spangrade.model.score import Graded, Score
from spangrade.scoring.pipeline import Pipeline
from spangrade.testing import CollectingSink, FakeClock, ScriptedJudgeClient

from .conftest import PASSING, call_span, judge, offer


def test_a_call_is_scored_by_every_metric_and_its_span_waits_for_all(harness: Any) -> None:
    h = harness(metric(name="length")(lambda output: len(output) * 1), LocalMetric(lambda sample: True, name="yes"))
    ticket = h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    assert {r.graded.name: r.graded.value for r in h.sink.records} == {"length": 8.0, "yes": 1.0}
    assert h.sink.waiting[ticket] == 0
    assert h.sink.marks[ticket] == ["length", "yes"]


def test_a_metric_that_raises_exits_or_returns_rubbish_is_an_error_and_the_rest_score(harness: Any) -> None:
    def raises(sample: Sample) -> float:
        return 1 / 0

    def leaves(sample: Sample) -> None:
        raise SystemExit(1)

    def rubbish(sample: Sample) -> object:
        return object()

    h = harness(metric(raises), metric(leaves), metric(rubbish), LocalMetric(lambda sample: 1, name="fine"))
    for n in range(1, 6):
        h.send(call_span(n))
    assert h.pipeline.drain(5, judges=True)
    errors = {r.graded.name: r.error_type for r in h.sink.records if r.error_type}
    assert errors == {"raises": "ZeroDivisionError", "leaves": "SystemExit", "rubbish": "ReturnError"}
    assert all(r.graded.value is None and r.graded.label is None for r in h.sink.records if r.error_type)
    assert h.counts("fine").of(Outcome.SCORED) == 5
    for name in errors:
        assert h.counts(name).of(Outcome.ERROR) == h.counts(name).met == 5


def test_a_metric_cannot_change_what_others_see(harness: Any) -> None:
    seen: list[Any] = []

    def mutates(sample: Sample) -> float:
        sample.context["messages"] = "mine now"
        return 1.0

    def rebinds(sample: Sample) -> float:
        sample.output = "mine"  # type: ignore[misc]
        return 1.0

    h = harness(
        metric(mutates), metric(rebinds), LocalMetric(lambda sample: seen.append(sample.output) or 1, name="last")
    )
    h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    assert seen == ["answer 1"]
    assert h.counts("mutates").of(Outcome.ERROR) == h.counts("rebinds").of(Outcome.ERROR) == 1


def test_a_metric_that_hangs_ends_as_timeout_and_the_others_score_all(harness: Any) -> None:
    release, started = threading.Event(), threading.Event()

    def hangs(sample: Sample) -> float:
        started.set()
        release.wait()
        return 1.0

    h = harness(LocalMetric(hangs, timeout=2.0), LocalMetric(lambda s: 1, name="fine"))
    for n in range(1, 21):
        h.send(call_span(n))
    assert started.wait(5)
    while h.counts("fine").of(Outcome.SCORED) < 20:  # stand-ins come on the timer's tick
        h.clock.advance(0.1)
        h.pipeline.tick()
    while h.counts("hangs").pending:
        h.clock.advance(2.5)
        h.pipeline.tick()
    hung = h.counts("hangs")
    assert hung.met == 20
    assert hung.of(Outcome.TIMEOUT) >= 3
    assert hung.of(Outcome.TIMEOUT) + hung.of(Outcome.DROPPED) == 20
    release.set()


def test_an_async_metric_runs_on_our_loop(harness: Any) -> None:
    import asyncio

    async def later(output: str) -> float:
        await asyncio.sleep(0)
        return 0.75

    async def fails(output: str) -> float:
        raise ValueError("no")

    h = harness(metric(later), metric(fails))
    h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    assert {(r.graded.name, r.graded.value, r.error_type) for r in h.sink.records} == {
        ("later", 0.75, None),
        ("fails", None, "ValueError"),
    }


def test_a_missing_field_is_skipped_and_not_sent(harness: Any) -> None:
    h = harness(metric(requires=["documents"])(lambda documents: 1.0))
    h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    assert h.sink.records == []
    assert h.counts("<lambda>").outcomes == {(Outcome.SKIPPED, "documents missing"): 1}


def test_a_judge_grades_the_selected_few_and_the_rest_are_counted(harness: Any) -> None:
    client = ScriptedJudgeClient(PASSING)
    h = harness(live(judge(client), rate=0.25))
    for n in range(1, 201):
        h.send(call_span(n))
    assert h.pipeline.drain(10, judges=True)
    counts = h.counts("helpful")
    assert counts.met == 200
    assert counts.of(Outcome.SCORED) == len(client.requests) == len(h.sink.records)
    assert counts.of(Outcome.NOT_SAMPLED) == 200 - len(client.requests)
    assert 25 < len(client.requests) < 80
    assert {r.probability for r in h.sink.records} == {0.25}


def test_a_judge_can_wait_for_a_metric_that_failed(harness: Any) -> None:
    client = ScriptedJudgeClient(PASSING)
    even = LocalMetric(lambda sample: int(str(sample.output)[-1]) % 2 == 0, name="even")
    h = harness(even, live(judge(client), rate=1.0, when="even.fail"))
    for n in range(1, 9):
        h.send(call_span(n))
    assert h.pipeline.drain(10, judges=True)
    counts = h.counts("helpful")
    assert counts.of(Outcome.SCORED) == len(client.requests) == 4
    assert counts.outcomes[Outcome.NOT_SAMPLED, "when"] == 4


def test_a_judge_that_fails_gives_an_error_and_no_number(harness: Any) -> None:
    client = ScriptedJudgeClient("I would rather not say")
    h = harness(live(judge(client), rate=1.0))
    h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    (record,) = h.sink.records
    assert record.error_type == "unparseable"
    assert record.graded.value is None


def test_a_call_budget_ends_as_over_budget(harness: Any) -> None:
    client = ScriptedJudgeClient(PASSING)
    h = harness(live(judge(client), rate=1.0, budget={"calls_per_hour": 3}))
    for n in range(1, 11):
        h.send(call_span(n))
    assert h.pipeline.drain(5, judges=True)
    assert len(client.requests) == 3
    assert h.counts("helpful").of(Outcome.OVER_BUDGET) == 7


def test_a_pair_that_somebody_has_taken_is_not_scored_again(harness: Any) -> None:
    h = harness(LocalMetric(lambda s: 1, name="mine"), LocalMetric(lambda s: 1, name="theirs"))
    h.send(call_span(**{s.SCORED_BY: ("theirs",)}))
    assert h.pipeline.drain(5, judges=True)
    assert [r.graded.name for r in h.sink.records] == ["mine"]
    assert h.counts("theirs").met == 0


def test_a_judges_own_traffic_is_never_scored(harness: Any) -> None:
    h = harness(LocalMetric(lambda s: 1, name="m"))
    messages = json.dumps([{"role": "system", "parts": [{"type": "text", "content": f"{s.JUDGE_MARKER} grade"}]}])
    ticket = h.send(call_span(**{s.OI_KIND: "LLM", s.OPERATION_NAME: "chat", s.INPUT_MESSAGES: messages}))
    assert h.pipeline.drain(5, judges=True)
    assert h.counts("m").met == 0
    assert h.sink.waiting[ticket] == 0


def test_ten_times_more_than_the_workers_can_do_is_dropped_counted_and_bounded(harness: Any) -> None:
    gate, started = threading.Event(), threading.Event()

    def slow(sample: Sample) -> float:
        started.set()
        gate.wait()
        return 1.0

    h = harness(LocalMetric(slow, timeout=60), max_steps=10)
    for n in range(1, 101):
        h.send(call_span(n))
    assert started.wait(5)
    while h.counts("slow").met < 100:
        h.pipeline.tick()
    counts = h.counts("slow")
    assert counts.outcomes[Outcome.DROPPED, "queue_full"] >= 100 - 10 - 18
    assert counts.met == 100 == counts.pending + counts.of(Outcome.DROPPED)
    gate.set()
    assert h.pipeline.drain(5, judges=True)
    counts = h.counts("slow")
    assert counts.pending == 0
    assert counts.of(Outcome.SCORED) + counts.of(Outcome.DROPPED) == 100
    assert all(left == 0 for left in h.sink.waiting.values())


def test_shutdown_in_the_middle_leaves_no_pair_pending(harness: Any) -> None:
    gate, started = threading.Event(), threading.Event()

    def slow(sample: Sample) -> float:
        started.set()
        gate.wait()
        return 1.0

    h = harness(LocalMetric(slow, timeout=60), LocalMetric(lambda s: 1, name="fine"))
    for n in range(1, 31):
        h.send(call_span(n))
    assert started.wait(5)
    assert not h.pipeline.shutdown(0.2)
    for name in ("slow", "fine"):
        counts = h.counts(name)
        assert counts.pending == 0
        assert counts.met == 30
    assert h.counts("slow").of(Outcome.DROPPED) == 30
    one, _ = offer(call_span(99))
    assert not h.pipeline.offer(one)
    assert h.counts("slow").outcomes[Outcome.DROPPED, "shutdown"] == 31
    gate.set()


def test_the_judge_sees_redacted_text_and_the_metric_the_text_itself() -> None:
    client, seen, sink = ScriptedJudgeClient(PASSING), [], CollectingSink()
    local = LocalMetric(lambda sample: seen.append(sample.output) or 1, name="local")
    pipeline = Pipeline(
        [Placed(local), live(judge(client), rate=1.0)],
        sink,
        clock=FakeClock(),
        redact=lambda t: t.replace("answer", "XXX"),
    )
    pipeline.offer(offer(call_span())[0])
    assert pipeline.drain(5, judges=True)
    assert seen == ["answer 1"]
    assert "XXX 1" in client.requests[0].messages[-1].content
    assert "answer 1" not in client.requests[0].messages[-1].content
    pipeline.shutdown(1)


def test_nothing_is_sent_to_a_judge_when_redaction_fails() -> None:
    client, sink = ScriptedJudgeClient(PASSING), CollectingSink()

    def broken(text: str) -> str:
        raise KeyError("pattern")

    pipeline = Pipeline([live(judge(client), rate=1.0)], sink, clock=FakeClock(), redact=broken)
    pipeline.offer(offer(call_span())[0])
    assert pipeline.drain(5, judges=True)
    assert client.requests == []
    assert [r.error_type for r in sink.records] == ["redaction_failed"]
    pipeline.shutdown(1)


def test_scores_that_a_metric_makes_of_itself_are_several_scores_of_one_pair(harness: Any) -> None:
    h = harness(LocalMetric(lambda s: {"a": 1, "b": Score(0.2, explanation="low"), "c": None}, name="m"))
    h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    assert {r.graded.name for r in h.sink.records} == {"m.a", "m.b"}
    assert h.counts("m").of(Outcome.SCORED) == 1


class Partial:
    """An evaluator whose verdict is given."""

    def __init__(self, verdict: Verdict, name: str = "m") -> None:
        self.info = EvaluatorInfo(name)
        self.timeout = 5.0
        self.is_async = False
        self._verdict = verdict

    def evaluate(self, sample: Sample) -> Verdict:
        return self._verdict


A_FAILURE = Failure("m.b", "ZeroDivisionError", "division by zero")


def test_a_score_that_failed_leaves_as_an_error_of_its_own_name_beside_the_others(harness: Any) -> None:
    verdict = Verdict((Graded("m.a", 0.5, "pass", True), Graded("m.c", 1.0)), failures=(A_FAILURE,))
    h = harness(Partial(verdict))
    h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    assert [(r.graded.name, r.graded.value, r.error_type) for r in h.sink.records] == [
        ("m.a", 0.5, None),
        ("m.c", 1.0, None),
        ("m.b", None, "ZeroDivisionError"),
    ]
    failed = h.sink.records[-1]
    assert (failed.graded.label, failed.graded.explanation) == (None, "division by zero")
    assert len({r.score_id for r in h.sink.records}) == 3
    assert h.counts("m").outcomes == {(Outcome.SCORED, ""): 1}


def test_a_verdict_of_failures_alone_is_an_error_and_each_leaves(harness: Any) -> None:
    h = harness(Partial(Verdict((), failures=(A_FAILURE, Failure("m.c", "ReturnError", "no number")))))
    h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    assert [(r.graded.name, r.error_type) for r in h.sink.records] == [
        ("m.b", "ZeroDivisionError"),
        ("m.c", "ReturnError"),
    ]
    assert all(r.graded.value is None and r.graded.label is None for r in h.sink.records)
    assert h.counts("m").outcomes == {(Outcome.ERROR, "ZeroDivisionError"): 1}


def test_a_verdict_of_nothing_at_all_is_an_error(harness: Any) -> None:
    h = harness(Partial(Verdict(())))
    h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    assert [(r.graded.name, r.error_type) for r in h.sink.records] == [("m", "no_verdict")]


@pytest.mark.parametrize(
    ("scores", "when", "runs"),
    [
        ((Graded("m.a", 0.5, "pass", True),), "m.pass", True),  # those that gave a verdict speak for the metric
        ((Graded("m.a", 0.5, "pass", True),), "m.b.error", True),
        ((Graded("m.a", 0.5, "pass", True),), "m.a.pass", True),
        ((Graded("m.a", 0.0, "fail", False),), "m.fail", True),
        ((Graded("m.a", 0.0, "fail", False),), "m.error", False),
        ((Graded("m.a", 0.5),), "m.error", True),  # none did: what failed does
        ((), "m.error", True),
        ((), "m.b.error", True),
        ((), "m.a.error", False),
    ],
)
def test_a_judge_can_wait_for_a_metric_or_for_one_of_its_scores(
    harness: Any, scores: tuple[Graded, ...], when: str, runs: bool
) -> None:
    client = ScriptedJudgeClient(PASSING)
    h = harness(Partial(Verdict(scores, failures=(A_FAILURE,))), live(judge(client), rate=1.0, when=when))
    h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    assert len(client.requests) == runs
