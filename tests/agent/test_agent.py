"""The agent as one: OTLP in over real sockets, scores added, OTLP out to a receiver in another process."""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import spangrade as sg
from spangrade import semconv as s
from spangrade.testing import CollectingExporter
from spangrade_agent import app
from spangrade_agent.app import Agent
from spangrade_agent.config import AgentConfig
from spangrade_agent.wire import Kind

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))
from examples.demo.processes import ReceiverProcess  # noqa: E402

ANY = "127.0.0.1:0"


@pytest.fixture(scope="module")
def receiver_process() -> Iterator[ReceiverProcess]:
    with ReceiverProcess() as process:
        yield process


@pytest.fixture
def receiver(receiver_process: ReceiverProcess) -> ReceiverProcess:
    receiver_process.clear()
    return receiver_process


@pytest.fixture
def agent(receiver: ReceiverProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Agent]]:
    # A metric that a loaded machine starts a second late must not decide what a test sees.
    monkeypatch.setattr(app, "METRIC_HOLD_S", app.JUDGE_HOLD_S)
    made: list[Agent] = []

    def make(**settings: Any) -> Agent:
        listeners = {
            "receivers": {"grpc": {"listen": ANY}, "http": {"listen": ANY}},
            "admin": {"listen": ANY},
            "page": {"listen": ANY},
        }
        config = AgentConfig.model_validate({**listeners, "endpoint": receiver.base_url, **settings})
        made.append(Agent(config))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.stop(10)


