"""``spangrade metrics list`` and ``show``: what there is, what it needs, and what one takes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import spangrade as sg
from spangrade import cli
from spangrade.commands.metrics import main
from spangrade.metrics import lookup
from spangrade.metrics.builtin.table import BUILTIN

MODULE = '''
from typing import Annotated, Literal
import spangrade as sg
from pydantic import BaseModel, Field

class Config(BaseModel):
    min_words: Annotated[int, Field(gt=0, description="fewer fail")] = 5
    mode: Literal["strict", "kind"] = "kind"
    words: list[str] = []

@sg.register_metric(name="cli_words")
@sg.config_schema(Config)
class Words(sg.BaseMetric[int]):
    """How many words.

    More of it here.
    """
    threshold = 3
    requires = ("output",)
    version = 2
    def evaluate(self, text): return self.result(1)

class Needs(BaseModel):
    word: str

@sg.register_metric(name="cli_needs")
class NeedsOne(sg.BaseMetric[int]):
    """It needs a word."""
    config_schema = Needs
    def evaluate(self, text): return self.result(1)

@sg.register_metric(name="cli_tree")
class Tree(sg.CompositeMetric):
    """A tree."""
    def __init__(self):
        super().__init__(children=["json_valid"], aggregate="mean")

@sg.metric(lower_is_better=True, threshold=9)
def short(output):
    """It is short."""
    return len(output)

@sg.discrete_metric(inputs={"tenant": "metadata.tenant"})
def sorted_out(response, tenant): return "pass"

@sg.discrete_metric(allowed_values=["billing", "other"])
def topic(input): return "other"

@sg.discrete_metric(allowed_values=[True, False])
def kept(input): return True

@sg.numeric_metric(allowed_values=range(1, 100_000))
def points(sample): return 1

@sg.ranking_metric(allowed_values=3)
def order(documents): return [1, 2, 3]
'''


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module of the application's in the working directory."""
    (tmp_path / "cli_metrics.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    before = sg.MetricsCatalog.registered()
    yield
    sys.modules.pop("cli_metrics", None)
    sg.MetricsCatalog._classes.clear()
    sg.MetricsCatalog._classes.update(before)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out


def row(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(name))


def test_list_shows_what_there_is_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "list", "--import", "cli_metrics")
    assert {line.split()[0] for line in said.splitlines() if "built-in" in line} == set(BUILTIN)
    assert "output, documents" in row(said, "overlap")
    assert ">= 0.5" in row(said, "overlap")
    assert all(part in row(said, "cli_words") for part in ("registered", "output", ">= 3", "How many words."))
    assert "min_words, mode, words" in row(said, "cli_words")
    assert "by config" in row(said, "cli_needs")
    assert "word*" in row(said, "cli_needs")
    assert "cannot be used" not in said
    assert "cli_words" in sg.MetricsCatalog


def test_list_as_json_has_the_same_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    found = {one["name"]: one for one in json.loads(run(capsys, "list", "--json", "--import", "cli_metrics"))}
    assert found["cli_words"].pop("parameters")["properties"].keys() == {"min_words", "mode", "words"}
    assert found["cli_words"] == {
        "name": "cli_words", "origin": "registered", "where": "cli_metrics:Words", "family": "class",
        "summary": "How many words.", "requires": ["output"], "threshold": 3, "lower_is_better": False, "verdict": True,
        "target": "root", "version": "2", "inputs": None, "allowed_values": None, "extra": "", "install": "", "error": "",
    }  # fmt: skip
    assert found["cli_tree"]["family"] == "tree"
    assert found["overlap"]["family"] == "function"
    assert found["cli_needs"]["requires"] is None


def test_show_prints_the_page_and_the_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "show", "cli_words", "--import", "cli_metrics")
    assert said.startswith("cli_words: How many words.\n")
    assert "More of it here." in said
    assert "min_words  integer (> 0), default 5; fewer fail" in said
    assert 'mode       "strict" | "kind", default "kind"' in said
    assert "words      array of string, default []" in said
    assert "word  string, required" in run(capsys, "show", "cli_needs")
    assert "config: it takes none" in run(capsys, "show", "overlap")
    assert "What it does not" in run(capsys, "show", "overlap")  # the built-in's page
    assert "pattern" in run(capsys, "show", "regex")


@pytest.mark.parametrize(
    ("name", "inputs", "gives", "passes"),
    [
        ("sorted_out", "response (from output), tenant (from metadata.tenant)", "pass, fail", "if pass"),
        ("topic", "input", "billing, other", "measures"),
        ("kept", "input", "True, False", "if true"),
        ("points", "sample", "one of range(1, 100000)", "unless 0"),
        ("order", "documents", "a list of 3", "measures"),
    ],
)
def test_show_says_of_a_functional_metric_where_its_inputs_come_from_and_what_it_gives(
    capsys: pytest.CaptureFixture[str], name: str, inputs: str, gives: str, passes: str
) -> None:
    lines = [line.strip() for line in run(capsys, "show", f"cli_metrics:{name}").splitlines()]
    assert {f"{'inputs':11}{inputs}", f"{'gives':11}{gives}", f"{'passes':11}{passes}"} <= set(lines)
    found = json.loads(run(capsys, "show", f"cli_metrics:{name}", "--json"))
    assert len(found["inputs"]) == len(inputs.split(", "))
    assert found["allowed_values"] is not None


def test_show_as_json_has_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = json.loads(run(capsys, "show", "cli_metrics:Words", "--json"))
    assert found["origin"] == "path"
    assert found["parameters"]["properties"]["min_words"]["exclusiveMinimum"] == 0
    found = json.loads(run(capsys, "show", "cli_metrics:short", "--json"))
    assert (found["family"], found["threshold"], found["lower_is_better"], found["parameters"]) == (
        "function", 9, True, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "overlp"], "spangrade metrics: there is no metric 'overlp'; did you mean 'overlap'?"),
        (["show", "no_such_module_x:m"], "does not import: ModuleNotFoundError"),
        (["list", "--import", "no_such_module_x"], "--import no_such_module_x: ModuleNotFoundError"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_broken_package_is_said_and_the_others_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = tmp_path / "site" / "broken_cli-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-cli\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[spangrade.metrics]\nbroken_cli = no_such_module_y:m\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    said = run(capsys, "list")
    assert "overlap" in said
    assert "broken_cli cannot be used: metrics: 'broken_cli' of the package 'broken-cli' does not load" in said
    assert main(["show", "broken_cli"]) == 2
    assert "'broken-cli' does not load" in capsys.readouterr().err


def test_a_missing_extra_is_said_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lookup, "requires", lambda of: ['surely-not-installed[x]>=2; extra == "cost"', "pydantic>=2"])
    said = run(capsys, "list")
    assert "[cost] missing" in row(said, "cost")
    assert 'missing: pip install "spangrade[cost]"' in said
    assert "[cost] missing" in run(capsys, "show", "cost")


def test_the_command_is_found_by_its_entry_point(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["metrics", "show", "json_valid"]) == 0
    assert capsys.readouterr().out.startswith("json_valid: 1 when the answer is one strict JSON value")
    with pytest.raises(SystemExit) as left:
        main([])
    assert left.value.code == 2


def test_a_reader_that_leaves_early_is_no_fault() -> None:
    shown = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from spangrade.cli import main; sys.exit(main(['metrics', 'show', 'pii']))",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert shown.stdout is not None
    assert shown.stderr is not None
    shown.stdout.close()
    with shown:
        assert shown.stderr.read() == b""
    assert shown.returncode == cli.UNREAD
