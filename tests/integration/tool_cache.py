"""What the tests install from npm and PyPI: once per machine, outside the work tree, whole or not at all.

A folder is made beside its place and renamed into it, so that nobody meets half of one; a file lock makes the others wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .jaeger_build import cache_root, run_logged
from .processes import unavailable


class InstallError(RuntimeError):
    """An installation ran and did not give what it should."""


def ensure(name: str, build: Callable[[Path], None]) -> Path:
    """The folder of that name in the cache, made by `build` (given an empty folder) if it is not there."""
    root = cache_root()
    final, work = root / name, root / f"{name}.building"
    if final.is_dir():
        return final
    root.mkdir(parents=True, exist_ok=True)
    # The kernel lets the lock go when its holder dies. What a killed build left is cleared by the next.
    with (root / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if final.is_dir():  # another process made it while this one waited
            return final
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        print(f"installing {name}, the first time only; log: {work / 'install.log'}", file=sys.stderr, flush=True)
        build(work)
        work.rename(final)
    return final


def run(command: Sequence[str], folder: Path, timeout: float, env: Mapping[str, str] | None = None) -> None:
    """One command of an installation, in its folder, into its log.

    Raises:
        InstallError: it failed; the message ends with the end of the log.
    """
    if fault := run_logged(command, folder, folder / "install.log", timeout, env):
        raise InstallError(fault)


def fingerprint(*files: Path) -> str:
    """A short name for the content of files: another content, another folder."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def tool(name: str, what_for: str) -> str:
    """The path of a program on the PATH; without it the test is skipped (or fails, see `unavailable`)."""
    found = shutil.which(name)
    if found is None:
        unavailable(f"there is no `{name}` on the PATH, {what_for}")
    return found
