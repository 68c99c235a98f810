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

# hatchling builds our wheel there without a download each time.
PACKAGES = ("sentry-sdk", "langfuse", "logfire", "openai", "openinference-instrumentation-openai", "hatchling")


def ensure_vendors(constraints: Path) -> Path:
    """The Python of a venv with the vendors' packages, and with what ours requires, in the versions of that file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = "\n".join([*project["dependencies"], *PACKAGES])

    def install(folder: Path) -> None:
        wanted = folder / "requirements.txt"
        wanted.write_text(requirements, encoding="utf-8")
        tool_cache.run([sys.executable, "-m", "venv", "venv"], folder, timeout=120)
        pip = ["venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
        options = ["--no-input", "--constraint", str(constraints), "--requirement", str(wanted)]
        tool_cache.run([*pip, "install", *options], folder, timeout=INSTALL_TIMEOUT)
        tool_cache.run([*pip, "check"], folder, timeout=120)

    content = hashlib.sha256(requirements.encode() + constraints.read_bytes()).hexdigest()[:16]
    python = f"py{sys.version_info.major}.{sys.version_info.minor}-{sysconfig.get_platform()}"
    name = f"{constraints.stem}-{content}-{python}"
    return tool_cache.ensure(name, install) / "venv" / "bin" / "python"


def install_ours(python: Path, folder: Path) -> Path:
    """Our wheel, built from the work tree as it is now, beside that Python's packages and not among them."""
    ours = folder / "ours"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--no-build-isolation"]
    tool_cache.run([*pip, "--target", str(ours), str(ROOT)], folder, timeout=120)
    return ours
