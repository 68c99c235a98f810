"""A file's ``metrics``: options, parameters, and whole trees."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import spangrade as sg
from spangrade.config import FileConfig, load
from spangrade.scoring.evaluators import placed_evaluators

HERE = f"{__name__}:"


class Config(BaseModel):
    at_least: int
    strict: bool = False


class Long(sg.BaseMetric[bool]):
    """Whether it is long enough."""

    config_schema = Config

    def evaluate(self, text: str) -> dict[str, bool]:
        return self.result(len(text or "") >= self.config.at_least)


class Words(sg.BaseMetric[int]):
    def evaluate(self, text: str) -> dict[str, int]:
        return self.result(len((text or "").split()))


class Fails(sg.BaseMetric[int]):
    def evaluate(self, text: str) -> dict[str, int]:
        raise ZeroDivisionError


made = Long({"at_least": 2})


@sg.metric(threshold=100, lower_is_better=True, version=1)
def chars(output: str) -> int:
    return len(output)


@sg.metric(verdict=False)
def measured(output: str) -> dict[str, float]:
    return {"a": 1, "b": 9}


@sg.numeric_metric(allowed_values=(0, 9))
def stars(output: str) -> float:
    return 4


def share(values: list[float]) -> float:
    return min(values) / 2


def placed(tmp_path: Path, text: str) -> list[Any]:
    file = tmp_path / "spangrade.yaml"
    file.write_text(textwrap.dedent(text).replace("HERE:", HERE), encoding="utf-8")
    config = load(file, FileConfig)
    assert FileConfig.model_validate(config.model_dump()) == config  # the agent lays its flags over the file like this
    return [one.evaluator for one in placed_evaluators(config.metrics, [])]


def scores(evaluator: Any, output: str = "one two") -> dict[str, Any]:
    return {graded.name: graded for graded in evaluator.evaluate(sg.Sample(output=output)).scores}


def test_a_metric_takes_its_parameters_its_key_and_its_options(tmp_path: Path) -> None:
    found = placed(
        tmp_path,
        """
        metrics:
          - {use: "HERE:Long", config: {at_least: 3}}
          - {use: "HERE:Long", config: {at_least: 99}, result_key: very_long, version: 1.5, timeout: 9}
          - {use: "HERE:Words", threshold: 2, lower_is_better: true, requires: [output, input], target: tool}
          - {use: "HERE:made", result_key: m}
        """,
    )
    assert [one.info.name for one in found] == ["Long", "Long.very_long", "Words", "Long.m"]
    assert scores(found[0])["Long"].passed is True
    assert scores(found[1])["Long.very_long"].passed is False
    assert (found[1].info.version, found[1].timeout) == ("1.5", 9)
    assert found[2].info.requires == ("output", "input")
    assert (found[2].info.threshold, found[2].info.lower_is_better, found[2].info.target) == (2, True, "tool")
    assert (made.result_key, found[3].info.config_hash != "") == ("Long", True)  # the instance itself is not changed


def test_functions_and_functional_metrics_take_options_too(tmp_path: Path) -> None:
    found = placed(
        tmp_path,
        """
        metrics:
          - {use: "HERE:chars", threshold: 3, result_key: short}
          - {use: "HERE:chars", version: 2}
          - {use: "HERE:stars", threshold: 5, result_key: rated, version: 7}
          - {use: "HERE:measured", threshold: 5}
          - {use: overlap, threshold: 0.9}
        """,
    )
    assert (scores(found[0])["short"].passed, chars.threshold) == (False, 100)
    assert (found[1].info.version, found[1].info.config_hash != chars.info.config_hash) == ("2", True)
    assert (scores(found[2])["rated"].passed, found[2].info.version) == (False, "7")
    assert {name: one.passed for name, one in scores(found[3]).items()} == {"measured.a": False, "measured.b": True}
    assert found[4].info.threshold == 0.9


def test_built_ins_with_parameters_take_them_as_config(tmp_path: Path) -> None:
    (regex, words) = placed(
        tmp_path,
        """
        metrics:
          - {use: regex, config: {pattern: "^one"}, result_key: starts}
          - {use: "spangrade.metrics.builtin.length:length_words", threshold: 1}
        """,
    )
    assert scores(regex)["starts"].value == 1
    assert scores(words)["length_words"].passed is False


TREE = """
metrics:
  - tree:
      name: quality
      aggregate: mean
      threshold: 0.5
      children:
        - json_valid
        - {use: "HERE:Long", config: {at_least: 3}, weight: 3}
        - {use: "HERE:chars", weight: 0, threshold: 4}
        - tree:
            name: style
            result_key: look
            aggregate: min
            children: [{use: "HERE:Words", result_key: words}, {use: "HERE:stars"}]
          weight: 0
        - {use: "HERE:Fails", weight: 0}
    match: {service.name: "rag-*"}
