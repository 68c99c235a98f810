"""What the README shows is run, and does what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))
from examples.demo.processes import ReceiverProcess  # noqa: E402

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "sdk"), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_ten_lines_send_the_scores_that_the_table_shows() -> None:
    assert len([line for line in BLOCKS[0].splitlines() if line.strip()]) == 10
    with ReceiverProcess() as receiver:
        done = run(BLOCKS[0], OTEL_EXPORTER_OTLP_ENDPOINT=receiver.base_url)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        (span,) = receiver.spans()
    assert span["resource"]["service.name"] == "support"
    scores: dict[str, Any] = {e["attributes"]["gen_ai.evaluation.name"]: e["attributes"] for e in span["events"]}
    for row in re.findall(r"\| `([\w.]+)` \| (.*?) \| (.*?) \|", README):
        attribute, *cells = row
        for name, cell in zip(("overlap", "words"), cells, strict=True):
            if not cell.strip() or attribute not in scores[name]:
                continue
            found = scores[name][attribute]
            shown = f"{found:g}" if isinstance(found, float) else str(found)
            assert shown == cell.removesuffix(".0"), (name, attribute)


@pytest.mark.parametrize("block", range(1, len(BLOCKS)))
def test_every_other_python_block_runs(block: int) -> None:
    done = run(BLOCKS[block], OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", SPANGRADE_JUDGE_API_KEY="unused")
    assert done.returncode == 0, done.stderr


def test_a_pool_that_is_given_the_context_does_its_work_within_the_call() -> None:
    (block,) = [block for block in BLOCKS if "copy_context().run" in block]
    with ReceiverProcess() as receiver:
        done = run(block, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.base_url)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        spans = {span["name"]: span for span in receiver.spans()}
    assert spans["search"]["parent_span_id"] == spans["answer"]["span_id"]
    (event,) = spans["answer"]["events"]
    assert event["attributes"]["gen_ai.evaluation.score.value"] == 1.0


def test_the_comparison_prints_the_table_that_is_shown() -> None:
    (block,) = [block for block in BLOCKS if "sg.compare(" in block]
    (table,) = re.findall(r"```\n(a: .*?)\n```", README, re.DOTALL)
    done = run(block)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(table + "\n")


@pytest.mark.parametrize(
    "example", sorted(p.name for p in (REPOSITORY / "examples").glob("*.py") if p.name != "__init__.py")
)
def test_every_small_example_runs_offline_and_says_something(example: str) -> None:
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "examples" / example)],
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'sdk'}{os.pathsep}{REPOSITORY}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 3


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", README, re.DOTALL))
def test_every_yaml_block_is_a_configuration_for_both_hosts(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spangrade.config import FileConfig, load
    from spangrade_agent.config import read

    for variable in re.findall(r"\$\{env:(\w+)\}", block):
        monkeypatch.setenv(variable, "0123456789abcdef0123")
    file = tmp_path / "agent.yaml"
    file.write_text(block)
    assert read(file).metrics == load(file, FileConfig).metrics


def test_the_folders_that_the_readme_names_are_there() -> None:
    for folder in re.findall(r"\| `(\w+)/` \|", README):
        assert (REPOSITORY / folder).is_dir(), folder


def test_the_front_door_is_exactly_what_is_announced() -> None:
    import spangrade

    public = {name for name in vars(spangrade) if not name.startswith("_")} - {
        name for name, value in vars(spangrade).items() if type(value).__name__ == "module"
    }
    assert public == set(spangrade.__all__) - {"__version__"}
    assert spangrade.__all__ == sorted(spangrade.__all__)
