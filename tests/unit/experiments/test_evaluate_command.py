"""`spangrade evaluate`: exit codes, words, files."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spangrade.commands.evaluate import main
from spangrade.experiments import Results
from spangrade.experiments.run import EvaluationInterrupted
from spangrade.testing import ScriptedJudgeClient

COMMAND = str(Path(sys.executable).with_name("spangrade"))
ROWS = [{"id": "a", "question": "one", "expected": "ONE"}, {"id": "b", "question": "two", "expected": "else"}]
BOT = """
import spangrade as sg
from spangrade.testing import ScriptedJudgeClient

def answer(question):
    return question.upper()

def broken(question):
    raise RuntimeError("no model")

class Client:
    def answer(self, question):
        return question.upper()

client = Client()

@sg.metric
def exact(output, expected):
    return output == expected

@sg.metric(requires=["documents"])
def cites(documents):
    return 1.0

judge = sg.LlmJudge("helpful", "c", scale="binary", model="m").with_client(
    ScriptedJudgeClient('{"reasoning": "r", "verdict": "pass"}')
)
"""


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the working directory, another one in each test."""
    name = f"bot_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(BOT)
    (tmp_path / "faq.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    monkeypatch.chdir(tmp_path)
    return name


def run(bot: str, *arguments: str, task: str = "answer", metric: str = "exact") -> int:
    return main(["faq.jsonl", "--task", f"{bot}:{task}", "--metric", f"{bot}:{metric}", *arguments])


def test_limits_that_are_reached_exit_with_0_and_those_that_are_not_with_1_and_say_which(
    bot: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bot) == 0
    assert run(bot, "--fail-under", "0.5", "--fail-under", "exact=0.5") == 0
    assert "ok    exact: pass rate 50.0% (1 of 2) reaches 50.0%" in capsys.readouterr().out
    assert run(bot, "--fail-under", "0.5", "--fail-under", "exact=0.8") == 1
    said = capsys.readouterr().out
    assert "FAIL  exact: mean 0.5 is under 0.8 (n=2)" in said
    assert "b  two → TWO\n    exact: 0 (fail)" in said


def test_a_name_that_was_never_scored_fails_and_so_does_a_run_in_which_nothing_was(
    bot: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bot, "--fail-under", "typo=0.1") == 1
    assert "typo was never scored: there is no score of that name (there are exact)" in capsys.readouterr().out
    assert run(bot, "--fail-under", "cites=0", metric="cites") == 1
    assert "cites was never scored: 2 skipped (documents missing)" in capsys.readouterr().out
    assert run(bot, task="broken") == 1
    both = capsys.readouterr()
    assert "the task failed in 2 of 2 runs, first on a: RuntimeError: no model" in both.out
    assert "nothing was scored" in both.err


def test_errors_are_no_passes_and_a_mean_is_believed_with_some_only_if_that_is_said(bot: str, tmp_path: Path) -> None:
    (tmp_path / "faq.jsonl").write_text('{"id": "a", "output": "x", "expected": "x"}\n{"id": "b", "expected": "y"}')
    arguments = ["faq.jsonl", "--metric", f"{bot}:exact"]
    assert main([*arguments, "--fail-under", "0.6"]) == 1
    assert main([*arguments, "--fail-under", "0.5"]) == 0
    assert main([*arguments, "--fail-under", "exact=1"]) == 1
    assert main([*arguments, "--fail-under", "exact=1", "--max-error-rate", "0.5"]) == 0


def test_results_are_saved_also_where_the_gate_fails_and_can_be_a_baseline(
    bot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--name", "nightly", "--repeats", "2", "--metadata", "commit=abc", "--output", "r.json"]
    assert run(bot, "--fail-under", "1", *more) == 1
    saved = Results.load(tmp_path / "r.json")
    assert (saved.run.name, saved.run.repeats, dict(saved.run.metadata)) == ("nightly", 2, {"commit": "abc"})
    capsys.readouterr()
    assert run(bot, "--baseline", "r.json", "--fail-if-worse", "--html", "r.html") == 0
    assert "delta" in capsys.readouterr().out
    assert (tmp_path / "r.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html")


def test_json_is_all_of_standard_output_and_machines_can_read_it(bot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(bot, "--json", "--fail-under", "0.9") == 1
    said = json.loads(capsys.readouterr().out)
    assert said["passed"] is False
    assert said["summary"]["exact"]["mean"] == 0.5
    assert said["limits"] == [
        {"name": "exact", "met": False, "says": "exact: pass rate 50.0% (1 of 2) is under 90.0%"}
    ]  # fmt: skip


def test_judges_come_by_import_path_and_from_a_configuration_file_live_or_not(
    bot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(bot, "--judge", f"{bot}:judge") == 0
    assert "helpful" in capsys.readouterr().out
    client = ScriptedJudgeClient('{"reasoning": "r", "verdict": "pass"}')
    monkeypatch.setattr("spangrade.judges.asking.client_from_environment", lambda model: (client, model))
    (tmp_path / "c.yaml").write_text(
        f"metrics: [length_words, {{use: '{bot}:exact'}}]\n"
        "judges:\n- {name: quiet, criteria: c, scale: binary, model: m}\n"
        "- {name: loud, criteria: c, scale: binary, model: m, live: {rate: 0.001}}\n"
    )
    assert main(["faq.jsonl", "--task", f"{bot}:client.answer", "--config", "c.yaml", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert {name: line["n"] for name, line in summary.items()} == {"length_words": 2, "exact": 2, "quiet": 2, "loud": 2}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["gone.jsonl", "--metric", "overlap"], "'gone.jsonl' cannot be read"),
        (["faq.jsonl"], "nothing to score with; give --metric, --judge or --config"),
        (["faq.jsonl", "--metric", "overlap"], "no task, and no item of faq.jsonl has an output"),
        (["faq.jsonl", "--metric", "nope"], "nope"),
        (["faq.jsonl", "--metric", "overlap", "--task", "bot"], "--task 'bot' is no import path; write module:name"),
        (["faq.jsonl", "--metric", "overlap", "--task", "no.such:x"], "does not import: ModuleNotFoundError"),
        (["faq.jsonl", "--metric", "overlap", "--task", "json:nope"], "module 'json' has no 'nope'"),
        (["faq.jsonl", "--metric", "overlap", "--fail-under", "90"], "a pass rate is a share from 0 to 1, such as 0.9"),
        (["faq.jsonl", "--metric", "overlap", "--max-error-rate", "5"], "--max-error-rate 5 is no share"),
        (["faq.jsonl", "--metric", "overlap", "--output", "no/r.json"], "--output 'no/r.json': there is no folder"),
        (["faq.jsonl", "--metric", "overlap", "--fail-if-worse"], "give --baseline FILE"),
        (["faq.jsonl", "--metric", "overlap", "--baseline", "gone.json"], "'gone.json' cannot be read"),
        (["faq.jsonl", "--metric", "overlap", "--repeats", "0"], "repeats 0 is not a whole number"),
        (["faq.jsonl", "--metric", "overlap", "--metadata", "x"], "--metadata 'x' is not KEY=VALUE"),
        (["faq.jsonl", "--metric", "overlap", "--export"], "--export has nowhere to go"),
        (["faq.jsonl", "--config", "gone.yaml"], "'gone.yaml' cannot be read"),
    ],
)
def test_what_cannot_work_exits_with_2_and_one_line_that_says_what(
    bot: str, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    both = capsys.readouterr()
    assert says in both.err
    assert both.out == ""


def test_a_run_that_is_stopped_saves_what_it_has_and_exits_with_130(
    bot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: Any, **__: Any) -> Results:
        raise EvaluationInterrupted(Results())

    monkeypatch.setattr("spangrade.commands.evaluate.evaluate", stopped)
    assert run(bot, "--output", "r.json") == 130
    assert Results.load(tmp_path / "r.json") == Results()
    assert "stopped after 0 runs" in capsys.readouterr().err


def test_the_command_ends_although_a_task_hangs_and_says_nothing_it_should_not(bot: str, tmp_path: Path) -> None:
    (tmp_path / "hang.py").write_text("import threading\n\ndef answer(question):\n    threading.Event().wait()\n")
    done = subprocess.run(
        [COMMAND, "evaluate", "faq.jsonl", "--task", "hang:answer",
         "--metric", "overlap", "--timeout", "0.2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "first on a: timeout: gave no output within 0.2 s" in done.stdout
    assert done.stderr == "spangrade evaluate: nothing was scored\n"


def test_export_sends_the_runs_with_their_scores(bot: str, tmp_path: Path) -> None:
    from examples.demo.processes import ReceiverProcess

    with ReceiverProcess() as receiver:
        done = subprocess.run(
            [COMMAND, "evaluate", "faq.jsonl", "--task", f"{bot}:answer", "--metric",
             f"{bot}:exact", "--export"],
            cwd=tmp_path,
            env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.base_url},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        spans = receiver.spans()
    assert sorted(span["attributes"]["spangrade.experiment.item_id"] for span in spans) == ["a", "b"]
    assert all([e["attributes"]["gen_ai.evaluation.name"] for e in span["events"]] == ["exact"] for span in spans)
