"""Lanes: a few threads of ours that run evaluators, and survive those that hang.

Python cannot end a thread, so an evaluator that does not come back costs its thread: the pair ends as ``timeout``, the
thread is left behind (a daemon, which does not hold up the exit), and a stand-in takes its place. A step that is merely
slow gets a stand-in too, before its time is up, so that it never holds up the others. Each evaluator may occupy only
``limit`` threads at once; what exceeds that waits its turn without blocking other evaluators. After repeated time-outs
an evaluator is paused. Of an evaluator in parts (a tree) only the part that hangs is given up, and paused: its step goes
on with the next part on another thread. A step that gives an awaitable goes on to the event loop, and keeps its place in its turn.
"""

import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from spangrade import _guard
from spangrade._threads import unbound
from spangrade.model.evaluator import Verdict
from spangrade.model.gate import carrying
from spangrade.scoring.clock import Clock
from spangrade.scoring.event_loop import never_mind
from spangrade.scoring.loop import LoopLane
from spangrade.scoring.shield import own_thread, shield
from spangrade.scoring.slot import Slot
from spangrade.scoring.steps import MAX_LEFT_BEHIND, StepQueue, ended_how
from spangrade.scoring.turn import Step, Turn

__all__ = ["MAX_LEFT_BEHIND", "SLOW_S", "Lane", "Step", "Turn"]

SLOW_S: Final = 0.05  # a step older than this is given a stand-in
QUICK_S: Final = 0.001  # steps below this are run one after the other
SLICE_S: Final = 0.0003  # so long a thread works before others may have the interpreter


