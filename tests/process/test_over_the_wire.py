"""Real sockets: OTLP to a receiver in another process, a judge over HTTP, an exit without a goodbye."""

import json
import os
import subprocess
import threading

import pytest
from opentelemetry import trace as trace_api

import spangrade as sg
from spangrade import semconv as s
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter, event_scores

from .programs import Judge, ReceiverProcess, run_program


@sg.trace
def answer(question: str) -> str:
    return f"answer to {question}"


def yes(sample: sg.Sample) -> bool:
    return True


HELPFUL = sg.LlmJudge(name="helpful", criteria="It helps.", scale="binary", live=True)


def test_scores_arrive_as_span_events_and_as_log_events_of_the_same_id(receiver: ReceiverProcess, judge: Judge) -> None:
    sg.configure(service_name="shop", endpoint=receiver.base_url, metrics=[yes], judges=[sg.live(HELPFUL, rate=1.0)])
    answer("why")
    assert sg.flush(10)
    (span,) = receiver.spans()
    logs = receiver.logs()
    on_span = {e["attributes"][s.EVALUATION_NAME]: e["attributes"] for e in span["events"]}
    in_logs = {log["attributes"][s.EVALUATION_NAME]: log for log in logs}
    assert set(on_span) == set(in_logs) == {"yes", "helpful"}
    for name, event in on_span.items():
        log = in_logs[name]
        assert log["attributes"][s.SCORE_ID] == event[s.SCORE_ID]
        assert (log["trace_id"], log["span_id"]) == (span["trace_id"], span["span_id"])
        assert log["event_name"] == s.EVALUATION_EVENT
        assert log["body"].startswith(f"evaluation: {name}=")
    helpful = on_span["helpful"]
    assert helpful[s.JUDGE_MODEL] == "judge-1-2026"
    assert helpful[s.EXPLANATION] == "it answers the question"
    assert (helpful[s.JUDGE_INPUT_TOKENS], helpful[s.JUDGE_OUTPUT_TOKENS]) == (300, 12)
    assert len(helpful[s.JUDGE_PROMPT_HASH]) == 16
    assert "sk-not-to-be-seen" not in json.dumps([span, logs])
    assert judge.requests[0]["headers"]["Authorization"] == "Bearer sk-not-to-be-seen"


def test_a_judge_that_is_late_reaches_a_store_that_takes_logs_as_a_log_event(
    receiver: ReceiverProcess, judge: Judge
) -> None:
    judge.gate = threading.Event()
    sg.configure(endpoint=receiver.base_url, judges=[sg.live(HELPFUL, rate=1.0)], hold=0.1)
    answer("why")
    assert not sg.flush(1)
    (span,) = receiver.spans(wait=5)
    assert span["events"] == []
    judge.gate.set()
    assert sg.flush(10)
    (log,) = receiver.logs(wait=5)
    assert (log["trace_id"], log["span_id"]) == (span["trace_id"], span["span_id"])
    assert len(receiver.spans()) == 1
    engine = current_engine()
    assert engine is not None
    (counts,) = engine.ledger.snapshot().values()
    assert counts.delivered == {"log_event": 1}


