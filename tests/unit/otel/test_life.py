"""Set up again, shut down, set up once more: nothing is lost, doubled, or left unredacted on the way."""

import contextvars
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import spangrade as sg
from spangrade import semconv as s
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.log_events import GatedExporter, LogEvents
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome, ScoreRecord, SpanRef
from spangrade.model.score import Graded
from spangrade.otel import sdk_private
from spangrade.otel.engine import current_engine
from spangrade.otel.lineage import OpenSpans
from spangrade.testing import CollectingExporter, ScriptedJudgeClient, event_scores


def yes(sample: sg.Sample) -> bool:
    return True


def call(output: str, name: str = "call") -> None:
    with sg.trace(name):
        sg.set_output(output)


def test_configure_twice_with_one_exporter_keeps_it_open(exporter: CollectingExporter) -> None:
    for _ in range(2):
        sg.configure(metrics=[yes], exporter=exporter)
    call("x")
    assert sg.flush(5)
    assert event_scores(exporter.spans[0])
    assert not exporter.shut_down


def test_another_exporter_takes_over_and_what_was_held_goes_out_once() -> None:
    gate, first, second = threading.Event(), CollectingExporter(), CollectingExporter()

    def slow(sample: sg.Sample) -> bool:
        return gate.wait(30)

    sg.configure(metrics=[slow], exporter=first)
    call("first")
    sg.configure(metrics=[yes], exporter=second)
    call("second")
    gate.set()
    assert sg.flush(10)
    exported = [(span.attributes or {})[s.OI_OUTPUT] for span in (*first.spans, *second.spans)]
    assert sorted(exported) == ["first", "second"]


def test_configure_after_shutdown_starts_afresh() -> None:
    first, second = CollectingExporter(), CollectingExporter()
    sg.configure(metrics=[yes], exporter=first)
    call("one")
    sg.shutdown()
    sg.configure(metrics=[yes], exporter=second)
    call("two")
    assert sg.flush(5)
    assert [len(first.spans), len(second.spans)] == [1, 1]
    assert event_scores(second.spans[0])


def test_a_given_provider_stays_the_one_that_calls_are_traced_through(exporter: CollectingExporter) -> None:
    mine = TracerProvider()
    sg.configure(metrics=[yes], tracer_provider=mine, exporter=exporter)
    call("one")
    sg.configure(metrics=["length_words"])
    call("two")
    assert sg.flush(5)
    spans = sorted(exporter.spans, key=lambda span: span.start_time or 0)  # two engines' threads export them
    assert [list(event_scores(span)) for span in spans] == [["yes"], ["length_words"]]


def test_redaction_outlives_the_shutdown(exporter: CollectingExporter) -> None:
    trace_api.set_tracer_provider(TracerProvider())
    sg.configure(metrics=[yes], exporter=exporter, redact=lambda text: text.replace("4111", "****"))
    call("card 4111")
    sg.shutdown()
    call("card 4111 again")
    provider: Any = trace_api.get_tracer_provider()
    provider.force_flush()
    assert "4111" not in repr([dict(span.attributes or {}) for span in exporter.spans])


def test_counts_do_not_move_after_the_accounts_are_closed(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[yes], exporter=exporter)
    engine = current_engine()
    assert engine is not None
    with exporter.block():
        for n in range(600):
            call(str(n))
        sg.shutdown()
    exporter.wait_for(lambda spans: len(spans) >= 512, 5)
    (counts,) = engine.ledger.snapshot().values()
    assert (counts.pending, counts.in_flight) == (0, 0)
    assert sum(counts.delivered.values()) + sum(counts.undelivered.values()) == counts.of(Outcome.SCORED)


def test_a_scoring_exporter_beside_configure_scores_once(exporter: CollectingExporter) -> None:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(sg.ScoringExporter(exporter)))
    trace_api.set_tracer_provider(provider)
    ran: list[str] = []

    def count(sample: sg.Sample) -> bool:
        ran.append(str(sample.output))
        return True

    sg.configure(metrics=[count])
    call("one")
    assert sg.flush(10)
    assert ran == ["one"]
    assert event_scores(exporter.spans[0])["count"][s.SCORE_VALUE] == 1.0
    processors = sdk_private.processors_of(provider)
    assert processors is not None
    assert len(processors) == 1
    provider.shutdown()


