"""What instrumentations say in log records is scored with the call that it belongs to, in the process."""

import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import _logs as logs_api
from opentelemetry import trace as trace_api
from opentelemetry._logs import LogRecord, _internal
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.util._once import Once

import spangrade as sg
from spangrade import semconv as s
from spangrade.otel import log_records
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter, event_scores

CAPTURE = log_records.CAPTURE


@pytest.fixture(autouse=True)
def fresh_logs() -> Iterator[None]:
    """No logger provider; OpenTelemetry has no public way to set a second one."""

    def forget() -> None:
        _internal._LOGGER_PROVIDER = None
        _internal._LOGGER_PROVIDER_SET_ONCE = Once()

    forget()
    yield
    forget()


@pytest.fixture
def seen() -> list[sg.Sample]:
    return []


@pytest.fixture
def answered(seen: list[sg.Sample]) -> Any:
    @sg.metric(requires=("output",))
    def answered(sample: sg.Sample) -> bool:
        seen.append(sample)
        return True

    return answered


def application_logs() -> tuple[LoggerProvider, InMemoryLogRecordExporter]:
    """A logger provider of the application's, with an exporter of its own."""
    provider, kept = LoggerProvider(shutdown_on_exit=False), InMemoryLogRecordExporter()
    provider.add_log_record_processor(SimpleLogRecordProcessor(kept))
    logs_api.set_logger_provider(provider)
    return provider, kept


def chat(question: str = "Hi", reply: str = "Hello there", provider: Any = None) -> None:
    """A model call as opentelemetry-instrumentation-openai-v2 writes it: messages as log records inside of its span."""
    tracer = (provider or trace_api.get_tracer_provider()).get_tracer("openai")
    logger = logs_api.get_logger("openai")
    attributes = {s.OPERATION_NAME: "chat", s.LEGACY_SYSTEM: "openai", s.REQUEST_MODEL: "m"}
    with tracer.start_as_current_span("chat m", attributes=attributes):
        logger.emit(LogRecord(event_name="gen_ai.user.message", body={"content": question}, attributes={"k": "v"}))
        message = {"role": "assistant", "content": reply}
        logger.emit(LogRecord(event_name="gen_ai.choice", body={"index": 0, "message": message}))


def scored(exporter: CollectingExporter) -> Any:
    assert sg.flush(20)
    (span,) = exporter.spans
    return event_scores(span)


def test_messages_on_the_application_s_logger_provider_reach_the_sample_and_go_on_untouched(
    answered: Any, seen: list[sg.Sample], exporter: CollectingExporter
) -> None:
    _, kept = application_logs()
    sg.configure(metrics=[answered], exporter=exporter, redact=lambda text: text.replace("Hello", "[x]"))
    chat()
    assert "answered" in scored(exporter)
    (sample,) = seen
    assert (sample.input, sample.output, sample.context["model"]) == ("Hi", "Hello there", "m")
    bodies = [record.log_record.body for record in kept.get_finished_logs()]
    assert bodies == [{"content": "Hi"}, {"index": 0, "message": {"role": "assistant", "content": "Hello there"}}]


def test_records_of_the_standard_library_s_logging_are_the_same_records(
    answered: Any, seen: list[sg.Sample], exporter: CollectingExporter
) -> None:
    sdk_logs = pytest.importorskip("opentelemetry.sdk._logs")
    if not hasattr(sdk_logs, "LoggingHandler"):
        pytest.skip("this opentelemetry-sdk has no LoggingHandler")
    provider, _ = application_logs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it moves to a package of its own
        handler = sdk_logs.LoggingHandler(logger_provider=provider)
    logger = logging.getLogger("semantic_kernel.test")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    sg.configure(metrics=[answered], exporter=exporter)
    try:
        attributes = {s.OPERATION_NAME: "chat", s.LEGACY_SYSTEM: "openai", s.REQUEST_MODEL: "m"}
        with trace_api.get_tracer("sk").start_as_current_span("chat.completions m", attributes=attributes):
            said = '{"role": "user", "content": "Hi"}'
            logger.info(said, extra={"event.name": "gen_ai.user.message", "gen_ai.system": "openai"})
            said = '{"message": {"role": "assistant", "content": "Hello there"}, "finish_reason": "stop", "index": 0}'
            logger.info(said, extra={"event.name": "gen_ai.choice", "gen_ai.system": "openai"})
            logger.info("no event")
        assert "answered" in scored(exporter)
    finally:
        logger.removeHandler(handler)
    assert (seen[0].input, seen[0].output) == ("Hi", "Hello there")


@pytest.mark.parametrize("said", ["true", "EVENT_ONLY", "span_and_event"])
def test_where_nothing_is_set_up_a_provider_is_made_for_instrumentations_that_write_to_logs(
    said: str, answered: Any, seen: list[sg.Sample], exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, said)
    sg.configure(metrics=[answered], exporter=exporter)
    chat()
    assert "answered" in scored(exporter)
    assert seen[0].output == "Hello there"