"""


def test_a_whole_tree_is_written_in_the_file(tmp_path: Path) -> None:
    (found,) = placed(tmp_path, TREE)
    by_name = scores(found)
    assert {name: (one.value, one.path) for name, one in by_name.items()} == {
        "quality.json_valid": (0.0, "quality/json_valid"),
        "quality.Long": (1.0, "quality/Long"),
        "quality.chars": (7.0, "quality/chars"),
        "quality.words": (2.0, "quality/look/words"),
        "quality.stars": (4.0, "quality/look/stars"),
        "quality.look": (2.0, "quality/look"),
        "quality": (0.75, "quality"),
    }
    assert (by_name["quality"].passed, by_name["quality.chars"].passed) == (True, False)
    verdict: Any = found.evaluate(sg.Sample(output="x"))
    assert [(f.name, f.kind, f.path) for f in verdict.failures] == [
        ("quality.Fails", "ZeroDivisionError", "quality/Fails")
    ]
    assert found.info.threshold == 0.5


def test_an_instance_of_the_applications_may_be_used_more_than_once(tmp_path: Path) -> None:
    text = """
    metrics:
      - "HERE:made"
      - {tree: {name: q, children: ["HERE:made", {use: "HERE:made", result_key: again}]}}
      - {tree: {name: r, children: ["HERE:made"]}}
    """
    alone, q, r = placed(tmp_path, text)
    assert set(scores(alone)) | set(scores(q)) | set(scores(r)) == {"Long", "q.Long", "q.again", "r.Long"}
    assert made.parent is None


def test_an_aggregate_may_be_a_function_of_the_applications(tmp_path: Path) -> None:
    text = """
    metrics: [{tree: {name: q, aggregate: "HERE:share", on_missing: ignore, children: ["HERE:Words", "HERE:Fails"]}}]
    """
    (found,) = placed(tmp_path, text)
    assert scores(found)["q"].value == 1.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[{use: overlap, treshold: 1}]",
            r"unknown key 'metrics\.0\.treshold' \(a metric has use, or tree; .*threshold",
        ),
        ("[{use: overlap, weight: 1}]", r"unknown key 'metrics\.0\.weight'"),
        ("[{use: overlap, threshold: high}]", r"'metrics\.0\.threshold' is 'high'"),
        ("[{use: overlap, threshold: no}]", r"'metrics\.0\.threshold' is False: .*should be a number; yes, no"),
        ("[{use: overlap, timeout: yes}]", r"'metrics\.0\.timeout' is True: .*should be a number"),
        ("[{use: overlap, timeout: 0}]", r"'metrics\.0\.timeout' is 0"),
        ("[{tree: {name: q, children: []}}]", r"'metrics\.0\.tree\.children' is \[\]"),
        ("[{tree: {children: [overlap]}}]", r"'metrics\.0\.tree\.name' is missing"),
        (
            "[{tree: {name: q, children: [{use: overlap, wieght: 2}]}}]",
            r"unknown key 'metrics\.0\.tree\.children\.0\.wieght'",
        ),
        ("[{tree: {name: q, children: [overlap]}, use: overlap}]", r"unknown key 'metrics\.0\.use'"),
        ("[overlp]", r"metrics\[0\]: there is no metric 'overlp'; did you mean 'overlap'"),
        ("[{use: overlap, config: {x: 1}}]", "metric 'overlap' takes no config; 'x' is none of its parameters"),
        ("[overlap, {use: 'HERE:Long'}]", r"metrics\[1\]: metric 'Long': 'at_least' is missing"),
        ("[{use: 'HERE:Long', config: {at_least: '5'}}]", "'at_least' is '5': Input should be a valid integer"),
        ("[{use: 'HERE:Long', config: {at_leest: 5}}]", "there is no parameter 'at_leest'"),
        ("[{use: 'HERE:made', config: {at_least: 5}}]", "takes no config"),
        ("[{use: regex}]", "give the pattern"),
        (
            "[{use: regex, config: {patern: x}}]",
            r"metric 'regex': there is no parameter 'patern' \(it takes pattern, must",
        ),
        ("[{use: regex, config: {pattern: '('}}]", "regex"),
        ("[{use: overlap, requires: [nothing]}]", "requires 'nothing'"),
        ("[{use: overlap, target: roof}]", "target 'roof'"),
        (
            "[{tree: {name: q, children: [overlap, {tree: {name: r, children: ['HERE:Nothing']}}]}}]",
            r"metrics\[0\]: q\.children\[1\]: r\.children\[0\]: module '.*' has no 'Nothing'",
        ),
        (
            "[{tree: {name: q, children: [overlap, overlap]}}]",
            r"q\.children\[1\]: two results of tree 'q' would have the key 'overlap'",
        ),
        ("[{tree: {name: q, result_key: ' ', children: [overlap]}}]", "result_key"),
        ("[{tree: {name: '', children: [overlap]}}]", "tree's name '' is empty"),
        ("[{use: 'HERE:Words', result_key: ''}]", "result_key"),
        ("[{tree: {name: q, aggregate: avg, children: [overlap]}}]", "aggregate 'avg' is not one of mean, min, max"),
        (
            "[{tree: {name: q, aggregate: mean, children: [{use: overlap, weight: 0}]}}]",
            "nothing with a weight above 0",
        ),
        ("[{tree: {name: q, aggregate: mean, children: [overlap, 'HERE:chars']}}]", "less is better for q/chars"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(sg.ConfigError, match=said):
        placed(tmp_path, f"metrics: {text}")


def test_the_readmes_tree_is_one(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    (block,) = [block for block in re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL) if "tree:" in block]
    text = block.replace("acme.metrics:Brief", "HERE:Long").replace("at_most", "at_least")
    cites, quality = placed(tmp_path, text)
    assert scores(cites, "It is so [1].")["cites"].value == 1
    found = scores(quality, "x" * 40)
    assert {"quality.Long", "quality.json_valid", "quality.pii", "quality.refusal"} <= set(found)
    assert found["quality"].value == 0.75