def test_a_span_whose_parent_has_ended_is_still_below_the_call_that_is_open(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[yes], exporter=exporter)
    tracer = trace_api.get_tracer("app")
    with sg.trace("root"):
        sg.set_output("x")
        fan_out = tracer.start_span("fan out")
        child = tracer.start_span(
            "llm", trace_api.set_span_in_context(fan_out), attributes={s.OI_KIND: "LLM", s.OI_OUTPUT: "y"}
        )
        fan_out.end()
        child.end()
    assert sg.flush(5)
    assert {span.name: list(event_scores(span)) for span in exporter.spans} == {
        "fan out": [],
        "llm": [],
        "root": ["yes"],
    }


def test_a_slow_second_call_below_an_entry_span_gives_one_whole_sample(exporter: CollectingExporter) -> None:
    seen: list[tuple[Any, Any, int, Any]] = []

    def look(sample: sg.Sample) -> bool:
        seen.append((sample.input, sample.output, len(sample.documents), sample.context.get("assembly")))
        return True

    sg.configure(metrics=[look], exporter=exporter, hold=1.5)  # long beside what may come between two spans
    tracer = trace_api.get_tracer("app")
    with tracer.start_as_current_span("POST /chat"):
        with tracer.start_as_current_span(
            "plan", attributes={s.OI_KIND: "LLM", s.OI_INPUT: "question", s.OI_OUTPUT: "plan"}
        ):
            pass
        documents = '[{"content": "a document"}]'
        with tracer.start_as_current_span(
            "find", attributes={s.OI_KIND: "RETRIEVER", s.RETRIEVAL_DOCUMENTS: documents}
        ):
            pass
        with tracer.start_as_current_span(
            "answer", attributes={s.OI_KIND: "LLM", s.OI_INPUT: "p", s.OI_OUTPUT: "answer"}
        ):
            engine = current_engine()
            assert engine is not None
            gate = threading.Event()
            for _ in range(1_000):  # longer than the hold: the plan is given back while the answer runs
                if len(engine.sink.hold) == 0:
                    break
                gate.wait(0.01)
            assert seen == []
    assert sg.flush(5)
    assert seen == [("question", "answer", 1, None)]


def test_late_scores_that_nobody_records_are_not_called_delivered(exporter: CollectingExporter) -> None:
    gate = threading.Event()

    def slow(sample: sg.Sample) -> bool:
        return gate.wait(30)

    provider = TracerProvider()  # not the global one, and not given to configure
    provider.add_span_processor(sg.SpangradeProcessor(exporter))
    sg.configure(metrics=[slow], exporter=CollectingExporter(), tracer_provider=TracerProvider(), hold=0)
    with provider.get_tracer("x").start_as_current_span("llm", attributes={s.OI_KIND: "LLM", s.OI_OUTPUT: "y"}):
        pass
    engine = current_engine()
    assert engine is not None
    for _ in range(500):
        if engine.sink.hold.expired:
            break
        threading.Event().wait(0.01)
    gate.set()
    assert sg.flush(5)
    (counts,) = engine.ledger.snapshot().values()
    assert counts.undelivered == {"no_carrier": 1}


class Logs(LogRecordExporter):
    """Keeps batches, fails or raises."""

    def __init__(self, how: str = "ok") -> None:
        self.how = how
        self.records: list[ReadableLogRecord] = []

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        if self.how == "raises":
            raise RuntimeError("down")
        self.records.extend(batch)
        return LogRecordExportResult.SUCCESS if self.how == "ok" else LogRecordExportResult.FAILURE

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


def record(n: int) -> ScoreRecord:
    return ScoreRecord(SpanRef(1, n), EvaluatorInfo("m"), Graded("m\ud83d", 1.0, "secret"), n)


