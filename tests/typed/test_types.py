"""Decorated functions keep their types: mypy reads files of assertions."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("file", ["decorated.py", "functional.py", "class_metrics.py"])
def test_a_type_checker_sees_decorated_functions_as_they_were_written(file: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", str(HERE / file)],
        check=False, capture_output=True, text=True, timeout=300, cwd=HERE.parent.parent,
    )  # fmt: skip
    assert done.stdout.startswith("Success"), done.stdout + done.stderr
