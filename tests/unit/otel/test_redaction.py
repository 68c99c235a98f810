"""`redact` and `export_content`: every text of every span that leaves through us, and of every score, by whatever way."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags
from tests.unit.otel.others import CALL, their_provider, yes

import spangrade as sg
from spangrade import semconv as s
from spangrade.delivery.content import FAILED, ContentPolicy
from spangrade.delivery.log_events import GatedExporter, LogEvents
from spangrade.judges.live import live
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import ScoreRecord, SpanRef
from spangrade.model.score import Graded
from spangrade.otel import destinations as otlp
from spangrade.otel.bootstrap import configure
from spangrade.otel.engine import current_engine
from spangrade.samples import content
from spangrade.testing import CollectingExporter, ScriptedJudgeClient, event_scores

ELSEWHERE = SpanContext(0xABC, 0xDEF, True, TraceFlags(1))
HOOK_THREADS: set[str] = set()


def hide(text: str) -> str:
    """Puts a mark around each text that holds the word: a second pass would be seen."""
    HOOK_THREADS.add(threading.current_thread().name)
    return f"<{text.replace('ssn', '***')}>" if "ssn" in text or "***" in text else text


def says(sample: sg.Sample) -> sg.Score:
    return sg.Score(1, label="pass", explanation=f"it says {sample.output}", metadata={"why": f"{sample.output}"})


def own(exporter: CollectingExporter, **said: Any) -> None:
    configure(exporter=exporter, **said)


def batch_behind(exporter: CollectingExporter, **said: Any) -> None:
    their_provider(sg.SpangradeProcessor(BatchSpanProcessor(exporter)))
    configure(**said)


def simple_behind(exporter: CollectingExporter, **said: Any) -> None:
    their_provider(sg.SpangradeProcessor(SimpleSpanProcessor(exporter)))
    configure(**said)


def taken_over(exporter: CollectingExporter, **said: Any) -> None:
    their_provider(BatchSpanProcessor(exporter))
    configure(take_over=True, **said)


def scoring_exporter(exporter: CollectingExporter, **said: Any) -> None:
    their_provider(SimpleSpanProcessor(sg.ScoringExporter(exporter)))
    configure(**said)


SETUPS: list[Callable[..., None]] = [own, batch_behind, simple_behind, taken_over, scoring_exporter]
EVERY_SETUP = pytest.mark.parametrize("set_up", SETUPS, ids=[one.__name__ for one in SETUPS])


def leaks() -> None:
    """A call of ours, and spans of other instrumentations, with the word in every place that can hold text."""

    @sg.trace(name="call about an ssn")
    def answer(question: str) -> str:
        span: Any = trace_api.get_current_span()
        span.set_attribute("theirs", ["ssn", "and", "ssn"])
        span.set_attribute("tenant", "ssn")
        span.add_event("event ssn", {"why": "ssn"})
        span.add_link(ELSEWHERE, {"linked": "ssn"})
        sg.set_metadata(owner="ssn")
        sg.set_context(note="ssn")
        sg.set_session("ssn", user="ssn")
        sg.set_retrieval_documents(["a document about an ssn"])
        return f"answer: {question}"

    answer("my ssn is 1")
    with pytest.raises(ValueError, match="ssn"), sg.trace("fails"):
        raise ValueError("the ssn is wrong")
    tracer = trace_api.get_tracer("theirs")
    with (
        tracer.start_as_current_span("POST /ssn", links=[Link(ELSEWHERE, {"l": "ssn"})], attributes={"url": "/ssn"}),
        tracer.start_as_current_span("chat ssn", attributes={**CALL, s.OI_INPUT: "ssn", "b": "ssn"}) as span,
    ):
        span.record_exception(KeyError("ssn"))
        span.set_status(Status(StatusCode.ERROR, "ssn"))


def texts(span: Any) -> list[Any]:
    """All that a span says, but for its resource."""
    return [
        span.name, span.status.description, dict(span.attributes), [(e.name, dict(e.attributes)) for e in span.events],
        [dict(link.attributes) for link in span.links],
    ]  # fmt: skip


@EVERY_SETUP
def test_every_text_of_every_span_is_redacted_once(set_up: Any, exporter: CollectingExporter) -> None:
    set_up(exporter, metrics=[says], redact=hide)
    leaks()
    assert sg.flush(10)
    assert exporter.wait_for(lambda spans: len(spans) == 4)
    said = repr([texts(span) for span in exporter.spans])
    assert "ssn" not in said
    assert "***" in said
    assert "<<" not in said
    (call,) = exporter.named("<call about an ***>")
    assert event_scores(call)["says"][s.EXPLANATION] == "<it says answer: my *** is 1>"
    (chat,) = exporter.named("<chat ***>")
    assert chat.status.description == "<***>"
    assert {"exception", s.EVALUATION_EVENT} == {event.name for event in chat.events}


@EVERY_SETUP
def test_the_hook_never_runs_on_the_applications_thread(set_up: Any, exporter: CollectingExporter) -> None:
    HOOK_THREADS.clear()
    set_up(exporter, metrics=[says], redact=hide)
    leaks()
    assert sg.flush(10)
    assert exporter.wait_for(lambda spans: len(spans) == 4)
    assert HOOK_THREADS
    assert threading.current_thread().name not in HOOK_THREADS


def test_the_hook_runs_once_for_all_destinations(monkeypatch: pytest.MonkeyPatch) -> None:
    destinations = {f"http://127.0.0.1:{port}": CollectingExporter() for port in (1, 2, 3)}
    monkeypatch.setattr(otlp, "span_exporter", destinations.__getitem__)
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    heard: list[str] = []

    def hook(text: str) -> str:
        heard.append(text)
        return hide(text)

    sg.configure(metrics=[says], destinations=[{"endpoint": endpoint} for endpoint in destinations], redact=hook)
    leaks()
    assert sg.flush(10)
    first, *others = ([texts(span) for span in exporter.spans] for exporter in destinations.values())
    assert [sorted(map(repr, other)) for other in others] == [sorted(map(repr, first))] * 2
    assert "ssn" not in repr(first)
    assert heard.count("event ssn") == 1
    assert heard.count("POST /ssn") == 1


def test_a_hook_that_hangs_before_anothers_processor_holds_up_no_call_and_no_end(exporter: CollectingExporter) -> None:
    gate = threading.Event()

    def hangs(text: str) -> str:
        gate.wait(30)
        return text

    simple_behind(exporter, metrics=[says], redact=hangs)
    with trace_api.get_tracer("theirs").start_as_current_span("GET /"):
        pass
    with sg.trace("call"):
        sg.set_output("a")
    assert not sg.flush(0.3)
    assert exporter.spans == []
    gate.set()
    assert sg.flush(10)
    assert {span.name for span in exporter.spans} == {"GET /", "call"}


def test_a_score_whose_span_anothers_processor_refuses_after_redaction_is_undelivered(
    swallowed_faults: list[Any],
) -> None:
    class Refuses(SpanProcessor):
        def on_end(self, span: Any) -> None:
            raise RuntimeError("the next hop's")

    their_provider(sg.SpangradeProcessor(Refuses()))
    sg.configure(metrics=[says], redact=hide)
    with sg.trace("call"):
        sg.set_output("a")
    sg.flush(5)
    engine = current_engine()
    assert engine is not None
    (counts,) = engine.ledger.snapshot().values()
    assert (counts.delivered, counts.undelivered) == ({}, {"forward_failed": 1})
    assert {where for where, _ in swallowed_faults} == {"processor.next"}
    swallowed_faults.clear()


def test_bytes_and_maps_are_texts_too() -> None:
    policy = ContentPolicy(hide)
    given = {"b": b"ssn", "raw": b"\xff\x00ssn", "m": {"k": ["ssn", {"deep": "ssn"}]}, "n": 7, "s": (1, 2)}
    assert policy.attributes(given) == {
        "b": b"<***>",
        "raw": b"\xff\x00ssn",
        "m": {"k": ("<***>", {"deep": "<***>"})},
        "n": 7,
        "s": (1, 2),
    }


def test_late_scores_are_redacted_once_and_spans_that_others_export_are_theirs(exporter: CollectingExporter) -> None:
    their_provider(SimpleSpanProcessor(exporter))
    sg.configure(metrics=[says], redact=hide)
    leaks()
    assert sg.flush(10)
    late = [span for span in exporter.spans if "evaluation" in span.name]
    said = repr([texts(span) for span in late])
    assert len(late) == 3
    assert "ssn" not in said
    assert "***" in said
    assert "<<" not in said
    (theirs,) = exporter.named("call about an ssn")
    assert (theirs.attributes or {})[s.OI_INPUT] == "my ssn is 1"


@EVERY_SETUP
def test_a_score_that_comes_after_its_span_is_redacted_once(
    set_up: Any, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    gate = threading.Event()

    def slow(sample: sg.Sample) -> sg.Score:
        gate.wait(10)
        return says(sample)

    set_up(exporter, metrics=[slow], redact=hide, hold=0.01)
    with sg.trace("call"):
        sg.set_output("ssn")
    assert exporter.wait_for(lambda spans: any(span.name == "call" for span in spans))
    gate.set()
    assert sg.flush(10)
    trace_api.get_tracer_provider().force_flush()  # type: ignore[attr-defined]
    assert exporter.wait_for(lambda spans: any(span.name == "evaluation slow" for span in spans))
    (late,) = exporter.named("evaluation slow")
    assert (late.attributes or {})[s.EXPLANATION] == "<it says ***>"


def test_ids_and_hashes_are_no_text(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[says], exporter=exporter, redact=lambda text: "x")
    with sg.trace("call"):
        sg.set_output("a")
    assert sg.flush(10)
    (span,) = exporter.spans
    (event,) = [event for event in span.events if s.SCORE_ID in (event.attributes or {})]
    assert len(str((event.attributes or {})[s.SCORE_ID])) > 1
    assert "says" in str((span.attributes or {})[s.SCORED_BY])
    assert span.name == "x"


class Logs(LogRecordExporter):
    def __init__(self) -> None:
        self.records: list[Any] = []

    def export(self, batch: Sequence[Any]) -> LogRecordExportResult:
        self.records += batch
        return LogRecordExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


@pytest.mark.parametrize("redact", [hide, lambda text: "x"])
def test_a_log_event_is_redacted_and_who_waits_for_it_hears_of_it(redact: Any) -> None:
    inner, heard = Logs(), list[Any]()
    logs = LogEvents(GatedExporter(inner, lambda: True), Resource({}), ContentPolicy(redact))
    one = ScoreRecord(SpanRef(1, 2, name="ssn"), EvaluatorInfo("m"), Graded("m", None, "ssn", explanation="ssn"), 1)
    assert logs.emit_all([one], heard.append)
    assert logs.force_flush(5_000)
    assert heard == [None]
    record = inner.records[0].log_record
    assert "ssn" not in repr([record.body, dict(record.attributes)])
    logs.shutdown()


# --- a hook that is not as it should be -------------------------------------------------------------------------------------


def raises(text: str) -> str:
    raise KeyError(text)


def ends_the_thread(text: str) -> str:
    raise SystemExit(text)


def gives_none(text: str) -> Any:
    return None


def gives_bytes(text: str) -> Any:
    return text.encode()


@pytest.mark.parametrize("hook", [raises, ends_the_thread, gives_none, gives_bytes])
def test_a_hook_that_fails_costs_the_text_and_nothing_else(
    hook: Any, exporter: CollectingExporter, swallowed_faults: list[Any]
) -> None:
    sg.configure(metrics=[says], exporter=exporter, redact=hook)
    for _ in range(2):
        leaks()
        assert sg.flush(10)
    assert len(exporter.spans) == 8
    said = repr([texts(span) for span in exporter.spans])
    assert "ssn" not in said
    assert FAILED in said
    swallowed_faults.clear()


def test_what_a_hook_gives_can_be_encoded(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[says], exporter=exporter, redact=lambda text: text[:2] + "\ud83d")
    with sg.trace("日本"):
        sg.set_output("é漢😀" * 10)
    assert sg.flush(10)
    (span,) = exporter.spans
    assert span.name == "日本\ufffd"
    repr(texts(span)).encode()


def test_a_hook_gets_texts_of_every_language_as_they_are(exporter: CollectingExporter) -> None:
    seen: set[str] = set()
    sg.configure(exporter=exporter, redact=lambda text: seen.add(text) or text)
    with sg.trace("é"):
        sg.set_output("Grüße, 日本 😀\x00\u202e")
    assert sg.flush(10)
    assert {"é", "Grüße, 日本 😀\x00\u202e"} <= seen


def test_a_hook_that_hangs_holds_up_no_call_and_no_flush(exporter: CollectingExporter) -> None:
    gate = threading.Event()

    def hangs(text: str) -> str:
        gate.wait(30)
        return text

    sg.configure(metrics=[says], exporter=exporter, redact=hangs)
    for n in range(50):
        with sg.trace(f"call {n}"):
            sg.set_output("a")
    assert not sg.flush(0.3)
    assert exporter.spans == []
    gate.set()
    assert sg.flush(10)
    assert len(exporter.spans) == 50


@pytest.mark.parametrize("set_up", [own, simple_behind])
def test_what_a_hook_does_itself_is_not_traced(set_up: Any, exporter: CollectingExporter) -> None:
    @sg.trace
    def looked_up(text: str) -> str:
        return text.replace("ssn", "***")

    def hook(text: str) -> str:
        with trace_api.get_tracer("theirs").start_as_current_span("lookup"):
            return looked_up(text)

    set_up(exporter, redact=hook)
    with sg.trace("call"):
        sg.set_output("ssn")
        here = trace_api.get_current_span()
    assert trace_api.get_current_span() is not here
    assert sg.flush(10)
    assert sg.flush(10)
    assert [span.name for span in exporter.spans] == ["call"]
    assert (exporter.spans[0].attributes or {})[s.OI_OUTPUT] == "***"


# --- judges -----------------------------------------------------------------------------------------------------------------

PASSING = '{"reasoning": "fine", "verdict": "pass"}'


def test_judges_see_redacted_text_and_the_hook_runs_once_for_all_of_them(exporter: CollectingExporter) -> None:
    client = ScriptedJudgeClient(PASSING)
    asked: list[str] = []

    def hook(text: str) -> str:
        if threading.current_thread().name.startswith("spangrade-export"):
            return text
        asked.append(text)
        return text.replace("ssn", "***")

    judges = [
        live(
            sg.LlmJudge(name=name, criteria="good", scale="binary", model="m", live=True).with_client(client),
            rate=1.0,
        )
        for name in ("one", "two", "three")
    ]
    sg.configure(judges=judges, exporter=exporter, redact=hook)
    with sg.trace("call"):
        sg.set_input("is it ssn?")
        sg.set_output("ssn it is")
    assert sg.flush(10)
    assert len(client.requests) == 3
    assert "ssn" not in repr([request.messages for request in client.requests])
    assert asked.count("is it ssn?") == asked.count("ssn it is") == 1


# --- export_content ---------------------------------------------------------------------------------------------------------


def leaves(key: str, exporter: CollectingExporter) -> list[Any]:
    """What leaves of a span with the word under ``key`` in all its parts."""
    link = Link(ELSEWHERE, {key: "ssn", "kept": 1})
    with trace_api.get_tracer("theirs").start_as_current_span(
        "chat", links=[link], attributes={**CALL, key: "ssn", "kept": 1}
    ) as span:
        span.add_event("theirs", {key: "ssn", "kept": 1})
        span.add_event("gen_ai.user.message", {"content": "ssn"})
    assert sg.flush(10)
    assert exporter.wait_for(lambda spans: len(spans) == 1)
    return texts(exporter.spans[0])


@pytest.mark.parametrize("key", sorted({*content.CONTENT_KEYS, *(f"{p}.0.x" for p in content.CONTENT_PREFIXES)}))
def test_without_content_no_dialects_text_leaves(key: str, exporter: CollectingExporter) -> None:
    sg.configure(metrics=[yes], exporter=exporter, export_content=False)
    left = leaves(key, exporter)
    assert "ssn" not in repr(left)
    assert repr(left).count("'kept': 1") == 3


@EVERY_SETUP
def test_without_content_none_leaves_by_any_way(set_up: Any, exporter: CollectingExporter) -> None:
    set_up(exporter, metrics=[yes], export_content=False)
    left = leaves(s.OI_INPUT, exporter)
    assert "ssn" not in repr(left)
    assert repr(left).count("'kept': 1") == 3


def test_without_content_the_names_of_media_leave_neither(exporter: CollectingExporter) -> None:
    seen: list[Any] = []

    def look(sample: sg.Sample) -> bool:
        seen.append(sample.input)
        return True

    sg.configure(metrics=[look], exporter=exporter, export_content=False)

    @sg.trace(name="vision", kind="llm")
    def vision(messages: Any) -> bytes:
        return b"\x89PNG" * 100

    vision([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": b"\x89PNG" * 100}}]}])
    assert sg.flush(10)
    (span,) = exporter.spans
    assert seen
    assert event_scores(span)["look"][s.SCORE_VALUE] == 1.0
    assert "media" not in repr(texts(span))
    assert "sha256" not in repr(texts(span))
