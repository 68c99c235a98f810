"""Conversations: turns of several traces become one Sample when nothing has come for a while."""

import itertools
from typing import Any

from spangrade.model.sample import Sample
from spangrade.model.span import SpanData
from spangrade.samples.bounds import AssemblyBounds
from spangrade.samples.conversation import transcript
from spangrade.samples.reading import Call, Reading
from spangrade.samples.sessions import MAX_TURNS, DecidedSession, SessionWindow

BOUNDS = AssemblyBounds(session_idle=10.0, session_max_age=100.0, max_sessions=3)


def turn(
    n: int,
    asked: Any = None,
    answered: Any = None,
    session: str = "s1",
    *,
    history: list[dict[str, Any]] | None = None,
    trace: int = 0,
    parent: int | None = None,
    end: int = 0,
    namespace: str | None = None,
) -> tuple[Call, Sample, str]:
    """The n-th turn, its root sample and its handle. ``history``: what its model was sent before the question."""
    resource = {"service.name": "shop"} | ({"service.namespace": namespace} if namespace else {})
    attributes = {"session.id": session, "input.value": "secret", "http.route": "/chat"}
    start = n * 1_000_000_000
    span = SpanData(trace or n, n, parent, f"turn {n}", start, end or start + 500, attributes, resource=resource)
    context: dict[str, Any] = {"session_id": session, "status": "ok", "usage": {"input_tokens": n}}
    if history is not None:
        context["messages"] = [*history, {"role": "user", "content": asked}]
    sample = Sample(asked, answered, context=context, metadata={"turn": n}, trace_id=span.trace_hex)
    return Call(span, Reading("test", kind="chain")), sample, f"h{n}"


def window(*turns: tuple[Call, Sample, str], bounds: AssemblyBounds = BOUNDS) -> SessionWindow[str]:
    made: SessionWindow[str] = SessionWindow(bounds)
    for at, (call, sample, handle) in enumerate(turns):
        assert made.add(call, sample, handle, float(at), partial=False)
    return made


def said(sample: Sample) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in sample.context["messages"]]


def only(found: SessionWindow[str], now: float) -> DecidedSession[str]:
    (decided,) = found.due(now)
    return decided


def test_a_conversation_is_decided_when_it_has_been_quiet_and_its_last_turn_carries_the_score() -> None:
    going = window(turn(1, "Hi", "Hello"), turn(2, "Bye", "See you"))
    assert list(going.due(10.9)) == []
    assert going.next_due() == 11.0
    decided = only(going, 11.0)
    sample = decided.sample
    assert (sample.input, sample.output, decided.handle, decided.partial) == ("Bye", "See you", "h2", False)
    assert said(sample) == [("user", "Hi"), ("assistant", "Hello"), ("user", "Bye"), ("assistant", "See you")]
    assert [(t["input"], t["output"], t["trace_id"]) for t in sample.context["turns"]] == [
        ("Hi", "Hello", f"{1:032x}"),
        ("Bye", "See you", f"{2:032x}"),
    ]
    assert (sample.context["session_id"], sample.context["kind"]) == ("s1", "session")
    assert sample.context["usage"] == {"input_tokens": 3}
    assert "assembly" not in sample.context
    assert (len(going), going.bytes, going.next_due()) == (0, 0, None)


