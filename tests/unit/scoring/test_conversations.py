"""Target session: a conversation is selected, graded and scored as one."""

from typing import Any

import pytest

import spangrade as sg
from spangrade import semconv as s
from spangrade.errors import ConfigError
from spangrade.judges.live import live
from spangrade.model.outcome import Outcome
from spangrade.samples.bounds import AssemblyBounds
from spangrade.scoring.selection import chosen, session_unit
from spangrade.testing import ScriptedJudgeClient

from .conftest import PASSING, call_span, judge

BOUNDS = AssemblyBounds(session_idle=60.0)


def turn(n: int, session: str = "s1") -> Any:
    return call_span(n, **{s.SESSION_ID: session})


def quiet(h: Any) -> None:
    """Nothing comes any more."""
    assert h.pipeline.drain(10, judges=False)
    h.clock.advance(61.0)
    assert h.pipeline.drain(10, judges=True)
    assert h.pipeline.drain(10, judges=True)  # the tick was behind the first


def test_a_conversation_is_one_pair_and_its_score_names_session_target_and_probability(harness: Any) -> None:
    @sg.metric(target="session")
    def turns(sample: sg.Sample) -> float:
        return float(len(sample.context["turns"]))

    h = harness(turns, assembly=BOUNDS)
    tickets = [h.send(turn(n)) for n in (1, 2, 3)]
    quiet(h)
    (record,) = h.sink.records
    assert (record.graded.value, record.span.session_id, record.probability) == (3.0, "s1", 1.0)
    assert record.span.span_id == 3
    assert record.evaluator.target == "session"
    counts = h.counts("turns")
    assert (counts.met, counts.of(Outcome.SCORED)) == (1, 1)
    assert all(h.sink.marks[ticket] for ticket in tickets)  # whoever gets these spans next leaves the session to us


def test_its_score_has_one_id_whichever_turn_was_the_last(harness: Any) -> None:
    @sg.metric(target="session")
    def said(sample: sg.Sample) -> float:
        return 1.0

    h = harness(said, assembly=BOUNDS)
    for n in (1, 2):
        h.send(turn(n))
        quiet(h)
    h.send(turn(3, "other"))
    quiet(h)
    ids = [record.score_id for record in h.sink.records]
    assert ids[0] == ids[1] != ids[2]
    assert [record.partial for record in h.sink.records] == [False, True, False]  # the first part was graded before


def test_a_judge_is_shown_all_that_was_said_and_the_last_answer_by_itself(harness: Any) -> None:
    client = ScriptedJudgeClient(PASSING)
    h = harness(live(judge(client), rate=1.0, target="session"), assembly=BOUNDS)
    for n in (1, 2):
        h.send(turn(n))
    quiet(h)
    (request,) = client.requests
    prompt = request.messages[1].content
    assert "[user] question 1" in prompt
    assert "[assistant] answer 1" in prompt
    assert prompt.index("[user] question 2") < prompt.index("answer 2")
    assert "[assistant] answer 2" not in prompt


def test_conversations_are_chosen_by_a_hash_of_their_session(harness: Any) -> None:
    client = ScriptedJudgeClient(*[PASSING] * 40)
    h = harness(live(judge(client), rate=0.5, target="session"), assembly=BOUNDS)
    for n in range(1, 41):
        h.send(turn(n, f"session {n}"))
    quiet(h)
    expected = {f"session {n}" for n in range(1, 41) if chosen(session_unit(f"session {n}"), "helpful", 0.5)}
    assert {record.span.session_id for record in h.sink.records} == expected
    assert {record.probability for record in h.sink.records} == {0.5}
    assert h.counts("helpful").of(Outcome.NOT_SAMPLED) == 40 - len(expected)
    assert 8 < len(expected) < 32


def test_a_judge_of_conversations_makes_no_span_wait_for_it(harness: Any) -> None:
    h = harness(
        live(judge(ScriptedJudgeClient(PASSING)), rate=1.0, target="session"), assembly=BOUNDS, judge_hold=500.0
    )
    ticket = h.send(turn(1))
    assert h.pipeline.drain(10, judges=False)
    assert h.sink.waiting[ticket] == 0
    assert h.sink.deadlines[ticket] < 1_010


def test_the_end_grades_what_goes_on_as_it_is_and_a_flush_does_not(harness: Any) -> None:
    @sg.metric(target="session")
    def said(sample: sg.Sample) -> float:
        return 1.0

    h = harness(said, assembly=BOUNDS)
    h.send(turn(1))
    assert h.pipeline.drain(10, judges=True)
    assert h.sink.records == []
    assert h.pipeline.waiting().sessions == 1
    assert h.pipeline.shutdown(10)
    (record,) = h.sink.records
    assert record.partial


def test_what_has_no_session_meets_no_evaluator_of_conversations(harness: Any) -> None:
    @sg.metric(target="session")
    def said(sample: sg.Sample) -> float:
        return 1.0

    h = harness(said, assembly=BOUNDS)
    h.send(call_span(1))
    quiet(h)
    assert h.counts("said").met == 0


def test_a_conversation_that_another_hop_has_taken_is_left_to_it(harness: Any) -> None:
    @sg.metric(target="session")
    def said(sample: sg.Sample) -> float:
        return 1.0

    h = harness(said, assembly=BOUNDS)
    h.send(call_span(1, **{s.SESSION_ID: "s1", s.SCORED_BY: (said.info.key,)}))
    quiet(h)
    assert h.counts("said").met == 0


def test_session_is_a_target_and_no_kind_of_call() -> None:
    with pytest.raises(ConfigError, match="'session' is not one of llm, retriever"):

        @sg.metric(target="kind = session")
        def wrong(sample: sg.Sample) -> float:
            return 1.0