class Lane:
    """A bounded queue of steps and up to ``threads`` workers (stand-ins apart), started when first needed."""

    def __init__(
        self,
        name: str,
        threads: int,
        max_queue: int,
        clock: Clock,
        wake: Callable[[], None],
        slow_s: float = SLOW_S,
        loop: LoopLane | None = None,
    ) -> None:
        self.name = name
        self.steps = StepQueue(name, max_queue, clock)
        self._cond = self.steps.cond
        self._threads = threads
        self._clock = clock
        self._wake = wake  # the lane is no longer idle: asks its owner to call `check` from now on
        self._slow_s = slow_s  # infinite where waiting is the work (judges): no stand-ins before the time is up
        self._loop = loop
        self._slots: set[Slot] = set()
        # How many of them wait for a step, are on one, and do not come back. Counted: with judges there are hundreds of
        # slots, and to go through them at each step would cost more than what else is done for it.
        self._idle = 0
        self._on_step = 0
        self._left = 0
        self._pace_s = 1.0  # how long steps take, about

    def submit(self, steps: list[Step], *, again: bool = False) -> bool:
        """Queue all of ``steps`` or, when there is no room or the lane is closed, none of them. ``again``: they have run in
        part; for these there is room, and they are next."""
        with self._cond:
            was_idle = not self._busy()
            if not self.steps.put(steps, self._to_wake(len(steps)), again=again):
                return False
            spawn = self._missing_workers()
        started = [self._start() for _ in range(spawn)]
        if was_idle:
            self._wake()
        if (not started or any(started)) or self._serving():
            return True
        self.steps.take_back(steps)  # no thread can be started any more: what nobody will run is not accepted
        return False

    def _to_wake(self, steps: int) -> int:
        """How many waiting threads new steps are worth. To wake one costs more than a quick step, and two that run by turns
        on one interpreter are slower than one: so a thread that is awake goes on to the next. Should its step turn out to
        be slow, `check` wakes the others."""
        if self._pace_s > QUICK_S:
            return steps
        return 0 if len(self._slots) > self._left and len(self._slots) > self._idle else 1

    def ensure_worker(self) -> None:
        """Start one thread if there is none: near the interpreter's end (Python 3.12) none can be started any more."""
        if not self.steps.closed and not self._serving():
            self._start()

    def _busy(self) -> bool:
        return self.steps.queued > 0 or self._on_step > 0

    def _serving(self) -> bool:
        with self._cond:
            return any(slot.serves for slot in self._slots)

    # --- threads -----------------------------------------------------------------------------------------------------

    def _missing_workers(self) -> int:
        # Under the lock. Threads on a slow step do not count: their stand-ins do.
        wanted = min(len(self.steps.ready) - self._idle, self._threads + MAX_LEFT_BEHIND - len(self._slots))
        if wanted <= 0:
            return 0
        slow = 0
        if self._slow_s < float("inf"):
            since = self._clock.monotonic() - self._slow_s
            slow = sum(slot.step is not None and slot.started <= since for slot in self._slots)
        return max(0, min(wanted, self._threads - (len(self._slots) - self._left - slow)))

    def _start(self) -> bool:
        slot = Slot()
        thread = threading.Thread(target=self._work, args=(slot,), name=f"spangrade-{self.name}", daemon=True)
        with self._cond:
            self._slots.add(slot)
        try:
            unbound(thread.start)
        except RuntimeError:  # the interpreter is shutting down
            with self._cond:
                self._slots.discard(slot)
            return False
        slot.thread = thread
        return True

    def _work(self, slot: Slot) -> None:
        with own_thread():
            while True:
                try:
                    if not self._one(slot):
                        return
                except BaseException as fault:  # noqa: BLE001 - this thread ends when it is told to
                    _guard.swallowed("lane.work", fault)
                    self._lost(slot)

    def _one(self, slot: Slot) -> bool:
        """Run one step; False when the thread is to end."""
        step = self._next(slot)
        if step is None:
            return False
        began = time.perf_counter()
        result: Any = None
        fault: BaseException | None = None
        permit = slot.permit
        try:
            if permit is None:
                result = step.run()
            else:
                with carrying(permit):
                    result = step.run()
        except BaseException as raised:  # noqa: BLE001 - sys.exit() in a metric is that metric's error
            fault = raised
        slot.give_back()
        duration = max(0.0, self._clock.monotonic() - slot.started)
        later = fault is None and type(result) is not Verdict and self._loop is not None and inspect.isawaitable(result)
        if not self._finished(slot, step, fault, later=later):
            never_mind(result)
            return False  # given up meanwhile: a stand-in has this thread's place
        if later:
            self._to_loop(step, result)
            return True
        if step.turn.parts:
            self.steps.settle_parts(step.turn, result)
        with shield("lane.done"):
            step.done(result, fault, duration)
        ended = time.perf_counter()
        self._pace_s += (ended - began - self._pace_s) / 16
        if ended - slot.since > SLICE_S:
            time.sleep(0)  # to do it after each step would take longer than many steps
            slot.since = time.perf_counter()
        return True

    def _next(self, slot: Slot) -> Step | None:
        while True:
            with self._cond:
                while not self.steps.ready:
                    if self.steps.closed or len(self._slots) - self._left - self._on_step > self._threads:
                        self._forget(slot)
                        return None
                    self._idle += 1
                    try:
                        self._cond.wait()
                    finally:
                        self._idle -= 1
                taken = self.steps.take()
                if taken is None:
                    continue
                step, dropped, permit = taken
                if not dropped:
                    slot.begin(step, permit, self._clock.monotonic())
                    self._on_step += 1
                    return step
            if permit is not None:
                permit.release()
            with shield("lane.drop"):
                step.gave_up(dropped, 0.0)

    def _finished(self, slot: Slot, step: Step, fault: BaseException | None, *, later: bool) -> bool:
        with self._cond:
            if slot.step is not step:
                self._forget(slot)
                return False
            self._off(slot)
            turn = step.turn
            turn.running -= 1
            turn.aloft += later
            how = "lost" if later else "back" if fault is None else ended_how(fault)
            nothing_new = how != "late" and not turn.waiting and not turn.strikes
        if not nothing_new:
            self.steps.settle(turn, how)
        return True

    def _to_loop(self, step: Step, awaitable: Awaitable[Any]) -> None:
        assert self._loop is not None
        refused = self._loop.take(step, awaitable, self.steps)
        if refused:
            never_mind(awaitable)
            self.steps.landed(step.turn, "lost")
            with shield("lane.refused"):
                step.gave_up(refused, 0.0)

    def _forget(self, slot: Slot) -> None:
        # Under the lock: the slot's thread has ended, or is about to.
        self._slots.discard(slot)
        if slot.left_behind is not None:
            self.steps.came_back(slot.left_behind)
            slot.left_behind = None
            self._left -= 1

    def _off(self, slot: Slot) -> Step | None:
        """Take the slot's step away, if it has one. Under the lock."""
        step, slot.step = slot.step, None
        self._on_step -= step is not None
        return step

    def _lost(self, slot: Slot) -> None:
        """The thread fell out of its step by an exception that came from outside, or died."""
        with self._cond:
            step = self._off(slot)
            if step is not None:
                step.turn.running -= 1
        if step is not None:
            slot.give_back()
            self.steps.settle(step.turn, "lost")
            with shield("lane.lost"):
                step.gave_up("interrupted", 0.0)

    # --- time ----------------------------------------------------------------------------------------------------------

    def check(self, now: float) -> float | None:
        """Give up steps whose time is over, start stand-ins for slow ones.

        Returns when to look again, None while the lane is idle. A queued step may start at any moment, so a busy lane
        is looked at every `SLOW_S`.
        """
        late: list[tuple[Slot, Step, float]] = []
        with self._cond:
            dead = [slot for slot in self._slots if not slot.lives]
            for slot in self._slots:
                step, hangs = slot.step, slot.overdue(now)
                if step is not None and hangs is not None:
                    self._leave_behind(slot, step, hangs)
                    late.append((slot, step, now - slot.started))
        for slot, step, duration in late:
            slot.give_back()  # should its call still go on: places that nobody gives back would wear the limit out
            self.steps.settle(step.turn, "late")
            with shield("lane.give_up"):
                step.gave_up("timeout", duration)
        for slot in dead:
            self._lost(slot)
        self.steps.look_at_gates()  # an endpoint's pause is over without anybody saying so
        with self._cond:
            for slot in dead:
                self._forget(slot)
            spawn = self._missing_workers()
            busy = self._busy()
            if self.steps.ready and not self._goes_on(now):
                self._cond.notify(len(self.steps.ready))
        for _ in range(spawn):
            self._start()
        return now + SLOW_S if busy else None

    def _goes_on(self, now: float) -> bool:
        # Under the lock: a thread has begun a step a moment ago, so it is likely to come to what is ready.
        return any(slot.serves and now - slot.started < QUICK_S for slot in self._slots)

    def _leave_behind(self, slot: Slot, step: Step, hangs: Turn) -> None:
        self._off(slot)
        slot.left_behind = hangs
        self._left += 1
        self.steps.leave_behind(step.turn, hangs)

    def close(self) -> None:
        """Accept nothing more; what is queued is given up as ``shutdown``, what runs may end (nobody waits for it)."""
        with self._cond:
            left, permits = self.steps.close()
            for slot in self._slots:
                if slot.step is not None:
                    left.append(slot.step)
                    permits += [slot.permit] if slot.permit is not None else []
                    self._leave_behind(slot, slot.step, slot.step.turn)
        for permit in permits:
            permit.release()
        for step in left:
            with shield("lane.close"):
                step.gave_up("shutdown", 0.0)
