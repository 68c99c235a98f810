"""The agent joins log records to the calls that they belong to, and turns to conversations (cases C068, C093)."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from spangrade import semconv as s
from spangrade_agent import app
from spangrade_agent.app import Agent
from spangrade_agent.codec import attributes_of_kvs
from spangrade_agent.config import AgentConfig
from spangrade_agent.wire import Answer, Kind, Signal
from tests.agent import session_metrics

CASES: Final = Path(__file__).parents[3] / "shared" / "cases" / "inputs"
QUIET: Final = {"receivers": {}, "admin": False, "page": False}


class Destination:
    """An upstream in memory. ``logs``: what it answers to log records."""

    def __init__(self) -> None:
        self.logs = Answer()
        self.came: dict[Signal, list[bytes]] = {"traces": [], "logs": [], "metrics": []}
        self._changed = threading.Condition()

    def send(self, signal: Signal, body: bytes) -> Answer:
        with self._changed:
            self.came[signal].append(body)
            self._changed.notify_all()
        return self.logs if signal == "logs" else Answer()

    def close(self) -> None: ...

    def spans(self, count: int = 0) -> list[Any]:
        """All spans, once there are so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._spans()) >= count, 20)
            return self._spans()

    def _spans(self) -> list[Any]:
        requests = map(ExportTraceServiceRequest.FromString, self.came["traces"])
        return [span for r in requests for g in r.resource_spans for scope in g.scope_spans for span in scope.spans]

    def records(self, count: int = 0) -> list[Any]:
        """All log records, once there are so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._records()) >= count, 20)
            return self._records()

    def _records(self) -> list[Any]:
        requests = map(ExportLogsServiceRequest.FromString, self.came["logs"])
        return [one for r in requests for g in r.resource_logs for scope in g.scope_logs for one in scope.log_records]


@pytest.fixture
def destination() -> Destination:
    return Destination()


@pytest.fixture
def agent(destination: Destination, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Agent]]:
    monkeypatch.setattr(app, "METRIC_HOLD_S", app.JUDGE_HOLD_S)  # a loaded machine decides nothing
    monkeypatch.setattr(app, "make_upstream", lambda *_: destination)
    session_metrics.SEEN.clear()
    made: list[Agent] = []

    def make(*metrics: str, **settings: Any) -> Agent:
        named = [f"tests.agent.session_metrics:{name}" for name in metrics]
        config = AgentConfig.model_validate({**QUIET, "endpoint": "http://127.0.0.1:9", "metrics": named, **settings})
        made.append(Agent(config))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.stop(10)


def case(name: str) -> Any:
    found = sorted(CASES.glob(f"{name}*"))
    if not found:
        pytest.skip(f"the case files are not beside the repository: {CASES}")
    return found[0].read_text(encoding="utf-8")


def content_in_logs() -> dict[Signal, str]:
    given = json.loads(case("C068"))
    return {"logs": json.dumps(given["POST /v1/logs (arrives first)"]), "traces": json.dumps(given["POST /v1/traces"])}


def send(agent: Agent, signal: Signal, body: str) -> Answer:
    return agent.relay.ingest(signal, body.encode(), "json")


def scores(span: Any) -> dict[str, dict[str, Any]]:
    found = [attributes_of_kvs(e.attributes) for e in span.events if e.name == s.EVALUATION_EVENT]
    return {attributes[s.EVALUATION_NAME]: attributes for attributes in found}


def seen() -> Any:
    (sample,) = session_metrics.SEEN
    return sample


# --- log records ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [("logs", "traces"), ("traces", "logs")])
def test_c068_a_call_whose_words_are_in_log_records_is_scored_with_them_in_either_order(
    order: tuple[Signal, ...], agent: Callable[..., Agent], destination: Destination
) -> None:
    running, bodies = agent("answered"), content_in_logs()
    for signal in order:
        assert send(running, signal, bodies[signal]).kind is Kind.OK
    (span,) = destination.spans(1)
    assert scores(span)["answered"][s.SCORE_VALUE] == 1.0
    assert (seen().input, seen().output) == ("Hi", "Hello there")
    # And they went on as they came.
    names = [record.event_name for record in destination.records(2)]
    assert [name for name in names if name != s.EVALUATION_EVENT] == ["gen_ai.user.message", "gen_ai.choice"]


def test_c068_records_of_one_call_may_come_in_several_requests_and_twice(
    agent: Callable[..., Agent], destination: Destination
) -> None:
    running, bodies = agent("answered"), content_in_logs()
    whole = json.loads(bodies["logs"])
    records = whole["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    one_by_one = []
    for record in reversed(records):
        whole["resourceLogs"][0]["scopeLogs"][0]["logRecords"] = [record]
        one_by_one.append(json.dumps(whole))
    send(running, "logs", one_by_one[0])
    send(running, "traces", bodies["traces"])
    for body in (one_by_one[0], one_by_one[1]):
        send(running, "logs", body)
    destination.spans(1)
    assert [message["content"] for message in seen().context["messages"]] == ["Hi"]
    assert (seen().input, seen().output) == ("Hi", "Hello there")


def test_c068_without_its_log_records_a_call_is_skipped_and_never_scored_as_an_empty_answer(
    agent: Callable[..., Agent], destination: Destination
) -> None:
    running = agent("answered", assembly={"logs": 0.05})
    send(running, "traces", content_in_logs()["traces"])
    (span,) = destination.spans(1)
    assert scores(span) == {}
    assert session_metrics.SEEN == []
    (counts,) = running.ledger.snapshot().values()
    assert {(outcome.value, why): n for (outcome, why), n in counts.outcomes.items()} == {
        ("skipped", "output missing"): 1
    }


def test_c068_a_destination_that_takes_no_logs_is_told_to_the_sender_and_the_words_are_joined_all_the_same(
    agent: Callable[..., Agent], destination: Destination
) -> None:
    destination.logs = Answer(Kind.UNIMPLEMENTED, "no logs here")
    running, bodies = agent("answered"), content_in_logs()
    assert send(running, "logs", bodies["logs"]).kind is Kind.UNIMPLEMENTED
    send(running, "traces", bodies["traces"])
    (span,) = destination.spans(1)
    assert scores(span)["answered"][s.SCORE_VALUE] == 1.0


def test_without_content_the_words_are_scored_and_do_not_leave(
    agent: Callable[..., Agent], destination: Destination
) -> None:
    running, bodies = agent("answered", export_content=False), content_in_logs()
    send(running, "logs", bodies["logs"])
    send(running, "traces", bodies["traces"])
    (span,) = destination.spans(1)
    assert scores(span)["answered"][s.SCORE_VALUE] == 1.0
    assert b"Hello there" not in b"".join([*destination.came["logs"], *destination.came["traces"]])


def test_redaction_reaches_log_records_that_go_on(agent: Callable[..., Agent], destination: Destination) -> None:
    running = agent("answered", redact={"patterns": ["Hello"], "replacement": "[x]"})
    send(running, "logs", content_in_logs()["logs"])
    assert b"Hello" not in b"".join(destination.came["logs"])
    assert b"[x] there" in b"".join(destination.came["logs"])


def test_a_log_request_that_holds_no_content_goes_on_byte_for_byte(
    agent: Callable[..., Agent], destination: Destination
) -> None:
    running = agent("answered")
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add(trace_id=b"x", span_id=b"y")
    record.body.string_value = "started"
    body = request.SerializeToString()
    assert running.relay.ingest("logs", body, "protobuf").kind is Kind.OK
    assert destination.came["logs"] == [body]
    assert running.relay.ingest("logs", b"\xff\xff", "protobuf").kind is Kind.BAD


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_official_exporters_send_words_and_call_apart_and_both_go_on(
    protocol: str, agent: Callable[..., Agent], destination: Destination
) -> None:
    listeners = {"http": {"listen": "127.0.0.1:0"}, "grpc": {"listen": "127.0.0.1:0"}}
    running = agent("answered", receivers=listeners)
    spans: Any
    logs: Any
    if protocol == "http":
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        spans = OTLPSpanExporter(endpoint=f"http://{running.addresses.http}/v1/traces")
        logs = OTLPLogExporter(endpoint=f"http://{running.addresses.http}/v1/logs")
    else:
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans

        spans = GrpcSpans(endpoint=f"http://{running.addresses.grpc}", insecure=True)
        logs = GrpcLogs(endpoint=f"http://{running.addresses.grpc}", insecure=True)
    tracers, loggers = TracerProvider(shutdown_on_exit=False), LoggerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    logger = loggers.get_logger("openai")
    attributes = {s.OPERATION_NAME: "chat", s.LEGACY_SYSTEM: "openai", s.REQUEST_MODEL: "m"}
    with tracers.get_tracer("openai").start_as_current_span("chat m", attributes=attributes):
        logger.emit(LogRecord(event_name="gen_ai.user.message", body={"content": "Hi"}))
        said = {"index": 0, "message": {"role": "assistant", "content": "Hello there"}}
        logger.emit(LogRecord(event_name="gen_ai.choice", body=said))
        logger.emit(LogRecord(body="a line"))
    (span,) = destination.spans(1)
    assert scores(span)["answered"][s.SCORE_VALUE] == 1.0
    assert (seen().input, seen().output) == ("Hi", "Hello there")
    assert [one.event_name for one in destination.records(3)][:3] == ["gen_ai.user.message", "gen_ai.choice", ""]
    tracers.shutdown()
    loggers.shutdown()


# --- order of arrival -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_c093_however_the_requests_are_shuffled_there_is_one_sample_with_its_document(
    seed: int, agent: Callable[..., Agent], destination: Destination
) -> None:
    import random

    running = agent(assembly={"grace": "30s"}, metrics=["overlap"])
    lines = case("C093").splitlines()
    random.Random(seed).shuffle(lines)
    for line in lines:
        assert send(running, "traces", line).kind is Kind.OK
    assert running.stop(10)  # which waits for no grace
    spans = {span.name + span.parent_span_id.hex(): span for span in destination.spans(5)}
    assert scores(spans["rag"])["overlap"][s.SCORE_VALUE] == 1.0
    orphan = next(span for name, span in spans.items() if name.startswith("chat") and span.trace_id.hex()[:2] == "23")
    named = {name for name, span in spans.items() if scores(span)}
    assert named <= {"rag", "chat" + orphan.parent_span_id.hex()}


def request_below_a_gateway(kind: int, **attributes: Any) -> str:
    """A call below an entry span whose parent is somebody else's, from an SDK that does not say so."""
    entry = {
        "traceId": f"{7:032x}",
        "spanId": f"{1:016x}",
        "parentSpanId": f"{99:016x}",
        "name": "POST /chat",
        "kind": kind,
        "startTimeUnixNano": "1000",
        "endTimeUnixNano": "9000",
        "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
    }
    said = {s.OI_KIND: "CHAIN", s.OI_INPUT: "Hi", s.OI_OUTPUT: "Hello"}
    call = {**entry, "spanId": f"{2:016x}", "parentSpanId": entry["spanId"], "name": "answer", "kind": 1}
    call["attributes"] = [{"key": key, "value": {"stringValue": value}} for key, value in said.items()]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [call, entry]}]}]})


