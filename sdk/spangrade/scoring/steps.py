"""The steps of a lane that have not started: in order, each evaluator within its limits, and none of a paused one."""

import threading
from collections import deque
from typing import Any, Final, Literal, cast

from spangrade._log import once
from spangrade.errors import EvaluatorError
from spangrade.model.evaluator import Verdict
from spangrade.model.gate import CIRCUIT_OPEN, Permit
from spangrade.scoring.clock import Clock
from spangrade.scoring.shield import shield
from spangrade.scoring.turn import PartedStep, Step, Turn

MAX_LEFT_BEHIND: Final = (
    16  # threads that have not come back; at that number the evaluators that they are of wait for them
)

_COSTLY: Final = frozenset({"timeout", "worker_died", "worker_failed"})

#: How a step came off its thread or the loop: by itself; too late, which counts against its evaluator; or neither.
How = Literal["back", "late", "lost"]


class StepQueue:
    """Ready steps, and those that wait for their evaluator's turn, or for a place at the endpoint that it calls: no thread waits
    with them, and their time does not run. ``cond`` is notified when a step gets ready.

    It guards everything here and in the turns; methods that need it held say so.
    """

    def __init__(self, name: str, max_steps: int, clock: Clock) -> None:
        self.cond = threading.Condition()
        self.ready: deque[Step] = deque()
        self.queued = 0  # ready and waiting steps
        self.left_behind = 0  # threads, of all evaluators
        self.closed = False
        self._name = name
        self._max_steps = max_steps
        self._clock = clock
        self._turns: dict[int, Turn] = {}  # all that ever came, as many as there are evaluators
        self._permits: dict[int, Permit] = {}  # of ready steps that waited for one; they count as running

    def put(self, steps: list[Step], wake: int, *, again: bool = False) -> bool:
        """Queue all of ``steps`` or, when there is no room or the lane is closed, none; ``wake`` so many threads that wait.
        ``again``: first of all, and room or not. With ``cond`` held."""
        if self.closed or (not again and self.queued + len(steps) > self._max_steps):
            return False
        if again:
            self.ready.extendleft(reversed(steps))
        else:
            self.ready.extend(steps)
        self._turns.update((id(step.turn), step.turn) for step in steps)
        self.queued += len(steps)
        if wake:
            self.cond.notify(wake)
        return True

    def take_back(self, steps: list[Step]) -> None:
        """Forget those of ``steps`` that are still ready."""
        permits: list[Permit] = []
        with self.cond:
            for step in steps:
                if step in self.ready:
                    self.ready.remove(step)
                    self.queued -= 1
                    if id(step) in self._permits:
                        step.turn.running -= 1
                        permits.append(self._permits.pop(id(step)))
        for permit in permits:
            permit.release()

    def take(self) -> tuple[Step, str, Permit | None] | None:
        """The next ready step, why it is to be dropped, if it is, and its place at its endpoint, which the caller gives back
        in either case; None when it has to wait. With ``cond`` held."""
        step = self.ready.popleft()
        turn = step.turn
        permit = self._permits.pop(id(step), None) if self._permits else None
        if permit is not None:
            turn.running -= 1
        dropped = "shutdown" if self.closed else "paused" if self._paused(turn) else ""
        if not dropped and permit is None:
            if not turn.free():
                turn.waiting.append(step)
                return None
            if turn.gate is not None:
                # Those that wait go first. One that got no place will be let go, or dropped, by `look_at_gates`.
                permit = None if turn.waiting else turn.gate.enter(self.look_at_gates)
                shut = permit is None and turn.gate.shut()
                if shut and not turn.beyond_gate:
                    dropped = CIRCUIT_OPEN
                elif permit is None and not shut:
                    turn.waiting.append(step)
                    return None
        for i, part in enumerate(turn.parts):
            if self._paused(part):
                cast("PartedStep", step).leave(i, "paused")
        self.queued -= 1
        turn.running += not dropped
        return step, dropped, permit

    def leave_behind(self, turn: Turn, hangs: Turn) -> None:
        """A thread is given up with its step. ``hangs``: that of the step's evaluator, or of its part. With ``cond`` held."""
        turn.running -= 1
        hangs.left_behind += 1
        self.left_behind += 1

    def came_back(self, turn: Turn) -> None:
        """A thread that was left behind is there again (and ends). With ``cond`` held."""
        turn.left_behind -= 1
        self.left_behind -= 1

    def landed(self, turn: Turn, how: How) -> None:
        """A step is no longer on the event loop."""
        with self.cond:
            turn.aloft -= 1
        self.settle(turn, how)

    def settle(self, turn: Turn, how: How) -> None:
        """What a step's end means for its evaluator, and for those of it that wait."""
        now, struck = self._clock.monotonic(), False
        with self.cond:
            if how == "late" and not turn.parts:  # these count for themselves
                struck = turn.strike(now)
            elif how == "back":
                turn.came_back()
            out: list[Step] = []
            if turn.waiting and self._paused(turn):
                out.extend(turn.waiting)
                turn.waiting.clear()
                self.queued -= len(out)
            elif turn.waiting and turn.gate is None and turn.free():
                self.ready.appendleft(turn.waiting.popleft())
                self.cond.notify()
        if struck:
            once(
                f"paused:{self._name}:{turn.name}",
                "an evaluator timed out (or ended its process) repeatedly and is paused; its pairs are counted as dropped(paused), "
                "the scores of a tree's metric leave as errors",
                evaluator=turn.name,
                timeout_s=turn.timeout_s,
            )
        for step in out:
            with shield("lane.paused"):
                step.gave_up("paused", 0.0)
        if turn.gate is not None and turn.waiting:
            self.look_at_gates()

    def settle_parts(self, turn: Turn, result: Any) -> None:
        """What a step's end means for each part of its evaluator."""
        if not isinstance(result, Verdict):
            return
        kinds = {failure.path: failure.kind for failure in result.failures} if result.failures else {}
        for part in turn.parts:
            kind = kinds.get(part.name)
            if kind == "timeout":
                self.settle(part, "late")
            elif part.strikes and kind != "paused":
                self.settle(part, "back")

    def look_at_gates(self) -> None:
        """Let those go that wait for a place at their endpoint, while there are places; drop them where there will be none.

        Among the evaluators of one endpoint the one goes next of which the fewest run.
        """
        out: list[Step] = []
        with self.cond:
            turns = [turn for turn in self._turns.values() if turn.gate is not None and turn.waiting]
            while turns:
                turn = min(turns, key=lambda turn: turn.running)
                gate = turn.gate
                assert gate is not None
                permit = gate.enter(self.look_at_gates) if turn.free() else None
                if permit is not None:
                    step = turn.waiting.popleft()
                    self._permits[id(step)] = permit
                    turn.running += 1
                    self.ready.append(step)
                    self.cond.notify()
                elif gate.shut() and not turn.beyond_gate:
                    out.extend(turn.waiting)
                    self.queued -= len(turn.waiting)
                    turn.waiting.clear()
                elif gate.shut() and turn.free():  # without a place: who calls that endpoint is told so
                    self.ready.extend(turn.waiting)
                    self.cond.notify(len(turn.waiting))
                    turn.waiting.clear()
                if permit is None or not turn.waiting:
                    turns.remove(turn)
        for step in out:
            with shield("lane.circuit_open"):
                step.gave_up(CIRCUIT_OPEN, 0.0)

    def paused(self, turn: Turn) -> bool:
        """Whether its steps are dropped now."""
        with self.cond:
            return self._paused(turn)

    def _paused(self, turn: Turn) -> bool:
        if turn.left_behind > 0 and self.left_behind >= MAX_LEFT_BEHIND:
            return True
        return turn.paused_until > 0 and turn.paused_until > self._clock.monotonic()

    def close(self) -> tuple[list[Step], list[Permit]]:
        """Take no more; returns what was queued, and the places that it had. With ``cond`` held."""
        self.closed = True
        left = list(self.ready)
        self.ready.clear()
        permits = list(self._permits.values())
        self._permits.clear()
        for turn in self._turns.values():
            left.extend(turn.waiting)
            turn.waiting.clear()
        self.queued = 0
        self.cond.notify_all()
        return left, permits


def ended_how(fault: BaseException | None) -> How:
    """One that ran out of time and says so itself counts like one that we gave up, and so does one that took its process
    with it: each costs a new one."""
    return "late" if isinstance(fault, EvaluatorError) and fault.kind in _COSTLY else "back"
