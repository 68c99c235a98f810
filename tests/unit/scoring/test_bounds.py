"""Bounds: bytes, judges' threads, flushes under traffic, and what a refusal costs."""

import threading
from typing import Any

import pytest

from spangrade import semconv as s
from spangrade.errors import JudgeError
from spangrade.judges.live import live
from spangrade.metrics.local import LocalMetric
from spangrade.model.outcome import Outcome
from spangrade.model.policy import Placed
from spangrade.model.sample import Sample
from spangrade.model.span import EventData, SpanData
from spangrade.samples import extract as extract_module
from spangrade.samples.window import Lineage
from spangrade.scoring.open_pairs import OpenPairs
from spangrade.scoring.room import FLAT
from spangrade.scoring.seam import Offer, Ticket
from spangrade.testing import ScriptedJudgeClient

from .conftest import PASSING, call_span, judge


class Gated:
    """A metric that waits."""

    def __init__(self) -> None:
        self.gate, self.started = threading.Event(), threading.Event()
        self.metric = LocalMetric(self._run, name="slow", timeout=60)

    def _run(self, sample: Sample) -> float:
        self.started.set()
        self.gate.wait()
        return 1.0


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_an_offer_knows_about_how_many_bytes_it_is_unless_the_host_says() -> None:
    span = SpanData(1, 1, None, "s", 0, 1, {"a": "x" * 1000}, events=[EventData("e", {"b": "y" * 500, "n": 7})])
    counted = Offer(span, None, None, 0.0)
    assert FLAT + 1500 <= counted.size <= FLAT + 1500 + 64 * 3
    assert Offer(span, None, None, 0.0, size=77).size == 77


def test_what_waits_in_the_pipeline_is_bounded_in_bytes_and_the_rest_is_counted_as_overload(harness: Any) -> None:
    slow = Gated()
    h = harness(slow.metric, max_bytes=60_000)
    taken = []
    for n in range(1, 101):
        taken.append(h.pipeline.offer(Offer(call_span(n, pad="x" * 10_000), Ticket(), Lineage(n, False), 0.0)))
    assert 1 <= sum(taken) <= 5
    assert slow.started.wait(5)
    assert h.counts("slow").outcomes[Outcome.DROPPED, "overload"] == 100 - sum(taken)
    slow.gate.set()
    assert h.pipeline.drain(5, judges=True)
    counts = h.counts("slow")
    assert (counts.met, counts.pending, counts.of(Outcome.SCORED)) == (100, 0, sum(taken))
    assert h.pipeline._jobs.room.used == 0
    assert h.pipeline.offer(Offer(call_span(101), Ticket(), Lineage(101, False), 0.0))


