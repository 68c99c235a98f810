"""Application → OTLP → Jaeger's own Collector pipeline → Jaeger's query API: the scores are on the right span.

Each case runs the application as a process of its own, as a user would, with nothing but an endpoint.
"""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from spangrade import semconv as s

from .conftest import Jaeger

APPLICATION = """
import json, sys
import spangrade as sg

HOW = sys.argv[1]

@sg.metric(threshold=10, version=2)
def words(output):
    return len(output.split())

def theirs():
    # An application that traced itself before Spangrade came: its provider, its exporter.
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=sys.argv[2] + "/v1/traces")))
    trace.set_tracer_provider(provider)

if HOW == "own":
    sg.configure(service_name="shop", endpoint=sys.argv[2], metrics=["overlap", words])
else:
    theirs()
    sg.configure(metrics=["overlap", words], take_over=HOW == "take_over")

@sg.trace(kind="retriever")
def search(query):
    return [{"id": "d1", "content": "Parcels arrive within three working days.", "score": 0.9}]

@sg.trace
def answer(question):
    search(question)
    return "Parcels arrive within three working days. Drones bring them."

@sg.trace(name="request", kind="agent")
def request(question):
    from opentelemetry import trace
    print(json.dumps({"trace_id": format(trace.get_current_span().get_span_context().trace_id, "032x")}))
    return answer(question)

request("When does it come?")
print(json.dumps({"flushed": sg.flush(10)}))
"""


def run(tmp_path: Path, how: str, endpoint: str, **env: str) -> dict[str, Any]:
    """Run the application; returns what it printed."""
    script = tmp_path / "application.py"
    script.write_text(textwrap.dedent(APPLICATION))
    done = subprocess.run(
        [sys.executable, str(script), how, endpoint],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        said.update(json.loads(line))
    assert said["flushed"] is True, done.stderr
    return said


def scores(jaeger: Jaeger, span: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {str(log[s.EVALUATION_NAME]): log for log in jaeger.logs(span, s.EVALUATION_EVENT)}


def check(found: dict[str, dict[str, Any]]) -> None:
    assert set(found) == {"overlap", "words"}
    overlap, words = found["overlap"], found["words"]
    assert 0.3 < overlap[s.SCORE_VALUE] < 0.9
    assert "Drones bring them" in overlap[s.EXPLANATION]
    assert overlap[s.EVALUATOR_KIND] == "code"
    assert overlap[s.PROBABILITY] == 1
    assert len(overlap[s.SCORE_ID]) == 32
    assert (words[s.SCORE_VALUE], words[s.SCORE_LABEL], words[s.PASSED]) == (9, "fail", False)
    assert (words[s.THRESHOLD], words[s.EVALUATOR_VERSION]) == (10, "2")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_scores_ride_on_the_root_span_into_jaeger(protocol: str, jaeger: Jaeger, tmp_path: Path) -> None:
    endpoint = jaeger.otlp_http if protocol == "http" else jaeger.otlp_grpc
    said = run(tmp_path, "own", endpoint, **({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"} if protocol == "grpc" else {}))
    trace = jaeger.trace(said["trace_id"], min_spans=3)
    assert sorted(span["operationName"] for span in trace["spans"]) == ["answer", "request", "search"]
    check(scores(jaeger, jaeger.span(trace, "request")))
    assert scores(jaeger, jaeger.span(trace, "answer")) == {}
    tags = jaeger.tags(jaeger.span(trace, "request"))
    assert "words" in tags[s.SCORED_BY]


def test_an_app_with_its_own_exporter_gets_its_scores_as_children_of_the_right_span(
    jaeger: Jaeger, tmp_path: Path
) -> None:
    said = run(tmp_path, "late", jaeger.otlp_http)
    trace = jaeger.trace(said["trace_id"], min_spans=5)
    root = jaeger.span(trace, "request")
    assert scores(jaeger, root) == {}
    found: dict[str, dict[str, Any]] = {}
    for name in ("evaluation overlap", "evaluation words"):
        late = jaeger.span(trace, name)
        (reference,) = late["references"]
        assert (reference["refType"], reference["spanID"]) == ("CHILD_OF", root["spanID"])
        # Jaeger cuts both times to whole microseconds, so their sum may be one short of the end.
        assert late["startTime"] - (root["startTime"] + root["duration"]) in (0, 1)
        assert late["duration"] == 0
        found.update(scores(jaeger, late))
        assert jaeger.tags(late)[s.SCORE_VALUE] == found[name.removeprefix("evaluation ")][s.SCORE_VALUE]
    check(found)


def test_take_over_puts_the_event_on_the_apps_own_span_and_exports_it_once(jaeger: Jaeger, tmp_path: Path) -> None:
    said = run(tmp_path, "take_over", jaeger.otlp_http)
    trace = jaeger.trace(said["trace_id"], min_spans=3)
    assert sorted(span["operationName"] for span in trace["spans"]) == ["answer", "request", "search"]
    check(scores(jaeger, jaeger.span(trace, "request")))
    assert not any(span.get("warnings") for span in trace["spans"])
