"""Other vendors' SDKs from PyPI, in a venv of their own once per machine, so that their pins do not bind ours.

What was found in November 2026 (each tried with pip, `sentry-sdk` asks for no version of OpenTelemetry at all):

    opentelemetry-sdk 1.45, the newest that our pins take: langfuse 5.0, logfire 5.4, openinference-instrumentation-openai
        0.1.66, all at once;
    opentelemetry-sdk 1.40, our oldest: logfire 5.4 (it takes 1.39 to 1.45) and openinference as above; langfuse 5 asks for
        1.45, so pip goes back to langfuse 4.15.
"""

from __future__ import annotations

import hashlib
import sys
import sysconfig
import tomllib
from pathlib import Path

from . import tool_cache

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
INSTALL_TIMEOUT = 15 * 60.0


def ensure_vendors(versions: Path) -> Path:
    """The Python of a venv with all that is in that file (our wheel is built there too), and with what ours requires."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = "\n".join(project["dependencies"])

    def install(folder: Path) -> None:
        ours = folder / "requirements.txt"
        ours.write_text(required, encoding="utf-8")
        tool_cache.run([sys.executable, "-m", "venv", "venv"], folder, timeout=120)
        pip = ["venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
        files = ["--no-input", "--requirement", str(versions), "--requirement", str(ours)]
        tool_cache.run([*pip, "install", *files], folder, timeout=INSTALL_TIMEOUT)
        tool_cache.run([*pip, "check"], folder, timeout=120)

    content = hashlib.sha256(required.encode() + versions.read_bytes()).hexdigest()[:16]
    python = f"py{sys.version_info.major}.{sys.version_info.minor}-{sysconfig.get_platform()}"
    return tool_cache.ensure(f"{versions.stem}-{content}-{python}", install) / "venv" / "bin" / "python"


def install_ours(python: Path, folder: Path) -> Path:
    """Our wheel, built from the work tree as it is now, beside that Python's packages and not among them."""
    ours = folder / "ours"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--no-build-isolation"]
    tool_cache.run([*pip, "--target", str(ours), str(ROOT)], folder, timeout=120)
    return ours
