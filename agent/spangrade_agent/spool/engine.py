"""The spool on disk: LMDB, whose commits are atomic and durable, in groups that share one flush of the disk.

One thread commits: all that waits goes in one transaction, up to a bound, since a flush of some megabytes takes longer than
several small ones (facts/perf.md, part 2, section 4). LMDB was chosen among kept engines for large records: SQLite takes
seven times its CPU for a request of 100 spans.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from spangrade import _guard
from spangrade._log import once
from spangrade_agent.spool.files import AILING, KEY, RECORD_COST, locked, opened, said
from spangrade_agent.spool.records import TABLES, Put, SpoolFault, SpoolFull, Step, Table

GROUP_BYTES: Final = 1024 * 1024
RETRY_S: Final = 5.0

Done = Callable[[bool], None]


@dataclass(slots=True, eq=False)
class _Work:
    steps: Sequence[Step]
    done: Done | None = None
    finished: threading.Event = field(default_factory=threading.Event)
    fault: SpoolFault | None = None
    size: int = 0


class Spool:
    """Thread-safe. One process has it at a time.

    Args:
        path: a folder; made where it is not there. A corrupt one is moved aside (``<path>.corrupt-<seconds>``), and said.
        max_bytes: of records; `full` from there on.
        fsync: whether a commit waits for the disk. Without, what the kernel has not written yet is lost with the machine's
            power, not with the process.

    Raises:
        ConfigError: another process has it, it is of a newer release, or there can be no such folder.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int, *, fsync: bool = True) -> None:
        self.path = Path(path)
        self.max_bytes = max_bytes
        self._fsync = fsync
        self._lock_file: int | None = None
        self._env: Any = None  # None: the disk did not let it be opened, so far
        self._tables: dict[Table, Any] = {}
        self._sizes = dict.fromkeys(TABLES, 0)
        self._next = 1
        self._lock = threading.Condition()
        self._waiting: deque[_Work] = deque()
        self._closed = False
        self.broken: str | None = None  # why the last commit failed; None again as soon as one succeeds
        self._retry_at = 0.0
        self._try_to_open()
        self._thread = threading.Thread(target=self._run, name="spangrade-spool", daemon=True)
        self._thread.start()

    # --- what is there -----------------------------------------------------------------------------------------------

    def new_key(self) -> int:
        """Keys grow: their order is that of arrival, over restarts too."""
        with self._lock:
            self._next += 1
            return self._next - 1

    def size_of(self, table: Table) -> int:
        """Bytes of a table's records, written or on their way."""
        return self._sizes[table]

    @property
    def size(self) -> int:
        """Bytes of all records."""
        return sum(self._sizes.values())

    def full(self) -> bool:
        """Whether `write` would refuse."""
        return self.size >= self.max_bytes

    def items(self, table: Table) -> Iterator[tuple[int, bytes]]:
        """All of a table, oldest first."""
        yield from self._raw(table)

    def _raw(self, table: Table) -> Iterator[tuple[int, bytes]]:
        if self._env is None:
            return
        with self._env.begin(db=self._tables[table]) as txn:
            for key, data in txn.cursor():
                yield KEY.unpack(key)[0], data

    def _try_to_open(self) -> None:
        """Open it, or say in `broken` how the disk ails: an agent that ended for that would only be started again."""
        try:
            self._lock_file = locked(self.path)
            found = opened(self.path, self.max_bytes, fsync=self._fsync)
            with self._lock:
                for table, size in found.sizes.items():
                    self._sizes[table] += size
                self._next = max(self._next, found.last_key + 1)
            self._env, self._tables = found.env, found.tables
        except BaseException as fault:
            if self._lock_file is not None:
                os.close(self._lock_file)
                self._lock_file = None
            if not (isinstance(fault, OSError) and fault.errno in AILING):
                raise
            with self._lock:  # keys that are given out meanwhile must be none of those that are there
                self._next = max(self._next, time.time_ns())
            self.broken = said(fault)
            self._retry_at = time.monotonic() + RETRY_S
            once(
                "spool:open",
                "the disk does not let the spool be opened; spans go on unscored until it does",
                fault=self.broken,
            )

    def read(self, table: Table, key: int) -> bytes | None:
        """One record; None: there is none.

        Raises:
            SpoolFault: it cannot be read.
        """
        try:
            with self._env.begin(db=self._tables[table]) as txn:
                found: bytes | None = txn.get(KEY.pack(key))
                return found
        except Exception as fault:
            raise SpoolFault(f"the spool at {self.path} cannot be read: {said(fault)}") from fault

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self, steps: Sequence[Step]) -> None:
        """Do all of ``steps`` or none; comes back when they are durable.

        Raises:
            SpoolFull: the bound is reached.
            SpoolFault: they could not be written.
        """
        if self.full():
            raise SpoolFull(f"the spool holds {self.size:,} bytes, as many as it may (spool.max_bytes)")
        work = _Work(steps)
        self._enqueue(work)
        work.finished.wait()
        if work.fault is not None:
            raise work.fault

    def write_later(self, steps: Sequence[Step], done: Done | None = None) -> None:
        """The same without waiting, and past the bound: what was acknowledged is the agent's. ``done(durable)`` is called on
        the spool's thread."""
        self._enqueue(_Work(steps, done))

    def _enqueue(self, work: _Work) -> None:
        work.size = sum(len(step.data) for step in work.steps if isinstance(step, Put))
        with self._lock:
            if self._closed:
                work.fault = SpoolFault("the spool is closed")
            else:
                self._account(work.steps, 1)
                self._waiting.append(work)
                self._lock.notify()
        if work.fault is not None:
            self._finish(work)

    def _account(self, steps: Sequence[Step], sign: int) -> None:
        for step in steps:
            if isinstance(step, Put):
                grown = len(step.data) + RECORD_COST - (step.was + RECORD_COST if step.was else 0)
            else:
                grown = -(step.was + RECORD_COST)
            self._sizes[step.table] += sign * grown

    def flush(self) -> None:
        """Wait until what was asked before is written, and its ``done`` has been called."""
        work = _Work(())
        self._enqueue(work)
        work.finished.wait()

    def close(self, timeout_s: float = 10.0) -> bool:
        """Write what waits, then let go of the files. False: not all was written in time; it is lost to the next start."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        with _guard.guard("spool.close"):
            if self._env is not None:
                if not self._fsync:
                    self._env.sync(True)
                self._env.close()
        if self._lock_file is not None:
            os.close(self._lock_file)
        return True

    # --- the committing thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        while group := self._group():
            fault = self._commit(group)
            if fault is not None and len(group) > 1:  # one that is too much must not cost the others theirs
                for work in group:
                    work.fault = self._commit([work])
            else:
                for work in group:
                    work.fault = fault
            for work in group:
                self._finish(work)

    def _group(self) -> list[_Work]:
        with self._lock:
            while not self._waiting:
                if self._closed:
                    return []
                self._lock.wait()
            group = [self._waiting.popleft()]
            size = group[0].size
            while self._waiting and size + self._waiting[0].size <= GROUP_BYTES:
                group.append(self._waiting.popleft())
                size += group[-1].size
            return group

    def _commit(self, group: Sequence[_Work]) -> SpoolFault | None:
        try:
            if self._env is None and time.monotonic() >= self._retry_at:
                self._try_to_open()
            if self._env is None:
                return SpoolFault(f"the spool at {self.path} cannot be written: {self.broken}")
            with self._env.begin(write=True) as txn:
                for work in group:
                    for step in work.steps:
                        key, table = KEY.pack(step.key), self._tables[step.table]
                        if isinstance(step, Put):
                            txn.put(key, step.data, db=table)
                        else:
                            txn.delete(key, db=table)
        except Exception as fault:  # noqa: BLE001 - whatever the engine raises, the agent goes on
            self.broken = said(fault)
            once("spool:fault", "the spool cannot be written; nothing is scored until it can", fault=self.broken)
            return SpoolFault(f"the spool at {self.path} cannot be written: {self.broken}")
        self.broken = None
        return None

    def _finish(self, work: _Work) -> None:
        if work.fault is not None and not self._closed:
            with self._lock:
                self._account(work.steps, -1)
        work.finished.set()
        if work.done is not None:
            with _guard.guard("spool.done"):
                work.done(work.fault is None)