@pytest.mark.parametrize(("how", "failure"), [("ok", None), ("fails", "export_failed"), ("raises", "export_failed")])
def test_who_waits_for_a_log_event_always_hears_how_it_went(
    how: str, failure: str | None, swallowed_faults: list[Any]
) -> None:
    heard: list[str | None] = []
    logs = LogEvents(GatedExporter(Logs(how), lambda: True), Resource({}), ContentPolicy())
    for n in range(1, 4_001):
        assert logs.emit_all([record(n)], heard.append)
    logs.force_flush(10_000)
    logs.shutdown()
    assert len(heard) == 4_000
    assert set(heard) == {failure}
    swallowed_faults.clear()


def test_a_log_events_body_is_redacted_and_can_be_encoded() -> None:
    inner = Logs()
    policy = ContentPolicy(lambda text: text.replace("secret", "***"))
    logs = LogEvents(GatedExporter(inner, lambda: True), Resource({}), policy)
    one = ScoreRecord(SpanRef(1, 2), EvaluatorInfo("m"), Graded("m\ud83d", None, "secret"), 1)
    logs.emit(one)
    logs.force_flush(5_000)
    body = str(inner.records[0].log_record.body)
    assert "secret" not in body
    body.encode()
    logs.shutdown()


def test_content_that_hides_in_exceptions_and_names_does_not_leave(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[yes], exporter=exporter, export_content=False, redact=lambda text: text.replace("ssn", "***"))
    with pytest.raises(ValueError, match="ssn"), sg.trace("call for ssn"):
        raise ValueError("my ssn is 1")
    assert sg.flush(5)
    (span,) = exporter.spans
    assert "ssn" not in span.name
    assert "ssn" not in repr([span.status.description, [dict(e.attributes or {}) for e in span.events]])
    assert "my" not in repr([span.status.description, [dict(e.attributes or {}) for e in span.events]])


def test_documents_of_a_retrieval_outside_of_any_call_go_nowhere_with_one_warning(
    exporter: CollectingExporter, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []

    @sg.metric
    def documents(sample: sg.Sample) -> int:
        seen.append(sample.documents)
        return len(sample.documents or ())

    sg.configure(metrics=[documents], exporter=exporter)

    @sg.trace(kind="retriever")
    def search(query: str) -> list[str]:
        return [f"found for {query}"]

    @sg.trace
    def answer(question: str, *, carry: bool) -> str:
        with ThreadPoolExecutor(1) as pool:
            for _ in range(2):
                if carry:
                    pool.submit(contextvars.copy_context().run, search, question).result()
                else:
                    pool.submit(search, question).result()
        return "done"

    answer("a", carry=False)
    assert sg.flush(5)
    answer("b", carry=True)
    assert sg.flush(5)
    assert [[one["content"] for one in found or ()] for found in seen] == [[], ["found for b"]]
    lines = [record.getMessage() for record in caplog.records if "reach no sample" in record.getMessage()]
    assert len(lines) == 1
    assert "copy_context" in lines[0]


def test_a_scoring_exporter_that_is_still_there_makes_no_held_span_leave_before_its_judge(
    exporter: CollectingExporter,
) -> None:
    elsewhere = sg.ScoringExporter(CollectingExporter())  # of a provider that was replaced, say
    asked = threading.Event()

    def answers(_request: Any) -> str:
        asked.wait(5)
        return '{"reasoning": "fine", "verdict": "pass"}'

    judge = sg.LlmJudge(name="helpful", criteria="helps", scale="binary", model="m").with_client(
        ScriptedJudgeClient(answers)
    )
    sg.configure(judges=[sg.live(judge, rate=1.0)], exporter=exporter)

    @sg.trace
    def answer(question: str) -> str:
        return question

    answer("a")
    threading.Timer(0.3, asked.set).start()
    assert sg.flush(10)
    assert set(event_scores(exporter.spans[0])) == {"helpful"}
    elsewhere.shutdown()


def test_a_chain_of_spans_of_which_each_starts_the_next_is_forgotten_as_it_ends() -> None:
    spans = OpenSpans()
    for n in range(1, 51):
        spans.opened((1, n), (1, n - 1), "chain", None)
        if n > 1:
            spans.ended((1, n - 1), is_call=True)
    at, kept = spans._open[1, 50].above, 0
    while at is not None:
        at, kept = at.above, kept + 1
    assert kept <= 2
    assert not spans.ended((1, 50), is_call=True)[0].under_call
