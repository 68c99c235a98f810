"""A short run of each fuzzer, so that it stays one that runs; `make fuzz` runs them long."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris has no wheel for this Python")
def test_no_reply_of_a_judge_gives_an_exception_or_a_number_that_is_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.verdict", "-atheris_runs=5000", "-seed=1", f"-artifact_prefix={tmp_path}/"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "Done 5000" in done.stderr, done.stderr[-3_000:]
