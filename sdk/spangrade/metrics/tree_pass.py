"""A tree on one sample: every leaf runs, whatever the others do; then the aggregates."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from spangrade.metrics.leaf import LeafRun
from spangrade.metrics.tree_plan import Leaf, Plan
from spangrade.metrics.tree_run import Left, TreeRun, merged

T = TypeVar("T")


class TreePass(Generic[T]):
    """One `Sample` (or text) on its way through a tree.

    The plain leaves run one after the other on the thread of `run`, then the async ones beside each other, each within its
    time. Python cannot end a thread: where a leaf does not come back, whoever watches the time leaves it, and runs what is
    left on another thread. A part (a leaf by its place in the plan; behind the last the aggregates) ends once: by its
    outcome, or because it was left. That is decided by ``dict.setdefault``, which takes no lock.

    Args:
        read: what is made of what the tree gave.
        named: a result key → its score's name; default the key itself.

    Attributes:
        at: the part that runs; past the aggregates while async leaves are awaited.
    """

    __slots__ = ("_given", "_named", "_outcomes", "_plan", "_read", "_waiting", "at")

    def __init__(self, plan: Plan, given: Any, read: Callable[[TreeRun], T], named: Callable[[str], str] = str) -> None:
        self.at = 0
        self._plan = plan
        self._given = given
        self._read = read
        self._named = named
        self._outcomes: dict[int, Any] = {}
        self._waiting: list[int] = []  # leaves that gave an awaitable: their outcome until it is settled

    def run(self) -> Any:
        """Run what has not ended, on this thread. Returns what ``read`` does, or, where a leaf gave an awaitable, an awaitable of
        it; None where the part that was at work has been left meanwhile, and another thread has taken over."""
        outcomes = self._outcomes
        for i, leaf in enumerate(self._plan.leaves):
            if i in outcomes:
                continue
            self.at = i
            outcome = _attempt(leaf, self._given)
            if outcomes.setdefault(i, outcome) is not outcome:
                _never_mind(outcome)
                return None
            if type(outcome) is not LeafRun and inspect.isawaitable(outcome):
                self._waiting.append(i)
        return self._later() if self._waiting else self._end()

    def leave(self, part: int, kind: str, why: str) -> bool:
        """Wait for a part no longer: its scores are failures of that ``kind``. False when it has ended."""
        left = Left(kind, why)
        return self._outcomes.setdefault(part, left) is left

    def leave_awaited(self, kind: str, why: str) -> None:
        """Wait no longer for the async leaves that are awaited, if they are by now."""
        if self.at > len(self._plan.leaves):
            waiting, self._waiting = self._waiting, []
            self._outcomes.update((i, Left(kind, why)) for i in waiting)

    def _end(self) -> T | None:
        outcomes, part = self._outcomes, len(self._plan.leaves)
        self.at = part
        found = outcomes.get(part)
        if found is None:
            made = merged(self._plan, outcomes, self._named, None)
            found = outcomes.setdefault(part, made)
            if found is not made and isinstance(found, Left):
                return None
        elif isinstance(found, Left):
            found = merged(self._plan, outcomes, self._named, found)
        return self._read(found)

    async def _later(self) -> T | None:
        self.at = len(self._plan.leaves) + 1
        waiting = self._waiting
        tasks = [asyncio.ensure_future(_settled(self._plan.leaves[i], self._outcomes[i])) for i in waiting]
        try:
            found = await asyncio.gather(*tasks)
        finally:  # given up from outside: none of them runs on
            for task in tasks:
                task.cancel()
        if self._waiting is not waiting:  # left
            return None
        self._outcomes.update(zip(waiting, found, strict=True))
        self._waiting = []
        return self._end()


def _attempt(leaf: Leaf, given: Any) -> Any:
    """What the leaf gave: a `LeafRun`, an awaitable of one, or what it raised."""
    try:
        return leaf.run(given)
    except KeyboardInterrupt:  # a person's, who evaluates by hand
        raise
    except BaseException as fault:  # noqa: BLE001 - a metric's fault is a failure of its own; so is sys.exit() in it
        return fault


async def _settled(leaf: Leaf, outcome: Awaitable[LeafRun]) -> Any:
    limit = leaf.timeout
    try:
        async with asyncio.timeout(limit) as timer:
            return await outcome
    except TimeoutError as fault:
        return Left("timeout", f"gave no result within {limit:g} s") if timer.expired() else fault
    except asyncio.CancelledError as fault:  # ours, or that of something which the metric itself awaited
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return fault
    except (Exception, SystemExit) as fault:  # noqa: BLE001
        return fault


def _never_mind(outcome: Any) -> None:
    if inspect.iscoroutine(outcome):
        outcome.close()  # or Python says on standard error that nobody awaited it