@pytest.mark.parametrize(
    ("kind", "attributes", "whole"),
    [
        (1, {}, False),
        (2, {}, True),  # a server's
        (5, {}, True),  # a consumer's
        (3, {}, False),
        (1, {s.COMPLETE: {"boolValue": True}}, True),
        (1, {s.COMPLETE: {"boolValue": False}}, False),
        (1, {s.COMPLETE: {"stringValue": "true"}}, False),
    ],
)
def test_an_entry_span_ends_its_trace_by_its_kind_or_by_its_word(
    kind: int, attributes: dict[str, Any], whole: bool, agent: Callable[..., Agent], destination: Destination
) -> None:
    running = agent("answered")
    send(running, "traces", request_below_a_gateway(kind, **attributes))
    assert running.stop(10)
    (call,) = [span for span in destination.spans(2) if span.name == "answer"]
    assert (scores(call)["answered"].get(s.ASSEMBLY) != "partial") is whole


# --- conversations -----------------------------------------------------------------------------------------------------------


def turn(n: int, asked: str, answered: str, service: str = "shop") -> str:
    attributes = {s.OI_KIND: "CHAIN", s.OI_INPUT: asked, s.OI_OUTPUT: answered, s.SESSION_ID: "c1"}
    span = {
        "traceId": f"{n:032x}",
        "spanId": f"{n:016x}",
        "name": f"turn {n}",
        "startTimeUnixNano": str(n * 10**9),
        "endTimeUnixNano": str(n * 10**9 + 10**8),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]})


