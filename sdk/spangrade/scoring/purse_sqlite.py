"""Judges' money in SQLite: shared by all processes of a host that name the same file."""

import os
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from spangrade._threads import ProcessLock
from spangrade.scoring.purse import Ceiling, Held

FORMAT: Final = 1
BUSY_S: Final = 5.0
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS spent (key TEXT, kind TEXT, start INTEGER, amount INTEGER, PRIMARY KEY (key, kind, start));
CREATE TABLE IF NOT EXISTS reserved (id TEXT, key TEXT, kind TEXT, start INTEGER, amount INTEGER, expires REAL);
CREATE INDEX IF NOT EXISTS reserved_key ON reserved (key, kind, start);
CREATE INDEX IF NOT EXISTS reserved_id ON reserved (id);
"""


class PurseFormatError(Exception):
    """The file is of another release."""


class SqlitePurses:
    """A `PurseStore` in a file, which is made with its folder, for its owner's eyes only, where it is missing.

    Every change is one transaction that takes the write lock first, so two processes cannot both see the last dollar.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = ProcessLock()
        self._connection: tuple[int, sqlite3.Connection] | None = None  # and the process that it is of

    def reserve(self, key: str, ceilings: Sequence[Ceiling], amount: int, now: float, expires: float) -> str | None:
        """See `PurseStore`."""
        with self._changing() as db:
            db.execute("DELETE FROM reserved WHERE expires <= ?", (now,))
            for ceiling in ceilings:
                one = _held(db, key, ceiling, now)
                if one.spent + one.reserved + amount > ceiling.limit:
                    return None
            found = uuid.uuid4().hex
            db.executemany(
                "INSERT INTO reserved VALUES (?, ?, ?, ?, ?, ?)",
                [(found, key, ceiling.kind, ceiling.start, amount, expires) for ceiling in ceilings],
            )
            return found

    def settle(self, key: str, ceilings: Sequence[Ceiling], reservation: str, spent: int, now: float) -> None:
        """See `PurseStore`."""
        with self._changing() as db:
            db.execute("DELETE FROM reserved WHERE id = ?", (reservation,))
            db.executemany(
                "INSERT INTO spent VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET amount = amount + excluded.amount",
                [(key, ceiling.kind, ceiling.start, spent) for ceiling in ceilings],
            )
            db.execute("DELETE FROM spent WHERE start < ?", (now - 3 * 86_400,))

    def held(self, key: str, ceilings: Sequence[Ceiling], now: float) -> list[Held]:
        """See `PurseStore`."""
        with self._lock:  # and not the file's: readers do not stand in the way of who spends
            db = self._open()
            return [_held(db, key, ceiling, now) for ceiling in ceilings]

    def close(self) -> None:
        """Close this process's connection; the next use opens another."""
        with self._lock:
            if self._connection is not None and self._connection[0] == os.getpid():
                self._connection[1].close()
            self._connection = None

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            db = self._open()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        pid = os.getpid()
        if self._connection is not None and self._connection[0] == pid:
            return self._connection[1]
        # A fork's connection is its parent's, and closing it would release the parent's locks: it is left alone.
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path.touch(mode=0o600)
        db = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        (found,) = db.execute("PRAGMA user_version").fetchone()
        if found not in (0, FORMAT):
            db.close()
            raise PurseFormatError(f"{self._path} has format {found}, and this release reads {FORMAT}")
        db.executescript(_TABLES)
        db.execute(f"PRAGMA user_version = {FORMAT}")
        self._connection = (pid, db)
        return db


def _held(db: sqlite3.Connection, key: str, ceiling: Ceiling, now: float) -> Held:
    at = (key, ceiling.kind, ceiling.start)
    (spent,) = db.execute(
        "SELECT coalesce(sum(amount), 0) FROM spent WHERE key = ? AND kind = ? AND start = ?", at
    ).fetchone()
    (reserved,) = db.execute(
        "SELECT coalesce(sum(amount), 0) FROM reserved WHERE key = ? AND kind = ? AND start = ? AND expires > ?",
        (*at, now),
    ).fetchone()
    return Held(spent, reserved)
