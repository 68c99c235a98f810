"""The applications that know nothing of Spangrade: the same trace in JavaScript and in Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

from . import tool_cache

HERE = Path(__file__).parent
JS = HERE / "js"
LOCK = JS / "package-lock.json"
Language = Literal["js", "python"]
Protocol = Literal["http", "grpc"]

ENTRY, RETRIEVER, QUERY, LLM = SPANS = ("POST /chat", "find", "SELECT docs", "chat small-1")


def node_modules() -> Path:
    """The packages that js/package-lock.json names, installed by `npm ci` once per machine."""
    npm = tool_cache.tool("npm", "which installs OpenTelemetry's JavaScript SDK")

    def install(folder: Path) -> None:
        for file in (JS / "package.json", LOCK):
            shutil.copy(file, folder)
        # protobufjs's only install script prints advice about version numbers.
        tool_cache.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder, timeout=600)

    return tool_cache.ensure(f"js-{tool_cache.fingerprint(LOCK)}", install) / "node_modules"


def run(language: Language, protocol: Protocol, endpoint: str) -> str:
    """Run the application, which sends its one trace; the trace's id."""
    # A proxy that the environment names is of no use on the loopback.
    env = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    if language == "js":
        node = tool_cache.tool("node", "which runs the application in JavaScript")
        command = [node, str(JS / "app.js")]
        env["NODE_PATH"] = str(node_modules())
    else:
        command = [sys.executable, str(HERE / "python_app.py")]
    done = subprocess.run(
        [*command, protocol, endpoint], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    trace_id: str = json.loads(done.stdout)["trace_id"]
    return trace_id
