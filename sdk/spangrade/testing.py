"""Fakes at the seams, for our tests and for applications' own.

Each stands where a protocol is: the clock, the sink behind the pipeline, a judge's client, a span exporter. Nothing here
sleeps: what waits, waits on an event.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spangrade import _guard
from spangrade.judges.providers.base import JudgeReply, JudgeRequest
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import ScoreRecord
from spangrade.scoring.seam import Ticket

__all__ = [
    "CollectingExporter",
    "CollectingSink",
    "FakeClock",
    "ScriptedJudgeClient",
    "event_scores",
    "no_swallowed_faults",
]


class FakeClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self, start: float = 1_000.0) -> None:
        self._now = start

    def monotonic(self) -> float:
        """Seconds."""
        return self._now

    def time_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return int(self._now * 1e9)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds


class CollectingSink:
    """A `Sink` that keeps everything it is given; nothing is held."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.records: list[ScoreRecord] = []
        self.marks: dict[Ticket, list[str]] = {}
        self.waiting: dict[Ticket, int] = {}
        self.deadlines: dict[Ticket, float] = {}

    def expect(self, ticket: Ticket, pairs: int) -> None:
        """See `Sink`."""
        with self.lock:
            self.waiting[ticket] = self.waiting.get(ticket, 1) + pairs

    def until(self, ticket: Ticket, deadline: float) -> None:
        """See `Sink`."""
        self.deadlines[ticket] = deadline

    def taken(self, ticket: Ticket, evaluators: Sequence[EvaluatorInfo]) -> None:
        """See `Sink`."""
        self.marks.setdefault(ticket, []).extend(e.key for e in evaluators)

    def scores(self, ticket: Ticket, evaluator: EvaluatorInfo, records: Sequence[ScoreRecord], scored: bool) -> None:
        """See `Sink`."""
        with self.lock:
            self.records.extend(records)
            self.lock.notify_all()

    def later(self, ticket: Ticket) -> Ticket:
        """The ticket itself."""
        return ticket

    def settle(self, ticket: Ticket) -> None:
        """See `Sink`."""
        with self.lock:
            self.waiting[ticket] = self.waiting.get(ticket, 1) - 1
            self.lock.notify_all()

    def expire(self, now: float) -> float | None:
        """See `Sink`."""
        return None

    def release_all(self) -> None:
        """See `Sink`."""


class CollectingExporter(SpanExporter):
    """Keeps exported spans. ``fail`` makes exports fail, ``raise_`` makes them raise, `block` makes them wait."""

    def __init__(self, *, fail: bool = False, raise_: BaseException | None = None) -> None:
        self._cond = threading.Condition()
        self._spans: list[ReadableSpan] = []
        self._gate = threading.Event()
        self._gate.set()
        self.fail = fail
        self.raise_ = raise_
        self.shut_down = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See `SpanExporter`."""
        self._gate.wait()
        if self.raise_ is not None:
            raise self.raise_
        if self.fail:
            return SpanExportResult.FAILURE
        with self._cond:
            self._spans.extend(spans)
            self._cond.notify_all()
        return SpanExportResult.SUCCESS

    @contextmanager
    def block(self) -> Iterator[None]:
        """Exports inside wait until this ends."""
        self._gate.clear()
        try:
            yield
        finally:
            self._gate.set()

    @property
    def spans(self) -> list[ReadableSpan]:
        """What was exported so far."""
        with self._cond:
            return list(self._spans)

    def named(self, name: str) -> list[ReadableSpan]:
        """Exported spans of that name (or qualified name ending with it)."""
        return [s for s in self.spans if s.name == name or s.name.endswith("." + name)]

    def wait_for(self, enough: Callable[[list[ReadableSpan]], bool], timeout: float = 10.0) -> bool:
        """Wait until ``enough(spans)``; False when ``timeout`` seconds were not enough."""
        with self._cond:
            return self._cond.wait_for(lambda: enough(self._spans), timeout)

    def shutdown(self) -> None:
        """See `SpanExporter`."""
        self.shut_down = True
        self._gate.set()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """See `SpanExporter`."""
        return True


class ScriptedJudgeClient:
    """A judge's client that answers from a list, in order (the last answer repeats), and keeps the requests.

    An answer is a text, a `JudgeReply`, an exception to raise, or a function of the request that gives one of these.
    """

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self._lock = threading.Lock()
        self.requests: list[JudgeRequest] = []

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """See `JudgeClient`."""
        with self._lock:
            self.requests.append(request)
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, JudgeReply) else JudgeReply(text=str(answer), model=request.model)


def event_scores(span: ReadableSpan) -> dict[str, dict[str, Any]]:
    """The evaluation events of an exported span, by evaluation name."""
    return {
        str((e.attributes or {})["gen_ai.evaluation.name"]): dict(e.attributes or {})
        for e in span.events
        if e.name == "gen_ai.evaluation.result"
    }


@contextmanager
def no_swallowed_faults() -> Iterator[list[tuple[str, BaseException]]]:
    """Raise, at the end, the first fault of ours that was stopped inside. Clear the list that it gives to allow some."""
    faults: list[tuple[str, BaseException]] = []
    remove = _guard.observe(lambda where, fault: faults.append((where, fault)))
    try:
        yield faults
    finally:
        remove()
    if faults:
        where, fault = faults[0]
        raise AssertionError(f"spangrade swallowed a fault of its own at {where}") from fault
