"""Decorated functions keep their types: mypy reads a file of assertions."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_a_type_checker_sees_decorated_functions_as_they_were_written() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", str(HERE / "decorated.py")],
        check=False, capture_output=True, text=True, timeout=300, cwd=HERE.parent.parent,
    )  # fmt: skip
    assert done.stdout.startswith("Success"), done.stdout + done.stderr
