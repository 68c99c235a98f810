"""One more row in a dataset file of JSON Lines: whole or not at all, and never twice."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from spangrade._text import valid
from spangrade.errors import ConfigError
from spangrade.experiments.dataset_file import BadRow, rows_of
from spangrade.experiments.item import field_named

Added = Literal["added", "there", "replaced", "differs"]


def add_row(path: Path, row: dict[str, Any], *, replace: bool = False) -> Added:
    """Add a row that has an ``id``.

    Returns:
        ``added``; ``there``: the very row is in the file already; ``differs``: another row of its id is, and the file is as it was;
        ``replaced``: that row gave way to this one (``replace``).

    Raises:
        ConfigError: the file is no JSON Lines, has a bad line, or cannot be written.
    """
    path = path.resolve()  # a link stays one
    if path.suffix.lower() in (".csv", ".tsv") or (path.exists() and path.read_text("utf-8-sig").lstrip()[:1] == "["):
        raise ConfigError(f"dataset {str(path)!r} is no JSON Lines, so no line can be added; give a .jsonl file")
    line = valid(json.dumps(row, ensure_ascii=False, allow_nan=False))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            return _add(path, row, line, replace=replace)
    except OSError as fault:
        raise ConfigError(f"dataset {str(path)!r} cannot be written: {fault.strerror or fault}") from fault


def _add(path: Path, row: dict[str, Any], line: str, *, replace: bool) -> Added:
    found: list[tuple[str, Any]] = list(rows_of(path)) if path.exists() else []
    bad = [f"{where}: {one.why}" for where, one in found if isinstance(one, BadRow)]
    if bad:
        raise ConfigError(f"dataset {str(path)!r}: {bad[0]}; mend it before something is added")
    same = [one for _, one in found if _id(one) == row["id"]]
    if row in same:
        return "there"
    if same and not replace:
        return "differs"
    text = path.read_text("utf-8-sig") if path.exists() else ""
    lines = [one for one in text.split("\n") if one.strip()]
    if same:
        lines = [one for one in lines if _id(json.loads(one)) != row["id"]]
    _write(path, "".join(f"{one}\n" for one in [*lines, line]))
    return "replaced" if same else "added"


def _id(row: Any) -> Any:
    return next((row[key] for key in row if field_named(key) == "item_id"), None) if isinstance(row, dict) else None


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One at a time, where the system has file locks: of two that add at once neither loses its row."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    # The folder's lock, and not the file's: that one is another file after each change.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
