"""Decorated functions keep their types: mypy and pyright read files of assertions."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = pytest.mark.parametrize("file", ["decorated.py", "functional.py", "class_metrics.py"])


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command],
        check=False, capture_output=True, text=True, timeout=300, cwd=HERE.parent.parent,
    )  # fmt: skip


@FILES
def test_a_type_checker_sees_decorated_functions_as_they_were_written(file: str) -> None:
    done = run("mypy", "--strict", "--warn-unused-ignores", str(HERE / file))
    assert done.stdout.startswith("Success"), done.stdout + done.stderr


@pytest.fixture(scope="module")
def pyright() -> None:
    """What comes from PyPI fetches the checker itself by npm when it is first run."""
    started = run("pyright", "--version")
    if started.returncode != 0:
        pytest.skip(f"pyright does not start here (it needs node and, once, npm's registry): {started.stderr[-300:]}")


@FILES
def test_so_does_pyright(file: str, pyright: None) -> None:
    done = run("pyright", "--pythonpath", sys.executable, str(HERE / file))
    assert done.returncode == 0, done.stdout + done.stderr
