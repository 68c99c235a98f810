"""The trace window: which spans make one root sample, with and without lineage."""

import itertools

from spangrade.model.span import SpanData
from spangrade.samples.groups import MAX_GROUPS
from spangrade.samples.reading import Call, Reading
from spangrade.samples.window import GRACE_S, MAX_AGE_S, Decided, Lineage, TraceWindow


def call(span_id: int, parent: int | None = None, kind: str = "llm", end: int = 0, trace_id: int = 1) -> Call:
    span = SpanData(
        trace_id, span_id, parent, f"s{span_id}", 0, end or span_id, {}, parent_is_remote=False if parent else None
    )
    return Call(span, Reading("test", kind=kind))


def ids(calls: tuple[Call, ...]) -> list[int]:
    return [c.span.span_id for c in calls]


# --- with lineage -------------------------------------------------------------------------------------------------------


def test_a_call_that_is_its_own_root_is_decided_at_once() -> None:
    window: TraceWindow[str] = TraceWindow()
    decided = window.add(call(1), Lineage(1, False), "h1", 0, 1)
    assert decided is not None
    assert (ids(decided.tops), decided.carrier, decided.partial) == ([1], "h1", False)
    assert len(window) == 0


def test_what_ended_below_a_root_are_its_parts() -> None:
    window: TraceWindow[str] = TraceWindow()
    assert window.add(call(3, 1, "retriever"), Lineage(1, True), None, 0, 1) is None
    decided = window.add(call(1, kind="chain"), Lineage(1, False), "h1", 0, 1)
    assert decided is not None
    assert (ids(decided.tops), ids(decided.parts)) == ([1], [3])


def test_siblings_under_an_entry_span_are_one_sample_and_the_last_to_end_carries_it() -> None:
    window: TraceWindow[str] = TraceWindow()
    assert window.add(call(2, 9), Lineage(9, False), "h2", 0, 1) is None
    freed = window.add(call(3, 9), Lineage(9, False), "h3", 0, 1)
    assert freed is not None
    assert (freed.carrier, freed.rest) == (None, ("h2",))
    decided = window.root_ended(1, 9)
    assert decided is not None
    assert (ids(decided.tops), decided.carrier, decided.partial) == ([2, 3], "h3", False)


def test_an_earlier_end_that_arrives_later_does_not_take_the_score() -> None:
    window: TraceWindow[str] = TraceWindow()
    window.add(call(2, 9, end=50), Lineage(9, False), "h2", 0, 1)
    freed = window.add(call(3, 9, end=40), Lineage(9, False), "h3", 0, 1)
    assert freed is not None
    assert freed.rest == ("h3",)
    decided = window.root_ended(1, 9)
    assert decided is not None
    assert decided.carrier == "h2"


def test_an_entry_span_that_does_not_end_in_time_gives_a_partial_sample_once() -> None:
    window: TraceWindow[str] = TraceWindow()
    window.add(call(2, 9), Lineage(9, False), "h2", 0, decide_at=1)
    assert list(window.due(0.5)) == []
    (decided,) = window.due(1.0)
    assert (decided.carrier, decided.partial) == ("h2", True)
    assert window.root_ended(1, 9) is None
    assert list(window.decide_all()) == []


def test_what_comes_after_a_partial_decision_is_a_sample_of_its_own_and_partial_too() -> None:
    window: TraceWindow[str] = TraceWindow()
    window.add(call(2, 9), Lineage(9, False), "h2", 0, decide_at=1)
    assert [d.carrier for d in window.due(1.0)] == ["h2"]
    window.add(call(3, 9, "retriever"), Lineage(9, False), None, 2, 3)
    window.add(call(4, 9), Lineage(9, False), "h4", 2, decide_at=30)
    decided = window.root_ended(1, 9)
    assert decided is not None
    assert (ids(decided.tops), ids(decided.parts), decided.carrier, decided.partial) == ([4], [3], "h4", True)


class Running:
    """A host in which a call runs below every root while ``now`` is true."""

    def __init__(self) -> None:
        self.now = True

    def call_runs_below(self, trace_id: int, root_id: int) -> bool:
        return self.now


def test_a_call_that_runs_below_the_same_root_postpones_the_decision_and_gives_the_span_back() -> None:
    window: TraceWindow[str] = TraceWindow()
    running = Running()
    window.add(call(2, 9), Lineage(9, False, running=running), "plan", 0, decide_at=1)
    window.add(call(3, 9, "retriever"), Lineage(9, False, running=running), None, 0, 1)
    (freed,) = window.due(1.0)
    assert (freed.carrier, freed.rest) == (None, ("plan",))
    running.now = False
    window.add(call(4, 9), Lineage(9, False, running=running), "answer", 5, decide_at=6)
    decided = window.root_ended(1, 9)
    assert decided is not None
    assert (ids(decided.tops), ids(decided.parts)) == ([2, 4], [3])
    assert (decided.carrier, decided.partial) == ("answer", False)


# --- without lineage ------------------------------------------------------------------------------------------------------

# entry(9) → chain(1) → retriever(2), llm(3); and llm(4) → directly under the entry
TREE = [
    (call(1, 9, "chain"), "h1", 9),
    (call(2, 1, "retriever"), None, 1),
    (call(3, 1, "llm"), "h3", 1),
    (call(4, 9, "llm"), "h4", 9),
    (None, None, None),
]


