"""Lanes: a few threads of ours that run evaluators, and survive those that hang.

Python cannot end a thread, so an evaluator that does not come back costs its thread: the pair ends as ``timeout``, the
thread is left behind (a daemon, which does not hold up the exit), and a stand-in takes its place. A step that is merely
slow gets a stand-in too, before its time is up, so that it never holds up the others. Each evaluator may occupy only
``limit`` threads at once; what exceeds that waits its turn without blocking other evaluators. After repeated time-outs
an evaluator is paused.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from spangrade import _guard, _suppress
from spangrade._log import once
from spangrade.scoring.clock import Clock

SLOW_S: Final = 0.05  # a step older than this is given a stand-in
STRIKES: Final = 3  # time-outs in a row before an evaluator is paused
PAUSE_S: Final = 60.0
MAX_PAUSE_S: Final = 3600.0
MAX_LEFT_BEHIND: Final = 16  # threads that never came back; at that number hanging evaluators stay paused


class Step(Protocol):
    """One evaluator on one sample. `run` may do anything; `done` gets its result or what it raised, once."""

    @property
    def turn(self) -> "Turn": ...

    def run(self) -> Any: ...

    def done(self, result: Any, fault: BaseException | None, duration_s: float) -> None: ...

    def gave_up(self, why: str, duration_s: float) -> None: ...


@dataclass
class Turn:
    """One evaluator's place in a lane: its time limit, and how many of its steps run now."""

    name: str
    timeout_s: float
    limit: int
    running: int = 0
    waiting: deque[Step] = field(default_factory=deque)
    strikes: int = 0
    paused_until: float = 0.0
    pause_s: float = PAUSE_S


