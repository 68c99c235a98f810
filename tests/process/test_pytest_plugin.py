"""The pytest plugin, in a pytest of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
HEAD = """
import pytest
import spangrade as sg

@sg.metric
def exact(output, expected):
    return sg.Score(output == expected, explanation=f"{output!r} is not {expected!r}")

@sg.metric(lower_is_better=True, threshold=2)
def words(output):
    return len(output.split())
"""
ROWS = [{"id": f"q{n}", "question": f"Question {n}", "expected": f"QUESTION {n}", "lang": "fr"} for n in range(10)]


class Ran:
    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.code, self.text = done.returncode, done.stdout + done.stderr

    def __contains__(self, text: str) -> bool:
        return text in self.text

    def __repr__(self) -> str:
        return self.text


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        # Others' plugins of this venv cost each of these runs three times what ours and pytest do.
        others = "-p no:schemathesis -p no:hypothesispytest -p no:xdist -p no:anyio"
        (path / "pytest.ini").write_text(
            f"[pytest]\naddopts = --strict-markers -p no:cacheprovider {others}\nfilterwarnings = error\n"
        )

    def dataset(self, rows: list[dict[str, str]], name: str = "faq.jsonl") -> None:
        (self.path / name).parent.mkdir(exist_ok=True)
        (self.path / name).write_text("\n".join(map(json.dumps, rows)))

    def run(self, test: str, *arguments: str, where: str = "test_it.py") -> Ran:
        (self.path / where).parent.mkdir(exist_ok=True)
        (self.path / where).write_text(HEAD + test)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPANGRADE_", "OTEL_", "PYTEST_"))}
        return Ran(
            subprocess.run(
                [sys.executable, "-m", "pytest", "-q", *arguments],
                cwd=self.path,
                env={**environment, "PYTHONPATH": str(REPOSITORY / "sdk")},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        )


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_marked_test_is_the_task_and_passes_when_its_pass_rate_is_reached(folder: Folder) -> None:
    folder.dataset([*ROWS[:9], {**ROWS[9], "expected": "else"}])
    done = folder.run(
        """
@pytest.fixture
def client():
    return str.upper

@pytest.mark.spangrade(dataset="faq.jsonl", evaluators=[exact], min_pass_rate=0.9)
def test_faq(question, client, lang):
    assert lang == "fr"
    return client(question)

@pytest.mark.spangrade(dataset="faq.jsonl", evaluators=[exact], min_pass_rate=0.9)
async def test_async(item):
    return item["question"].upper()

@pytest.mark.spangrade("faq.jsonl", [words])
def test_positional(input):
    return input

class TestInAClass:
    @pytest.mark.spangrade(dataset=(row for row in [{"input": "a", "expected": "A", "k": 1}]), evaluators=exact)
    def test_method(self, input, k, tmp_path):
        assert tmp_path.exists()
        return input.upper()
""",
        "-vv",
    )
    assert done.code == 0, done.text
    assert "test_faq[faq.jsonl] PASSED" in done
    assert "test_method[dataset] PASSED" in done


def test_a_marked_test_that_fails_says_what_fell_under_what_and_which_items_and_why(folder: Folder) -> None:
    folder.dataset(ROWS)
    done = folder.run(
        """
@pytest.mark.spangrade(dataset="faq.jsonl", evaluators=[exact], min_pass_rate=0.9)
def test_faq(question):
    if question == "Question 7":
        raise RuntimeError("no model")
    return question.upper() if question != "Question 3" else "wrong"
"""
    )
    assert done.code == 1
    assert "exact: pass rate 80.0% (8 of 10, 1 failed tasks counted as not passed) is under 90.0%" in done
    assert "q3  Question 3 → wrong" in done
    assert "exact: 0 (fail): 'wrong' is not 'QUESTION 3'" in done
    assert "q7  Question 7" in done
    assert "task failed: RuntimeError: no model" in done
    assert "pytest_plugin.py" not in done


def test_without_a_limit_everything_has_to_pass_and_limits_by_name_are_means(folder: Folder) -> None:
    folder.dataset([ROWS[0], {**ROWS[1], "expected": "else"}])
    done = folder.run(
        """
@pytest.mark.spangrade(dataset="faq.jsonl", evaluators=[exact])
def test_all(question):
    return question.upper()

@pytest.mark.spangrade(dataset="faq.jsonl", evaluators=[exact, words], fail_under={"exact": 0.5, "words": 2})
def test_means(question):
    return question.upper()

@pytest.mark.spangrade(dataset="faq.jsonl", evaluators=[exact], fail_under={"exacd": 0.5})
def test_misspelt(question):
    return question.upper()
"""
    )
    assert "1 passed" in done
    assert "exact: pass rate 50.0% (1 of 2) is under 100.0%" in done
    assert "exacd was never scored: there is no score of that name (there are exact)" in done


def test_a_baseline_that_is_better_fails_the_test(folder: Folder) -> None:
    folder.dataset(ROWS)
    test = """
