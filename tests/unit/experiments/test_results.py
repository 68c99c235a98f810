"""Results: summary, table, file, DataFrame."""

import json
import math
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pandas
import pytest
from tests.unit.experiments.made import BOOM, failed, item, results, scored

from spangrade import compare
from spangrade.errors import ConfigError
from spangrade.experiments.records import EvaluatorRecord, ItemResult, RunRecord, ScoreResult
from spangrade.experiments.results import Results
from spangrade.model.outcome import Outcome
from spangrade.model.score import Rule


def rich() -> Results:
    first = ItemResult(
        "a",
        0,
        input={"q": "naïve?", "n": 1},
        output="yes",
        expected="no",
        documents=({"content": "d", "metadata": {"k": [1]}},),
        context={"model": "gpt"},
        metadata={"lang": "fr"},
        scores=(
            ScoreResult(
                "a", 0, "m", "m@1", Outcome.SCORED, 0.5, "pass", True, "why", metadata={"x": [1]}, duration_s=0.1
            ),
            ScoreResult("a", 0, "m.deep", "m@1", Outcome.SCORED, structured=[1, {"a": None}], path="tree/deep"),
            ScoreResult("a", 0, "n", "n", Outcome.SKIPPED, reason="documents missing"),
        ),
        duration_s=1.5,
        trace_id="0" * 31 + "1",
    )
    second = ItemResult("b", 1, error=BOOM, metadata={"lang": "de", "n": 2})
    evaluators = (
        EvaluatorRecord("m", config_hash="1", threshold=0.5, requires=("output",)),
        EvaluatorRecord("n", "llm"),
    )
    return Results((first, second), evaluators, RunRecord("exp", "data.jsonl", repeats=2, metadata={"commit": "abc"}))


def test_what_is_saved_is_loaded_again_equal(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    rich().save(path)
    assert Results.load(path) == rich()
    assert list(tmp_path.iterdir()) == [path]


def test_loaded_results_are_as_read_only_as_those_that_were_made(tmp_path: Path) -> None:
    rich().save(tmp_path / "r.json")
    loaded = Results.load(tmp_path / "r.json")
    with pytest.raises(TypeError, match="snapshot"):
        loaded.items[0].metadata["lang"] = "en"  # type: ignore[index]
    with pytest.raises(TypeError, match="snapshot"):
        loaded.items[0].scores[1].structured.append(1)
    with pytest.raises(FrozenInstanceError):
        loaded.items[0].output = "x"  # type: ignore[misc]


def test_the_file_says_its_format_and_holds_a_summary_for_other_readers() -> None:
    plain = json.loads(rich().to_json())
    assert plain["format"] == 1
    assert plain["summary"]["m"]["mean"] == 0.5
    assert json.loads(rich().to_json(indent=2)) == plain


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"format": 2}', "format 2"),
        ('{"format": true}', "format True"),
        ("[]", "no results file"),
        ("{}", "no results file"),
        ("{", "not JSON"),
        ('{"format": 1, "items": [{"item_id": 3}]}', "item_id"),
        ('{"format": 1, "items": 7}', "damaged"),
        ('{"format": 1, "items": [7]}', "damaged"),
        ('{"format": 1, "items": [{"item_id": "a", "scores": [{"name": "m", "evaluator": "m", "outcome": "great"}]}]}', "outcome"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_results_file_of_this_format_is_named_with_what_is_wrong(
    tmp_path: Path, text: str, says: str
) -> None:
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says) as caught:
        Results.load(path)
    assert "old.json" in str(caught.value)


def test_a_missing_file_and_an_unwritable_one_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.json.*No such file"):
        Results.load(tmp_path / "gone.json")
    with pytest.raises(ConfigError, match="cannot be written"):
        rich().save(tmp_path / "no" / "such" / "folder.json")


def test_a_summary_counts_every_end_and_means_over_items_not_over_runs() -> None:
    made = results(
        item(scored("a", 1.0, True)),
        item(scored("a", 0.0, False, repeat=1)),
        item(scored("b", 1.0, True)),
        item(failed("b", repeat=1)),
        item(failed("c", Outcome.TIMEOUT)),
        item(failed("d", Outcome.SKIPPED)),
        item(item_id="e", error=BOOM),
    )
    line = made.summary()["m"]
    assert (line.n, line.items, line.passed, line.failed) == (3, 2, 2, 1)
    assert (line.skipped, line.errors, line.timeouts, line.not_run) == (1, 1, 1, 1)
    assert line.mean == line.pass_rate == 0.75  # (0.5 + 1) / 2, and not 2 / 3


