"""Log records that wait for their span: bounded in count, bytes and age, and what is lost is counted."""

from spangrade.model.span import EventData
from spangrade.samples.bounds import AssemblyBounds
from spangrade.samples.pending_logs import MAX_OF_A_SPAN, PendingLogs


def said(n: int, size: int = 10) -> EventData:
    return EventData("gen_ai.user.message", {"content": "x" * size}, n)


def test_they_are_there_in_the_order_in_which_they_came_and_only_once() -> None:
    logs = PendingLogs(AssemblyBounds())
    for event in (said(2), said(1), said(2)):
        logs.put((1, 1), event, 0.0)
    logs.put((1, 2), said(3), 0.0)
    assert logs.take((1, 1)) == [said(2), said(1)]
    assert logs.take((1, 1)) == ()
    assert len(logs) == 1
    assert list(logs.take((1, 2))) == [said(3)]
    assert (logs.bytes, logs.tally.logs) == (0, {})


def test_what_waits_for_too_long_is_forgotten_and_counted() -> None:
    logs = PendingLogs(AssemblyBounds(max_age=60.0))
    logs.put((1, 1), said(1), 0.0)
    logs.put((1, 1), said(2), 50.0)  # of the same span: no younger for it
    logs.put((1, 2), said(3), 30.0)
    assert logs.expire(59.0) == 60.0
    assert logs.expire(60.0) == 90.0
    assert logs.take((1, 1)) == ()
    assert logs.expire(90.0) is None
    assert logs.tally.logs == {"max_age": 3}


def test_at_the_bound_in_bytes_the_oldest_go() -> None:
    logs = PendingLogs(AssemblyBounds(max_bytes=5_000))
    for n in range(10):
        logs.put((1, n), said(n, 1_000), 0.0)
        assert logs.bytes <= 5_000
    assert logs.take((1, 0)) == ()
    assert list(logs.take((1, 9))) == [said(9, 1_000)]
    assert logs.tally.logs["max_bytes"] == 10 - 1 - len(logs)


def test_of_one_span_only_so_many_are_kept() -> None:
    logs = PendingLogs(AssemblyBounds())
    for n in range(MAX_OF_A_SPAN + 3):
        logs.put((1, 1), said(n), 0.0)
    assert len(logs.take((1, 1))) == MAX_OF_A_SPAN
    assert logs.tally.logs == {"max_of_a_span": 3}
