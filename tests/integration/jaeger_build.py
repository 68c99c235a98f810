"""Builds Jaeger v2 from the Go module proxy, once per machine, and says where the binary is.

    python tests/integration/jaeger_build.py        # prints the path; builds first if it must

The binary lives in `$SPANGRADE_CACHE` (default `~/.cache/spangrade`), outside the work tree. A first build takes some
minutes and about 3 GB in Go's own module and build caches.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

# v1.76.0 is the commit that was released as Jaeger v2.13.0. The v2 tags cannot be fetched through the proxy, because
# the module's path has no /v2.
VERSION = "v1.76.0"
# Raise it whenever anything below changes what is built, so that an older binary is not taken for it.
RECIPE = 1

MODULE = "github.com/jaegertracing/jaeger"
COMMAND = f"{MODULE}/cmd/jaeger"

# `go install COMMAND@VERSION` is refused: it does not accept a module that has a `replace` of its own, and as a
# dependency that line would be ignored. So Jaeger is a requirement of a module of ours, which repeats the line.
# These are all the pins that are needed. The other 320 versions are fixed by Jaeger's own go.mod (Go takes the lowest
# version that satisfies everybody, never the newest) and their content is checked against Go's checksum database.
GO_MOD = f"""\
module spangrade.invalid/jaegerbuild

go 1.24.6

require {MODULE} {VERSION}

replace github.com/Shopify/sarama => github.com/Shopify/sarama v1.33.0
"""

BUILD = [
    "go",
    "build",
    # Lets the build complete our go.mod and write go.sum. `go mod tidy` would do it too, and fetch what the tests of
    # all the dependencies need; the binary is the same, byte for byte.
    "-mod=mod",
    # The cache may lie inside somebody's git repository, whose state is no part of Jaeger.
    "-buildvcs=false",
    # No path of this machine in the binary.
    "-trimpath",
    # No symbol tables, and the version, which a build outside Jaeger's repository would lack.
    f"-ldflags=-s -w -X {MODULE}/internal/version.latestVersion={VERSION}",
    "-o",
    "jaeger",
    COMMAND,
]

# Far above a cold build on two cores: only a build that hangs meets it.
BUILD_TIMEOUT = 45 * 60.0
LOG_TAIL_LINES = 25


class GoMissingError(RuntimeError):
    """There is no cached binary and no `go` to build one with."""


class BuildError(RuntimeError):
    """The build ran and did not give a working binary."""


def cache_root() -> Path:
    """The folder for what is built once per machine."""
    configured = os.environ.get("SPANGRADE_CACHE")
    return Path(configured).expanduser().absolute() if configured else Path.home() / ".cache" / "spangrade"


def build_name() -> str:
    """The cache entry's name: version, recipe and platform, for a home folder may be shared by unlike machines."""
    return f"jaeger-{VERSION}-r{RECIPE}-{platform.system()}-{platform.machine()}".lower()


def cached_binary() -> Path | None:
    """The binary if it has been built already."""
    binary = cache_root() / build_name() / "jaeger"
    return binary if binary.is_file() else None


def ensure_jaeger() -> Path:
    """The path of the Jaeger binary, built first if it is not in the cache."""
    if binary := cached_binary():
        return binary
    if shutil.which("go") is None:
        raise GoMissingError(
            f"Jaeger {VERSION} has to be built and there is no `go` on the PATH: install Go 1.24.6 or newer, "
            f"or put a built one at {cache_root() / build_name() / 'jaeger'}"
        )
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with _lock(root / f"{build_name()}.lock"):
        # Another process may have built it while this one waited.
        return cached_binary() or _build(root)


def _build(root: Path) -> Path:
    # One name for the work folder is enough under the lock, and what a killed build left is cleared by the next.
    work, final = root / f"{build_name()}.building", root / build_name()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    (work / "go.mod").write_text(GO_MOD, encoding="utf-8")
    log = work / "build.log"
    print(f"building Jaeger {VERSION}, some minutes the first time; log: {log}", file=sys.stderr, flush=True)
    _run(BUILD, work, log, timeout=BUILD_TIMEOUT)
    # A binary that does not start must not reach the cache.
    _run([str(work / "jaeger"), "version"], work, log, timeout=60)
    shutil.rmtree(final, ignore_errors=True)
    work.rename(final)
    return final / "jaeger"


def _run(command: list[str], cwd: Path, log: Path, *, timeout: float) -> None:
    env = {
        # Static, and built alike with and without a C compiler.
        "CGO_ENABLED": "0",
        # A go.work in a parent folder would take over the build.
        "GOWORK": "off",
    }
    if fault := run_logged(command, cwd, log, timeout, env):
        raise BuildError(f"Jaeger {VERSION} could not be built: {fault}")


def run_logged(
    command: Sequence[str], cwd: Path, log: Path, timeout: float, env: Mapping[str, str] | None = None
) -> str | None:
    """Run a command of an installation; what it prints goes into `log`. None, or what went wrong and the log's end."""
    try:
        with log.open("ab") as out:
            code = subprocess.run(
                command,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=timeout,
                check=False,
            ).returncode
        if code == 0:
            return None
        ended = f"ended with exit code {code}"
    except subprocess.TimeoutExpired:
        ended = f"did not end within {timeout:.0f} s"
    except OSError as error:
        ended = f"could not be started ({error})"
    tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:])
    return f"`{' '.join(command[:4])}` {ended}. Log: {log}. Its last lines:\n{tail}"


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One build at a time per machine; the kernel lets the lock go when its holder dies."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another process that is building Jaeger", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        print(ensure_jaeger())
    except (GoMissingError, BuildError) as error:
        sys.exit(str(error))
