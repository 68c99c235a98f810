"""What evaluators would do with given spans, and why."""

from dataclasses import replace
from typing import Any

import pytest

import spangrade as sg
from spangrade import semconv as s
from spangrade.judges.judge import LlmJudge
from spangrade.judges.live import place
from spangrade.metrics.catalog import resolve
from spangrade.model.policy import Placed
from spangrade.model.span import SpanData
from spangrade.scoring.explain import DEPENDS, WOULD_GRADE, WOULD_RUN, PairNote, SpanStory, explain
from spangrade.testing import ScriptedJudgeClient

TRACE = 0x5B8AA5A2D2C872E8321CF37308D69DF2
BASE = 1_750_000_000_000_000_000


def span(n: int, parent: int | None, kind: str, start: int, end: int, **more: Any) -> SpanData:
    attributes = {s.OI_KIND: kind, s.OI_INPUT: f"in {n}", s.OI_OUTPUT: f"out {n}", **more.pop("attributes", {})}
    given = {k: v for k, v in attributes.items() if v is not None}
    return SpanData(TRACE, n, parent, f"span {n}", BASE + start, BASE + end, given, **more)


@sg.metric(name="grounded", requires=("documents",))
def grounded(output: str, documents: list[Any]) -> float:
    return 1.0 if documents[0]["content"] in output else 0.0


@sg.metric(name="said", threshold=0.5)
def said(output: str) -> float:
    return 0.25


RAG = (
    span(1, None, "CHAIN", 0, 90, resource={"service.name": "shop"}),
    span(2, 1, "RETRIEVER", 10, 20, attributes={"retrieval.documents.0.document.content": "out"}),
    span(3, 1, "LLM", 30, 80),
)


def judge(name: str, client: ScriptedJudgeClient, **policy: Any) -> Placed:
    return place(sg.live(LlmJudge(name, "Is it good?", scale="binary", model="m").with_client(client), **policy))


def told(stories: list[SpanStory], evaluator: str) -> PairNote:
    [found] = [
        pair for one in stories for held in one.samples for pair in held.pairs if pair.evaluator.name == evaluator
    ]
    return found


@pytest.fixture
def client() -> ScriptedJudgeClient:
    return ScriptedJudgeClient("nobody is to be asked")


def test_the_sample_that_is_shown_is_the_one_that_the_pipeline_assembles() -> None:
    stories = explain(reversed(RAG), [Placed(resolve(grounded))])
    [held] = stories[0].samples
    assert (held.span_id, held.target, held.partial) == ("0000000000000001", "root", False)
    assert (held.sample.input, held.sample.output) == ("in 1", "out 1")
    assert [document["content"] for document in held.sample.documents] == ["out"]
    assert [one.note.name for one in stories] == ["span 1", "span 2", "span 3"]


def test_metrics_are_run_only_when_asked() -> None:
    placed = [Placed(resolve(said)), Placed(resolve(grounded))]
    assert told(explain(RAG, placed), "said").outcome == WOULD_RUN
    run = told(explain(RAG, placed, run=True), "said")
    assert (run.outcome, run.records[0].graded.value, run.records[0].graded.passed) == ("scored", 0.25, False)


def test_a_sample_without_documents_is_skipped_and_told_how_to_get_some() -> None:
    pair = told(explain(RAG[:1], [Placed(resolve(grounded))]), "grounded")
    assert pair.outcome == "skipped"
    assert pair.says == "it needs documents, which the sample has not (nobody searched within this call)"
    assert "set_retrieval_documents" in (pair.fix or "")


def test_capture_that_is_off_below_the_root_is_named_as_the_cause() -> None:
    bare = span(1, None, "CHAIN", 0, 90, attributes={s.OI_INPUT: None, s.OI_OUTPUT: None})
    inner = SpanData(TRACE, 3, 1, "chat", BASE + 30, BASE + 80, {s.OPERATION_NAME: "chat", s.REQUEST_MODEL: "m"})
    no_refusal = resolve("json_valid")
    pair = told(explain([bare, inner], [Placed(no_refusal)]), "json_valid")
    assert pair.outcome == "skipped"
    assert "no content was captured" in (pair.says or "")
    assert "HIDE_INPUTS" in (pair.fix or "")


def test_a_judge_is_never_asked_and_its_selection_is_the_pipelines(client: ScriptedJudgeClient) -> None:
    placed = [judge("always", client, rate=1.0), judge("never", client, rate=1e-9)]
    for run in (False, True):
        stories = explain(RAG, placed, run=run)
        assert told(stories, "always").outcome == WOULD_GRADE
        rare = told(stories, "never")
        assert (rare.outcome, rare.probability) == ("not_sampled", 1e-9)
        assert "live.rate" in (rare.fix or "")
    assert client.requests == []