class Recorded(SpanProcessor):
    """Keeps ended spans, to be sent as the test wants."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True  # the base class of older SDKs says nothing, which their provider takes for a failure


def rag(provider: TracerProvider) -> None:
    """An application that somebody else instrumented: an HTTP handler, a retriever, a model."""
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("POST /chat"):
        documents = '[{"id": "d1", "content": "Parcels arrive within three days."}]'
        with tracer.start_as_current_span(
            "find", attributes={s.OI_KIND: "RETRIEVER", s.RETRIEVAL_DOCUMENTS: documents}
        ):
            pass
        messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "When does it come?"}]}])
        said = [
            {"role": "assistant", "parts": [{"type": "text", "content": "Parcels arrive within three days. Maybe."}]}
        ]
        with tracer.start_as_current_span(
            "chat",
            attributes={s.OPERATION_NAME: "chat", s.INPUT_MESSAGES: messages, s.OUTPUT_MESSAGES: json.dumps(said)},
        ):
            pass


def recorded() -> list[ReadableSpan]:
    keep = Recorded()
    provider = TracerProvider()
    provider.add_span_processor(keep)
    rag(provider)
    return keep.spans


def send(agent: Agent, spans: list[ReadableSpan]) -> None:
    assert agent.relay.ingest("traces", encode_spans(spans).SerializeToString(), "protobuf").kind is Kind.OK


def spans_at(receiver: ReceiverProcess, count: int) -> dict[str, dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for _ in range(count + 4):  # a wait may end without a span: a log record arrived
        found += receiver.spans(after=found[-1]["number"] if found else 0, wait=10)
        if len(found) >= count:
            break
    assert len(found) == count, [span["name"] for span in found]
    return {span["name"]: span for span in found}


def scores(span: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        e["attributes"][s.EVALUATION_NAME]: e["attributes"] for e in span["events"] if e["name"] == s.EVALUATION_EVENT
    }


def get(address: str | None, path: str) -> tuple[int, str]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}{path}", timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as fault:
        return fault.code, fault.read().decode()


# --- relay -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 2)])
def test_documents_of_another_request_reach_the_answer_whatever_the_order(
    order: tuple[int, ...], agent: Callable[..., Agent], receiver: ReceiverProcess
) -> None:
    running = agent(metrics=["overlap"], assembly={"grace": "30s"})  # however slow this machine is
    spans = recorded()
    for at in order:
        send(running, [spans[at]])
    assert running.stop(10)  # which waits for no grace
    found = spans_at(receiver, 3)
    assert scores(found["chat"])["overlap"][s.SCORE_VALUE] == pytest.approx(5 / 6)
    assert scores(found["find"]) == scores(found["POST /chat"]) == {}
    assert found["chat"]["attributes"][s.SCORED_BY]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_an_official_exporter_sends_and_every_span_arrives_once(
    protocol: str, agent: Callable[..., Agent], receiver: ReceiverProcess
) -> None:
    running = agent(metrics=["overlap", "length_words"])
    exporter: Any
    if protocol == "http":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter(endpoint=f"http://{running.addresses.http}/v1/traces")
    else:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

        exporter = GrpcExporter(endpoint=f"http://{running.addresses.grpc}", insecure=True)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    rag(provider)
    provider.force_flush()
    found = spans_at(receiver, 3)
    assert set(scores(found["chat"])) == {"overlap", "length_words"}
    provider.shutdown()


def test_a_request_that_comes_again_scores_and_sends_its_calls_once(
    agent: Callable[..., Agent], receiver: ReceiverProcess
) -> None:
    running = agent(metrics=["length_words"])
    spans = recorded()
    for _ in range(3):
        send(running, spans[1:2])  # the model's call alone
    send(running, spans)
    assert running.stop(10)
    names = [span["name"] for span in receiver.spans()]
    assert names.count("chat") == 1
    assert running.relay.counts.duplicates == 3
    assert running.ledger.snapshot()[next(iter(running.ledger.snapshot()))].met == 1


def test_logs_and_metrics_go_on_untouched(agent: Callable[..., Agent], receiver: ReceiverProcess) -> None:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    running = agent(metrics=["overlap"])
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.body.string_value = "hello"
    record.time_unix_nano = 5
    assert running.relay.ingest("logs", request.SerializeToString(), "protobuf").kind is Kind.OK
    (log,) = receiver.logs(wait=5)
    assert log["body"] == "hello"
    assert running.relay.ingest("metrics", b"", "protobuf").kind is Kind.OK


def test_the_sender_is_told_when_the_upstream_is_away_and_nothing_is_held_then(agent: Callable[..., Agent]) -> None:
    running = agent(metrics=["overlap"], endpoint="http://127.0.0.1:9")
    answer = running.relay.ingest("traces", encode_spans(recorded()).SerializeToString(), "protobuf")
    assert answer.kind is Kind.RETRY
    assert len(running.sink.hold) == 0
    assert running.relay.counts.received == 0
    assert (
        'spangrade_requests_refused_total{signal="traces",answer="retry"} 1'
        in get(running.addresses.admin, "/metrics")[1]
    )


def test_spans_go_on_by_grpc_where_the_destination_speaks_it(
    agent: Callable[..., Agent], receiver: ReceiverProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = agent(metrics=["length_words"])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    sidecar = agent(metrics=["overlap"], endpoint=f"http://{gateway.addresses.grpc}")
    send(sidecar, recorded())
    assert set(scores(spans_at(receiver, 3)["chat"])) == {"overlap", "length_words"}


def test_unreadable_requests_are_refused_and_good_spans_of_a_bad_one_kept(agent: Callable[..., Agent]) -> None:
    running = agent(metrics=["overlap"])
    assert running.relay.ingest("traces", b"\xff\xff rubbish", "protobuf").kind is Kind.BAD
    spans = [
        {"traceId": "0" * 32, "spanId": "1" * 16, "name": "no trace"},
        {"traceId": "1" * 32, "spanId": "1" * 16, "name": "fine", "startTimeUnixNano": "1", "endTimeUnixNano": "2"},
    ]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    answer = running.relay.ingest("traces", body, "json")
    assert (answer.kind, answer.rejected) == (Kind.OK, 1)


def test_what_is_not_scored_goes_on_as_it_came_unknown_fields_included(
    agent: Callable[..., Agent], receiver: ReceiverProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = agent(metrics=["overlap"])
    sent: list[bytes] = []
    upstream: Any = running.relay._upstream
    original = upstream.send
    monkeypatch.setattr(upstream, "send", lambda signal, body: sent.append(body) or original(signal, body))
    keep = Recorded()
    provider = TracerProvider()
    provider.add_span_processor(keep)
    with provider.get_tracer("app").start_as_current_span("GET /"):
        pass
    body = encode_spans(keep.spans).SerializeToString() + bytes([0xFA, 0x3F, 0x02, 0x68, 0x69])  # field 1023: "hi"
    assert running.relay.ingest("traces", body, "protobuf").kind is Kind.OK
    assert sent == [body]


def test_export_content_false_and_redaction_hold_in_the_agent_too(
    agent: Callable[..., Agent], receiver: ReceiverProcess
) -> None:
    running = agent(metrics=["overlap"], export_content=False, redact={"patterns": ["Maybe"], "replacement": "***"})
    send(running, recorded())
    found = spans_at(receiver, 3)
    assert s.OUTPUT_MESSAGES not in found["chat"]["attributes"]
    assert "Maybe" not in json.dumps(list(found.values()))
    assert running.store is not None
    assert "Maybe" not in repr(running.store.recent())


def test_what_nothing_scores_is_stripped_and_redacted_like_the_rest(
    agent: Callable[..., Agent], receiver: ReceiverProcess
) -> None:
    """An HTTP span, a retriever's, and a model call that no evaluator looks at: they leave at once, but through us."""
    running = agent(export_content=False, redact={"patterns": ["POST|three"], "replacement": "***"})
    send(running, recorded())
    found = spans_at(receiver, 3)
    assert set(found) == {"*** /chat", "find", "chat"}
    assert not {s.INPUT_MESSAGES, s.OUTPUT_MESSAGES, s.RETRIEVAL_DOCUMENTS} & {
        key for span in found.values() for key in span["attributes"]
    }


