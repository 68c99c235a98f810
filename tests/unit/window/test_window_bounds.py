"""What a trace window waits for and no longer, and what it counts: quiet time, grace, bounds, what comes too late."""

from typing import Any

from spangrade.model.span import SpanData
from spangrade.samples.bounds import AssemblyBounds
from spangrade.samples.groups import MAX_PARTS
from spangrade.samples.reading import Call, Reading
from spangrade.samples.window import Decided, Lineage, TraceWindow

NEVER = float("inf")


def call(span_id: int, kind: str = "llm", trace_id: int = 1, said: Any = "yes", size: int = 0) -> Call:
    span = SpanData(trace_id, span_id, None, f"s{span_id}", 0, span_id, {"input.value": "x" * size})
    return Call(span, Reading("test", kind=kind, input=said, output=said))


def arrive(
    window: TraceWindow[str], found: Call, parent: int | None, now: float, by: float = NEVER, **more: Any
) -> None:
    span = found.span
    top = None if found.kind in ("retriever", "tool") else f"h{span.span_id}"
    window.arrive(found, (span.trace_id, span.span_id, parent), parent is None, top, now, by, **more)


def made(window: TraceWindow[str], now: float) -> list[tuple[str | None, bool]]:
    return [(d.carrier, d.partial) for d in window.due(now) if d.carrier]


# --- quiet time and grace -----------------------------------------------------------------------------------------------


def test_without_its_root_a_trace_is_decided_when_nothing_of_it_has_come_for_the_quiet_time() -> None:
    window: TraceWindow[str] = TraceWindow(AssemblyBounds(quiet=30.0))
    arrive(window, call(2), 1, 0.0)
    assert made(window, 29.9) == []
    arrive(window, call(3, "retriever"), 1, 29.9)
    assert made(window, 59.8) == []
    assert made(window, 59.9) == [("h2", True)]
    assert window.tally.partial == {"quiet": 1}


def test_the_root_ends_a_trace_before_its_quiet_time_after_the_grace() -> None:
    window: TraceWindow[str] = TraceWindow(AssemblyBounds(quiet=30.0, grace=120.0))
    arrive(window, call(1, "chain"), None, 0.0)
    arrive(window, call(2, "retriever"), 1, 31.0)
    (decided,) = [d for d in window.due(120.0) if d.carrier]
    assert [c.span.span_id for c in decided.parts] == [2]


def test_with_lineage_the_quiet_time_counts_from_the_last_call_of_the_request() -> None:
    window: TraceWindow[str] = TraceWindow(AssemblyBounds(quiet=10.0))
    window.add(call(2), Lineage(9, False), "h2", 0.0, NEVER)
    window.add(call(3, "tool"), Lineage(9, False), None, 8.0, NEVER)
    assert made(window, 17.0) == []
    assert made(window, 18.0) == [("h2", True)]
    assert window.root_ended(1, 9) is None


def test_a_trace_that_never_is_quiet_is_decided_at_its_maximal_age() -> None:
    window: TraceWindow[str] = TraceWindow(AssemblyBounds(quiet=10.0, max_age=60.0))
    for n in range(2, 14):
        arrive(window, call(n), 1, n * 5.0 - 10)
        assert made(window, n * 5.0 - 10) == []
    found = [d for d in window.due(60.0) if d.carrier]
    assert len(found) == 12
    assert window.tally.partial == {"max_age": 12}
    assert len(window) == 0


# --- bounds -------------------------------------------------------------------------------------------------------------


def test_past_the_bound_of_traces_the_oldest_is_decided_as_it_is() -> None:
    window: TraceWindow[str] = TraceWindow(AssemblyBounds(max_traces=2))
    for n in (1, 2, 3):
        arrive(window, call(10 + n, trace_id=n), 5, 0.0)
    assert made(window, 0.0) == [("h11", True)]
    assert window.tally.partial == {"max_traces": 1}


def test_a_sample_that_lost_parts_at_the_bound_of_bytes_is_partial() -> None:
    window: TraceWindow[str] = TraceWindow(AssemblyBounds(max_bytes=10_000))
    arrive(window, call(2, "retriever", size=6_000), 1, 0.0)
    arrive(window, call(3, "retriever", trace_id=2, size=6_000), 1, 0.0)
    arrive(window, call(1, "chain"), None, 0.0)
    arrive(window, call(1, "chain", trace_id=2), None, 0.0)
    found = {c.span.trace_id: d.partial for d in window.due(0.1) for c in d.tops}
    assert found == {1: True, 2: False}
    assert window.tally.partial == {"max_bytes": 1}


def test_calls_that_wait_are_bounded_in_bytes_however_long_they_may_wait() -> None:
    window: TraceWindow[str] = TraceWindow(AssemblyBounds(max_bytes=10_000, quiet=1_000.0))
    handles: list[str | None] = []
    for n in range(1, 11):
        arrive(window, call(10 + n, trace_id=n, size=6_000), 5, 0.0)
        handles += [d.carrier for d in window.due(0.0)]
    assert handles == [f"h{10 + n}" for n in range(1, 8)]
    assert window.tally.partial == {"max_bytes": 7}


