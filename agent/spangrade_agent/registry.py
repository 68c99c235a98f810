"""The registry of judges: one SQLite file, which several agents of a host may share. Its format: `registry_format`."""

import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spangrade.errors import ConfigError, SpangradeError
from spangrade_agent.registry_format import APPLICATION, FORMAT, SCHEMA, is_new, look_at, no_registry, not_opened

MAX_VERSIONS: Final = 1_000  # of one evaluator
MAX_BYTES: Final = 64 * 2**20  # of the file
BUSY_S: Final = 5.0  # how long another process may hold the file


class RegistryFull(SpangradeError):
    """There is no room for one more; the message says what makes some."""


class RegistryUnavailable(SpangradeError):
    """The file cannot be read or written now."""


@dataclass(frozen=True, slots=True)
class Version:
    """One configuration. ``live``: False, True, or a policy (rate, when, max_per_minute, budget)."""

    version: int
    config_hash: str
    config: Mapping[str, Any]
    threshold: float
    live: bool | Mapping[str, Any]
    created_ns: int


@dataclass(frozen=True, slots=True)
class Record:
    """An evaluator with its versions, oldest first. ``active``: the number of the one that grades, or None."""

    id: str
    project_id: str
    name: str
    active: int | None
    created_ns: int
    versions: tuple[Version, ...]

    @property
    def latest(self) -> Version:
        """The newest configuration."""
        return self.versions[-1]

    def numbered(self, version: int) -> Version | None:
        """The version of that number."""
        return next((one for one in self.versions if one.version == version), None)