# --- tap, who scores, parity ------------------------------------------------------------------------------------------------


def test_tap_sends_scores_only(agent: Callable[..., Agent], receiver: ReceiverProcess) -> None:
    running = agent(metrics=["overlap"], mode="tap")
    spans = recorded()
    send(running, spans)
    found = spans_at(receiver, 1)
    late = found["evaluation overlap"]
    assert spans[1].context is not None
    assert late["parent_span_id"] == f"{spans[1].context.span_id:016x}"
    (log,) = receiver.logs(wait=5)
    assert log["attributes"][s.SCORE_ID] == late["attributes"][s.SCORE_ID]


def test_sdk_and_agent_each_score_what_the_other_has_not(
    agent: Callable[..., Agent], receiver: ReceiverProcess
) -> None:
    running = agent(metrics=["length_words", "overlap"])
    sg.configure(metrics=["length_words"], endpoint=f"http://{running.addresses.http}")
    with sg.trace("call"):
        sg.set_retrieval_documents(["one two"])
        sg.set_output("one two")
    assert sg.flush(10)
    found = spans_at(receiver, 1)
    names = [e["attributes"][s.EVALUATION_NAME] for e in found["call"]["events"]]
    assert sorted(names) == ["length_words", "overlap"]
    by_name = {c.name: c for c in running.ledger.snapshot().values()}
    assert "length_words" not in by_name
    assert by_name["overlap"].met == 1


def test_agent_behind_agent_scores_each_pair_once(agent: Callable[..., Agent], receiver: ReceiverProcess) -> None:
    gateway = agent(metrics=["length_words", "overlap"])
    sidecar = agent(metrics=["length_words"], endpoint=f"http://{gateway.addresses.http}")
    send(sidecar, recorded())
    found = spans_at(receiver, 3)
    names = [e["attributes"][s.EVALUATION_NAME] for e in found["chat"]["events"]]
    assert sorted(names) == ["length_words", "overlap"]


def test_the_same_spans_give_the_same_samples_and_scores_in_both_hosts(
    agent: Callable[..., Agent], receiver: ReceiverProcess, exporter: CollectingExporter
) -> None:
    samples: list[tuple[str, sg.Sample]] = []

    @sg.metric(name="look")
    def look(sample: sg.Sample) -> sg.Score:
        samples.append((threading.current_thread().name, sample))
        return sg.Score(len(str(sample.output)), explanation=repr(sample.input))

    provider = TracerProvider()
    keep = Recorded()
    provider.add_span_processor(keep)
    sg.configure(metrics=[look, "overlap"], tracer_provider=provider, exporter=exporter)
    rag(provider)
    assert sg.flush(5)
    in_process = {
        str((e.attributes or {})[s.EVALUATION_NAME]): dict(e.attributes or {})
        for span in exporter.named("chat")
        for e in span.events
    }
    import tests.agent.parity_metric as shared

    shared.METRIC = look
    running = agent(metrics=["tests.agent.parity_metric:METRIC", "overlap"])
    send(running, keep.spans)
    found = scores(spans_at(receiver, 3)["chat"])
    assert len(samples) == 2
    assert samples[0][1] == samples[1][1]
    for name, attributes in in_process.items():
        same = {k: v for k, v in attributes.items() if k != s.DURATION}
        assert {k: v for k, v in found[name].items() if k != s.DURATION} == same


