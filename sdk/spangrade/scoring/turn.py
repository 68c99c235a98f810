"""One evaluator's place in a lane: how many of its steps run now, and whether it is paused."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from spangrade.model.gate import Gate

STRIKES: Final = 3  # time-outs in a row before an evaluator is paused
PAUSE_S: Final = 60.0
MAX_PAUSE_S: Final = 3600.0
LOOP_LIMIT: Final = 64  # steps of one evaluator on the event loop


class Step(Protocol):
    """One evaluator on one sample. `run` may do anything; `done` gets its result or what it raised, once."""

    @property
    def turn(self) -> "Turn": ...

    def run(self) -> Any: ...

    def done(self, result: Any, fault: BaseException | None, duration_s: float) -> None: ...

    def gave_up(self, why: str, duration_s: float) -> None: ...


class PartedStep(Step, Protocol):
    """The step of an evaluator of several parts, of which each has its own time, and is paused by itself."""

    @property
    def part(self) -> int:
        """The one that runs, by its place in its turn's ``parts``; past the last where none does."""

    def leave(self, part: int, kind: str) -> bool:
        """Wait for a part no longer, or do not begin it; False when it has ended."""


@dataclass(eq=False)
class Turn:
    """``limit``: threads that the evaluator may occupy at once (``running``); ``loop_limit``: steps of it that run on a
    thread or on the event loop (``aloft``); ``gate``: of the endpoint that it calls, where it calls one
    (``beyond_gate``: a cache or another endpoint may do while that is shut); ``parts``: of an
    evaluator of several, each one's, for its time and its pauses. Its lane's lock guards everything that changes."""

    name: str
    timeout_s: float
    limit: int
    loop_limit: int = LOOP_LIMIT
    running: int = 0
    aloft: int = 0
    left_behind: int = 0  # threads of it that have not come back
    waiting: deque[Step] = field(default_factory=deque)
    strikes: int = 0
    paused_until: float = 0.0
    pause_s: float = PAUSE_S
    gate: Gate | None = None
    beyond_gate: bool = False
    parts: tuple["Turn", ...] = ()

    def free(self) -> bool:
        """Whether one more step may start."""
        return self.running < self.limit and self.running + self.aloft < self.loop_limit

    def strike(self, now: float) -> bool:
        """A step timed out; True when the evaluator is paused for it."""
        self.strikes += 1
        if self.strikes < STRIKES:
            return False
        self.paused_until = now + self.pause_s
        self.pause_s = min(self.pause_s * 2, MAX_PAUSE_S)
        self.strikes = STRIKES - 1  # one more time-out after the pause is enough
        return True

    def came_back(self) -> None:
        """A step ended in time."""
        self.strikes = 0
        self.pause_s = PAUSE_S
