"""A thread of a lane, as the lane sees it."""

import threading

from spangrade.model.gate import Permit
from spangrade.scoring.turn import Step, Turn


class Slot:
    """One thread, and the step that it is on. ``step`` is taken away when the step is given up; ``left_behind`` is the
    turn of the one that the thread has not come back from; ``since``, by the machine's clock: it let others work then;
    ``permit``: the step's place at its endpoint."""

    __slots__ = ("left_behind", "permit", "since", "started", "step", "thread")

    def __init__(self) -> None:
        self.step: Step | None = None
        self.started = 0.0
        self.since = 0.0
        self.left_behind: Turn | None = None
        self.permit: Permit | None = None
        self.thread: threading.Thread | None = None

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
