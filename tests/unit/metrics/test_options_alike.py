"""An option means the same, and is refused in the same words, whatever the family of the metric."""

from collections.abc import Callable
from typing import Any

import pytest

import spangrade as sg


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


@pytest.mark.parametrize("made", [sg.metric, sg.numeric_metric, sg.discrete_metric, sg.ranking_metric])
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
