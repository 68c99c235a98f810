"""Root samples → conversations, and these to whatever grades them (target ``session``). Owned by the timer thread."""

from collections.abc import Callable, Iterable
from typing import Protocol

from spangrade.model.sample import Sample
from spangrade.samples.bounds import AssemblyBounds
from spangrade.samples.reading import Call
from spangrade.samples.sessions import DecidedSession, SessionWindow
from spangrade.samples.tally import Tally
from spangrade.scoring.seam import Sink, Ticket
from spangrade.scoring.shield import shield
from spangrade.scoring.wants import SESSION


class Start(Protocol):
    """What a finished sample is given to."""

    def __call__(self, call: Call, sample: Sample, ticket: Ticket, target: str, partial: bool) -> None: ...


class Conversations:
    """``taken`` is told of every turn, whose span may still be here then."""

    def __init__(
        self, sink: Sink, bounds: AssemblyBounds, tally: Tally, start: Start, taken: Callable[[Call, Ticket], None]
    ) -> None:
        self._sink = sink
        self._start = start
        self._taken = taken
        self.window: SessionWindow[Ticket] = SessionWindow(bounds, tally)

    def turn(self, call: Call, sample: Sample, ticket: Ticket, now: float, *, partial: bool) -> None:
        """A root sample, which is a turn if it names its session."""
        with shield("conversations.turn"):
            if sample.context.get("session_id"):
                self._taken(call, ticket)
                self.window.add(call, sample, self._sink.later(ticket), now, partial=partial)

    def tick(self, now: float) -> float | None:
        """Grade what has been quiet for long enough; returns when to look again."""
        self._grade(self.window.due(now))
        return self.window.next_due()

    def decide_all(self) -> None:
        """Grade all that goes on, as it is: the end of the process."""
        self._grade(self.window.decide_all())

    def _grade(self, decided: Iterable[DecidedSession[Ticket]]) -> None:
        for one in decided:
            with shield("conversations.grade"):  # what goes wrong with one costs no other one
                self._start(one.call, one.sample, one.handle, SESSION, one.partial)