def test_an_evaluator_that_gave_no_score_has_a_line_that_says_so() -> None:
    line = results(item(item_id="e", error=BOOM)).summary()["m"]
    assert (line.n, line.mean, line.pass_rate, line.not_run) == (0, None, None, 1)


def test_scores_of_several_names_stand_in_their_evaluators_order() -> None:
    made = results(
        item(scored("a", 1.0, name="z.b", evaluator="z"), scored("a", 2.0, name="z.a", evaluator="z"), scored("a", 3.0, name="b")),
        evaluators=(EvaluatorRecord("b"), EvaluatorRecord("z")),
    )  # fmt: skip
    assert made.names() == ["b", "z.b", "z.a"]
    assert made.evaluator("z.a").name == "z"


def test_scores_gives_those_of_a_name_with_their_items_and_an_unknown_name_says_which_there_are() -> None:
    made = results(item(scored("a", 1.0)), item(failed("b")))
    assert [(score.item_id, score.value) for score in made.scores("m")] == [("a", 1.0), ("b", None)]
    assert made.scores("m")[1].failed
    with pytest.raises(KeyError, match="there are m"):
        made.scores("nope")


def test_print_shows_a_table_with_every_name_and_the_first_failure_of_the_task() -> None:
    text = str(rich())
    assert "exp: 2 runs of 2 items of data.jsonl" in text
    assert "m.deep" in text
    assert "the task failed in 1 of 2 runs, first on b: ValueError: boom" in text


def test_to_pandas_has_a_row_for_every_score_and_one_for_a_run_without() -> None:
    frame = rich().to_pandas()
    assert list(frame["score"][:3]) == ["m", "m.deep", "n"]
    assert list(frame["outcome"][:3]) == ["scored", "scored", "skipped"]
    assert pandas.isna(frame["score"][3])
    assert frame["value"][0] == 0.5
    assert math.isnan(frame["value"][1])
    assert list(frame["metadata.lang"]) == ["fr", "fr", "fr", "de"]
    assert frame["task_error"][3] == "ValueError: boom"
    assert frame["config_hash"][0] == "1"
    assert list(Results().to_pandas().columns)[:3] == ["item_id", "repeat", "score"]


def test_where_an_evaluator_of_several_scores_failed_as_a_whole_each_of_them_is_missing() -> None:
    made = results(
        item(scored("a", 1.0, True, name="m.x", evaluator="m"), scored("a", 2.0, name="m.y", evaluator="m")),
        item(failed("b")),
    )
    assert made.names() == ["m.x", "m.y"]
    assert [(line.n, line.errors) for line in made.summary().values()] == [(1, 1), (1, 1)]
    assert [score.item_id for score in made.scores("m")] == ["b"]


def test_a_leaf_of_a_tree_has_its_own_threshold_and_direction(tmp_path: Path) -> None:
    leaf = scored("a", 3.0, True, name="t.words", evaluator="t", rule=Rule(5.0, True, True), path="t/words")
    made = results(item(leaf), evaluators=(EvaluatorRecord("t", threshold=0.5),))
    record = made.evaluator("t.words")
    assert (record.threshold, record.lower_is_better) == (5.0, True)
    made.save(tmp_path / "r.json")
    assert Results.load(tmp_path / "r.json") == made
    worse = results(item(replace(leaf, value=9.0)), evaluators=(EvaluatorRecord("t", threshold=0.5),))
    assert compare(made, worse)["t.words"].lower_is_better


def test_two_evaluators_of_one_name_are_told_apart_by_their_config() -> None:
    made = results(
        item(scored("a", 1.0, evaluator="m@1"), scored("a", 3.0, evaluator="m@2")),
        evaluators=(EvaluatorRecord("m", config_hash="1"), EvaluatorRecord("m", config_hash="2")),
    )
    assert {name: line.mean for name, line in made.summary().items()} == {"m": 1.0, "m@2": 3.0}
    assert [score.value for score in made.scores("m@2")] == [3.0]
    assert made.evaluator("m@2").config_hash == "2"
