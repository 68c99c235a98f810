"""Runs the unit and property tests on every Python that pyproject allows and this machine has, and on the oldest libraries.

    python -m tests.versions          # `make test-versions`

The Python that runs this is left out with the newest libraries: `make test` is that combination. Each combination has a
venv in the tests' cache, made once for what pyproject asks for; our own package is installed into it anew each time.
Exit code 1 when a combination fails, or when an interpreter that is here cannot install what the tests need.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .integration import tool_cache

ROOT = Path(__file__).parents[1]
WANTED = ("3.11", "3.12", "3.13", "3.14")
TESTS = ("tests/unit", "tests/property")
AT_ONCE = 3  # on two cores: many a test waits for a program that it has started
PIP = ("venv/bin/python", "-m", "pip", "--disable-pip-version-check")
INSTALL_TIMEOUT = 20 * 60.0
TEST_TIMEOUT = 45 * 60.0
# Tells an interpreter from a shim that points nowhere, and one that can make a venv from one that cannot.
PROBE = "import sys, venv, ensurepip; print('.'.join(map(str, sys.version_info[:3])))"


@dataclass(frozen=True)
class Combination:
    """One run: an interpreter, and constraints for pip (none: the newest that pyproject allows)."""

    python: Path
    version: str
    constraints: tuple[str, ...] = ()

    @property
    def libraries(self) -> str:
        return "oldest" if self.constraints else "newest"

    def __str__(self) -> str:
        return f"Python {self.version}, {self.libraries} libraries"


class NoWheelError(RuntimeError):
    """A package has no wheel for that Python: nothing that we could mend."""


# --- interpreters ---------------------------------------------------------------------------------------------------------


def interpreters() -> tuple[dict[str, tuple[Path, str]], dict[str, str]]:
    """By ``3.x``: the interpreters that are here, with their whole version; and why the others are not."""
    found: dict[str, tuple[Path, str]] = {}
    missing: dict[str, str] = {}
    for wanted in WANTED:
        tried = []
        for path in _candidates(wanted):
            version, fault = _probe(path)
            if version.startswith(f"{wanted}."):
                found[wanted] = (path, version)
                break
            tried.append(f"{path}: {fault or version}")
        else:
            missing[wanted] = "; ".join(tried) or f"no python{wanted} on the PATH, no {wanted} of pyenv's"
    return found, missing


def _candidates(wanted: str) -> Iterator[Path]:
    on_path = shutil.which(f"python{wanted}")
    if on_path is not None:
        yield Path(on_path)
    # pyenv's shims answer for the chosen version alone; the others are in its folder all the same.
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [path for path in versions.glob(f"{wanted}.*/bin/python") if re.fullmatch(r"[\d.]+", path.parts[-3])]
    yield from sorted(found, key=lambda path: [int(part) for part in path.parts[-3].split(".")], reverse=True)


def _probe(python: Path) -> tuple[str, str]:
    """Its version, or nothing and why."""
    try:
        done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as fault:
        return "", str(fault)
    lines = (done.stderr.strip() or "it printed no version").splitlines()
    return (done.stdout.strip(), "") if done.returncode == 0 else ("", lines[-1] if "Error" in lines[-1] else lines[0])


# --- what is installed ----------------------------------------------------------------------------------------------------


def requirements(project: dict[str, Any]) -> list[str]:
    """What the package asks for, with its dev extra and those that this names, and what builds it; not itself."""
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], "hatchling"]
    todo, seen = ["dev"], set()
    while todo:
        extra = todo.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for line in extras[extra]:
            named = re.fullmatch(rf"{project['name']}\[([\w,\s-]+)\]", line)
            todo += [name.strip() for name in named[1].split(",")] if named is not None else []
            wanted += [line] if named is None else []
    return list(dict.fromkeys(wanted))


def oldest(project: dict[str, Any]) -> tuple[str, ...]:
    """Constraints that pin each required package to the series of its lower bound: ``>=1.40`` to ``==1.40.*``."""
    found: list[str] = []
    for line in [*project["dependencies"], *project["optional-dependencies"]["agent"]]:
        bound = re.match(r"([\w.-]+)>=(\d+(?:\.\d+)*)", line)
        if bound is not None:
            series = bound[2] if "." in bound[2] else f"{bound[2]}.0"
            found.append(f"{bound[1]}=={series}.*")
    return tuple(found)


def environment(combination: Combination, wanted: Sequence[str]) -> Path:
    """The folder of its venv, in the cache.

    Raises:
        NoWheelError: a package has none for that Python.
        InstallError: any other reason; the message says it.
    """
    content = "\n".join([str(combination.python), *wanted, *combination.constraints])
    prefix = f"python-{combination.version}-{combination.libraries}-"
    name = prefix + hashlib.sha256(content.encode()).hexdigest()[:16]

    def install(folder: Path) -> None:
        (folder / "requirements.txt").write_text("\n".join(wanted), encoding="utf-8")
        (folder / "constraints.txt").write_text("\n".join(combination.constraints), encoding="utf-8")
        tool_cache.run([str(combination.python), "-m", "venv", "venv"], folder, 120)
        # No building from source: where that works here it needs compilers that another machine lacks.
        options = ["--quiet", "--no-input", "--only-binary=:all:", "-c", "constraints.txt", "-r", "requirements.txt"]
        try:
            tool_cache.run([*PIP, "install", *options], folder, INSTALL_TIMEOUT)
        except tool_cache.InstallError as fault:
            none = re.search(r"No matching distribution found for (\S+)", str(fault))
            if none is not None and "Retrying" not in str(fault):  # a registry that is away looks alike, but for that
                raise NoWheelError(none[1]) from fault
            raise
        tool_cache.run([*PIP, "check"], folder, 120)

    made = tool_cache.ensure(name, install)
    for other in made.parent.glob(f"{prefix}*/in-use"):  # of a pyproject of before: 250 MB each
        if other.parent != made:
            with other.open("w") as file, suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(other.parent)
    return made


@contextmanager
def ours_in(folder: Path) -> Iterator[None]:
    """Our package in that venv, from this work tree; nobody else puts theirs there meanwhile."""
    with (folder / "in-use").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        own = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
        tool_cache.run([*PIP, *own], folder, 300)
        yield


# --- the runs -------------------------------------------------------------------------------------------------------------


def run(combination: Combination, wanted: Sequence[str]) -> bool:
    """Install and test; one line, and all that pytest said where it failed. False: it failed."""
    try:
        folder = environment(combination, wanted)
        with ours_in(folder):
            started = time.monotonic()
            command = ["venv/bin/python", "-m", "pytest", "-m", "not integration and not benchmark"]
            done = subprocess.run(
                [str(folder / command[0]), *command[1:], *TESTS],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=TEST_TIMEOUT,
                check=False,
            )
    except NoWheelError as fault:
        say(f"{combination}: not tried, there is no wheel of {fault} for it")
        return True
    except (tool_cache.InstallError, subprocess.TimeoutExpired) as fault:
        say(f"{combination}: FAILED\n{fault}")
        return False
    if done.returncode != 0:
        say(f"{combination}: FAILED, exit code {done.returncode}\n{done.stdout}")
        return False
    last = done.stdout.strip().splitlines()[-1]
    say(f"{combination} ({_sdk(folder)}): {last.partition(' in ')[0]} in {time.monotonic() - started:.0f} s")
    return True


def _sdk(folder: Path) -> str:
    found = sorted(folder.glob("venv/lib/python*/site-packages/opentelemetry_sdk-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").replace("_", "-").replace("sdk-", "sdk ") if found else "no SDK"


def say(text: str) -> None:
    """At once: CI's log is read while it runs."""
    print(text, flush=True)


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found, missing = interpreters()
    this = "{}.{}".format(*sys.version_info)
    combinations = [Combination(*python) for name, python in found.items() if name != this]
    if found:
        combinations.insert(0, Combination(*found[min(found, key=WANTED.index)], oldest(project)))
    say("versions: " + "; ".join([f"Python {this}, newest libraries: by make test", *map(str, combinations)]))
    for name, why in missing.items():
        say(f"Python {name}: not tried, {why}")
    with ThreadPoolExecutor(AT_ONCE) as runs:
        passed = list(runs.map(lambda combination: run(combination, requirements(project)), combinations))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