@pytest.mark.parametrize("said", [None, "false", "SPAN_ONLY", "no_content"])
def test_no_provider_is_made_where_no_instrumentation_writes_content_to_logs(
    said: str | None, answered: Any, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    if said is not None:
        monkeypatch.setenv(CAPTURE, said)
    sg.configure(metrics=[answered], exporter=exporter)
    assert not hasattr(logs_api.get_logger_provider(), "add_log_record_processor")
    application_logs()  # is taken, without a warning


def test_none_is_made_beside_an_application_s_own_tracer_provider(
    answered: Any, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, "true")
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace_api.set_tracer_provider(provider)
    sg.configure(metrics=[answered])
    assert not hasattr(logs_api.get_logger_provider(), "add_log_record_processor")


def test_a_logger_provider_that_is_set_later_is_found_with_the_first_call(
    answered: Any, seen: list[sg.Sample], exporter: CollectingExporter
) -> None:
    sg.configure(metrics=[answered], exporter=exporter)
    application_logs()
    with sg.trace("warm-up"):
        sg.set_output("x")
    chat()
    assert sg.flush(20)
    assert [sample.output for sample in seen] == ["x", "Hello there"]


def test_a_second_configure_listens_once(answered: Any, seen: list[sg.Sample], exporter: CollectingExporter) -> None:
    provider, _ = application_logs()
    for _ in range(3):
        sg.configure(metrics=[answered], exporter=exporter)
    listeners = provider._multi_log_record_processor._log_record_processors
    assert sum(isinstance(one, log_records._Listener) for one in listeners) == 1
    chat()
    assert "answered" in scored(exporter)
    assert len(seen[0].context["messages"]) == 1


class Hostile(dict[str, Any]):
    """A body that fights back."""

    def items(self) -> Any:
        raise RuntimeError("the application's")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("the application's")

    __hash__ = None  # type: ignore[assignment]


def test_nothing_raises_into_the_application_whatever_a_record_holds(
    answered: Any, seen: list[sg.Sample], exporter: CollectingExporter
) -> None:
    application_logs()
    sg.configure(metrics=[answered], exporter=exporter)
    logger = logs_api.get_logger("app")
    tracer = trace_api.get_tracer("app")
    bodies: list[Any] = [Hostile(content="Hi"), object(), {"content": object()}, b"\xff", ["x"], float("nan"), None]
    with tracer.start_as_current_span("chat", attributes={s.OPERATION_NAME: "chat", s.REQUEST_MODEL: "m"}):
        for body in bodies:
            logger.emit(LogRecord(event_name="gen_ai.user.message", body=body))
            logger.emit(LogRecord(event_name="gen_ai.user.message", body=body))
        logger.emit(LogRecord(event_name="gen_ai.choice", body={"message": {"content": "fine"}}))
    logger.emit(LogRecord(event_name="gen_ai.user.message", body="of no span"))
    assert "answered" in scored(exporter)
    assert seen[0].output == "fine"


def test_what_the_application_changes_afterwards_is_not_scored(
    answered: Any, seen: list[sg.Sample], exporter: CollectingExporter
) -> None:
    application_logs()
    sg.configure(metrics=[answered], exporter=exporter)
    message = {"role": "assistant", "content": "said"}
    attributes = {s.OPERATION_NAME: "chat", s.REQUEST_MODEL: "m"}
    with trace_api.get_tracer("app").start_as_current_span("chat", attributes=attributes):
        logs_api.get_logger("app").emit(LogRecord(event_name="gen_ai.choice", body={"message": message}))
        message["content"] = "changed"
    assert "answered" in scored(exporter)
    assert seen[0].output == "said"


def test_after_the_end_of_spangrade_the_application_s_logs_go_on(answered: Any, exporter: CollectingExporter) -> None:
    _, kept = application_logs()
    sg.configure(metrics=[answered], exporter=exporter)
    sg.shutdown()
    chat()
    assert len(kept.get_finished_logs()) == 2


# --- conversations --------------------------------------------------------------------------------------------------------


def test_a_conversation_is_scored_once_and_its_score_names_the_session(exporter: CollectingExporter) -> None:
    @sg.metric(target="session")
    def turns(sample: sg.Sample) -> float:
        assert [message["content"] for message in sample.context["messages"]] == ["a", "1", "b", "2"]
        return float(len(sample.context["turns"]))

    sg.configure(metrics=[turns], exporter=exporter)
    for asked, said in (("a", "1"), ("b", "2")):
        with sg.trace("turn"):
            sg.set_session("s1")
            sg.set_input(asked)
            sg.set_output(said)
    assert sg.flush(20)
    spans = list(exporter.spans)
    assert [span.name for span in spans] == ["turn", "turn"]  # a flush does not end a conversation
    assert all(span.attributes[s.SCORED_BY] for span in spans)
    engine = current_engine()
    assert engine is not None
    sg.shutdown()
    late = exporter.spans[-1]
    assert late.name == "evaluation turns"
    assert (late.attributes[s.SCORE_VALUE], late.attributes[s.SESSION_ID]) == (2.0, "s1")
    assert (late.attributes[s.TARGET], late.attributes[s.ASSEMBLY]) == ("session", "partial")
    assert late.context.trace_id == spans[1].context.trace_id
    (counts,) = engine.ledger.snapshot().values()
    assert dict(counts.delivered) == {"evaluation_span": 1}
    assert engine.ledger.tally.conversations == {"shutdown": 1}
