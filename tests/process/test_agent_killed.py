"""The agent as a process that is killed (SIGKILL) at random moments under load: what it acknowledged arrives, with its scores."""

import os
import random
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from spangrade import semconv as s
from spangrade.testing import CollectingExporter

from .programs import REPOSITORY, Program, environment

#: The gate kills a few times; SPANGRADE_KILLS=100 is what a release is tried with.
KILLS = int(os.environ.get("SPANGRADE_KILLS", "4"))
CONFIG = """
receivers: {{http: {{listen: "127.0.0.1:0"}}}}
admin: false
page: false
store: false
destinations: [{{endpoint: "{url}"}}]
spool: {{path: "{spool}"}}
metrics: [length_words]
"""


class Destination(ThreadingHTTPServer):
    """Keeps the spans that came, and by span id the scores: events on them, or log events (of those that were late)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.came: set[bytes] = set()
        self.scores: dict[bytes, set[str]] = defaultdict(set)
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self.changed:
            for group in request.resource_spans:
                for scope in group.scope_spans:
                    for span in scope.spans:
                        self.came.add(span.span_id)
                        for event in span.events:
                            self._score(span.span_id, event.attributes)
            self.changed.notify_all()

    def take_logs(self, body: bytes) -> None:
        request = ExportLogsServiceRequest.FromString(body)
        with self.changed:
            for group in request.resource_logs:
                for scope in group.scope_logs:
                    for record in scope.log_records:
                        self._score(record.span_id, record.attributes)
            self.changed.notify_all()

    def _score(self, span_id: bytes, attributes: Any) -> None:
        names = [pair.value.string_value for pair in attributes if pair.key == s.EVALUATION_NAME]
        self.scores[span_id].update(names)

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self.thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Destination

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path.endswith("/v1/traces"):
            self.server.take(body)
        elif self.path.endswith("/v1/logs"):
            self.server.take_logs(body)
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:  # the agent was killed in the middle
            pass


@pytest.fixture
def destination() -> Iterator[Destination]:
    made = Destination()
    yield made
    made.close()


def requests(count: int) -> list[tuple[bytes, list[bytes], list[bytes]]]:
    """Bodies, each with the span ids of its calls and of its other spans."""
    exporter = CollectingExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("app")
    found = []
    for _ in range(count):
        before = len(exporter.spans)
        with (
            tracer.start_as_current_span("GET /answer"),
            tracer.start_as_current_span(
                "answer", attributes={s.OI_KIND: "CHAIN", s.OI_INPUT: "When?", s.OI_OUTPUT: "On Monday."}
            ),
        ):
            pass
        spans = exporter.spans[before:]
        ids = [(span.name, span.context.span_id.to_bytes(8, "big")) for span in spans if span.context]
        body = encode_spans(spans).SerializeToString()
        found.append((body, [i for name, i in ids if name == "answer"], [i for name, i in ids if name != "answer"]))
    return found


def running(config: Path) -> Program:
    command = [sys.executable, "-m", "spangrade_agent", "run", "--config", str(config)]
    return Program(command, environment(REPOSITORY / "agent"))


def url_of(agent: Program) -> str:
    agent.wait_for("OTLP/HTTP")
    found = re.search(r"OTLP/HTTP\s+(http://\S+)", agent.said)
    assert found is not None
    return found[1]


def test_every_acknowledged_span_arrives_with_its_scores_however_often_the_agent_is_killed(
    destination: Destination, tmp_path: Path
) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text(CONFIG.format(url=destination.url, spool=tmp_path / "spool"))
    acknowledged: list[tuple[list[bytes], list[bytes]]] = []
    for _ in range(KILLS):
        with running(config) as agent, httpx.Client(trust_env=False, timeout=30) as client:
            url = f"{url_of(agent)}/v1/traces"
            left, killer = random.randrange(60), threading.Thread(target=agent.kill, args=(9,))
            for body, calls, others in requests(60):
                if left == 0:  # in the middle of a request, wherever that is then
                    killer.start()
                left -= 1
                try:
                    answer = client.post(url, content=body, headers={"content-type": "application/x-protobuf"})
                except httpx.HTTPError:
                    break
                assert answer.status_code == 200
                acknowledged.append((calls, others))
            killer.join()
            agent.end()
    wanted = {i for calls, others in acknowledged for i in (*calls, *others)}
    scored = {i for calls, _ in acknowledged for i in calls}

    def missing() -> tuple[int, int]:
        """Spans that have not come, and calls without their score."""
        return len(wanted - destination.came), sum(destination.scores[i] != {"length_words"} for i in scored)

    with running(config) as last:
        url_of(last)
        with destination.changed:
            destination.changed.wait_for(lambda: missing() == (0, 0), 60)
            assert missing() == (0, 0), f"of {len(wanted)} spans and {len(scored)} calls"
        last.kill(15)
        last.end()
    assert len(acknowledged) >= KILLS