def test_spans_that_make_no_sample_give_their_room_back(harness: Any) -> None:
    h = harness(LocalMetric(lambda sample: 1, name="m"))
    span = SpanData(1, 1, None, "GET /", 0, 1, {"http.method": "GET"})
    h.pipeline.offer(Offer(span, Ticket(), Lineage(1, False), 0.0))
    assert h.pipeline.drain(5, judges=True)
    assert h.pipeline._jobs.room.used == 0


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_refusal_reads_no_content_on_the_applications_thread(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(span: SpanData) -> None:
        raise AssertionError("content was read")  # the guard's catch would fail the test

    h = harness(LocalMetric(lambda sample: 1, name="m"), max_offers=0)
    monkeypatch.setattr(extract_module, "_extract", read)
    h.send(call_span())
    assert h.counts("m").outcomes == {(Outcome.DROPPED, "overload"): 1}


def test_a_refusal_counts_the_evaluators_that_the_span_would_have_met_and_no_others(harness: Any) -> None:
    h = harness(
        LocalMetric(lambda sample: 1, name="mine"),
        LocalMetric(lambda sample: 1, name="theirs"),
        LocalMetric(lambda sample: 1, name="retriever", target="retriever"),
        Placed(LocalMetric(lambda sample: 1, name="elsewhere"), match={"service.name": "other"}),
        max_offers=0,
    )
    h.send(call_span(1, **{s.SCORED_BY: ("theirs",)}))
    h.send(call_span(2, **{s.OI_KIND: "EVALUATOR"}))
    h.send(call_span(3, **{s.OI_KIND: "RETRIEVER"}))
    h.pipeline.offer(Offer(call_span(4), Ticket(), Lineage(1, True), 0.0))  # under another call: no root
    met = {name: h.counts(name).met for name in ("mine", "theirs", "retriever", "elsewhere")}
    assert met == {"mine": 1, "theirs": 0, "retriever": 1, "elsewhere": 0}


# --- flushes ----------------------------------------------------------------------------------------------------------


def test_an_epoch_is_over_when_its_own_pairs_have_ended() -> None:
    pairs = OpenPairs()
    first = pairs.began(1, 1)
    assert pairs.next_epoch() == first
    second = pairs.began(1, 0)
    assert not pairs.wait(first, judges=True, until=0)
    pairs.ended(first, judge=False)
    assert pairs.wait(first, judges=False, until=0)
    assert not pairs.wait(first, judges=True, until=0)
    pairs.ended(first, judge=True)
    assert pairs.wait(first, judges=True, until=0)
    assert not pairs.wait(second, judges=False, until=0)


def test_a_flush_waits_for_what_was_offered_before_it_and_not_for_what_came_after(harness: Any) -> None:
    gates = {"answer 1": threading.Event(), "answer 2": threading.Event()}
    h = harness(LocalMetric(lambda sample: gates[sample.output].wait() and 1.0, name="m", timeout=60))
    h.send(call_span(1))
    flushing, over, result = threading.Event(), h.pipeline._jobs.open.next_epoch, []

    def next_epoch() -> int:
        epoch = over()
        flushing.set()
        return epoch

    h.pipeline._jobs.open.next_epoch = next_epoch
    flush = threading.Thread(target=lambda: result.append(h.pipeline.drain(10, judges=True)))
    flush.start()
    assert flushing.wait(5)
    h.send(call_span(2))
    gates["answer 1"].set()
    flush.join(5)
    assert result == [True]
    assert h.counts("m").of(Outcome.SCORED) == 1
    gates["answer 2"].set()


# --- judges -----------------------------------------------------------------------------------------------------------


def test_a_judge_that_hangs_leaves_threads_to_the_others(harness: Any) -> None:
    hang = threading.Event()
    hung = judge(ScriptedJudgeClient(lambda request: hang.wait() and PASSING), "hung")
    quick = judge(ScriptedJudgeClient(PASSING), "quick")
    h = harness(live(hung, rate=1.0), live(quick, rate=1.0), judge_threads=4)
    for n in range(1, 21):
        h.send(call_span(n))
    with h.sink.lock:
        assert h.sink.lock.wait_for(lambda: len(h.sink.records) == 20, timeout=10)
    assert h.counts("quick").of(Outcome.SCORED) == 20
    hang.set()
    assert h.pipeline.drain(10, judges=True)


def test_a_judge_alone_may_have_all_threads(harness: Any) -> None:
    everyone = threading.Barrier(4)
    client = ScriptedJudgeClient(lambda request: everyone.wait(5) >= 0 and PASSING)
    h = harness(live(judge(client), rate=1.0), judge_threads=4)
    for n in range(1, 5):
        h.send(call_span(n))
    assert h.pipeline.drain(10, judges=True)
    assert h.counts("helpful").of(Outcome.SCORED) == 4


def test_a_judge_that_says_itself_that_it_timed_out_is_paused_like_one_that_hangs(harness: Any) -> None:
    client = ScriptedJudgeClient(JudgeError("timeout", "no answer in time"))
    h = harness(live(judge(client), rate=1.0), judge_threads=1)
    for n in range(1, 7):
        h.send(call_span(n))
    assert h.pipeline.drain(5, judges=True)
    assert h.counts("helpful").outcomes == {(Outcome.TIMEOUT, "timeout"): 3, (Outcome.DROPPED, "paused"): 3}
    h.clock.advance(61)
    h.send(call_span(7))
    assert h.pipeline.drain(5, judges=True)
    assert h.counts("helpful").of(Outcome.TIMEOUT) == 4


def test_a_sample_that_a_judge_skips_costs_no_budget(harness: Any) -> None:
    client = ScriptedJudgeClient(PASSING)
    grounded = judge(client, "grounded", fields=("output", "documents"))
    h = harness(live(grounded, rate=1.0, budget={"calls_per_hour": 1}))
    for n in range(1, 4):
        h.send(call_span(n))
    assert h.pipeline.drain(5, judges=True)
    documents = {"retrieval.documents.0.document.content": "d"}
    for n in range(4, 6):
        h.send(call_span(n, **documents))
    assert h.pipeline.drain(5, judges=True)
    assert len(client.requests) == 1
    assert h.counts("grounded").outcomes == {
        (Outcome.SKIPPED, "documents missing"): 3,
        (Outcome.SCORED, ""): 1,
        (Outcome.OVER_BUDGET, "calls"): 1,
    }
