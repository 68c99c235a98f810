"""Many items through one metric: a bounded number at a time, the results in the items' order, progress on long work.

A function that blocks is run on threads, a coroutine function in tasks of one event loop. Threads are daemons that nobody
waits for after an interruption: what hangs does not hold up the exit.
"""

import asyncio
import contextvars
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar

from spangrade._threads import unbound
from spangrade.errors import ConfigError

Item = TypeVar("Item")
Result = TypeVar("Result")
DEFAULT_CONCURRENCY: Final = 16
SHOW_AFTER_S: Final = 2.0
_LOOK_S: Final = 0.1


class Bar(Protocol):
    """What is used of tqdm's."""

    def update(self, n: int) -> object:
        """``n`` more are done."""

    def close(self) -> object:
        """That was all."""


class Progress:
    """A progress bar on standard error, or none.

    Args:
        total: how many items there are.
        name: what is written before the bar.
        wanted: True shows it at once. None: only on a terminal, when the work takes more than two seconds, and tqdm is there.
            False: never.

    Raises:
        ConfigError: it is asked for and tqdm is not installed.
    """

    def __init__(self, total: int, name: str, wanted: bool | None) -> None:
        self._bar: Bar | None = None
        self._shown = 0
        if wanted is False or (wanted is None and not _is_terminal()):
            return
        try:
            from tqdm import tqdm
        except ImportError:
            if wanted:
                raise ConfigError(
                    'progress=True needs tqdm: pip install "spangrade[experiments]", or leave progress out'
                ) from None
            return
        self._bar = tqdm(total=total, desc=name, file=sys.stderr, delay=0 if wanted else SHOW_AFTER_S)

    @property
    def look_s(self) -> float | None:
        """How often to say how far it is; None where nobody looks."""
        return None if self._bar is None else _LOOK_S

    def at(self, done: int) -> None:
        """So many are done."""
        if self._bar is not None:
            self._bar.update(done - self._shown)
            self._shown = done

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except Exception:  # noqa: BLE001 - None under pythonw, closed, or replaced by something that has no isatty
        return False


def check_concurrency(concurrency: Any) -> int:
    """A number of items at a time, 1 or more, or `ConfigError`."""
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise ConfigError(f"concurrency {concurrency!r} is not a number of items at a time, 1 or more")
    return concurrency


class OnThreads:
    """``work`` on every item, at most ``concurrency`` at a time, each in a copy of the caller's context of its own.

    Args:
        items: what to work on.
        work: gives an item's result. What it raises ends the batch.
        concurrency: how many threads.
        ended: called on one of the threads, at least once, when all is done or one has raised.
    """

    def __init__(
        self, items: Sequence[Item], work: Callable[[Item], Any], concurrency: int, ended: Callable[[], object]
    ) -> None:
        self.results: list[Any] = [None] * len(items)
        self.fault: BaseException | None = None
        self._items = items
        self._work = work
        self._context = contextvars.copy_context()
        self._ended = ended
        # Deques, and no lock for each item: threads that meet at one hand the interpreter to and fro, which costs several
        # times what a quick metric does.
        self._todo = deque(range(len(items)))
        self._done: deque[None] = deque()
        self._lock = threading.Lock()
        wanted = min(concurrency, len(items))
        self._serving = wanted
        for at in range(wanted):
            thread = threading.Thread(target=self._serve, name="spangrade-batch", daemon=True)
            try:
                unbound(thread.start)
            except RuntimeError:  # as many as there can be
                if at == 0:
                    raise
                for _ in range(at, wanted):
                    self._leave()
                break

    @property
    def done(self) -> int:
        """How many items are."""
        return len(self._done)

    def stop(self) -> None:
        """Begin no more items."""
        self._todo.clear()

    def _serve(self) -> None:
        try:
            while True:
                try:
                    at = self._todo.popleft()
                except IndexError:
                    return
                self.results[at] = self._context.copy().run(self._work, self._items[at])
                self._done.append(None)
        except BaseException as fault:  # noqa: BLE001 - an interruption; raised again where the caller waits
            self.fault = self.fault or fault
            self.stop()
            self._ended()
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._serving -= 1
            last = not self._serving
        if last:
            self._ended()


def on_threads(
    items: Sequence[Item], work: Callable[[Item], Result], concurrency: int, progress: Progress
) -> list[Result]:
    """The results of ``work`` on every item, in order; with a concurrency of 1 on the caller's own thread."""
    if concurrency == 1 or len(items) <= 1:
        found, context = [], contextvars.copy_context()
        for item in items:
            found.append(context.copy().run(work, item))
            progress.at(len(found))
        return found
    ended = threading.Event()
    batch = OnThreads(items, work, concurrency, ended.set)
    try:
        while not ended.wait(progress.look_s):
            progress.at(batch.done)
    finally:
        batch.stop()
    return _finish(batch, progress)


async def awaited_threads(
    items: Sequence[Item], work: Callable[[Item], Result], concurrency: int, progress: Progress
) -> list[Result]:
    """The same, awaited: the loop goes on meanwhile. Cancelled, no further item is begun."""
    if not items:
        return []
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        try:
            loop.call_soon_threadsafe(ended.set)
        except RuntimeError:  # the loop was closed meanwhile: nobody waits
            pass

    batch = OnThreads(items, work, concurrency, tell)
    try:
        while not ended.is_set():
            try:
                await asyncio.wait_for(ended.wait(), progress.look_s)
            except TimeoutError:
                progress.at(batch.done)
    finally:
        batch.stop()
    return _finish(batch, progress)


def _finish(batch: OnThreads, progress: Progress) -> list[Any]:
    if batch.fault is not None:
        raise batch.fault
    progress.at(batch.done)
    return batch.results


async def in_tasks(
    items: Sequence[Item], work: Callable[[Item], Coroutine[Any, Any, Result]], concurrency: int, progress: Progress
) -> list[Result]:
    """The results of the coroutines that ``work`` gives, in order, at most ``concurrency`` at a time."""
    found: list[Any] = [None] * len(items)
    todo = iter(enumerate(items))
    done = 0

    async def serve() -> None:
        nonlocal done
        for at, item in todo:
            found[at] = await asyncio.create_task(work(item))  # a task for each: its context is its own
            done += 1
            progress.at(done)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(items))):
                group.create_task(serve())
    except BaseExceptionGroup as several:  # only interruptions come through `work`, each as good as the other
        raise several.exceptions[0] from None
    return found
