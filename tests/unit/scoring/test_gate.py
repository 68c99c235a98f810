"""Judges whose endpoint has a limiter: where they wait, and how they end when the endpoint does not work."""

import threading
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from spangrade.delivery.instruments import OutcomeInstruments
from spangrade.errors import JudgeError
from spangrade.judges import JudgeReply
from spangrade.judges.breaker import FAILURES
from spangrade.judges.cascade import Cascade
from spangrade.judges.limiter import Limiter
from spangrade.judges.live import live
from spangrade.judges.providers import JudgeRequest
from spangrade.model.outcome import Outcome

from .conftest import PASSING, Harness, call_span, judge


@dataclass
class LimitedClient:
    """A client that goes through a limiter as those over HTTP do, and that fails from its ``fails_from``-th call on."""

    limiter: Limiter
    fails_from: int = 10**9
    go: threading.Event = field(default_factory=threading.Event)
    asked: list[int] = field(default_factory=list)
    came: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def complete(self, request: JudgeRequest) -> JudgeReply:
        place = self.limiter.place(1e12)
        self.asked.append(self.limiter.state().in_flight)
        self.came.release()
        self.go.wait(30)
        if len(self.asked) >= self.fails_from:
            self.limiter.failed("status 503")
            raise JudgeError("http_status", "host answered 503")
        self.limiter.answered(place, request.model, 0.0)
        return JudgeReply(PASSING, "m-1", "stop")


def graded_by(client: LimitedClient, name: str = "helpful") -> Any:
    return live(judge(client, name=name), rate=1.0)  # type: ignore[arg-type]


def test_what_waits_for_a_place_holds_no_thread_and_its_time_does_not_run(harness: Any) -> None:
    client = LimitedClient(Limiter("host", 2))
    h = harness(live(judge(client).with_timeout(30), rate=1.0))
    for n in range(1, 21):
        h.send(call_span(n))
    for _ in range(2):
        assert client.came.acquire(timeout=20)
    lane = h.pipeline._jobs._judges
    assert h.pipeline._jobs.endpoints()[0].in_flight == 2
    assert sum(slot.step is not None for slot in lane._slots) == 2
    client.go.set()
    assert h.pipeline.drain(30, judges=True)
    assert h.counts("helpful").of(Outcome.SCORED) == 20
    assert max(client.asked) <= 2
    assert client.limiter.state().in_flight == 0


def test_two_judges_of_one_endpoint_share_its_places_and_both_get_on(harness: Any) -> None:
    client = LimitedClient(Limiter("host", 1))
    client.go.set()
    h = harness(graded_by(client, "a"), graded_by(client, "b"))
    for n in range(1, 16):
        h.send(call_span(n))
    assert h.pipeline.drain(30, judges=True)
    assert h.counts("a").of(Outcome.SCORED) == h.counts("b").of(Outcome.SCORED) == 15
    assert set(client.asked) == {1}


@given(calls=st.integers(1, 60), most=st.integers(1, 8), fails_from=st.integers(1, 40))
@settings(max_examples=25, deadline=None)
def test_every_pair_ends_once_also_when_the_circuit_opens_and_then_nobody_is_asked(
    calls: int, most: int, fails_from: int
) -> None:
    client = LimitedClient(Limiter("host", most), fails_from)
    client.go.set()
    h = Harness(graded_by(client))
    try:
        for n in range(1, calls + 1):
            h.send(call_span(n))
        assert h.pipeline.drain(30, judges=True)
        counts = h.counts("helpful")
        scored, failed = counts.of(Outcome.SCORED), counts.of(Outcome.ERROR)
        dropped = counts.outcomes[Outcome.DROPPED, "circuit_open"]
        assert counts.met == calls == scored + failed + dropped
        assert len(client.asked) == scored + failed
        assert failed <= FAILURES + most  # those that were under way when it opened
        assert client.limiter.state().in_flight == 0
        if dropped:
            assert failed >= FAILURES
            assert client.limiter.state().circuit == "open"
    finally:
        h.pipeline.shutdown(5)


