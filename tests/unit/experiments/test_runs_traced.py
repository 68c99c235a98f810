"""Runs are traced like live calls: through the provider that is there, with their scores, and scored once."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import spangrade as sg
from spangrade import semconv as s
from spangrade.otel import sdk_private
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter, event_scores
from spangrade.tracing import call as traced_calls

ROWS = [{"id": "a", "question": "one", "expected": "ONE"}]


@sg.metric
def exact(output: Any, expected: Any) -> bool:
    return bool(output == expected)


@sg.metric(requires=["documents"])
def documents_seen(documents: Any) -> int:
    return len(documents)


@sg.trace(kind="retriever")
def search(question: str) -> list[str]:
    return [f"about {question}", "more"]


@sg.trace
def answer(question: str) -> str:
    search(question)
    return question.upper()


def run_of(exporter: CollectingExporter) -> ReadableSpan:
    sg.flush()
    (span,) = [span for span in exporter.spans if span.parent is None]
    return span


def test_a_run_is_a_span_tree_with_its_scores_on_the_root_exported_once(exporter: CollectingExporter) -> None:
    sg.configure(exporter=exporter)
    results = sg.evaluate(ROWS, answer, [exact, documents_seen], name="nightly")
    root = run_of(exporter)
    tree = {span.name.rpartition(".")[2]: span for span in exporter.spans}
    assert sorted(tree) == ["answer", "nightly", "search"]
    assert len(exporter.spans) == 3
    attributes = dict(root.attributes or {})
    assert attributes[s.OI_KIND] == "CHAIN"
    assert attributes[s.EXPERIMENT_NAME] == "nightly"
    assert attributes[s.EXPERIMENT_ITEM] == "a"
    assert (attributes[s.OI_INPUT], attributes[s.OI_OUTPUT]) == ("one", "ONE")
    assert tree["answer"].parent.span_id == root.context.span_id  # type: ignore[union-attr]
    scores = event_scores(root)
    assert {name: event[s.SCORE_VALUE] for name, event in scores.items()} == {"exact": 1.0, "documents_seen": 2.0}
    item = results.items[0]
    assert (item.trace_id, item.span_id) == (f"{root.context.trace_id:032x}", f"{root.context.span_id:016x}")
    assert [score.score_id for score in item.scores] == [event[s.SCORE_ID] for event in scores.values()]


def test_the_span_ends_when_the_task_did_and_not_when_its_scores_were_there(exporter: CollectingExporter) -> None:
    sg.configure(exporter=exporter)
    (item,) = sg.evaluate(ROWS, answer, [exact]).items
    root = run_of(exporter)
    assert root.end_time - root.start_time == round((item.duration_s or 0) * 1e9)  # type: ignore[operator]
    assert all(event.timestamp >= (root.end_time or 0) for event in root.events)


def test_documents_retrieved_in_the_task_reach_the_sample_with_and_without_configure(
    exporter: CollectingExporter,
) -> None:
    def by_hand(question: str) -> str:
        sg.set_retrieval_documents(["set by hand"])
        return question

    for _ in range(2):
        results = sg.evaluate(ROWS, answer, [documents_seen])
        assert [d["content"] for d in results.items[0].documents] == ["about one", "more"]
        assert results.scores("documents_seen")[0].value == 2.0
        assert [d["content"] for d in sg.evaluate(ROWS, by_hand).items[0].documents] == ["set by hand"]
        sg.configure(exporter=exporter)


def test_documents_of_the_dataset_count_where_the_task_did_not_search_and_only_there() -> None:
    rows = [{"input": "one", "documents": ["given"]}]

    def found_nothing(question: str) -> str:
        sg.set_retrieval_documents([])
        return question

    assert [d["content"] for d in sg.evaluate(rows, str.upper).items[0].documents] == ["given"]
    assert [d["content"] for d in sg.evaluate(rows, answer).items[0].documents] == ["about one", "more"]
    assert sg.evaluate(rows, found_nothing, [documents_seen]).scores("documents_seen")[0].reason == "documents missing"
    assert [d["content"] for d in sg.evaluate([{**rows[0], "output": "o"}]).items[0].documents] == ["given"]


def test_what_the_task_says_of_its_call_is_heard() -> None:
    seen: list[sg.Sample] = []

    @sg.metric
    def look(sample: sg.Sample) -> None:
        seen.append(sample)

    def task(question: str) -> str:
        sg.set_output("said instead")
        sg.set_metadata(variant="b")
        sg.set_context(tries=2)
        return "returned"

    results = sg.evaluate([{"input": "q", "lang": "fr", "context": {"tries": 9}}], task, [look])
    (sample,) = seen
    assert (sample.output, results.items[0].output) == ("said instead", "said instead")
    assert sample.metadata == results.items[0].metadata == {"lang": "fr", "variant": "b"}
    assert sample.context["tries"] == 9  # the dataset's word counts
    assert sample.context["duration_s"] >= 0


def test_a_traced_function_as_the_task_is_heard_as_live_too() -> None:
    seen: list[sg.Sample] = []

    @sg.metric
    def look(sample: sg.Sample) -> None:
        seen.append(sample)

    @sg.trace
    def says_more(question: str) -> dict[str, str]:
        sg.set_output("said instead")
        sg.set_metadata(variant="b")
        sg.set_context(tries=2)
        return {"returned": "this"}

    def wrapped(question: str) -> str:
        return str(says_more(question)["returned"])

    @sg.trace(capture_output=False)
    def not_captured(question: str) -> dict[str, str]:
        return {"token": "abc"}

    sg.evaluate([{"input": "q", "lang": "fr"}], says_more, [look])
    sg.evaluate([{"input": "q"}], wrapped, [look])
    sg.evaluate([{"input": "q"}], not_captured, [look])
    assert [sample.output for sample in seen] == ["said instead", "this", {"token": "abc"}]
    assert seen[0].metadata == {"lang": "fr", "variant": "b"}
    assert (seen[0].context["tries"], seen[1].context["tries"]) == (2, 2)


def test_chunks_of_a_chat_client_are_what_they_say_traced_or_not() -> None:
    def stream(question: str) -> Iterator[Any]:
        for word in ("Pa", "ris"):
            yield {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": word}}]}

    for task in (stream, sg.trace(stream)):
        assert sg.evaluate([{"input": "q"}], task).items[0].output == "Paris"


def test_what_an_evaluator_of_the_task_itself_does_is_no_part_of_the_run() -> None:
    @sg.trace
    def judged(question: str) -> str:
        tracer = traced_calls.provider_in_use().get_tracer("somebody")
        with tracer.start_as_current_span("judge", attributes={s.OI_KIND: "EVALUATOR"}):
            search("by the judge")
        return question

    assert sg.evaluate([{"input": "q"}], judged).items[0].documents == ()


def test_the_live_pipeline_does_not_score_a_run_or_anything_below_it_again(exporter: CollectingExporter) -> None:
    live: list[str] = []

    def noted(target: str) -> sg.LocalMetric:
        @sg.metric(name=f"live_{target}", target=target)
        def note(sample: sg.Sample) -> bool:
            live.append(f"{target}:{sample.context['span_name'].rpartition('.')[2]}")
            return True

        return note

    sg.configure(exporter=exporter, metrics=[noted("root"), noted("retriever"), noted("chain")])
    sg.evaluate(ROWS, answer, [exact])
    sg.flush()
    assert live == []
    engine = current_engine()
    assert engine is not None
    assert all(counts.met == 0 for counts in engine.ledger.snapshot().values())
    answer("live")
    sg.flush()
    assert sorted(live) == ["chain:answer", "retriever:search", "root:answer"]


def test_an_agent_that_gets_the_spans_sees_that_they_are_an_experiments() -> None:
    from spangrade.samples.extract import quick_kind

    exporter = CollectingExporter()
    sg.configure(exporter=exporter, score="agent")
    sg.evaluate(ROWS, answer, [exact])
    sg.flush()
    assert {quick_kind(dict(span.attributes or {})) for span in exporter.spans} == {"evaluator"}


def test_evaluators_run_outside_of_any_span_and_what_they_trace_is_nobodys(exporter: CollectingExporter) -> None:
    sg.configure(exporter=exporter)

    @sg.metric
    def calls_traced_code(output: str) -> bool:
        assert not trace_api.get_current_span().get_span_context().is_valid
        answer(output)
        return True

    assert sg.evaluate(ROWS, str.upper, [calls_traced_code]).summary()["calls_traced_code"].passed == 1
    run_of(exporter)
    assert len(exporter.spans) == 1


def test_an_evaluator_of_another_target_grades_every_call_of_that_kind_with_what_the_dataset_says() -> None:
    @sg.metric(target="retriever")
    def found(sample: sg.Sample) -> dict[str, Any]:
        return {"n": len(sample.documents), "expected": sample.expected, "lang": sample.metadata["lang"]}

    def twice(question: str) -> str:
        search(question)
        search("other")
        return question

    row = {**ROWS[0], "lang": "fr"}
    results = sg.evaluate([row], twice, [found, exact])
    assert [score.value for score in results.scores("found.n")] == [2.0, 2.0]
    assert results.scores("found.expected")[0].label == "ONE"
    spans = [score.span_id for score in results.scores("found.n")]
    assert len(set(spans)) == 2
    assert results.items[0].span_id not in spans
    (absent,) = sg.evaluate([row], str.upper, [found]).items[0].scores
    assert (str(absent.outcome), absent.reason) == ("skipped", "no retriever call in this run")


def test_a_chain_metric_grades_the_task_once_whether_it_is_traced_or_not() -> None:
    @sg.metric(target="chain")
    def seen(output: str) -> int:
        return len(output)

    def plain_task(question: str) -> str:
        return question

    for task in (plain_task, sg.trace(plain_task)):
        assert sg.evaluate(ROWS, task, [seen]).summary()["seen"].n == 1


def test_a_failed_task_is_an_error_on_its_span(exporter: CollectingExporter) -> None:
    sg.configure(exporter=exporter)

    def task(question: str) -> str:
        raise ValueError("no answer")

    sg.evaluate(ROWS, task, [exact])
    root = run_of(exporter)
    assert root.status.status_code.name == "ERROR"
    assert root.status.description == "ValueError: no answer"
    assert (root.attributes or {})["error.type"] == "ValueError"
    assert event_scores(root) == {}


def test_through_a_provider_that_somebody_else_exports_the_scores_ride_on_the_runs_span() -> None:
    exporter = CollectingExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace_api.set_tracer_provider(provider)
    before = sdk_private.processors_of(provider)
    sg.evaluate(ROWS, answer, [exact])
    assert sorted(event_scores(run_of(exporter))) == ["exact"]
    assert len(exporter.spans) == 3
    assert sdk_private.processors_of(provider) == before


def test_nothing_of_an_experiment_stays_in_the_process_after_it(exporter: CollectingExporter) -> None:
    sg.evaluate(ROWS, answer, [exact])
    assert isinstance(traced_calls.provider_in_use(), trace_api.ProxyTracerProvider)
    assert trace_api._TRACER_PROVIDER is None
    sg.configure(exporter=exporter)
    provider: Any = traced_calls.provider_in_use()
    before = sdk_private.processors_of(provider)
    sg.evaluate(ROWS, answer, [exact])
    assert sdk_private.processors_of(provider) == before


def test_spans_that_end_after_the_task_belong_to_nobody() -> None:
    left: list[Iterator[None]] = []

    def task(question: str) -> str:
        def later() -> Iterator[None]:
            with sg.trace(name="late", kind="retriever"):
                sg.set_retrieval_documents(["late"])
                yield

        generator = later()
        next(generator)
        left.append(generator)
        return question

    assert sg.evaluate(ROWS, task).items[0].documents == ()
    for generator in left:
        generator.close()


def test_a_run_that_a_sampler_drops_is_scored_by_what_is_known_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    trace_api.set_tracer_provider(TracerProvider(sampler=sampling.ALWAYS_OFF, shutdown_on_exit=False))
    with caplog.at_level("WARNING", "spangrade"):
        results = sg.evaluate([*ROWS, {"input": "two"}], answer, [exact])
    assert [score.value for score in results.scores("exact")] == [1.0, 0.0]
    assert results.items[0].trace_id is None
    assert caplog.text.count("a sampler drops the runs") == 1


def test_with_the_sdk_switched_off_items_are_scored_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert sg.evaluate(ROWS, answer, [exact]).scores("exact")[0].value == 1.0


def test_judges_see_redacted_text_where_redaction_is_configured(exporter: CollectingExporter) -> None:
    from spangrade.testing import ScriptedJudgeClient

    client = ScriptedJudgeClient('{"reasoning": "ok", "verdict": "pass"}')
    judge = sg.LlmJudge("j", "c", scale="binary", model="m").with_client(client)
    sg.configure(exporter=exporter, redact=lambda text: text.replace("SECRET", "[x]"))
    sg.evaluate([{"input": "SECRET question"}], lambda q: q, [judge])
    shown = " ".join(message.content for message in client.requests[0].messages)
    assert "[x] question" in shown
    assert "SECRET" not in shown
    assert (run_of(exporter).attributes or {})[s.OI_INPUT] == "[x] question"


def test_two_experiments_at_once_keep_their_runs_apart() -> None:
    import asyncio

    async def main() -> list[Any]:
        return await asyncio.gather(
            sg.aevaluate([{"input": f"a{n}"} for n in range(8)], answer, [documents_seen], name="first"),
            sg.aevaluate([{"input": f"b{n}"} for n in range(8)], answer, [documents_seen], name="second"),
        )

    for results in asyncio.run(main()):
        assert all(item.documents[0]["content"] == f"about {item.input}" for item in results.items)
    assert isinstance(traced_calls.provider_in_use(), trace_api.ProxyTracerProvider)
