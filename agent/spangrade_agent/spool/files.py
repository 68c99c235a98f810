"""The spool's files: one process has them at a time, of one format, and a corrupt store is kept aside."""

import errno
import fcntl
import os
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spangrade._log import log
from spangrade.errors import ConfigError
from spangrade_agent.spool.records import TABLES, Table

FORMAT: Final = b"1"
AILING: Final = (errno.EROFS, errno.ENOSPC, errno.EIO, errno.EDQUOT)  # the disk's fault, and may pass
WALK_S: Final = 600.0
RECORD_COST: Final = 64  # of a key and its page, about
KEY: Final = struct.Struct(">Q")
_META: Final = b"meta"
_FORMAT_KEY: Final = b"format"
_SLACK: Final = 64 * 1024 * 1024  # of the map beyond twice the bound: pages are written anew before old ones are free


@dataclass(frozen=True, slots=True)
class Opened:
    """An open store: its tables, the bytes of the records of each, and their last key."""

    env: Any
    tables: dict[Table, Any]
    sizes: dict[Table, int]
    last_key: int


class DamagedError(Exception):
    """What is in the store is not what we write."""


def locked(path: Path) -> int:
    """The open lock file: this process has the spool until it is closed.

    Raises:
        ConfigError: another process has it, or there can be no such folder.
        OSError: one of `AILING`.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        if fault.errno in AILING:
            raise
        raise ConfigError(f"spool.path {str(path)!r} cannot be used: {fault.strerror or fault}") from fault
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise ConfigError(
            f"spool.path {str(path)!r} is in use by another process; give each agent a spool of its own"
        ) from None
    return file


def opened(path: Path, max_bytes: int, *, fsync: bool) -> Opened:
    """The store, its tables, and what is in them; a corrupt one is kept aside, and a new one begun.

    Raises:
        ConfigError: it is of a newer release, or cannot be opened.
        OSError: one of `AILING`.
    """
    try:
        import lmdb
    except ModuleNotFoundError:
        raise ConfigError(
            'spool: lmdb is not installed; the agent needs its extra: pip install "spangrade[agent]"'
        ) from None
    try:
        _check(path)
        return _open(lmdb, path, max_bytes, fsync=fsync)
    except _corrupt(lmdb) as fault:
        aside = path.with_name(f"{path.name}.corrupt-{int(time.time())}")
        log.error(
            "the spool is corrupt: it is kept aside, and what was in it is not sent",
            aside=aside.name,
            fault=said(fault),
        )
        path.rename(aside)
        path.mkdir()
        return _open(lmdb, path, max_bytes, fsync=fsync)
    except OSError:
        raise
    except lmdb.Error as fault:
        ailing = next((number for number in AILING if os.strerror(number) in str(fault)), None)
        if ailing is not None:
            raise OSError(ailing, str(fault)) from fault
        raise ConfigError(f"spool.path {str(path)!r} cannot be opened: {said(fault)}") from fault


def _corrupt(lmdb: Any) -> tuple[type[Exception], ...]:
    """What a store that is damaged raises."""
    names = ("Corrupted", "Invalid", "VersionMismatch", "Panic", "PageNotFound", "BadDbi", "Incompatible", "BadValsize")
    return (DamagedError, *(getattr(lmdb, f"{name}Error") for name in names))


def _open(lmdb: Any, path: Path, max_bytes: int, *, fsync: bool) -> Opened:
    env = lmdb.open(
        str(path),
        map_size=2 * max_bytes + _SLACK,
        max_dbs=len(TABLES) + 1,
        sync=fsync,
        metasync=fsync,
        readahead=False,
        meminit=False,
        mode=0o600,
    )
    try:
        meta = env.open_db(_META)
        tables = {table: env.open_db(table.encode()) for table in TABLES}
        with env.begin(write=True, db=meta) as txn:
            found = txn.get(_FORMAT_KEY)
            if found is None:
                txn.put(_FORMAT_KEY, FORMAT)
            elif found != FORMAT:
                raise ConfigError(
                    f"the spool at {str(path)!r} has format {found.decode(errors='replace')}, and this release reads "
                    f"{FORMAT.decode()}: it was written by a newer one. Let that drain it, or give another spool.path"
                )
        return Opened(env, tables, *_census(env, tables))
    except BaseException:
        env.close()
        raise


def _check(path: Path) -> None:
    """Read all that is there in a process of its own, which a damaged store may end.

    Raises:
        DamagedError: it did.
    """
    file = path / "data.mdb"
    if not file.exists() or not file.stat().st_size:
        return
    command = [sys.executable, str(Path(__file__).with_name("walk.py")), str(path), *TABLES]
    try:
        walked = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WALK_S, check=False)  # noqa: S603 - our own program
    except subprocess.TimeoutExpired:
        raise DamagedError(f"it could not be read through within {WALK_S:g} s") from None
    if walked.returncode:
        why = walked.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise DamagedError(why[:200] or f"reading it through ended with code {walked.returncode}")


def _census(env: Any, tables: dict[Table, Any]) -> tuple[dict[Table, int], int]:
    """The bytes of each table's records, and the last key."""
    sizes, last = dict.fromkeys(tables, 0), 0
    for table, db in tables.items():
        with env.begin(db=db) as txn:
            for key, data in txn.cursor():
                if len(key) != KEY.size:
                    raise DamagedError("a key of another length")
                sizes[table] += len(data) + RECORD_COST
                last = max(last, KEY.unpack(key)[0])
    return sizes, last


def said(fault: BaseException) -> str:
    """A fault in one line."""
    return f"{type(fault).__name__}: {fault}"