def test_no_echo_even_with_every_http_client_instrumented(
    judge: Judge, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(
        "opentelemetry.instrumentation.httpx", reason="the dev extra's httpx instrumentation is missing"
    )
    from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

    HTTPXClientInstrumentor().instrument()
    try:
        sg.configure(metrics=[yes], judges=[sg.live(HELPFUL, rate=1.0)], exporter=exporter)
        answer("why")
        assert sg.flush(10)
        assert sg.flush(10)
        assert [span.name for span in exporter.spans] == ["answer"]
        assert set(event_scores(exporter.spans[0])) == {"yes", "helpful"}
        (request,) = judge.requests
        assert request["headers"]["traceparent"].endswith("-00")
        trace_id = exporter.spans[0].context.trace_id if exporter.spans[0].context else 0
        assert f"{trace_id:032x}" not in request["headers"]["traceparent"]
        assert request["body"]["messages"][0]["content"].startswith(s.JUDGE_MARKER)
    finally:
        HTTPXClientInstrumentor().uninstrument()


def test_a_judge_whose_plug_is_pulled_changes_nothing_for_the_application(
    exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANGRADE_JUDGE_MODEL", "judge-1")
    monkeypatch.setenv("SPANGRADE_JUDGE_BASE_URL", "http://127.0.0.1:9")  # discard: nobody listens
    sg.configure(metrics=[yes], judges=[sg.live(HELPFUL, rate=1.0)], exporter=exporter)
    assert [answer(str(n)) for n in range(3)] == [f"answer to {n}" for n in range(3)]
    assert sg.flush(20)
    for span in exporter.named("answer"):
        scores = event_scores(span)
        assert scores["yes"][s.SCORE_VALUE] == 1.0
        assert scores["helpful"][s.ERROR_TYPE] == "connection"
        assert s.SCORE_VALUE not in scores["helpful"]


CHILD = """
import sys, threading
import spangrade as sg

@sg.metric
def words(output):
    return len(output.split())

@sg.trace
def answer(question):
    return "an answer of five words"

sg.configure(service_name="child", endpoint=sys.argv[1], metrics=[words])
for n in range(int(sys.argv[2])):
    answer(str(n))
# No flush, no shutdown: the exit itself must do it.
"""


def run_child(*arguments: str, code: str = CHILD) -> subprocess.CompletedProcess[str]:
    return run_program(code, *arguments)


def test_a_process_that_just_ends_loses_neither_span_nor_score(receiver: ReceiverProcess) -> None:
    done = run_child(receiver.base_url, "200")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    spans = receiver.spans()
    assert len(spans) == 200
    assert all(span["events"][0]["attributes"][s.SCORE_VALUE] == 5 for span in spans)


def test_a_collector_that_is_away_delays_the_exit_by_the_budget_at_most() -> None:
    import time

    started = time.monotonic()
    done = run_child("http://127.0.0.1:9", "20")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    # 5 s is the documented budget; the rest is Python's start and a busy machine.
    assert time.monotonic() - started < 15


FORKED = """
import os, sys
import spangrade as sg

@sg.metric
def pid(output):
    return os.getpid()

@sg.trace
def answer(question):
    return question

sg.configure(service_name="fork", endpoint=sys.argv[1], metrics=[pid])
answer("parent before")
child = os.fork()
if child == 0:
    answer("child")
    os._exit(0 if sg.flush(10) else 3)
answer("parent after")
flushed = sg.flush(10)
_, status = os.waitpid(child, 0)
sys.exit(0 if flushed and os.waitstatus_to_exitcode(status) == 0 else 4)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_forked_child_scores_its_own_calls_and_not_its_parents(receiver: ReceiverProcess) -> None:
    done = run_child(receiver.base_url, code=FORKED)
    assert done.returncode == 0, done.stderr
    by_output = {span["attributes"][s.OI_OUTPUT]: span for span in receiver.spans()}
    assert sorted(by_output) == ["child", "parent after", "parent before"]
    assert len(receiver.spans()) == 3
    pids = {output: span["events"][0]["attributes"][s.SCORE_VALUE] for output, span in by_output.items()}
    assert pids["parent before"] == pids["parent after"] != pids["child"]


FORKED_INSIDE = """
import os, sys
import spangrade as sg

@sg.metric
def yes(output):
    return 1

@sg.trace
def inner(x):
    return x

@sg.trace
def outer(x):
    child = os.fork()
    if child == 0:
        inner("in the child")
        os._exit(0 if sg.flush(10) else 3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

sg.configure(endpoint=sys.argv[1], metrics=[yes])
sys.exit(outer("x"))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_fork_inside_a_call_makes_the_childs_call_a_root_of_its_own_process(receiver: ReceiverProcess) -> None:
    done = run_child(receiver.base_url, code=FORKED_INSIDE)
    assert done.returncode == 0, done.stderr
    by_name = {span["name"]: span for span in receiver.spans()}
    assert [len(by_name[name]["events"]) for name in ("inner", "outer")] == [1, 1]


def test_the_current_span_of_the_application_is_none_of_ours_after_a_call(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[yes], exporter=exporter)
    with trace_api.get_tracer("app").start_as_current_span("GET") as span:
        answer("x")
        assert trace_api.get_current_span() is span
