"""The format of the registry's file, and a look at a file that changes nothing.

Format 1 (``PRAGMA user_version``; ``application_id`` 0x5350474A, "SPGJ"): ``evaluators``, one for each project and name,
with the version that is active, and whether somebody has paused it; ``versions``, one for each configuration of an evaluator, numbered from 1. A version's
configuration never changes; its threshold and live policy, which are no part of it, may. Times are nanoseconds, UTC.
"""

import os
import sqlite3
from pathlib import Path
from typing import Final

from spangrade.errors import ConfigError

FORMAT: Final = 1
APPLICATION: Final = 0x5350474A
SCHEMA: Final = """
CREATE TABLE evaluators (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    active_version INTEGER,
    paused INTEGER NOT NULL DEFAULT 0,
    created_ns INTEGER NOT NULL,
    UNIQUE (project_id, name)
);
CREATE TABLE versions (
    evaluator_id TEXT NOT NULL REFERENCES evaluators (id),
    version INTEGER NOT NULL,
    config_hash TEXT NOT NULL,
    config TEXT NOT NULL,
    threshold REAL NOT NULL,
    live TEXT NOT NULL,
    created_ns INTEGER NOT NULL,
    PRIMARY KEY (evaluator_id, version),
    UNIQUE (evaluator_id, config_hash)
);
"""


def is_new(db: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is empty; else it is a registry of this format.

    Raises:
        ConfigError: it is neither.
    """
    version, application = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id"))
    if not version and not application and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return True
    if application != APPLICATION:
        raise ConfigError(
            f"registry.path {str(path)!r} is a SQLite file of something else; name another file for the registry"
        )
    if version != FORMAT:
        raise ConfigError(
            f"registry.path {str(path)!r} is of format {version}, and this release reads format {FORMAT} and "
            "changes no other: run the release that wrote it, or name a new file and register the judges again"
        )
    return False


def look_at(path: Path) -> None:
    """See that the file could be opened, or made, without doing either.

    Raises:
        ConfigError: it could not, or is something else.
    """
    if not path.exists():
        folder = path.parent
        if not folder.is_dir():
            raise not_opened(path, f"there is no folder {str(folder)!r}")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise not_opened(path, f"the folder {str(folder)!r} cannot be written to")
        return
    if not path.is_file() or not os.access(path, os.R_OK | os.W_OK):
        raise not_opened(path, "it is no file that can be read and written")
    try:
        # As it is on the disk: to read along with a process that writes, SQLite would make files beside it.
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            is_new(db, path)
        finally:
            db.close()
    except sqlite3.Error as fault:
        raise no_registry(path, fault) from None


def not_opened(path: Path, why: object) -> ConfigError:
    """The error for a file that cannot be had."""
    return ConfigError(
        f"registry.path {str(path)!r} cannot be opened: {why}; name a file in a folder that is there and that the "
        "agent may write to"
    )


def no_registry(path: Path, fault: sqlite3.Error) -> ConfigError:
    """The error for a file that SQLite cannot read."""
    return ConfigError(
        f"registry.path {str(path)!r} is no registry of judges ({fault}); name another file, or move this one away"
    )
