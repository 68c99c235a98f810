"""The libraries that were tried, from PyPI, in venvs of their own: once per machine, pinned exactly.

``tried.toml`` says what was tried: ``[[library]]`` rows, and for each ``[venv.NAME]`` what stands beside the rows that name it
(the clients; ``ours = true`` where what Spangrade requires fits, so that its SDK is run in there too). ``venvs/NAME.txt`` is
what pip made of that, all of it. To write it anew after a change (it installs for a minute or two):

    .venv/bin/python -m tests.integration.dialects.venvs NAME
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

from .. import tool_cache

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
SDK: Final = ROOT / "sdk"
TRIED: Final = HERE / "tried.toml"
INSTALL_TIMEOUT: Final = 20 * 60.0


def tried() -> dict[str, Any]:
    """The table."""
    return tomllib.loads(TRIED.read_text(encoding="utf-8"))


def fits_ours(name: str) -> bool:
    """Whether that venv has what Spangrade requires."""
    return bool(tried()["venv"][name].get("ours", False))


def python_of(name: str) -> Path:
    """The Python of that venv, which is made if it is not there yet."""
    lock = HERE / "venvs" / f"{name}.txt"

    def install(folder: Path) -> None:
        tool_cache.run([sys.executable, "-m", "venv", "venv"], folder, timeout=120)
        pip = ["venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
        tool_cache.run(
            [*pip, "install", "--no-input", "--no-deps", "--requirement", str(lock)], folder, INSTALL_TIMEOUT
        )
        tool_cache.run([*pip, "check"], folder, timeout=120)

    python = f"py{sys.version_info.major}.{sys.version_info.minor}-{sysconfig.get_platform()}"
    folder = tool_cache.ensure(f"dialect-{name}-{tool_cache.fingerprint(lock)}-{python}", install)
    return folder / "venv" / "bin" / "python"


def wanted(name: str) -> list[str]:
    """What the table says of that venv."""
    table = tried()
    beside = table["venv"][name]
    rows = [f"{row['name']}=={row['version']}" for row in table["library"] if row.get("venv") == name]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*rows, *beside.get("with", []), *(project["dependencies"] if beside.get("ours", False) else [])]


def lock(name: str) -> None:
    """Have pip find all that goes with what is wanted, and write it down."""
    folder = Path(tempfile.mkdtemp())
    try:
        tool_cache.run([sys.executable, "-m", "venv", "venv"], folder, timeout=120)
        pip = ["venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
        tool_cache.run([*pip, "install", "--no-input", *wanted(name)], folder, INSTALL_TIMEOUT)
        found = subprocess.run([*pip, "freeze", "--all"], cwd=folder, capture_output=True, text=True, check=True).stdout
        pins = sorted(line for line in found.splitlines() if "==" in line and not line.startswith("pip=="))
        (HERE / "venvs" / f"{name}.txt").write_text("\n".join(pins) + "\n", encoding="utf-8")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        lock(each)