@pytest.mark.spangrade(dataset="faq.jsonl", evaluators=[exact], min_pass_rate=0, BASE)
def test_faq(question):
    return ANSWER
"""
    good = test.replace("BASE", "name='good'").replace("ANSWER", "question.upper()")
    assert folder.run(good, "--spangrade-results", "out").code == 0
    (saved,) = (folder.path / "out").iterdir()
    assert saved.name == "test_it.py_test_faq_faq.jsonl.json"
    assert json.loads(saved.read_text())["run"]["name"] == "good"
    done = folder.run(test.replace("BASE", f"baseline='out/{saved.name}'").replace("ANSWER", "'wrong'"))
    assert done.code == 1
    assert "exact is worse than in the baseline" in done


def test_files_are_looked_for_beside_the_test_then_in_the_root(folder: Folder) -> None:
    folder.dataset(ROWS[:1], "tests/beside.jsonl")
    folder.dataset(ROWS[:1], "root.jsonl")
    test = """
@pytest.mark.spangrade(dataset="beside.jsonl", evaluators=[exact])
def test_beside(question):
    return question.upper()

@pytest.mark.spangrade(dataset="root.jsonl", evaluators=[exact])
def test_root(question):
    return question.upper()
"""
    assert "2 passed" in folder.run(test, where="tests/test_it.py")


def test_what_cannot_work_is_said_in_one_sentence(folder: Folder) -> None:
    done = folder.run(
        """
@pytest.mark.spangrade(dataset="gone.jsonl", evaluators=[exact])
def test_gone(input):
    return input

@pytest.mark.spangrade(evaluators=[exact])
def test_none(input):
    return input

@pytest.mark.spangrade(dataset=[{"input": "a"}], evaluators=[exact])
def test_no_item():
    return "x"

@pytest.mark.spangrade(dataset=[{"input": "a"}], evaluators=["overlapp"])
def test_unknown(input):
    return input
"""
    )
    assert "spangrade: dataset 'gone.jsonl' cannot be read: No such file" in done
    assert "needs dataset=... and evaluators=[...]" in done
    assert "takes a field of its items, such as `input` or `item`" in done
    assert "did you mean 'overlap'" in done
    done = folder.run("@pytest.mark.spangrade(dataset=[], evaluatorz=[])\ndef test_x(input): pass\n")
    assert "has no evaluatorz; it has dataset, evaluators, " in done


def test_the_fixture_grades_one_sample(folder: Folder) -> None:
    done = folder.run(
        """
def test_scores(spangrade):
    scores = spangrade.score(input="q", output="a b c", expected="a", evaluators=[exact, words])
    assert scores["exact"].value == 0.0 and scores["words"].value == 3.0 and not scores.passed
    assert spangrade.score(sg.Sample(output="a", expected="a"), [exact]).passed
    spangrade.assert_score({"answer": "a", "reference": "a"}, [exact, words])
    spangrade.assert_score(output="a b c", evaluators=words, at_least=3)
    with pytest.raises(KeyError, match="there are exact, words"):
        scores["nope"]

def test_fails(spangrade):
    spangrade.assert_score(output="b", expected="a", evaluators=[exact])

def test_skipped(spangrade):
    spangrade.assert_score(output="b", evaluators=["overlap"])

def test_under(spangrade):
    spangrade.assert_score(output="a b c", expected="", evaluators=[words], at_least={"words": 1, "other": 2})

def test_no_output(spangrade):
    spangrade.score(input="b", evaluators=[exact])
"""
    )
    assert "1 passed" in done
    assert "4 failed" in done
    assert "exact: 0 is a fail: 'b' is not 'a'" in done
    assert "overlap: skipped: documents missing" in done
    assert "words: 3 is above 1" in done
    assert "other: was never scored (there are words)" in done
    assert "the sample has no output to grade; give output=..." in done


def test_the_fixture_runs_a_dataset_and_asserts_on_its_results(folder: Folder) -> None:
    folder.dataset(ROWS)
    done = folder.run(
        """
def test_many(spangrade):
    results = spangrade.evaluate("faq.jsonl", str.upper, [exact], repeats=2)
    spangrade.assert_results(results)
    assert results.summary()["exact"].n == 20

def test_fails(spangrade):
    spangrade.assert_results(spangrade.evaluate("faq.jsonl", str.lower, [exact]), min_pass_rate=0.5)
"""
    )
    assert "1 passed" in done
    assert "exact: pass rate 0.0% (0 of 10) is under 50.0%" in done


def test_what_the_readme_shows_is_run(folder: Folder) -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (block,) = [one for one in readme.split("```") if one.startswith("python") and "mark.spangrade" in one]
    folder.dataset([{"question": "it", "documents": "An answer to it."}])
    assert "2 passed" in folder.run(block.removeprefix("python"))


def test_pytest_loads_nothing_of_spangrade_where_nobody_asks_for_it(folder: Folder) -> None:
    (folder.path / "test_other.py").write_text(
        "import sys\n\ndef test_it():\n    assert 'pytest_spangrade' in sys.modules\n    assert 'spangrade' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=folder.path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
