"""Applications of npm/: packages by ``npm ci`` from the lock file beside them, once per machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from .. import tool_cache
from .collect import Inbox
from .replay import Place
from .running import Ran, run_program

NPM: Final = Path(__file__).parent / "npm"


def packages(name: str) -> Path:
    """The node_modules of npm/<name>/package-lock.json."""
    npm = tool_cache.tool("npm", "which installs what is in tests/integration/dialects/npm")
    lock = NPM / name / "package-lock.json"

    def install(folder: Path) -> None:
        for file in (lock.with_name("package.json"), lock):
            shutil.copy(file, folder)
        tool_cache.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder, timeout=600)

    return tool_cache.ensure(f"dialect-{name}-{tool_cache.fingerprint(lock)}", install) / "node_modules"


def run_node(
    app: str,
    scenarios: Sequence[str],
    name: str,
    place: Place,
    inbox: Inbox,
    folder: Path,
    env: Mapping[str, str] | None = None,
) -> Ran:
    """npm/<app>.mjs with the packages of npm/<name>; ``folder``: an empty one, since a module finds packages beside itself
    only."""
    node = tool_cache.tool("node", "which runs what is in tests/integration/dialects/npm")
    (folder / "node_modules").symlink_to(packages(name))
    program = shutil.copy(NPM / f"{app}.mjs", folder)
    # What the SDK warns of (an engine, an old option) is no part of the test.
    return run_program([node, "--no-warnings", os.fspath(program), *scenarios], place, inbox, env or {})