def test_a_verdict_from_the_cache_needs_no_endpoint(harness: Any) -> None:
    client = LimitedClient(Limiter("host", 2))
    client.go.set()
    h = harness(live(judge(client).with_cache(), rate=1.0))  # type: ignore[arg-type]
    h.send(call_span(1))
    assert h.pipeline.drain(30, judges=True)
    client.limiter.failed("status 401", at_once=True)
    for n in (1, 2, 1, 1, 2):
        h.send(call_span(n))
    assert h.pipeline.drain(30, judges=True)
    counts = h.counts("helpful")
    assert counts.of(Outcome.SCORED) == 4
    assert counts.outcomes[Outcome.DROPPED, "circuit_open"] == 2
    assert len(client.asked) == 1


def test_what_waited_when_the_circuit_opened_looks_into_the_cache_too(harness: Any) -> None:
    client = LimitedClient(Limiter("host", 1))
    h = harness(live(judge(client).with_cache(), rate=1.0))  # type: ignore[arg-type]
    for n in (1, 1, 1, 2):
        h.send(call_span(n))
    assert client.came.acquire(timeout=20)
    client.limiter.failed("status 401", at_once=True)  # another's call
    client.go.set()
    assert h.pipeline.drain(30, judges=True)
    counts = h.counts("helpful")
    assert counts.of(Outcome.SCORED) + counts.outcomes[Outcome.DROPPED, "circuit_open"] == 4
    assert len(client.asked) == 1
    h.send(call_span(1))
    assert h.pipeline.drain(30, judges=True)
    assert h.counts("helpful").of(Outcome.SCORED) == counts.of(Outcome.SCORED) + 1


def test_a_cascade_goes_on_to_the_judge_of_another_endpoint(harness: Any) -> None:
    cheap, strong = LimitedClient(Limiter("a", 2)), LimitedClient(Limiter("b", 2))
    strong.go.set()
    cheap.limiter.failed("status 401", at_once=True)
    made = Cascade([judge(cheap, name="cheap"), judge(strong, name="strong")])  # type: ignore[arg-type]
    same = Cascade([judge(cheap, name="cheap"), judge(cheap, name="same")])  # type: ignore[arg-type]
    h = harness(live(made, rate=1.0), live(same, rate=1.0))
    h.send(call_span())
    assert h.pipeline.drain(30, judges=True)
    assert h.counts("strong").of(Outcome.SCORED) == 1
    assert h.counts("same").outcomes[Outcome.DROPPED, "circuit_open"] == 1
    assert (len(cheap.asked), len(strong.asked)) == (0, 1)


def test_what_waits_at_shutdown_is_counted_and_gives_its_place_back(harness: Any) -> None:
    client = LimitedClient(Limiter("host", 1))
    h = harness(graded_by(client))
    for n in range(1, 6):
        h.send(call_span(n))
    assert client.came.acquire(timeout=20)
    h.pipeline.shutdown(0.05)
    assert h.counts("helpful").outcomes[Outcome.DROPPED, "shutdown"] == 5
    assert client.limiter.state().in_flight == 0
    client.go.set()


def test_the_limiters_state_is_visible_by_host(harness: Any) -> None:
    client = LimitedClient(Limiter("judge.example:443", 5))
    h = harness(graded_by(client))
    reader = InMemoryMetricReader()
    OutcomeInstruments(h.pipeline.ledger, MeterProvider([reader]))
    for _ in range(FAILURES):
        client.limiter.failed("connection")
    data = reader.get_metrics_data()
    assert data is not None
    found = {
        metric.name.removeprefix("spangrade.judge."): [
            (dict(p.attributes or {}), p.value) for p in metric.data.data_points
        ]
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        if "concurrency" in metric.name or "circuit" in metric.name
    }
    host = {"endpoint": "judge.example:443"}
    assert found == {
        "concurrency.limit": [(host, 5)],
        "concurrency.in_flight": [(host, 0)],
        "circuit": [(host, 2)],
    }
