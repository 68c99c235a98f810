"""An option means the same, and is refused in the same words, whatever the family of the metric."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spangrade as sg
from spangrade.config import FileConfig, load
from spangrade.metrics.entries import evaluator_from
from spangrade.metrics.options import with_options
from spangrade.model.evaluator import EvaluatorInfo, Verdict
from spangrade.model.score import Graded, Rule


class Words(sg.BaseMetric[float]):
    def evaluate(self, text: str | None) -> dict[str, float]:
        return self.result(1.0)


def local(**options: Any) -> Any:
    return sg.metric(name="m", **options)(lambda output: 1)


def numeric(**options: Any) -> Any:
    return sg.numeric_metric(name="m", **options)(lambda output: 1)


def tree(**options: Any) -> Any:
    return sg.CompositeMetric("m", [Words()], **options)


FAMILIES = [local, numeric, Words, tree]
WRONG = [
    ({"threshold": "0.5"}, "threshold '0.5' is not a number"),
    ({"lower_is_better": "no"}, "lower_is_better 'no' is neither True nor False"),
    ({"verdict": "no"}, "verdict 'no' is neither True nor False"),
    ({"verdict": None}, "verdict None is neither True nor False"),
    ({"version": 1.5}, "version 1.5 is neither a whole number nor a text"),
    ({"version": True}, "version True is neither a whole number nor a text"),
    ({"requires": 3}, "requires 3; a Sample has input, output"),
    ({"requires": None}, "requires None; a Sample has input, output"),
    ({"requires": ["docs"]}, "requires 'docs'; a Sample has input, output"),
    ({"target": "leaf"}, "target 'leaf' is not one of root"),
    ({"timeout": 0}, "timeout 0 is not a number of seconds above 0"),
]


@pytest.mark.parametrize("made", FAMILIES)
@pytest.mark.parametrize(("options", "said"), WRONG)
def test_a_wrong_option_is_refused_in_the_same_words_by_every_family(
    made: Callable[..., Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(sg.ConfigError, match="metric") as fault:
        made(**options)
    assert said in str(fault.value)


@pytest.mark.parametrize(
    "made",
    [
        sg.metric,
        sg.numeric_metric,
        sg.discrete_metric,
        sg.ranking_metric,
        lambda name, process: lambda _: Words(process=process),
        lambda name, process: lambda _: sg.CompositeMetric(name, [Words()], process=process),
    ],
)
def test_what_is_neither_in_a_worker_process_nor_here_is_refused(made: Callable[..., Any]) -> None:
    with pytest.raises(sg.ConfigError, match="process 'yes' is neither True"):
        made(name="m", process="yes")(lambda output: 1)


def test_discrete_metrics_take_no_verdict_but_true_or_false() -> None:
    with pytest.raises(sg.ConfigError, match="verdict 0 is neither True nor False"):
        sg.discrete_metric(name="m", verdict=0)(lambda output: "pass")  # type: ignore[arg-type]


@pytest.mark.parametrize("attribute", ["lower_is_better", "verdict"])
def test_a_class_attribute_is_checked_too(attribute: str) -> None:
    wrong = type("Wrong", (Words,), {attribute: "no"})
    with pytest.raises(sg.ConfigError, match=f"{attribute} 'no' is neither True nor False"):
        sg.evaluate([{"output": "a"}], None, [wrong], progress=False)


@pytest.mark.parametrize("made", [sg.metric, sg.numeric_metric])
def test_a_name_that_is_no_text_is_called_that(made: Callable[..., Any]) -> None:
    with pytest.raises(sg.ConfigError, match=r"a name, not 3|name 3 is no text"):
        made(name=3)(lambda output: 1)


PLACE = "tests.unit.metrics.metrics_for_tests"


@pytest.mark.parametrize(
    "entry",
    [
        f"{{use: '{PLACE}:Elsewhere'}}",
        f"{{use: '{PLACE}:elsewhere', result_key: Elsewhere}}",
        f"{{tree: {{name: t, children: [{{use: '{PLACE}:Elsewhere'}}], process: true}}}}",
        f"{{use: '{PLACE}:here', process: true, result_key: Elsewhere}}",
    ],
)
def test_a_metric_of_any_family_and_a_tree_may_run_in_a_worker_process(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3]))
    file = tmp_path / "spangrade.yaml"
    file.write_text(f"metrics: [{entry}]")
    (given,) = load(file, FileConfig).metrics
    evaluator = evaluator_from(given)
    results = sg.evaluate([{"output": "a"}, {"output": "b"}], None, [evaluator], progress=False)
    processes = [score.value for item in results.items for score in item.scores]
    assert len(processes) == 2
    assert {score.name.removeprefix("t.") for item in results.items for score in item.scores} == {"Elsewhere"}
    assert None not in processes
    assert os.getpid() not in processes


@pytest.mark.parametrize("in_tree", [False, True])
def test_a_class_that_its_worker_could_not_import_is_refused_before_anything_runs(in_tree: bool) -> None:
    class Inside(Words):
        pass

    given = sg.CompositeMetric("m", [Inside()], process=True) if in_tree else Inside(process=True)
    with pytest.raises(sg.ConfigError, match="process=True"):
        sg.evaluate([{"output": "a"}], None, [given], progress=False)


@pytest.mark.parametrize("option", [{"threshold": 0.5}, {"lower_is_better": True}])
@pytest.mark.parametrize(
    ("made", "gives"), [(sg.discrete_metric, "gives a category"), (sg.ranking_metric, "gives a list")]
)
def test_a_threshold_for_what_is_no_number_is_refused_and_says_what_decides(
    made: Callable[..., Any], gives: str, option: dict[str, Any]
) -> None:
    given = made(name="m")(lambda output: "pass")
    with pytest.raises(
        sg.ConfigError, match=f"metric 'm' {gives}, which {next(iter(option))} does not apply to"
    ) as fault:
        with_options(given, option)
    assert "pass, fail, True, False" in str(fault.value)
    assert with_options(given, {"timeout": 1}).timeout == 1


class Says:
    """An evaluator of an application's own, that fails what its rule would pass."""

    info = EvaluatorInfo("m", threshold=0.5)
    timeout = 1.0
    is_async = False

    def evaluate(self, sample: sg.Sample) -> Verdict:
        leaf = Graded("m.leaf", 0.1, "fail", False, path="m/leaf", rule=Rule(0.5, False, True))
        return Verdict((Graded("m.said", 0.9, "fail", False), Graded("m.found", 0.3, "fail", False), leaf))


def test_another_threshold_regrades_what_the_old_one_decided_and_nothing_else() -> None:
    told: Any = with_options(Says(), {"threshold": 0.2})
    said, found, leaf = told.evaluate(sg.Sample(output="x")).scores
    assert (said.passed, said.label) == (False, "fail")
    assert (found.passed, found.label) == (True, "pass")
    assert (leaf.passed, leaf.label) == (False, "fail")
