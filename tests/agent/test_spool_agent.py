"""An agent with a spool: acknowledged is durable, and the next process goes on where the last one was.

A crash is a copy of the spool's folder: what a process that is killed at that moment leaves behind. (Real kills:
tests/process/test_agent_killed.py.)
"""

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import spangrade as sg
from spangrade import semconv as s
from spangrade.errors import ConfigError
from spangrade.metrics.catalog import resolve
from spangrade.model.policy import Placed
from spangrade.testing import CollectingExporter, ScriptedJudgeClient
from spangrade_agent import app
from spangrade_agent.app import Agent
from spangrade_agent.bodies import SPOOLED
from spangrade_agent.config import AgentConfig
from spangrade_agent.spool.engine import Spool
from spangrade_agent.spool.records import SpoolFault
from spangrade_agent.wire import Answer, Kind, Signal

PASSING = '{"reasoning": "fine", "verdict": "pass"}'


class Destination:
    """Takes requests, or says that it cannot."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.bodies: list[bytes] = []
        self.came = threading.Condition()

    def send(self, signal: Signal, body: bytes) -> Answer:
        with self.came:
            if signal == "traces" and self.answer.kind is Kind.OK:
                self.bodies.append(body)
                self.came.notify_all()
            return self.answer

    def close(self) -> None: ...

    def spans(self) -> list[Span]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            span
            for request in requests
            for group in request.resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]

    def wait_for(self, count: int) -> list[Span]:
        with self.came:
            assert self.came.wait_for(lambda: len(self.spans()) >= count, 30)
            return self.spans()


@pytest.fixture
def destination(monkeypatch: pytest.MonkeyPatch) -> Destination:
    made = Destination()
    monkeypatch.setattr(app, "make_upstream", lambda url, protocol: made)
    return made


@pytest.fixture
def agent(tmp_path: Path, destination: Destination) -> Iterator[Callable[..., Agent]]:
    made: list[Agent] = []

    def make(folder: str = "spool", evaluators: list[Placed] | None = None, **settings: Any) -> Agent:
        config = {
            "receivers": {"grpc": None, "http": {"listen": "127.0.0.1:0"}},
            "admin": False,
            "page": False,
            "store": False,
            "destinations": [{"endpoint": "http://127.0.0.1:1"}],
            "spool": {"path": str(tmp_path / folder)},
            "metrics": ["length_words"],
            **settings,
        }
        running = Agent(AgentConfig.model_validate(config))
        made.append(running)
        if evaluators is not None:
            running.pipeline.place(evaluators)
        running.start()
        return running

    yield make
    for one in made:
        one.stop(5)


def request(*names: str, llm: bool = True, output: str = "On Monday.") -> bytes:
    exporter = CollectingExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    attributes = {s.OI_KIND: "CHAIN", s.OI_INPUT: "When?", s.OI_OUTPUT: output} if llm else {"http.route": "/"}
    for name in names:
        provider.get_tracer("app").start_span(name, attributes=attributes).end()
    return encode_spans(exporter.spans).SerializeToString()


def crashed(running: Agent, tmp_path: Path, name: str = "left") -> str:
    """The folder of what a process that is killed now leaves."""
    spool = spool_of(running)
    spool.flush()
    shutil.copytree(spool.path, tmp_path / name)
    return name


def spool_of(running: Agent) -> Spool:
    assert running._spooled is not None
    return running._spooled.spool


def settled(running: Agent) -> Spool:
    """The spool, when all that is to be sent has been, and is forgotten there."""
    spool = spool_of(running)
    spool.flush()  # what has left the hold is queued
    assert all(queue.flush(30) for queue in running._queues)
    spool.flush()  # and what has arrived is dropped
    return spool


def scores(span: Span) -> dict[str, dict[str, Any]]:
    found = {}
    for event in span.events:
        values = {pair.key: pair.value for pair in event.attributes}
        found[values[s.EVALUATION_NAME].string_value] = values
    return found


def judge(name: str, client: Any) -> Placed:
    made = sg.LlmJudge(name, "Is it good?", scale="binary", model="m").with_client(client)
    return sg.live(made, rate=1.0)


def test_a_request_is_acknowledged_while_the_destination_is_down_and_arrives_later(
    agent: Callable[..., Agent], destination: Destination
) -> None:
    destination.answer = Answer(Kind.RETRY, "down")
    running = agent()
    assert running.relay.ingest("traces", request("plain", llm=False), "protobuf").kind is Kind.OK
    assert running.relay.ingest("traces", request("call"), "protobuf").kind is Kind.OK
    assert running.pipeline.drain(30, judges=True)
    assert destination.spans() == []
    destination.answer = Answer()
    running._queues[0].flush(30)
    assert {span.name for span in destination.wait_for(2)} == {"plain", "call"}
    assert "length_words" in scores(next(span for span in destination.spans() if span.name == "call"))
    assert settled(running).size == 0


def test_what_was_on_its_way_is_sent_by_the_next_process_byte_for_byte(
    agent: Callable[..., Agent], destination: Destination, tmp_path: Path
) -> None:
    destination.answer = Answer(Kind.RETRY, "down")
    running = agent()
    plain = request("plain", llm=False)
    assert running.relay.ingest("traces", plain, "protobuf").kind is Kind.OK
    assert running.relay.ingest("traces", request("call"), "protobuf").kind is Kind.OK
    assert running.pipeline.drain(30, judges=True)
    left = crashed(running, tmp_path)
    on_its_way = b"".join(data[1:] for _, data in spool_of(running).items("out") if data[:1] == b"t")
    running.stop(0.1)
    destination.answer = Answer()
    agent(left, evaluators=[])  # nothing is scored again
    destination.wait_for(2)
    assert b"".join(destination.bodies) == on_its_way
    assert on_its_way.startswith(plain)


def test_a_call_that_waited_is_scored_by_the_next_process_and_marked_partial(
    agent: Callable[..., Agent], destination: Destination, tmp_path: Path
) -> None:
    entered, go = threading.Event(), threading.Event()

    @sg.metric
    def slow(output: str) -> float:
        entered.set()
        go.wait(30)
        return 1.0

    running = agent(metrics=[], evaluators=[Placed(resolve(slow))])
    assert running.relay.ingest("traces", request("call"), "protobuf").kind is Kind.OK
    assert entered.wait(30)
    left = crashed(running, tmp_path)
    go.set()
    running.stop(10)
    before = len(destination.spans())
    assert before == 1
    again = agent(left)
    assert again.relay.counts.restored == 1
    assert again.pipeline.drain(30, judges=True)
    span = destination.wait_for(before + 1)[-1]
    assert span.name == "call"
    assert scores(span)["length_words"][s.ASSEMBLY].string_value == "partial"


def test_a_judge_that_has_answered_is_not_paid_again(
    agent: Callable[..., Agent], destination: Destination, tmp_path: Path
) -> None:
    answered, entered, go = threading.Event(), threading.Event(), threading.Event()

    def waits(_: Any) -> str:
        entered.set()
        go.wait(30)
        return PASSING

    first, second = ScriptedJudgeClient(PASSING), ScriptedJudgeClient(waits)
    running = agent(metrics=[], evaluators=[judge("first", first), judge("second", second)])
    noted = running.sink._noted
    assert noted is not None

    def watched(held: Any, pair: Any) -> None:
        noted(held, pair)
        answered.set()

    running.sink._noted = watched
    assert running.relay.ingest("traces", request("call"), "protobuf").kind is Kind.OK
    assert entered.wait(30)
    assert answered.wait(30)
    left = crashed(running, tmp_path)
    go.set()
    running.stop(10)
    [before] = destination.spans()
    later_first, later_second = ScriptedJudgeClient(PASSING), ScriptedJudgeClient(PASSING)
    again = agent(left, metrics=[], evaluators=[judge("first", later_first), judge("second", later_second)])
    assert again.pipeline.drain(30, judges=True)
    span = destination.wait_for(2)[-1]
    assert (len(later_first.requests), len(later_second.requests)) == (0, 1)
    found, ids = scores(span), {name: values[s.SCORE_ID].string_value for name, values in scores(before).items()}
    assert {name: values[s.SCORE_ID].string_value for name, values in found.items()} == ids
    assert len(span.events) == 2
    [marks] = [pair.value for pair in span.attributes if pair.key == s.SCORED_BY]
    assert len(marks.array_value.values) == 2


def test_a_call_that_nobody_scores_any_more_goes_on_as_it_is(
    agent: Callable[..., Agent], destination: Destination, tmp_path: Path
) -> None:
    entered, go = threading.Event(), threading.Event()

    def waits(_: Any) -> str:
        entered.set()
        go.wait(30)
        return PASSING

    running = agent(metrics=[], evaluators=[judge("slow", ScriptedJudgeClient(waits))])
    assert running.relay.ingest("traces", request("call"), "protobuf").kind is Kind.OK
    assert entered.wait(30)
    left = crashed(running, tmp_path)
    go.set()
    running.stop(10)
    again = agent(left, evaluators=[])
    span = destination.wait_for(2)[-1]
    assert (span.name, list(span.events)) == ("call", [])
    assert again.relay.counts.restored == 0
    assert settled(again).size == 0


def test_a_resend_after_the_crash_is_known(
    agent: Callable[..., Agent], destination: Destination, tmp_path: Path
) -> None:
    """The acknowledgement was lost with the process: the sender repeats what the spool has."""
    entered, go = threading.Event(), threading.Event()

    def waits(_: Any) -> str:
        entered.set()
        go.wait(30)
        return PASSING

    body = request("call")
    running = agent(metrics=[], evaluators=[judge("slow", ScriptedJudgeClient(waits))])
    running.relay.ingest("traces", body, "protobuf")
    assert entered.wait(30)
    left = crashed(running, tmp_path)
    go.set()
    running.stop(10)
    again = agent(left)
    assert again.relay.ingest("traces", body, "protobuf").kind is Kind.OK
    assert again.relay.counts.duplicates == 1
    assert again.pipeline.drain(30, judges=True)
    assert len(destination.wait_for(2)) == 2  # one of each process


def test_a_full_spool_refuses_with_a_time_to_come_again_and_drains_oldest_first(
    agent: Callable[..., Agent], destination: Destination, tmp_path: Path
) -> None:
    destination.answer = Answer(Kind.RETRY, "down")
    running = agent(spool={"path": str(tmp_path / "small"), "max_bytes": 4_000})
    taken = 0
    while (answer := running.relay.ingest("traces", request(f"p{taken}", llm=False), "protobuf")).kind is Kind.OK:
        taken += 1
    assert answer.kind is Kind.RETRY
    assert answer.retry_after_s
    assert "max_bytes" in answer.message
    assert running._is_ready() == "the spool is full"
    destination.answer = Answer()
    running._queues[0].flush(30)
    assert [span.name for span in destination.wait_for(taken)] == [f"p{n}" for n in range(taken)]
    assert settled(running).size == 0
    assert running.relay.ingest("traces", request("new", llm=False), "protobuf").kind is Kind.OK


def test_memory_holds_a_part_of_a_long_backlog_and_the_disk_all(
    agent: Callable[..., Agent], destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "IN_MEMORY", 2_000)
    destination.answer = Answer(Kind.RETRY, "down")
    running = agent()
    running._queues[0]._max_batch_bytes = 1_000
    for n in range(40):
        assert running.relay.ingest("traces", request(f"p{n}", llm=False), "protobuf").kind is Kind.OK
    queue = running._queues[0]
    assert queue._in_memory <= 4_000
    assert queue.pending_bytes > 6_000
    destination.answer = Answer()
    queue.flush(30)
    assert [span.name for span in destination.wait_for(40)] == [f"p{n}" for n in range(40)]


def test_a_disk_that_fails_lets_spans_go_on_unscored_and_says_so(
    agent: Callable[..., Agent], destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = agent(redact={"patterns": ["Monday"]})

    def fails(*_: Any) -> None:
        raise SpoolFault("no disk")

    with monkeypatch.context() as now:
        now.setattr(spool_of(running), "write", fails)
        assert running.relay.ingest("traces", request("call"), "protobuf").kind is Kind.OK
        [span] = destination.spans()  # before the acknowledgement
        assert (span.name, list(span.events)) == ("call", [])
        assert b"Monday" not in destination.bodies[0]
        destination.answer = Answer(Kind.RETRY, "down")
        assert running.relay.ingest("traces", request("other"), "protobuf").kind is Kind.RETRY
    assert running.relay.counts.unscored == 1
    destination.answer = Answer()
    assert running.relay.ingest("traces", request("next"), "protobuf").kind is Kind.OK
    assert running.pipeline.drain(30, judges=True)
    assert "length_words" in scores(destination.wait_for(2)[-1])


def test_what_does_not_leave_before_the_end_waits_for_the_next_start(
    agent: Callable[..., Agent], destination: Destination
) -> None:
    destination.answer = Answer(Kind.RETRY, "down")
    running = agent()
    assert running.relay.ingest("traces", request("call"), "protobuf").kind is Kind.OK
    running.stop(0.5)
    assert running._queues[0].counts().dropped == {SPOOLED: 1}
    destination.answer = Answer()
    agent(evaluators=[])
    [span] = destination.wait_for(1)
    assert "length_words" in scores(span)


def test_a_spool_without_a_destination_or_in_tap_mode_is_refused(tmp_path: Path, destination: Destination) -> None:
    for settings in ({"destinations": []}, {"mode": "tap", "destinations": [{"endpoint": "http://127.0.0.1:1"}]}):
        with pytest.raises(ConfigError, match="spool"):
            Agent(AgentConfig.model_validate({"spool": {"path": str(tmp_path / "s")}, **settings}))