def test_a_request_with_more_calls_than_are_kept_is_partial() -> None:
    window: TraceWindow[str] = TraceWindow()
    for n in range(MAX_PARTS + 1):
        window.add(call(10 + n, "tool"), Lineage(1, True), None, 0.0, NEVER)
    decided = window.add(call(1, "chain"), Lineage(1, False), "h1", 0.0, NEVER)
    assert decided is not None
    assert decided.partial
    assert window.tally.partial == {"max_spans": 1}


# --- too late -----------------------------------------------------------------------------------------------------------


def test_what_comes_after_its_root_was_decided_is_counted_and_scores_no_trace_twice() -> None:
    window: TraceWindow[str] = TraceWindow()
    arrive(window, call(1, "chain"), None, 0.0)
    assert made(window, 0.1) == [("h1", False)]
    arrive(window, call(2, "retriever"), 1, 30.0)
    arrive(window, call(3), 1, 30.0)
    found = list(window.due(30.1))
    assert [(d.carrier, d.rest) for d in found] == [(None, ("h3",))]
    assert window.tally.late == {"call": 2}


def test_a_root_that_comes_after_a_call_below_it_was_decided_without_it_is_partial() -> None:
    window: TraceWindow[str] = TraceWindow()
    arrive(window, call(2), 1, 0.0, by=1.0)
    assert made(window, 1.0) == [("h2", True)]
    arrive(window, call(1, "chain"), None, 5.0, by=6.0)
    assert made(window, 5.1) == [("h1", True)]
    assert window.tally.partial == {"no_root": 1, "late": 1}


# --- log records --------------------------------------------------------------------------------------------------------


def only(found: list[Decided[str]]) -> Decided[str]:
    (decided,) = [d for d in found if d.carrier]
    return decided


def test_a_model_call_without_an_answer_waits_for_its_log_records_though_its_root_has_come() -> None:
    window: TraceWindow[str] = TraceWindow()
    silent = call(1, said=None)
    arrive(window, silent, None, 0.0, by=1.0, logs_until=5.0)
    assert made(window, 4.9) == []
    assert window.expected(1, 1) is silent
    told = call(1, said="told")
    window.said(told, 4.9)
    decided = only(list(window.due(4.9)))
    assert (decided.tops, decided.partial) == ((told,), False)


def test_when_its_log_records_do_not_come_it_is_decided_without() -> None:
    window: TraceWindow[str] = TraceWindow()
    arrive(window, call(1, said=None), None, 0.0, by=1.0, logs_until=5.0)
    decided = only(list(window.due(5.0)))
    assert (decided.carrier, decided.partial) == ("h1", False)
    assert window.expected(1, 1) is None


def test_a_root_that_speaks_does_not_wait_for_the_log_records_of_what_is_below_it() -> None:
    window: TraceWindow[str] = TraceWindow()
    arrive(window, call(1, "chain"), None, 0.0, by=1.0)
    arrive(window, call(2, said=None), 1, 0.0, by=1.0, logs_until=5.0)
    assert made(window, 0.1) == [("h1", False)]


def test_a_root_that_says_nothing_waits_for_what_is_below_it() -> None:
    window: TraceWindow[str] = TraceWindow()
    arrive(window, call(1, "chain", said=None), None, 0.0, by=1.0)
    arrive(window, call(2, said=None), 1, 0.0, by=1.0, logs_until=5.0)
    assert made(window, 4.0) == []
    window.said(call(2, said="told"), 4.0)
    decided = only(list(window.due(4.0)))
    assert [c.reading.output for c in decided.parts] == ["told"]


def test_a_call_that_is_graded_by_itself_waits_alone_and_keeps_what_is_around_it() -> None:
    window: TraceWindow[str] = TraceWindow()
    arrive(window, call(1, "chain"), None, 0.0, by=1.0)
    arrive(window, call(2, "retriever"), 1, 0.0)
    arrive(window, call(3, said=None), 1, 0.0, by=1.0, logs_until=5.0, pick="p3")
    assert made(window, 0.1) == [("h1", False)]
    window.said(call(3, said="told"), 3.0)
    (decided,) = [d for d in window.due(3.0) if d.picks]
    ((picked, handle),) = decided.picks
    assert (picked.reading.output, handle, decided.partial) == ("told", "p3", False)
    assert {c.span.span_id for c in decided.around} == {1, 2, 3}


def test_with_lineage_the_last_call_of_a_request_waits_for_its_log_records_too() -> None:
    window: TraceWindow[str] = TraceWindow()
    assert window.add(call(1, said=None), Lineage(1, False), "h1", 0.0, 1.0, logs_until=5.0) is None
    assert made(window, 4.9) == []
    window.said(call(1, said="told"), 4.9)
    decided = only(list(window.due(4.9)))
    assert (decided.tops[0].reading.output, decided.partial) == ("told", False)
    assert len(window) == 0


def test_a_flush_waits_for_no_log_records() -> None:
    window: TraceWindow[str] = TraceWindow()
    arrive(window, call(1, said=None), None, 0.0, by=1.0, logs_until=5.0)
    assert [(d.carrier, d.partial) for d in window.decide_all() if d.carrier] == [("h1", False)]
