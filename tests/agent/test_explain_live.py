"""A trace that a running agent scored, explained: by the command, and in the same words on the page."""

import json
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any
from urllib.request import urlopen

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from spangrade import semconv as s
from spangrade.samples.explain import SpanNote
from spangrade.testing import CollectingExporter
from spangrade_agent import app
from spangrade_agent.app import Agent
from spangrade_agent.config import AgentConfig
from spangrade_agent.explain.command import OK, WRONG, main
from spangrade_agent.page.spans import SpanNotes
from spangrade_agent.wire import Kind

ANY = "127.0.0.1:0"


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Agent]]:
    monkeypatch.setattr(app, "METRIC_HOLD_S", app.JUDGE_HOLD_S)
    made: list[Agent] = []

    def make(**settings: Any) -> Agent:
        listeners = {"receivers": {"grpc": None, "http": {"listen": ANY}}, "admin": False, "page": {"listen": ANY}}
        made.append(
            Agent(AgentConfig.model_validate({**listeners, "metrics": ["overlap", "length_words"], **settings}))
        )
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.stop(10)


def sent(running: Agent, *calls: dict[str, Any]) -> str:
    """The trace id of a root and the calls below it, when the agent has scored them."""
    exporter = CollectingExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("app")
    first, *rest = calls
    with tracer.start_as_current_span("answer", attributes=first):
        for more in rest:
            with tracer.start_as_current_span("inner", attributes=more):
                pass
    spans: list[ReadableSpan] = exporter.spans
    assert running.relay.ingest("traces", encode_spans(spans).SerializeToString(), "protobuf").kind is Kind.OK
    assert running.pipeline.drain(30, judges=True)
    assert running.store is not None
    assert running.store.flush(30)
    return f"{spans[0].context.trace_id:032x}"


CHAIN = {s.OI_KIND: "CHAIN", s.OI_INPUT: "When does it come?", s.OI_OUTPUT: "On Monday."}
BARE = {s.OPERATION_NAME: "chat", s.REQUEST_MODEL: "m"}


def told(running: Agent, trace: str, *more: str) -> int:
    return main([trace, "--agent", f"http://{running.addresses.page}", *more])


def test_each_call_of_a_live_trace_is_told_with_its_results_and_why(
    agent: Callable[..., Agent], capsys: pytest.CaptureFixture[str]
) -> None:
    running = agent()
    trace = sent(running, CHAIN, BARE, {s.OI_KIND: "EVALUATOR"})
    assert told(running, trace) == OK
    said = capsys.readouterr().out
    assert f"trace {trace}: 3 spans, 2 calls" in said
    assert "answer  [chain, read as openinference, by app]" in said
    assert "- overlap: skipped: it needs documents, which the sample has not" in said
    assert "set_retrieval_documents" in said
    assert "- length_words: scored: length_words 2" in said
    assert "inner  [llm, read as otel_genai, by app]" in said
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in said
    assert "an evaluator at work" in said
    assert "not looked at by overlap, length_words: it looks at root calls; this is a part of the one that span" in said


def test_the_page_says_the_same_words(agent: Callable[..., Agent], capsys: pytest.CaptureFixture[str]) -> None:
    running = agent()
    trace = sent(running, BARE)
    assert told(running, trace, "--json") == OK
    [span] = json.loads(capsys.readouterr().out)["spans"]
    [sample] = span["samples"]
    assert running.store is not None
    [stored] = running.store.of_trace(trace)
    with urlopen(f"http://{running.addresses.page}/samples/{stored.id}", timeout=30) as answer:
        page = unescape(answer.read().decode())
    for said in (*span["findings"], *sample["pairs"]):
        assert said["says"] in page
        assert said["fix"] in page


def test_a_store_without_content_still_explains_and_says_that_text_is_missing(
    agent: Callable[..., Agent], capsys: pytest.CaptureFixture[str]
) -> None:
    running = agent(store={"content": "none"})
    trace = sent(running, CHAIN)
    assert told(running, trace) == OK
    said = capsys.readouterr().out
    assert "- overlap: skipped" in said
    assert "Monday" not in said
    assert "store.content: none" in said


def test_a_trace_that_the_agent_never_saw_is_said(
    agent: Callable[..., Agent], capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(agent(), "ab" * 16) == WRONG
    assert "no sample of this trace is here" in capsys.readouterr().err


def test_calls_that_no_sample_is_made_of_are_explained_too(
    agent: Callable[..., Agent], capsys: pytest.CaptureFixture[str]
) -> None:
    running = agent()
    trace = sent(running, {s.OI_KIND: "RETRIEVER", s.OI_INPUT: "q"})
    assert told(running, trace) == OK
    assert "the retrieval says nothing of what it found" in capsys.readouterr().out


def note(trace: str, span: str) -> SpanNote:
    return SpanNote(trace, span, None, "n", None, "", "llm")


def test_notes_are_bounded_in_number_and_age_and_whole_traces_go() -> None:
    notes = SpanNotes(4, 2**20)
    for at, (trace, span) in enumerate(["aa", "ab", "ba", "bb", "ca"]):
        notes.put(note(trace, span), float(at))
    assert notes.of("a", -1.0) == []
    assert [one.span_id for one in notes.of("b", -1.0)] == ["a", "b"]
    notes.put(note("b", "a"), 5.0)
    assert len(notes.of("b", -1.0)) == 2
    assert [one.span_id for one in notes.of("b", 4.5)] == ["a"]
    assert notes.of("c", 4.5) == []


def test_one_endless_trace_does_not_grow_without_bound() -> None:
    notes = SpanNotes(10, 2**20)
    for n in range(1_500):
        notes.put(note("t", str(n)), float(n))
    assert len(notes.of("t", -1.0)) == 1_000


def test_notes_are_bounded_in_bytes_too_and_what_goes_gives_its_back() -> None:
    notes = SpanNotes(1_000, 5_000)
    for n in range(50):
        notes.put(note(f"t{n}", "a"), float(n))
        notes.put(note(f"t{n}", "a"), float(n))  # again: counted once
    kept = [n for n in range(50) if notes.of(f"t{n}", -1.0)]
    assert kept == list(range(50 - len(kept), 50))
    assert 3 <= len(kept) <= 6
    assert notes.of("t49", 60.0) == []
    notes.put(note("new", "a"), 61.0)
    assert len(notes.of("new", 60.0)) == 1
