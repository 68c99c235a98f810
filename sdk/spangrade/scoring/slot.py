"""A thread of a lane, as the lane sees it."""

import threading
from typing import cast

from spangrade.model.gate import Permit
from spangrade.scoring.turn import PartedStep, Step, Turn


class Slot:
    """One thread, and the step that it is on. ``step`` is taken away when the step is given up; ``left_behind`` is the
    turn of the one that the thread has not come back from; ``since``, by the machine's clock: it let others work then;
    ``permit``: the step's place at its endpoint; ``part``, ``part_since``: of a step in parts, the one that it was last seen
    on, and since when."""

    __slots__ = ("left_behind", "part", "part_since", "permit", "since", "started", "step", "thread")

    def __init__(self) -> None:
        self.step: Step | None = None
        self.started = 0.0
        self.since = 0.0
        self.left_behind: Turn | None = None
        self.permit: Permit | None = None
        self.thread: threading.Thread | None = None
        self.part = 0
        self.part_since = 0.0

    def begin(self, step: Step, permit: Permit | None, now: float) -> None:
        """Its thread goes to work on a step."""
        self.step, self.permit, self.started = step, permit, now
        if step.turn.parts:
            self.part, self.part_since = cast("PartedStep", step).part, now

    def overdue(self, now: float) -> Turn | None:
        """Whose time is over: that of its step's evaluator, or of the part of it that runs, which is then left. None where
        there is time, or nothing to wait for. Called from time to time: of the second part and those behind it, time counts from
        when they were first seen at work."""
        step = self.step
        if step is None:
            return None
        turn = step.turn
        if not turn.parts:
            return turn if now >= self.started + turn.timeout_s else None
        parted = cast("PartedStep", step)
        part = parted.part
        if part != self.part:
            self.part, self.part_since = part, now
        if part >= len(turn.parts) or now < self.part_since + turn.parts[part].timeout_s:
            return None
        return turn.parts[part] if parted.leave(part, "timeout") else None

    @property
    def lives(self) -> bool:
        """False once its thread has died: nothing of ours ends one, but others can."""
        return self.thread is None or self.thread.is_alive()

    @property
    def serves(self) -> bool:
        """Whether it takes steps, now or after its own."""
        return self.left_behind is None and self.lives

    def give_back(self) -> None:
        """Let another have its step's place. The second time does nothing."""
        if self.permit is not None:
            self.permit.release()
