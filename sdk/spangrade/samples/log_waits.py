"""Calls whose log records may bring their answer, in the groups in which they wait."""

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from spangrade.samples.groups import Group, Groups, Key, Top
from spangrade.samples.reading import Call

T = TypeVar("T")

MAX_EXPECTED: Final = 16_384


def may_be_told(call: Call) -> bool:
    """Whether a call's log records may say what the call itself does not: a model call without a question or an answer, that
    did not fail."""
    reading = call.reading
    if call.kind != "llm" or call.span.status == "error" or call.evaluator:
        return False
    answered = reading.output is not None or reading.tool_calls or reading.output_messages
    return not answered or (reading.input is None and not reading.messages)


class LogWaits(Generic[T]):
    """Bounded: past `MAX_EXPECTED` calls, others do not wait."""

    def __init__(self, groups: Groups[T]) -> None:
        self._groups = groups
        self._expected: dict[Key, Key] = {}  # trace and span → their group

    def expect(self, group: Group[T], key: Key, call: Call, until: float) -> None:
        """A call of the group may be told more; it waits until then (a time that has gone by: it takes what comes)."""
        if len(self._expected) >= MAX_EXPECTED:
            self._expected = {ids: where for ids, where in self._expected.items() if self._waits(ids, where)}
        if len(self._expected) < MAX_EXPECTED:
            group.waits[call.span.span_id] = until
            self._expected[call.span.trace_id, call.span.span_id] = key

    def _waits(self, ids: Key, where: Key) -> bool:
        group = self._groups.get(where)
        return group is not None and ids[1] in group.waits

    def call(self, trace_id: int, span_id: int) -> Call | None:
        """The call of these ids that waits, if it does."""
        ids = (trace_id, span_id)
        where = self._expected.get(ids)
        group = self._groups.get(where) if where is not None else None
        if group is None:
            self._expected.pop(ids, None)
            return None
        held = (*(top.call for top in (*group.tops, *group.picks)), *group.parts)
        return next((call for call in held if call.span.span_id == span_id), None)

    def said(self, call: Call, now: float) -> Key:
        """What log records have told of a call that waits; returns its group's key. It goes on waiting if something is still
        missing, and else takes what comes until it is decided."""
        span_id = call.span.span_id
        key = self._expected[call.span.trace_id, span_id]
        group = self._groups.get(key)
        if group is not None:
            self._groups.say(group, call)
            if not may_be_told(call):
                group.waits[span_id] = min(group.waits[span_id], now)
        return key

    @staticmethod
    def until(group: Group[T], tops: Sequence[Top[T]], parts: Sequence[Call]) -> float:
        """Till when to wait: for the topmost calls and, where these say nothing, for all below."""
        if not group.waits:
            return 0.0
        calls = [top.call for top in tops]
        if not any(call.reading.input is not None or call.reading.output is not None for call in calls):
            calls += parts
        return max((group.waits.get(call.span.span_id, 0.0) for call in calls), default=0.0)