def test_a_condition_on_a_metric_is_decided_when_the_metrics_are_run(client: ScriptedJudgeClient) -> None:
    placed = [
        Placed(resolve(said)),
        judge("bad_ones", client, rate=1.0, when="said.fail"),
        judge("good_ones", client, rate=1.0, when="said.pass"),
    ]
    before = told(explain(RAG, placed), "bad_ones")
    assert before.outcome == DEPENDS
    assert "said.fail" in (before.says or "")
    after = explain(RAG, placed, run=True)
    assert told(after, "bad_ones").outcome == WOULD_GRADE
    assert told(after, "good_ones").outcome == "not_sampled"


def test_a_spent_budget_is_nothing_that_explaining_would_spend(client: ScriptedJudgeClient) -> None:
    placed = [judge("dear", client, rate=1.0, budget={"calls_per_day": 0})]
    assert told(explain(RAG, placed), "dear").outcome == WOULD_GRADE


def test_whoever_does_not_look_at_a_call_says_why(client: ScriptedJudgeClient) -> None:
    other = replace(Placed(resolve(said)), match={"service.name": "bank-*"})
    taken = span(1, None, "CHAIN", 0, 90, attributes={s.SCORED_BY: (resolve(grounded).info.key,)})
    placed = [Placed(resolve(grounded)), other, judge("inner", client, rate=1.0, target="llm")]
    [chain, search, model] = explain([taken, *RAG[1:]], placed)
    why = {(one.note.name, seen.evaluator.name): seen.says for one in (chain, search, model) for seen in one.not_seen}
    assert why["span 1", "grounded"] == "it was scored by it already, at an earlier hop"
    assert why["span 1", "said"] == "it looks at service.name=bank-* only"
    assert why["span 1", "inner"] == "it looks at llm calls; this is a chain call"
    assert why["span 2", "grounded"] == "it looks at root calls, which a retriever call never is"
    assert told([model], "inner").outcome == WOULD_GRADE


def test_a_part_names_the_span_that_carries_its_root_sample() -> None:
    [_, _, model] = explain(RAG, [Placed(resolve(said))])
    [seen] = model.not_seen
    assert seen.says == "it looks at root calls; this is a part of the one that span 0000000000000001 carries"


def test_a_trace_whose_root_is_not_there_is_partial() -> None:
    [one] = explain([replace(RAG[2], parent_span_id=77)], [Placed(resolve(said))])
    assert one.samples[0].partial


def test_many_spans_of_one_trace_are_all_explained() -> None:
    spans = [span(n, None, "CHAIN", n, n + 1) for n in range(1, 301)]
    stories = explain(spans, [Placed(resolve(said))])
    assert len(stories) == 300
    assert all(one.samples for one in stories)


def test_every_call_and_evaluator_is_accounted_for(client: ScriptedJudgeClient) -> None:
    placed = [Placed(resolve(said)), judge("inner", client, rate=0.5, target="llm")]
    for one in explain(RAG, placed):
        named = [pair.evaluator.name for held in one.samples for pair in held.pairs]
        assert sorted([*named, *(seen.evaluator.name for seen in one.not_seen)]) == ["inner", "said"]


def test_an_evaluator_of_conversations_is_told_of_as_one_and_no_trace_is_taken_for_a_conversation() -> None:
    @sg.metric(target="session")
    def turns(sample: sg.Sample) -> float:
        return 1.0

    of_session = span(1, None, "CHAIN", 0, 90, attributes={s.SESSION_ID: "s1"})
    (known,) = explain([of_session], [Placed(resolve(turns))])
    assert known.samples == ()
    assert [(one.says, one.fix) for one in known.not_seen] == [
        ("it looks at whole conversations, when nothing of them has come for a while; this is of session s1", None)
    ]
    (unknown,) = explain([span(1, None, "CHAIN", 0, 90)], [Placed(resolve(turns))])
    assert unknown.not_seen[0].fix == "give it a session.id (sg.set_session)"


def test_what_is_below_an_evaluator_is_said_to_be_its_work() -> None:
    above = span(1, None, "EVALUATOR", 0, 90)
    [_, inner] = explain([above, span(2, 1, "LLM", 10, 80)], [Placed(resolve(said))])
    assert inner.samples == ()
    [seen] = inner.not_seen
    assert seen.says == "it is the work of an evaluator, which nobody scores"


def test_a_rule_that_does_not_pick_a_call_is_shown() -> None:
    by_name = sg.metric(name="by_name", target="name = chat*")(lambda output: 1.0)
    [one] = explain(RAG[:1], [Placed(resolve(by_name))])
    [seen] = one.not_seen
    assert seen.says == "it looks at calls with name = chat*, which this one does not meet"