def test_history_that_is_sent_again_with_every_turn_is_there_once() -> None:
    system = {"role": "system", "content": "Be kind"}
    first = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello "}]
    tools = [
        {"role": "assistant", "content": None, "tool_calls": [{"name": "look", "arguments": "{}", "id": "1"}]},
        {"role": "tool", "content": "rain", "tool_call_id": "1"},
    ]
    call, second, handle = turn(2, "Weather?", "Rain.", history=[system, *first])
    sent = [*second.context["messages"], *tools]
    second = Sample("Weather?", "Rain.", context={**second.context, "messages": sent})
    third_history = [
        system,
        *first,
        {"role": "user", "content": "Weather?"},
        *tools,
        {"role": "assistant", "content": "Rain."},
    ]
    going = window(
        turn(1, "Hi", "Hello", history=[system]), (call, second, handle), turn(3, "Hi", "Hello", history=third_history)
    )
    sample = only(going, 20.0).sample
    assert [role for role, _ in said(sample)] == [
        "system", "user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert said(sample)[-2:] == [("user", "Hi"), ("assistant", "Hello")]  # said twice, so there twice
    assert transcript(sample).splitlines()[0] == "[system] Be kind"
    assert "[assistant] look({})" in transcript(sample)
    assert transcript(sample).endswith("[user] Hi")  # the last answer is the output


def test_a_shortened_history_adds_nothing_that_was_said() -> None:
    kept = [{"role": "assistant", "content": "one"}, {"role": "user", "content": "b"}]
    going = window(turn(1, "a", "one"), turn(2, "b", "two"), turn(3, "c", "three", history=kept))
    assert [text for _, text in said(only(going, 20.0).sample)] == ["a", "one", "b", "two", "c", "three"]


def test_the_order_of_arrival_does_not_matter() -> None:
    turns = [turn(1, "a", "1"), turn(2, "b", "2"), turn(3, "c", None)]
    samples = [only(window(*order), 20.0).sample for order in itertools.permutations(turns)]
    assert all(sample == samples[0] for sample in samples)
    assert (samples[0].input, samples[0].output) == ("c", None)
    assert said(samples[0])[-1] == ("user", "c")


def test_a_service_that_a_turn_called_is_no_turn_of_its_own() -> None:
    outer = turn(1, "Hi", "Hello", end=9_000_000_000)
    inner = turn(2, "inner", "result", trace=1, parent=77, end=8_000_000_000)
    sample = only(window(inner, outer), 20.0).sample
    assert [t["input"] for t in sample.context["turns"]] == ["Hi"]
    assert (sample.input, sample.output) == ("Hi", "Hello")


def test_sessions_of_two_namespaces_are_two_and_what_has_no_session_is_none() -> None:
    going = window(turn(1, "a", "1", namespace="x"), turn(2, "b", "2", namespace="y"))
    assert len(going) == 2
    call, _, handle = turn(3)
    assert not going.add(call, Sample("a", "b"), handle, 0.0, partial=False)


def test_what_leaves_by_a_bound_or_at_the_end_is_partial_and_counted_by_its_reason() -> None:
    going = window(*(turn(n, "a", "1", f"s{n}") for n in range(1, 6)))
    assert len(going) == 3
    evicted = list(going.due(5.0))
    assert [(d.handle, d.partial, d.sample.context["assembly"]) for d in evicted] == [
        ("h1", True, "partial"),
        ("h2", True, "partial"),
    ]
    for n in range(1, 15):  # never quiet
        call, sample, handle = turn(100 + n, "more", "yes", "s5")
        going.add(call, sample, handle, 4.0 + n * 7, partial=False)
    found = list(going.due(104.0))
    assert {d.sample.context["session_id"]: d.partial for d in found} == {"s3": False, "s4": False, "s5": True}
    call, sample, handle = turn(7, "a", "1", "s7")
    going.add(call, sample, handle, 200.0, partial=False)
    assert [d.partial for d in going.decide_all()] == [True]
    assert going.tally.conversations == {"max_sessions": 2, "max_age": 1, "shutdown": 1}


def test_state_is_bounded_in_bytes_and_turns() -> None:
    small = AssemblyBounds(session_idle=10.0, max_session_bytes=50_000)
    going = window(*(turn(n, "x" * 20_000, "1", f"s{n}") for n in range(1, 4)), bounds=small)
    assert going.bytes <= 50_000
    assert going.tally.conversations == {"max_session_bytes": 1}
    alone = window(turn(1, "x" * 90_000, "1"), bounds=small)  # of any size: graded at once
    assert [d.partial for d in alone.due(0.0)] == [True]
    long = window(*(turn(n, f"q{n}", "1") for n in range(1, MAX_TURNS + 3)))
    decided = only(long, 10_000.0)
    assert decided.partial
    assert len(decided.sample.context["turns"]) == MAX_TURNS
    assert decided.sample.context["turns"][0]["input"] == "q3"


def test_what_goes_on_after_it_was_graded_is_partial_and_counted_as_late() -> None:
    going = window(turn(1, "a", "1"))
    assert not only(going, 50.0).partial
    call, sample, handle = turn(2, "b", "2")
    going.add(call, sample, handle, 60.0, partial=False)
    decided = only(going, 70.0)
    assert (decided.partial, going.tally.late["turn"], len(decided.sample.context["turns"])) == (True, 1, 1)


def test_a_partial_turn_makes_the_conversation_partial() -> None:
    going: SessionWindow[str] = SessionWindow(BOUNDS)
    going.add(*turn(1, "a", "1"), 0.0, partial=True)
    decided = only(going, 50.0)
    assert (decided.partial, decided.sample.context["assembly"]) == (True, "partial")


def test_the_spans_content_is_not_kept() -> None:
    attributes = only(window(turn(1, "a", "1")), 50.0).call.span.attributes
    assert attributes == {"session.id": "s1", "http.route": "/chat"}