class Registry:
    """The file, opened or made. Threads share it; processes may.

    Args:
        path: of the file; its folder must be there. The file is made readable by its owner only.
        max_evaluators: how many `put` makes.
        now: nanoseconds, UTC.
        dry: look at the file and leave it as it is; the registry is an empty one then, in memory.

    Raises:
        ConfigError: the file cannot be opened, is something else, or is of another format.
    """

    def __init__(
        self, path: str, max_evaluators: int = 100, now: Callable[[], int] = time.time_ns, *, dry: bool = False
    ) -> None:
        self._path = Path(path)
        self._max = max_evaluators
        self._now = now
        self._lock = threading.Lock()
        if dry:
            look_at(self._path)
        try:
            if not dry:
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))  # examples may hold what users wrote
            self._db = sqlite3.connect(
                ":memory:" if dry else self._path,
                timeout=BUSY_S,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=32,
            )
        except (OSError, sqlite3.Error) as fault:
            raise not_opened(self._path, getattr(fault, "strerror", None) or fault) from None
        try:
            self._open()
        except sqlite3.Error as fault:
            self._db.close()
            raise no_registry(self._path, fault) from None
        except ConfigError:
            self._db.close()
            raise

    def _open(self) -> None:
        with self._transaction() as db:
            if is_new(db, self._path):
                for statement in SCHEMA.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {FORMAT}")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")  # a registration that was answered is there after a power cut
        self._db.execute("PRAGMA foreign_keys = ON")
        page = self._db.execute("PRAGMA page_size").fetchone()[0]
        self._db.execute(f"PRAGMA max_page_count = {MAX_BYTES // page}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk ends it by itself
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _available(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as fault:
            if getattr(fault, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise RegistryFull(
                    f"the registry's file has no room for it: its disk is full, or it has {MAX_BYTES // 2**20} MiB, as many as it "
                    "may; name a new file in registry.path"
                ) from None
            raise RegistryUnavailable(
                f"the registry's file cannot be used now ({fault}); see to its disk and to who else holds it, then try again"
            ) from None

    def put(
        self,
        project_id: str,
        name: str,
        config_hash: str,
        config: Mapping[str, Any],
        threshold: float,
        live: bool | Mapping[str, Any],
        *,
        start: bool,
    ) -> tuple[Record, Version, bool]:
        """The evaluator with the version of that configuration, and whether the version is new.

        ``start``: a version that is new and live, or is live for the first time, becomes the active one, unless somebody has
        paused the evaluator. A version that was there keeps its status; its threshold and policy are the given ones from now
        on, and it pauses when it is live no more.

        Raises:
            RegistryFull: one more evaluator or version than there may be.
            RegistryUnavailable: see there.
        """
        values = (threshold, json.dumps(live, allow_nan=False))
        with self._available(), self._transaction() as db:
            row = db.execute(
                "SELECT id, paused FROM evaluators WHERE project_id = ? AND name = ?", (project_id, name)
            ).fetchone()
            made = None if row is None else self._version_of(db, row[0], config_hash)
            if row is None:
                self._check_room(db)
                row = (f"ev_{secrets.token_hex(12)}", 0)
                db.execute(
                    "INSERT INTO evaluators VALUES (?, ?, ?, NULL, 0, ?)", (row[0], project_id, name, self._now())
                )
            if made is None:
                number = self._next_number(db, row[0])
                db.execute(
                    "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (row[0], number, config_hash, json.dumps(config, allow_nan=False), *values, self._now()),
                )
            else:
                number = made.version
                db.execute(
                    "UPDATE versions SET threshold = ?, live = ? WHERE evaluator_id = ? AND version = ?",
                    (*values, row[0], number),
                )
            if live is False:
                db.execute(
                    "UPDATE evaluators SET active_version = NULL WHERE id = ? AND active_version = ?", (row[0], number)
                )
            elif start and not row[1] and (made is None or made.live is False):
                db.execute("UPDATE evaluators SET active_version = ? WHERE id = ?", (number, row[0]))
            found = self._records(db, "WHERE e.id = ?", (row[0],))[0]
        version = found.numbered(number)
        assert version is not None
        return found, version, made is None

    def set_active(self, evaluator_id: str, version: int | None) -> Record | None:
        """Let ``version`` grade, or none; the evaluator as it is then, None for one that is not there."""
        with self._available(), self._transaction() as db:
            db.execute(
                "UPDATE evaluators SET active_version = ?, paused = ? WHERE id = ?",
                (version, version is None, evaluator_id),
            )
            return next(iter(self._records(db, "WHERE e.id = ?", (evaluator_id,))), None)

    def delete(self, evaluator_id: str) -> bool:
        """Forget the evaluator with all its versions, unless one of them is active; whether it was there and is gone."""
        with self._available(), self._transaction() as db:
            where = "id = ? AND active_version IS NULL"
            if db.execute(f"SELECT 1 FROM evaluators WHERE {where}", (evaluator_id,)).fetchone() is None:  # noqa: S608
                return False
            db.execute("DELETE FROM versions WHERE evaluator_id = ?", (evaluator_id,))
            db.execute("DELETE FROM evaluators WHERE id = ?", (evaluator_id,))
            return True

    def get(self, evaluator_id: str) -> Record | None:
        """The evaluator of that id."""
        with self._available(), self._lock:
            return next(iter(self._records(self._db, "WHERE e.id = ?", (evaluator_id,))), None)

    def all(self) -> list[Record]:
        """All evaluators, in the order in which they were made."""
        with self._available(), self._lock:
            return self._records(self._db, "", ())

    def changes(self) -> int:
        """A number that differs when another process has changed the file since."""
        with self._available(), self._lock:
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Close the file; again: nothing."""
        with self._lock:
            self._db.close()

    def _check_room(self, db: sqlite3.Connection) -> None:
        if db.execute("SELECT count(*) FROM evaluators").fetchone()[0] >= self._max:
            raise RegistryFull(
                f"the registry has {self._max} evaluators, as many as it may: raise registry.max_evaluators in the agent's "
                "configuration, delete one that is not needed, or register under a name that is there, which makes a version "
                "of it"
            )

    @staticmethod
    def _next_number(db: sqlite3.Connection, evaluator_id: str) -> int:
        found = db.execute("SELECT max(version) FROM versions WHERE evaluator_id = ?", (evaluator_id,)).fetchone()[0]
        number = int(found or 0) + 1
        if number > MAX_VERSIONS:
            raise RegistryFull(
                f"this evaluator has {MAX_VERSIONS} versions, as many as it may: register it under another name"
            )
        return number

    def _version_of(self, db: sqlite3.Connection, evaluator_id: str, config_hash: str) -> Version | None:
        (record,) = self._records(db, "WHERE e.id = ?", (evaluator_id,))
        return next((one for one in record.versions if one.config_hash == config_hash), None)

    @staticmethod
    def _records(db: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> list[Record]:
        rows = db.execute(
            "SELECT e.id, e.project_id, e.name, e.active_version, e.created_ns, v.version, v.config_hash, v.config, "  # noqa: S608
            f"v.threshold, v.live, v.created_ns FROM evaluators e JOIN versions v ON v.evaluator_id = e.id {where} "
            "ORDER BY e.created_ns, e.id, v.version",
            values,
        ).fetchall()
        found: dict[str, tuple[Any, list[Version]]] = {}
        for row in rows:
            version = Version(row[5], row[6], json.loads(row[7]), row[8], json.loads(row[9]), row[10])
            found.setdefault(row[0], (row, []))[1].append(version)
        return [Record(row[0], row[1], row[2], row[3], row[4], tuple(versions)) for row, versions in found.values()]