def test_the_kill_switch_leaves_a_relay(
    agent: Callable[..., Agent], receiver: ReceiverProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANGRADE_SCORING", "off")
    running = agent(metrics=["overlap"])
    send(running, recorded())
    assert all(scores(span) == {} for span in spans_at(receiver, 3).values())


# --- admin, page, command -------------------------------------------------------------------------------------------------


def test_admin_shows_counts_without_content_and_the_page_shows_the_sample(
    agent: Callable[..., Agent], receiver: ReceiverProcess
) -> None:
    running = agent(metrics=["overlap"])
    assert get(running.addresses.admin, "/healthz")[0] == 200
    assert get(running.addresses.admin, "/readyz")[0] == 200
    send(running, recorded())
    spans_at(receiver, 3)
    metrics = get(running.addresses.admin, "/metrics")[1]
    assert 'spangrade_pairs_total{evaluator="overlap",outcome="scored",reason=""} 1' in metrics
    assert "spangrade_spans_received_total 3" in metrics
    assert "Parcels" not in metrics
    status, page = get(running.addresses.page, "/")
    assert status == 200
    assert "Parcels arrive within three days. Maybe." in page
    (sample,) = json.loads(get(running.addresses.page, "/api/samples")[1])["samples"]
    assert sample["documents"][0]["content"] == "Parcels arrive within three days."


COMMAND = [sys.executable, "-m", "spangrade_agent"]
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "sdk"), str(REPOSITORY / "agent")])}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "--grpc", "nowhere"], "--grpc 'nowhere' is not host:port"),
        (["run", "--metric", "no.such.module:metric"], "does not import: ModuleNotFoundError"),
        (["run", "--metric", "overlapp"], "did you mean 'overlap'"),
        (["run", "--forward", "ftp://x"], "ftp://x"),
        (["run", "--config", "/nonexistent.yaml"], "cannot be read"),
        (["check-config", "{file}"], "unknown key 'recievers'"),
    ],
)
def test_a_configuration_that_cannot_work_is_said_in_words_with_exit_code_2(
    arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("recievers: {}\n")
    filled = [argument.format(file=file) for argument in arguments]
    done = subprocess.run([*COMMAND, *filled], env=ENV, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["run"], ["check-config", "{file}"]])
@pytest.mark.parametrize("gone", ["uvicorn", "urllib3"])
def test_without_its_extra_the_agent_says_what_to_install(arguments: list[str], gone: str, tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("metrics: [overlap]\n")
    program = (
        f"import sys; sys.modules[{gone!r}] = None\nfrom spangrade_agent.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    filled = [argument.format(file=file) for argument in arguments]
    command = [sys.executable, "-c", program, *filled]
    done = subprocess.run(command, env=ENV, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert f'{gone} is not installed; the agent needs its extra: pip install "spangrade[agent]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_metric_beside_the_file_is_found_and_check_config_says_what_it_means(tmp_path: Path) -> None:
    (tmp_path / "acme_metrics.py").write_text(
        "import spangrade as sg\n\n@sg.metric\ndef cites(output):\n    return '[' in output\n"
    )
    file = tmp_path / "agent.yaml"
    file.write_text("metrics: [overlap, {use: 'acme_metrics:cites', match: {service.name: 'rag-*'}}]\nstore: false\n")
    done = subprocess.run(
        [*COMMAND, "check-config", str(file)], env=ENV, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "mode relay; evaluators: overlap, cites\n"), done.stderr


def test_sigterm_drains_what_was_acknowledged(receiver: ReceiverProcess, tmp_path: Path) -> None:
    arguments = ["run", "--forward", receiver.base_url, "--metric", "length_words"]
    for name in ("grpc", "http", "admin", "page"):
        arguments += [f"--{name}", ANY]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*COMMAND, *arguments], env=ENV, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        addresses = dict(process.stdout.readline().split() for _ in range(4))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for _ in range(20):
            body = encode_spans(recorded()).SerializeToString()
            headers = {"content-type": "application/x-protobuf"}
            request = urllib.request.Request(addresses["OTLP/HTTP"] + "/v1/traces", body, headers)
            with opener.open(request, timeout=10) as response:
                assert response.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0
        process.stdout.close()
    found = receiver.spans()
    assert len(found) == 60
    assert sum(len(scores(span)) for span in found) == 20
