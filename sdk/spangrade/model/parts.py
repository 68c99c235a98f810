"""An evaluator of several parts, such as a tree of metrics: each has its own time, and one that hangs costs its own scores."""

from typing import Any, Protocol

from spangrade.model.sample import Sample


class Parts(Protocol):
    """The evaluation of one sample in parts: one that hangs is left, and the rest run on another thread.

    ``at``: the part that runs, by its place in ``parts``; past the last where none does that could hang a thread.
    """

    at: int

    def run(self) -> Any:
        """Run what has not ended; returns what ``evaluate`` does, or anything where the part that ran was left."""

    def leave(self, part: int, kind: str, why: str) -> bool:
        """Wait for a part no longer; its scores are failures of that ``kind``. False when it has ended. Runs no user code."""

    def leave_awaited(self, kind: str, why: str) -> None:
        """The same for all that run on the event loop, if they do by now."""


class PartedEvaluator(Protocol):
    """What an `Evaluator` of several parts has beside that. ``parts``: each one's name, which is the ``path`` of its failures,
    and its time limit in seconds."""

    @property
    def parts(self) -> tuple[tuple[str, float], ...]: ...

    def begin(self, sample: Sample) -> Parts:
        """What ``evaluate`` does, in parts; nothing has run yet."""