def test_a_conversation_of_several_traces_and_processes_is_scored_after_its_idle_time(
    agent: Callable[..., Agent], destination: Destination
) -> None:
    running = agent("turns", assembly={"session_idle": "1.5s"})
    for body in (turn(2, "Bye", "See you", "other"), turn(1, "Hi", "Hello")):
        send(running, "traces", body)
    assert all(scores(span) == {} for span in destination.spans(2))  # they do not wait for it
    (record,) = destination.records(1)
    found = attributes_of_kvs(record.attributes)
    assert found[s.SCORE_VALUE] == 2.0
    assert (found[s.SESSION_ID], found[s.TARGET]) == ("c1", "session")
    assert s.ASSEMBLY not in found
    assert (record.trace_id.hex(), record.span_id.hex()) == (f"{2:032x}", f"{2:016x}")
    assert (seen().input, seen().output) == ("Bye", "See you")
    assert [message["content"] for message in seen().context["messages"]] == ["Hi", "Hello", "Bye", "See you"]
    assert all(attributes_of_kvs(span.attributes)[s.SCORED_BY] for span in destination.spans(2))
    assert running.store is not None
    (kept,) = running.store.recent(10)
    assert (kept.target, kept.input, kept.output, kept.findings) == ("session", "Bye", "See you", ())


def test_a_destination_without_logs_gets_a_conversation_s_score_as_an_evaluation_span(
    agent: Callable[..., Agent], destination: Destination
) -> None:
    destination.logs = Answer(Kind.UNIMPLEMENTED)
    running = agent("turns", assembly={"session_idle": 0.05})
    send(running, "traces", turn(1, "Hi", "Hello"))
    span = next(span for span in destination.spans(2) if span.name == "evaluation turns")
    assert attributes_of_kvs(span.attributes)[s.SESSION_ID] == "c1"
    assert span.parent_span_id.hex() == f"{1:016x}"


def test_at_its_end_the_agent_scores_what_goes_on_as_it_is(
    agent: Callable[..., Agent], destination: Destination
) -> None:
    running = agent("turns")
    send(running, "traces", turn(1, "Hi", "Hello"))
    destination.spans(1)
    assert running.stop(10)
    (record,) = destination.records(1)
    assert attributes_of_kvs(record.attributes)[s.ASSEMBLY] == "partial"
    assert running.ledger.tally.conversations == {"shutdown": 1}
