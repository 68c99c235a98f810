"""A task called on one item: on the event loop if it is async, else on a thread of its own, within its time.

A plain function that does not come back in time is left behind on its daemon thread, which keeps no process from ending.
"""

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

from spangrade._values import bounded
from spangrade.experiments.item import Item
from spangrade.experiments.records import TaskError
from spangrade.experiments.task import Task, awaited, is_later, joined
from spangrade.experiments.tracing import TracedRun, attached

_MAX_MESSAGE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Came:
    """What a task came to: its output, or why there is none."""

    output: Any = None
    error: TaskError | None = None


async def output_of(task: Task, item: Item, run: TracedRun, timeout: float | None) -> Came:  # noqa: ASYNC109 - see `asyncio.wait`
    """Call the task; within ``timeout`` seconds, if there is a limit."""
    work: Coroutine[Any, Any, Came] = _on_loop(task, item, run) if task.is_async else _on_thread(task, item, run)
    running = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({running}, timeout=timeout)
    finally:
        running.cancel()  # where it is not done: not waited for, since what swallows a cancellation never ends
    if not done:
        return Came(error=TaskError("timeout", f"gave no output within {timeout:g} s"))
    if running.cancelled():
        return Came(error=TaskError("CancelledError", "the task cancelled itself"))
    return running.result()


async def _on_loop(task: Task, item: Item, run: TracedRun) -> Came:
    try:
        with attached(run.context):
            output = await awaited(task.call(item))
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - whatever a task raises is that run's error
        return Came(error=error_of(fault))
    finally:
        run.ended()
    return Came(output)


async def _on_thread(task: Task, item: Item, run: TracedRun) -> Came:
    loop = asyncio.get_running_loop()
    came: asyncio.Future[Any] = loop.create_future()

    def tell(what: Any) -> None:
        if not came.done():
            came.set_result(what)

    def work() -> None:
        what: Any
        try:
            with attached(run.context):
                returned = task.call(item)
                what = returned if is_later(returned) else Came(joined(returned))
        except BaseException as fault:  # noqa: BLE001 - this thread is the task's alone
            what = Came(error=error_of(fault))
        if isinstance(what, Came):
            run.ended()
        try:
            loop.call_soon_threadsafe(tell, what)
        except RuntimeError:  # the run was stopped, and its loop is closed
            pass

    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(work,), name=f"spangrade-task-{item['item_id']}", daemon=True
    )
    try:
        thread.start()
    except RuntimeError as fault:  # the interpreter, or the system, has no more threads
        return Came(error=error_of(fault))
    what = await came
    return what if isinstance(what, Came) else await _later(what, run)


async def _later(returned: Any, run: TracedRun) -> Came:
    """A plain function gave something that takes the event loop."""
    try:
        with attached(run.context):
            return Came(await awaited(returned))
    except (Exception, SystemExit) as fault:  # noqa: BLE001
        return Came(error=error_of(fault))
    finally:
        run.ended()


def error_of(fault: BaseException) -> TaskError:
    """What is recorded of an exception."""
    try:
        message = str(fault)
    except Exception:  # noqa: BLE001 - str() of an exception is the application's code
        message = "(message could not be read)"
    return TaskError(type(fault).__name__, bounded(message, _MAX_MESSAGE))
