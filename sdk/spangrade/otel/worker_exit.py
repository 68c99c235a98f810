"""Worker processes that run no exit hook: multiprocessing's, billiard's and Celery's children end with `os._exit`, and
uvicorn's server raises the SIGTERM that stopped it again, with the handler of before, which is none.

Each says before when a worker ends: multiprocessing, and billiard with it, by the finalizers of ``multiprocessing.util``;
Celery, whose pool runs none, by a signal; uvicorn by its server's ``shutdown``. Nothing is imported here: who uses one of
them has imported it. `arm` is called by `configure` and at the first use in each process.
"""

import asyncio
import os
import signal
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

from spangrade import _guard

_POOLS: Final = ("multiprocessing.process", "billiard.process")


class WorkerExit:
    """``work`` when a worker process ends. To be kept alive: multiprocessing knows it weakly."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._told: set[str] = set()  # a forked child inherits this, and what it stands for
        self._finalized = 0  # the process that runs the work at its end
        self._servers: weakref.WeakSet[Any] = weakref.WeakSet()

    def arm(self) -> None:
        """Ask whatever of them is loaded to say when this process, or a child of it, ends."""
        with _guard.guard("worker_exit.multiprocessing"):
            self._multiprocessing()
        with _guard.guard("worker_exit.celery"):
            self._celery()
        with _guard.guard("worker_exit.uvicorn"):
            self._uvicorn()

    def _multiprocessing(self) -> None:
        util = sys.modules.get("multiprocessing.util")
        if util is None:
            return
        if "multiprocessing" not in self._told:
            self._told.add("multiprocessing")
            util.register_after_fork(self, WorkerExit._begins)
        if any(_is_worker(sys.modules.get(pool)) for pool in _POOLS):
            self._finalize()

    def _begins(self) -> None:
        """A worker begins, forked or spawned: whatever finalizers were set before have just been dropped."""
        with _guard.guard("worker_exit.begins"):
            self._finalized = 0
            self._finalize()

    def _finalize(self) -> None:
        # The worker's own pools and managers end before (a higher priority), the queues that it writes to after.
        if self._finalized != os.getpid():
            self._finalized = os.getpid()
            util: Any = sys.modules["multiprocessing.util"]
            util.Finalize(None, self._work, exitpriority=0)

    def _celery(self) -> None:
        signals: Any = sys.modules.get("celery.signals")
        if signals is not None and "celery" not in self._told:
            self._told.add("celery")
            signals.worker_process_shutdown.connect(self._celery_ends, weak=False, dispatch_uid="spangrade")

    def _celery_ends(self, **_: object) -> None:
        self._work()

    def _uvicorn(self) -> None:
        """Its server handles SIGTERM by a method of its own; that is how the one that serves here is found."""
        module: Any = sys.modules.get("uvicorn.server")
        server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
        if module is None or not isinstance(server, module.Server) or server in self._servers:
            return
        self._servers.add(server)
        shutdown = server.shutdown

        async def shutdown_and_work(*args: Any, **kwargs: Any) -> None:
            await shutdown(*args, **kwargs)
            with _guard.guard("worker_exit.uvicorn_ends"):
                await asyncio.to_thread(self._work)

        server.shutdown = shutdown_and_work


def _is_worker(process: Any) -> bool:
    current = getattr(process, "current_process", None)
    return current is not None and getattr(current(), "_parent_pid", None) is not None