class _Slot:
    """One thread, and the step that it is on. ``step`` is taken away when the step is given up."""

    __slots__ = ("left_behind", "started", "step")

    def __init__(self) -> None:
        self.step: Step | None = None
        self.started = 0.0
        self.left_behind = False


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
    ) -> None:
        self.name = name
        self._threads = threads
        self._max_queue = max_queue
        self._clock = clock
        self._wake = wake  # the lane is no longer idle: asks its owner to call `check` from now on
        self._slow_s = slow_s  # infinite where waiting is the work (judges): no stand-ins before the time is up
        self._cond = threading.Condition()
        self._ready: deque[Step] = deque()
        self._slots: set[_Slot] = set()
        self._queued = 0  # ready and waiting steps
        self._idle = 0
        self._left_behind = 0
        self._closed = False

    def submit(self, steps: list[Step]) -> bool:
        """Queue all of ``steps`` or, when there is no room or the lane is closed, none of them."""
        with self._cond:
            if self._closed or self._queued + len(steps) > self._max_queue:
                return False
            was_idle = not self._busy()
            self._ready.extend(steps)
            self._queued += len(steps)
            spawn = self._missing_workers()
            self._cond.notify(len(steps))
        started = [self._start() for _ in range(spawn)]
        if was_idle:
            self._wake()
        if (not started or any(started)) or self._alive():
            return True
        return self._take_back(steps)

    def _busy(self) -> bool:
        return bool(self._queued) or any(slot.step is not None for slot in self._slots)

    def ensure_worker(self) -> None:
        """Start one thread if there is none: near the interpreter's end (Python 3.12) none can be started any more."""
        with self._cond:
            needed = not self._closed and not any(not slot.left_behind for slot in self._slots)
        if needed:
            self._start()

    def _take_back(self, steps: list[Step]) -> bool:
        # No thread can be started (the interpreter is closing): what nobody will run is not accepted.
        with self._cond:
            for step in steps:
                if step in self._ready:
                    self._ready.remove(step)
                    self._queued -= 1
        return False

    def _alive(self) -> bool:
        with self._cond:
            return any(not slot.left_behind for slot in self._slots)

    def _missing_workers(self) -> int:
        # Under the lock. Threads on a slow step do not count: their stand-ins do.
        now = self._clock.monotonic()
        useful = sum(1 for s in self._slots if not s.left_behind and (s.step is None or now - s.started < self._slow_s))
        room = self._threads + MAX_LEFT_BEHIND - len(self._slots)
        return max(0, min(len(self._ready) - self._idle, self._threads - useful, room))

    def _start(self) -> bool:
        slot = _Slot()
        thread = threading.Thread(target=self._work, args=(slot,), name=f"spangrade-{self.name}", daemon=True)
        with self._cond:
            self._slots.add(slot)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down
            with self._cond:
                self._slots.discard(slot)
            return False
        return True

    def _work(self, slot: _Slot) -> None:
        with _suppress.evaluator_scope():
            while (step := self._next(slot)) is not None:
                result, fault = None, None
                try:
                    result = step.run()
                except BaseException as raised:  # noqa: BLE001 - sys.exit() in a metric is that metric's error
                    fault = raised
                duration = max(0.0, self._clock.monotonic() - slot.started)
                if not self._finished(slot, step):
                    return  # given up meanwhile: a stand-in has this thread's place
                with _guard.guard("lane.done"):
                    step.done(result, fault, duration)

    def _next(self, slot: _Slot) -> Step | None:
        while True:
            dropped: tuple[Step, str] | None = None
            with self._cond:
                while not self._ready:
                    useful = sum(1 for s in self._slots if not s.left_behind and s.step is None)
                    if self._closed or useful > self._threads:
                        self._slots.discard(slot)
                        return None
                    self._idle += 1
                    self._cond.wait()
                    self._idle -= 1
                step = self._ready.popleft()
                turn = step.turn
                if self._closed:
                    dropped = (step, "shutdown")
                elif turn.paused_until > self._clock.monotonic():
                    dropped = (step, "paused")
                elif turn.running >= turn.limit:
                    turn.waiting.append(step)
                    continue
                self._queued -= 1
                if dropped is None:
                    turn.running += 1
                    slot.step, slot.started = step, self._clock.monotonic()
            if dropped is None:
                return step
            with _guard.guard("lane.drop"):
                dropped[0].gave_up(dropped[1], 0.0)

    def _finished(self, slot: _Slot, step: Step) -> bool:
        with self._cond:
            if slot.step is not step:
                self._slots.discard(slot)
                self._left_behind -= 1
                return False
            slot.step = None
            self._free(step.turn)
            step.turn.strikes = 0
            step.turn.pause_s = PAUSE_S
            return True

    def _free(self, turn: Turn) -> None:
        # Under the lock: a thread of this evaluator came free, so one that waits may try.
        turn.running -= 1
        if turn.waiting:
            self._ready.appendleft(turn.waiting.popleft())
            self._cond.notify()

    def check(self, now: float) -> float | None:
        """Give up steps whose time is over, start stand-ins for slow ones.

        Returns when to look again, None while the lane is idle. A queued step may start at any moment, so a busy lane
        is looked at every `SLOW_S`.
        """
        given_up: list[tuple[Step, str, float]] = []
        with self._cond:
            for slot in self._slots:
                step = slot.step
                if step is None:
                    continue
                end = slot.started + step.turn.timeout_s
                if now >= end:
                    slot.step, slot.left_behind = None, True
                    self._left_behind += 1
                    self._strike(step.turn, now)
                    given_up.append((step, "timeout", now - slot.started))
                    given_up.extend((waiting, "paused", 0.0) for waiting in self._paused_waiters(step.turn, now))
                    self._free(step.turn)
            spawn = self._missing_workers()
            busy = self._busy()
        for _ in range(spawn):
            self._start()
        for step, why, duration in given_up:
            with _guard.guard("lane.give_up"):
                step.gave_up(why, duration)
        return now + SLOW_S if busy else None

    def _strike(self, turn: Turn, now: float) -> None:
        turn.strikes += 1
        if turn.strikes >= STRIKES or self._left_behind >= MAX_LEFT_BEHIND:
            turn.paused_until = now + (float("inf") if self._left_behind >= MAX_LEFT_BEHIND else turn.pause_s)
            once(
                f"paused:{self.name}:{turn.name}",
                "an evaluator timed out repeatedly and is paused; its pairs are counted as dropped(paused)",
                evaluator=turn.name,
                timeout_s=turn.timeout_s,
                pause_s=turn.pause_s,
            )
            turn.pause_s = min(turn.pause_s * 2, MAX_PAUSE_S)
            turn.strikes = STRIKES - 1  # one more time-out after the pause is enough

    def _paused_waiters(self, turn: Turn, now: float) -> list[Step]:
        if turn.paused_until <= now:
            return []
        waiters = list(turn.waiting)
        turn.waiting.clear()
        self._queued -= len(waiters)
        return waiters

    def close(self) -> None:
        """Accept nothing more; what is queued is given up as ``shutdown``, what runs may end (nobody waits for it)."""
        with self._cond:
            self._closed = True
            left = list(self._ready)
            self._ready.clear()
            turns = {id(step.turn): step.turn for step in left}
            for slot in self._slots:
                if slot.step is not None:
                    turns[id(slot.step.turn)] = slot.step.turn
            for turn in turns.values():
                left.extend(turn.waiting)
                turn.waiting.clear()
            running = [(slot, slot.step) for slot in self._slots if slot.step is not None]
            for slot, step in running:
                slot.step, slot.left_behind = None, True
                step.turn.running -= 1
                self._left_behind += 1
                left.append(step)
            self._queued = 0
            self._cond.notify_all()
        for step in left:
            with _guard.guard("lane.close"):
                step.gave_up("shutdown", 0.0)
