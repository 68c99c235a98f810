"""One asyncio event loop on a thread of ours, which nothing that runs on it ends and which prints nothing."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from spangrade import _guard
from spangrade._threads import unbound
from spangrade.scoring.shared_thread import new_loop
from spangrade.scoring.shield import own_thread, shield
from spangrade.scoring.steps import StepQueue
from spangrade.scoring.turn import Step

END_S: Final = 1.0  # for cancelled tasks to end


@dataclass(eq=False, slots=True)
class Flight:
    """A step on a loop. Whoever sets ``over`` ends it. The time limit counts from when it began, not from when it came."""

    step: Step
    awaitable: Awaitable[Any]
    lane: StepQueue
    loop: "EventLoop | None"  # None between two loops
    came: float
    deadline: float
    task: "asyncio.Task[None] | None" = None
    begun: bool = False  # its code runs, or has run, on the loop; until then it can go to another
    over: bool = False


class EventLoop:
    """One loop, its thread, and the steps on it.

    ``asked``: since when it owes an answer. ``left``: it was left behind and gets no more steps; until it answers, it hangs.
    """

    def __init__(self) -> None:
        self.loop, self._guest = new_loop()
        self.loop.set_exception_handler(_quiet)
        self.flights: set[Flight] = set()
        self.suspects: list[Flight] = []  # timed out while it was not known whether the loop answers
        self.asked: float | None = None
        self.left = False
        self._thread = threading.Thread(target=self._serve, name="spangrade-loop", daemon=True)
        self._ending = False

    def start(self) -> bool:
        """False when no thread can be started any more."""
        try:
            unbound(self._thread.start)
        except RuntimeError:
            self.loop.close()
            return False
        return True

    @property
    def lives(self) -> bool:
        """Whether its thread does."""
        return self._thread.is_alive()

    def call(self, what: Callable[..., object], *args: Any) -> bool:
        """Run ``what`` on the loop's thread; False when the loop is closed."""
        try:
            self.loop.call_soon_threadsafe(what, *args)
        except RuntimeError:
            return False
        return True

    @property
    def hangs(self) -> bool:
        """Whether it was left behind and has not answered since."""
        return self.left and self.asked is not None

    def culprit(self) -> Flight | None:
        """Whose code is on the loop now; None where that cannot be told (in a task that the metric has started)."""
        task = asyncio.current_task(self.loop)
        if task is None:
            return None
        return next((flight for flight in (*self.suspects, *self.flights) if flight.task is task), None)

    def end(self) -> None:
        """Cancel what is left and end the thread, as soon as the loop answers."""
        self.call(self._end)

    def _end(self) -> None:
        self._ending = True
        self.loop.stop()

    def _serve(self) -> None:
        with own_thread():
            asyncio.set_event_loop(self.loop)
            if self._guest is not None:
                self._guest.arrive()
            while not self._ending:
                try:
                    self.loop.run_forever()
                except BaseException as fault:  # noqa: BLE001 - sys.exit() in a task that a metric has started
                    _guard.swallowed("loop.run", fault)
            with shield("loop.end"):
                self.loop.run_until_complete(self._cancel_all())
            with shield("loop.close"):
                self.loop.close()
            if self._guest is not None:
                self._guest.leave()

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        tasks.add(asyncio.create_task(self.loop.shutdown_asyncgens()))
        await asyncio.wait(tasks, timeout=END_S)


def _quiet(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """Instead of asyncio's own words on standard error: what a metric leaves undone on the loop is its own affair."""


def never_mind(awaitable: Any) -> None:
    """An awaitable that nobody will await; a coroutine would say so on standard error."""
    if inspect.iscoroutine(awaitable):
        with shield("loop.never_mind"):
            awaitable.close()