def arrive(window: TraceWindow[str], item: tuple[Call | None, str | None, int | None], now: float) -> None:
    found, handle, parent = item
    if found is None:
        window.arrive(None, (1, 9, None), True, None, now, now + 1)
    else:
        window.arrive(found, (1, found.span.span_id, parent), False, handle, now, now + 1)


def test_any_order_of_arrival_gives_the_same_decision() -> None:
    for order in itertools.permutations(TREE):
        window: TraceWindow[str] = TraceWindow()
        for item in order:
            arrive(window, item, 0.0)
        found = list(window.due(GRACE_S))
        decided = [d for d in found if d.carrier is not None]
        assert len(decided) == 1
        assert (ids(decided[0].tops), decided[0].carrier, decided[0].partial) == ([1, 4], "h4", False)
        assert sorted(ids(decided[0].parts)) == [2, 3]
        assert sorted(h for d in found for h in d.rest) == ["h1", "h3"]


def test_an_orphan_is_decided_on_its_own_when_its_time_is_up_and_is_partial() -> None:
    window: TraceWindow[str] = TraceWindow()
    window.arrive(call(5, 7), (1, 5, 7), False, "h5", 0.0, 1.0)
    (decided,) = window.due(1.0)
    assert (ids(decided.tops), decided.carrier, decided.partial) == ([5], "h5", True)


def test_two_local_roots_of_one_trace_are_two_samples() -> None:
    window: TraceWindow[str] = TraceWindow()
    window.arrive(call(1, None, "chain"), (1, 1, None), True, "h1", 0.0, 1.0)
    window.arrive(call(2, 8, "chain"), (1, 2, 8), True, "h2", 0.0, 1.0)  # its parent is remote
    carriers = {d.carrier for d in window.due(1.0)}
    assert carriers == {"h1", "h2"}


def test_the_first_root_of_a_trace_decides_its_own_calls_and_not_another_requests() -> None:
    window: TraceWindow[str] = TraceWindow()
    window.arrive(call(1, 8, "llm"), (1, 1, 8), False, "a", 0.0, 5.0)
    window.arrive(call(2, 9, "llm"), (1, 2, 9), False, "b", 0.0, 5.0)
    window.arrive(None, (1, 8, 77), True, None, 0.0, 5.0)
    (first,) = window.due(GRACE_S)
    assert (first.carrier, first.partial) == ("a", False)
    window.arrive(call(3, 9, "llm", end=50), (1, 3, 9), False, "b2", 1.0, 6.0)
    window.arrive(None, (1, 9, 78), True, None, 1.0, 6.0)
    found = list(window.due(1.0 + GRACE_S))
    assert [(ids(d.tops), d.carrier, d.partial) for d in found if d.carrier] == [([2, 3], "b2", False)]
    assert [h for d in found for h in d.rest] == ["b"]


def test_a_call_that_comes_after_its_root_was_decided_is_decided_by_itself() -> None:
    window: TraceWindow[str] = TraceWindow()
    window.arrive(call(1, None, "chain"), (1, 1, None), True, "root", 0.0, 5.0)
    assert [d.carrier for d in window.due(GRACE_S)] == ["root"]
    window.arrive(call(2, 1, "llm"), (1, 2, 1), False, "late", 3.0, 8.0)
    found = list(window.due(3.0 + GRACE_S))
    assert [h for d in found for h in d.rest] == ["late"]  # below a call: no root


def test_parents_in_a_ring_do_not_hang() -> None:
    window: TraceWindow[str] = TraceWindow()
    window.arrive(call(1, 2), (1, 1, 2), False, "h1", 0.0, 1.0)
    window.arrive(call(2, 1), (1, 2, 1), False, "h2", 0.0, 1.0)
    handles: set[str] = set()
    for decided in window.due(1.0):
        handles |= {*decided.rest, *([decided.carrier] if decided.carrier else [])}
    assert handles == {"h1", "h2"}


# --- bounds --------------------------------------------------------------------------------------------------------------


def test_state_is_bounded_and_no_handle_is_lost() -> None:
    window: TraceWindow[int] = TraceWindow()
    handles: set[int] = set()

    def take(decided: Decided[int]) -> None:
        handles.update(decided.rest)
        if decided.carrier is not None:
            handles.add(decided.carrier)

    for n in range(1, MAX_GROUPS + 1001):
        window.add(call(n, 10**9, trace_id=n), Lineage(10**9, False), n, 0.0, 100.0)
        for decided in window.due(0.0):
            take(decided)
        assert len(window) <= MAX_GROUPS + 1
    for decided in window.due(200.0):
        take(decided)
    assert handles == set(range(1, MAX_GROUPS + 1001))


def test_groups_without_a_candidate_are_forgotten_by_age() -> None:
    window: TraceWindow[str] = TraceWindow()
    window.add(call(3, 1, "retriever"), Lineage(1, True), None, 0.0, 1.0)
    assert list(window.due(MAX_AGE_S - 1)) == []
    assert len(window) == 1
    assert list(window.due(MAX_AGE_S)) == []
    assert len(window) == 0
