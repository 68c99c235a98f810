"""Class metrics and trees on live calls: what leaves on the span, and what is counted."""

import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import spangrade as sg
from spangrade import semconv as s
from spangrade.model.outcome import Outcome
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter, ScriptedJudgeClient, event_scores


class Config(BaseModel):
    at_least: int = 3


@sg.config_schema(Config)
class Long(sg.BaseMetric[bool]):
    """Whether the answer is long enough."""

    def evaluate(self, text: str | None) -> dict[str, bool]:
        return self.result(len(text or "") >= self.config.at_least)


class Tone(sg.BaseMetric[str]):
    async def evaluate(self, text: str) -> dict[str, str]:
        return self.result("calm")


class Fails(sg.BaseMetric[int]):
    def evaluate(self, text: str) -> dict[str, int]:
        raise ZeroDivisionError("by zero")


class Wrong(sg.BaseMetric[int]):
    def evaluate(self, sample: sg.Sample) -> dict[str, int]:
        return {self.result_key: "five"}  # type: ignore[dict-item]


def call(output: Any = "an answer") -> None:
    with sg.trace("call"):
        sg.set_output(output)
    assert sg.flush(10)


def scores(exporter: CollectingExporter) -> dict[str, dict[str, Any]]:
    (span,) = exporter.spans
    return event_scores(span)


def test_instances_classes_and_their_keys_are_scores_on_the_span(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[Long, Long({"at_least": 99}, result_key="very"), Tone(), Wrong], exporter=exporter)
    call()
    found = scores(exporter)
    assert set(found) == {"Long", "Long.very", "Tone", "Wrong"}
    assert (found["Long"][s.SCORE_VALUE], found["Long"][s.SCORE_LABEL]) == (1.0, "pass")
    assert (found["Long.very"][s.SCORE_VALUE], found["Long.very"][s.SCORE_LABEL]) == (0.0, "fail")
    assert found["Long"][s.CONFIG_HASH] != found["Long.very"][s.CONFIG_HASH]
    assert found["Tone"][s.SCORE_LABEL] == "calm"
    assert found["Wrong"][s.ERROR_TYPE] == "ReturnError"
    assert "Wrong is a str, not int" in found["Wrong"][s.EXPLANATION]
    assert not {s.SCORE_VALUE, s.SCORE_LABEL} & set(found["Wrong"])


def test_every_score_of_a_tree_says_its_leaf_and_one_failure_loses_no_other(exporter: CollectingExporter) -> None:
    style = sg.CompositeMetric("style", [Tone(), Long({"at_least": 99}, threshold=1)])
    tree = sg.CompositeMetric("quality", [Long(result_key="long"), style, "json_valid"], threshold=0.9)
    tree.add(Fails(), weight=0)
    sg.configure(metrics=[tree], exporter=exporter)
    call("123")
    found = scores(exporter)
    assert {name: one.get(s.EVALUATOR_PATH) for name, one in found.items()} == {
        "quality.long": "quality/long",
        "quality.Tone": "quality/style/Tone",
        "quality.Long": "quality/style/Long",
        "quality.json_valid": "quality/json_valid",
        "quality.Fails": "quality/Fails",
        "quality": "quality",
    }
    assert {one[s.EVALUATOR_NAME] for one in found.values()} == {"quality"}
    assert len({one[s.SCORE_ID] for one in found.values()}) == len(found)
    assert found["quality.Fails"][s.ERROR_TYPE] == "ZeroDivisionError"
    assert found["quality.Long"][s.THRESHOLD] == 1.0
    assert s.THRESHOLD not in found["quality.long"]
    # The tree's own number: json_valid and the two Longs count, the tone is a label.
    assert found["quality"][s.ERROR_TYPE] == "incomplete"
    assert "Tone (no number)" in found["quality"][s.EXPLANATION]
    engine = current_engine()
    assert engine is not None
    (counted,) = engine.ledger.snapshot().values()
    assert (counted.of(Outcome.SCORED), dict(counted.delivered)) == (1, {"span_event": 1})


def test_a_trees_aggregate_speaks_for_it_in_a_judges_condition(exporter: CollectingExporter) -> None:
    client = ScriptedJudgeClient('{"verdict": "pass", "reasoning": "r"}')
    judge = sg.LlmJudge(name="j", criteria="c", scale="binary", model="m").with_client(client)
    tree = sg.CompositeMetric(
        "quality", [Long({"at_least": 1}, result_key="a"), Long({"at_least": 99}, result_key="b")],
        aggregate="max", threshold=1,
    )  # fmt: skip
    other = sg.CompositeMetric("other", [Long({"at_least": 99}, result_key="c")])
    sg.configure(
        metrics=[tree, other],
        judges=[sg.live(judge, rate=1, when="quality.fail")],
        exporter=exporter,
    )
    call()
    assert client.requests == []  # b failed, and the whole passed


def test_a_span_that_comes_later_is_graded_by_the_same_instance_on_many_threads(exporter: CollectingExporter) -> None:
    names: set[str] = set()

    class Sees(sg.BaseMetric[int]):
        def evaluate(self, text: str) -> dict[str, int]:
            names.add(threading.current_thread().name)
            return self.result(int(text))

    sg.configure(metrics=[Sees()], exporter=exporter)
    for i in range(20):
        with sg.trace("call"):
            sg.set_output(str(i))
    assert sg.flush(10)
    assert sorted(event_scores(span)["Sees"][s.SCORE_VALUE] for span in exporter.spans) == list(range(20))
    assert threading.current_thread().name not in names


def test_a_tree_in_the_file_scores_live(exporter: CollectingExporter, tmp_path: Path) -> None:
    file = tmp_path / "spangrade.yaml"
    file.write_text(
        "metrics:\n"
        "  - tree: {name: quality, aggregate: min, children: [json_valid, "
        f"{{use: '{__name__}:Long', config: {{at_least: 2}}, result_key: long}}]}}\n"
    )
    sg.configure(config_file=str(file), exporter=exporter)
    call("{}")
    found = scores(exporter)
    assert {name: one[s.SCORE_VALUE] for name, one in found.items()} == {
        "quality.json_valid": 1.0, "quality.long": 1.0, "quality": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (sg.CompositeMetric("empty"), "tree 'empty' has no metric in it"),
        (sg.BaseMetric, "base for others"),
        ("Lonng", "there is no metric 'Lonng'"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_configured(
    metric: Any, said: str, exporter: CollectingExporter
) -> None:
    with pytest.raises(sg.ConfigError, match=said):
        sg.configure(metrics=[metric], exporter=exporter)
