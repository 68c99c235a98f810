"""Claims about the ground that the other integration tests stand on: Jaeger as it is, without Spangrade."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import httpx
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from . import jaeger_build
from .conftest import Jaeger

MakeExporter = Callable[[Jaeger], SpanExporter]


def over_grpc(jaeger: Jaeger) -> SpanExporter:
    return GrpcSpanExporter(endpoint=jaeger.otlp_grpc, insecure=True)


def over_http(jaeger: Jaeger) -> SpanExporter:
    return HttpSpanExporter(endpoint=f"{jaeger.otlp_http}/v1/traces")


both_transports = pytest.mark.parametrize("make_exporter", [over_grpc, over_http])


def record(exporter: SpanExporter) -> str:
    """Sends one trace of two spans, the outer one with an event, and returns its id."""
    provider = TracerProvider(resource=Resource.create({"service.name": "harness"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("harness-tracer")
    with tracer.start_as_current_span("answer") as span:
        span.set_attributes({"text": "naïve", "count": 3, "big": 2**60, "whole": 1.0, "yes": True, "list": ["a", "b"]})
        span.add_event("first", {"value": 0.0, "label": "fail"})
        span.add_event("second")
        with tracer.start_as_current_span("retrieve"):
            pass
    provider.shutdown()
    return f"{span.get_span_context().trace_id:032x}"


@both_transports
def test_a_span_and_its_events_come_back_as_they_were_sent(jaeger: Jaeger, make_exporter: MakeExporter) -> None:
    trace = jaeger.trace(record(make_exporter(jaeger)), min_spans=2)

    answer = jaeger.span(trace, "answer")
    sent = {"text": "naïve", "count": 3, "big": 2**60, "whole": 1.0, "yes": True, "list": '["a","b"]'}
    assert jaeger.tags(answer) == {**sent, "span.kind": "internal", "otel.scope.name": "harness-tracer"}
    assert isinstance(jaeger.tags(answer)["whole"], float)
    assert jaeger.logs(answer) == [{"event": "first", "value": 0.0, "label": "fail"}, {"event": "second"}]
    assert jaeger.logs(answer, "second") == [{"event": "second"}]
    assert jaeger.resource(trace, answer)["service.name"] == "harness"

    retrieve = jaeger.span(trace, "retrieve")
    assert [(ref["refType"], ref["spanID"]) for ref in retrieve["references"]] == [("CHILD_OF", answer["spanID"])]


def test_a_trace_that_never_came_fails_the_test_in_time_and_says_what_is_there(jaeger: Jaeger) -> None:
    with pytest.raises(AssertionError, match="has 0 spans"):
        jaeger.trace("f" * 32, timeout=0.1)
    trace_id = record(over_grpc(jaeger))
    jaeger.trace(trace_id, min_spans=2)
    with pytest.raises(AssertionError, match=r"has 2 spans \['answer', 'retrieve'\]"):
        jaeger.trace(trace_id, timeout=0.1, min_spans=3)


def test_a_span_sent_twice_is_one_span_if_identical_and_two_if_events_were_added(jaeger: Jaeger) -> None:
    """Why a score is never sent by exporting its span again."""
    memory = InMemorySpanExporter()
    trace_id = record(memory)
    _, answer = memory.get_finished_spans()
    with_fewer_events = ReadableSpan(
        name=answer.name,
        context=answer.context,
        resource=answer.resource,
        attributes=answer.attributes,
        events=answer.events[:1],
        kind=answer.kind,
        instrumentation_scope=answer.instrumentation_scope,
        status=answer.status,
        start_time=answer.start_time,
        end_time=answer.end_time,
    )
    exporter = over_http(jaeger)
    for spans in (memory.get_finished_spans(), memory.get_finished_spans(), [with_fewer_events]):
        assert exporter.export(spans) is SpanExportResult.SUCCESS
    exporter.shutdown()

    trace = jaeger.trace(trace_id, min_spans=3)
    names = sorted(span["operationName"] for span in trace["spans"])
    assert names == ["answer", "answer", "retrieve"]


@pytest.mark.parametrize(
    ("content_type", "body"), [("application/json", b"{}"), ("application/x-protobuf", b"")], ids=["json", "protobuf"]
)
def test_jaeger_has_no_logs_over_http_and_answers_404(jaeger: Jaeger, content_type: str, body: bytes) -> None:
    headers = {"content-type": content_type}
    with httpx.Client(trust_env=False) as client:
        assert client.post(f"{jaeger.otlp_http}/v1/logs", content=body, headers=headers).status_code == 404
        # The same request for traces is taken: it is the path that is not there.
        assert client.post(f"{jaeger.otlp_http}/v1/traces", content=body, headers=headers).status_code == 200


def test_jaeger_has_no_logs_over_grpc_and_answers_unimplemented(jaeger: Jaeger) -> None:
    def export(signal: str) -> None:
        # An empty request is no bytes in protobuf.
        channel.unary_unary(f"/opentelemetry.proto.collector.{signal}/Export")(b"", timeout=5)

    with grpc.insecure_channel(jaeger.otlp_grpc.removeprefix("http://")) as channel:
        with pytest.raises(grpc.RpcError) as error:
            export("logs.v1.LogsService")
        assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED
        export("trace.v1.TraceService")


# The build, with a `go` that is a script: what is claimed here is not about Jaeger.


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """An empty cache, and as the only `go` a shell script with the given lines."""
    monkeypatch.setenv("SPANGRADE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()

    def install(script: str) -> None:
        go = tmp_path / "bin" / "go"
        go.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        go.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    return install


def test_without_go_and_without_a_binary_the_error_names_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(jaeger_build.GoMissingError, match="no `go` on the PATH"):
        jaeger_build.ensure_jaeger()


def test_a_failed_build_shows_the_end_of_its_log_and_caches_nothing(fake_go: Callable[[str], None]) -> None:
    fake_go("echo 'go: cannot reach the proxy'; exit 3")
    with pytest.raises(jaeger_build.BuildError, match=r"exit code 3(?s:.*)cannot reach the proxy"):
        jaeger_build.ensure_jaeger()
    assert jaeger_build.cached_binary() is None


def test_a_binary_that_does_not_start_is_not_cached(fake_go: Callable[[str], None]) -> None:
    fake_go("printf '#!/bin/sh\\nexit 4\\n' > jaeger; chmod +x jaeger")
    with pytest.raises(jaeger_build.BuildError, match="exit code 4"):
        jaeger_build.ensure_jaeger()
    assert jaeger_build.cached_binary() is None


def test_processes_that_start_together_build_once_and_agree(tmp_path: Path, fake_go: Callable[[str], None]) -> None:
    built = tmp_path / "built"
    # Slow enough that the others arrive while it runs.
    fake_go(f"echo once >> '{built}'; sleep 0.5; printf '#!/bin/sh\\nexit 0\\n' > jaeger; chmod +x jaeger")
    command = [sys.executable, jaeger_build.__file__]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    printed = {process.communicate(timeout=60)[0].decode().strip() for process in running}
    assert printed == {str(jaeger_build.cached_binary())}
    assert built.read_text(encoding="utf-8") == "once\n"
