"""The event loop that async metrics share: on a thread of ours, with time limits, and with a successor when it hangs.

All steps share one loop, so an async client that a metric keeps lives as long as the loop. A coroutine that blocks (a
``time.sleep`` inside ``async def``) holds up everything on its loop: steps that are over their time end as ``timeout``,
and when the loop does not answer either, it is left behind like a thread, a new one takes the steps that come and those
that had not begun, and the evaluator that was on the loop is blamed.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final

from spangrade.scoring.clock import Clock
from spangrade.scoring.event_loop import EventLoop, Flight, never_mind
from spangrade.scoring.shield import shield
from spangrade.scoring.steps import MAX_LEFT_BEHIND, StepQueue, ended_how
from spangrade.scoring.turn import Step, Turn

ANSWER_S: Final = 0.5  # within this a loop answers, or it is left behind
LOOK_S: Final = 0.05


class LoopLane:
    """Where lanes send steps whose evaluator is async. The lanes' turns bound how many there are."""

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._lock = threading.Lock()
        self._loops: list[EventLoop] = []  # the last one takes steps, unless it is left behind
        self._closed = False

    def ensure(self) -> None:
        """Start the loop's thread, if none runs yet."""
        with self._lock:
            self._current()

    def take(self, step: Step, awaitable: Awaitable[Any], lane: StepQueue) -> str:
        """Run ``awaitable``; its end is told to ``step``, and to ``lane``. Returns why not, if it is not taken."""
        now = self._clock.monotonic()
        with self._lock:
            loop = None if self._closed else self._current()
            if loop is None:
                return self._why_not()
            was_idle = not self._busy()
            flight = Flight(step, awaitable, lane, loop, now, now + step.turn.timeout_s)
            loop.flights.add(flight)
        loop.call(self._begin, flight, loop)
        if was_idle:
            self._wake()
        return ""

    def _current(self) -> EventLoop | None:
        """The loop for new steps; None when no more may be, or can be, started. Under the lock."""
        last = self._loops[-1] if self._loops else None
        if last is not None and not last.left and last.lives:
            return last
        self._loops = [loop for loop in self._loops if loop.lives or loop.flights]
        if self._crowded():
            return None
        try:
            loop = EventLoop()
        except OSError:  # no file descriptors left
            return None
        if not loop.start():
            return None
        self._loops.append(loop)
        return loop

    def _crowded(self) -> bool:
        return sum(loop.hangs for loop in self._loops) >= MAX_LEFT_BEHIND

    def _why_not(self) -> str:
        return "shutdown" if self._closed else "paused" if self._crowded() else "no_loop"

    def _busy(self) -> bool:
        return any(loop.flights or (loop.asked is None) == loop.left for loop in self._loops)

    # --- on a loop's thread ------------------------------------------------------------------------------------------

    def _begin(self, flight: Flight, loop: EventLoop) -> None:
        with self._lock:
            if not flight.over and flight.loop is loop:
                flight.task = loop.loop.create_task(self._fly(flight, loop))

    async def _fly(self, flight: Flight, loop: EventLoop) -> None:
        with self._lock:
            if flight.over or flight.loop is not loop:  # given up, or moved on, before it began
                return
            flight.begun = True
            flight.deadline = self._clock.monotonic() + flight.step.turn.timeout_s
        result, fault = None, None
        try:
            result = await flight.awaitable
        except BaseException as raised:  # noqa: BLE001 - what a metric raises is its error, a TimeoutError too
            fault = raised
        if not self._ends(flight, loop):
            return  # given up meanwhile
        flight.lane.landed(flight.step.turn, ended_how(fault))
        if flight.step.turn.parts:
            flight.lane.settle_parts(flight.step.turn, result)
        with shield("loop.done"):
            flight.step.done(result, fault, max(0.0, self._clock.monotonic() - flight.came))

    def _ends(self, flight: Flight, loop: EventLoop) -> bool:
        with self._lock:
            first = not flight.over
            flight.over = True
            loop.flights.discard(flight)
        return first

    def _answered(self, loop: EventLoop) -> None:
        """The loop answers: those that timed out on it have only themselves to blame."""
        with self._lock:
            loop.asked = None
            suspects, loop.suspects = loop.suspects, []
        for flight in suspects:
            flight.lane.settle(flight.step.turn, "late")
        if loop.left:
            self._wake()  # it is to end once its steps have

    # --- time ----------------------------------------------------------------------------------------------------------

    def check(self, now: float) -> float | None:
        """Give up steps whose time is over, leave a loop behind that does not answer; returns when to look again."""
        late: list[Flight] = []
        ask: list[EventLoop] = []
        blamed: list[tuple[StepQueue, Turn]] = []
        stranded: list[Flight] = []
        with self._lock:
            for loop in self._loops:
                overdue = [flight for flight in loop.flights if now >= flight.deadline]
                begun = [flight for flight in overdue if flight.begun]
                for flight in begun:
                    flight.over = True
                loop.flights.difference_update(begun)
                late += begun
                if loop.left:
                    continue
                loop.suspects += begun
                if loop.asked is not None and now >= loop.asked + ANSWER_S:
                    self._leave(loop, blamed, stranded)
                elif overdue and loop.asked is None:
                    loop.asked = now
                    ask.append(loop)
            done = [loop for loop in self._loops if loop.left and not loop.hangs and not loop.flights]
            self._loops = [loop for loop in self._loops if loop not in done]
            busy = self._busy()
        for loop in ask:
            loop.call(self._answered, loop)
        for loop in done:
            loop.end()
        self._give_up(late, "timeout", now)
        for lane, turn in blamed:
            lane.settle(turn, "late")
        self._move(stranded, now)
        return now + LOOK_S if busy or stranded else None

    def _leave(self, loop: EventLoop, blamed: list[tuple[StepQueue, Turn]], stranded: list[Flight]) -> None:
        """Under the lock: leave ``loop`` behind; who is to blame, and what can still be run elsewhere."""
        culprit = loop.culprit()
        loop.left = True
        guilty = [culprit] if culprit is not None else loop.suspects
        blamed.extend({id(f.step.turn): (f.lane, f.step.turn) for f in guilty}.values())
        loop.suspects = []
        waiting = [flight for flight in loop.flights if not flight.begun]
        loop.flights.difference_update(waiting)
        for flight in waiting:
            flight.loop = None  # should the old loop come to it now
        stranded += sorted(waiting, key=lambda f: (any(f.step.turn is g.step.turn for g in guilty), f.came))

    def _move(self, stranded: list[Flight], now: float) -> None:
        """Give what had not begun to the next loop, those of the guilty last."""
        dropped: list[Flight] = []
        for flight in stranded:
            if flight.lane.paused(flight.step.turn):
                self._give_up([flight], "paused", now)
                continue
            with self._lock:
                loop = None if self._closed else self._current()
                if loop is None:
                    dropped.append(flight)
                else:
                    flight.loop, flight.deadline = loop, now + flight.step.turn.timeout_s
                    loop.flights.add(flight)
            if loop is not None:
                loop.call(self._begin, flight, loop)
        if dropped:
            with self._lock:
                why = self._why_not()
            self._give_up(dropped, why, now)

    @staticmethod
    def _give_up(flights: list[Flight], why: str, now: float | None = None) -> None:
        """End flights that were marked ``over`` under the lock."""
        for flight in flights:
            if not flight.begun:
                never_mind(flight.awaitable)
            elif flight.loop is not None and flight.task is not None:
                flight.loop.call(flight.task.cancel)
            flight.lane.landed(flight.step.turn, "lost")
            with shield("loop.give_up"):
                flight.step.gave_up(why, 0.0 if now is None else max(0.0, now - flight.came))

    def close(self) -> None:
        """Take no more; what is left is given up as ``shutdown`` and cancelled, nobody waits for it."""
        with self._lock:
            self._closed = True
            loops, self._loops = self._loops, []
            left = [flight for loop in loops for flight in loop.flights]
            for flight in left:
                flight.over = True
            for loop in loops:
                loop.flights = set()
        self._give_up(left, "shutdown")
        for loop in loops:
            loop.end()

    def after_fork(self) -> None:
        """In a forked child: keep the parent's loops from being collected. Their end would touch what the parent uses."""
        _the_parents.extend(loop.loop for loop in self._loops)


_the_parents: list[asyncio.AbstractEventLoop] = []
