"""The seam between the pipeline and its two hosts: how a span comes in, and how its scores go out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome, ScoreRecord
from spangrade.model.sample import Sample
from spangrade.model.span import EventData, SpanData
from spangrade.samples.reading import Call
from spangrade.samples.window import Lineage
from spangrade.scoring.room import span_size


class Ticket:
    """The host's handle for one span: it may wait for scores (held), or have left already.

    Hosts subclass it. The pipeline passes it back to the `Sink`, and marks the samples as partial of one that is ``partial``:
    what belonged with its span was lost before it came (a restart).
    """

    __slots__ = ()
    partial = False


class Offer:
    """One ended span. ``ticket`` is None when the span has gone on and no score of its own is wanted (a part: its
    documents or usage belong to another call). ``lineage`` is None where the host cannot know it. ``arrived``: the clock's
    monotonic seconds. ``size``: about how many bytes its content is; a host that knows gives it, else the text of its
    attributes and events is added up. ``read``: what makes `SpanData` of ``span``, when that is wanted; it is another
    thread's work then."""

    __slots__ = ("_read", "_span", "arrived", "lineage", "size", "ticket")

    def __init__(
        self,
        span: Any,
        ticket: Ticket | None,
        lineage: Lineage | None,
        arrived: float,
        size: int = 0,
        read: Callable[[Any], SpanData] | None = None,
    ) -> None:
        self._span = span
        self._read = read
        self.ticket = ticket
        self.lineage = lineage
        self.arrived = arrived
        self.size = size if size > 0 else span_size(self.span)

    @property
    def span(self) -> SpanData:
        """The span as the pipeline sees it."""
        if self._read is not None:
            self._span, self._read = self._read(self._span), None
        found: SpanData = self._span
        return found


@dataclass(frozen=True, slots=True)
class LogOffer:
    """A log record that belongs to a span, as an event of it (see `spangrade.samples.logs`). ``arrived``, ``size``: as of an
    `Offer`."""

    trace_id: int
    span_id: int
    event: EventData
    arrived: float
    size: int


class Watcher(Protocol):
    """Is shown every sample and every pair's end, with the text: the agent's store is one. ``key``: trace id, span id,
    target. Called from the pipeline's threads; must be quick."""

    def took(self, call: Call) -> None:
        """A span was taken for a call, somebody's evaluator at work included; whether it makes a sample is another matter."""

    def began(
        self,
        key: tuple[int, int, str],
        call: Call,
        sample: Sample,
        evaluators: Sequence[EvaluatorInfo],
        partial: bool,
    ) -> None:
        """A sample is about to be graded by these."""

    def ended(
        self,
        key: tuple[int, int, str],
        evaluator: EvaluatorInfo,
        outcome: Outcome,
        reason: str,
        records: Sequence[ScoreRecord],
        probability: float,
    ) -> None:
        """A pair of a sample that began has ended."""


class Sink(Protocol):
    """What a host does with results. Every method is quick, never raises, and may be called from any thread."""

    def expect(self, ticket: Ticket, pairs: int) -> None:
        """The span is waited for by so many more results."""

    def until(self, ticket: Ticket, deadline: float) -> None:
        """The span leaves at ``deadline`` (monotonic seconds) at the latest."""

    def taken(self, ticket: Ticket, evaluators: Sequence[EvaluatorInfo]) -> None:
        """These evaluators have taken the span; later hops leave them out."""

    def scores(self, ticket: Ticket, evaluator: EvaluatorInfo, records: Sequence[ScoreRecord], scored: bool) -> None:
        """One pair's records. ``scored``: scores, after them the errors of those that failed; else errors only."""

    def later(self, ticket: Ticket) -> Ticket:
        """What stands for a span that has left by then, without its content: for a score that comes much later."""

    def settle(self, ticket: Ticket) -> None:
        """One result less to wait for; at none the span leaves."""

    def expire(self, now: float) -> float | None:
        """Let spans go whose time is up; returns when to call again."""

    def release_all(self) -> None:
        """Let every waiting span go with what it has."""
