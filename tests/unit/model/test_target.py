"""What ``target`` takes, in every place where it can be said, and what it says when it cannot work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spangrade as sg
from spangrade.config import FileConfig, load
from spangrade.errors import ConfigError
from spangrade.metrics.local import LocalMetric
from spangrade.model.target import TARGETS, check_target, rule_of

RULE = {"name": "answer*", "attributes": {"http.route": "/chat/*"}}
SAID = "attributes.http.route = /chat/* and name = answer*"


@pytest.mark.parametrize("target", TARGETS)
def test_a_kind_stays_as_it_is(target: str) -> None:
    assert check_target(target, "m") == target
    assert rule_of(target) is None


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("name = answer*", "name = answer*"),
        ("  name=answer* ", "name = answer*"),
        ({"name": "answer*"}, "name = answer*"),
        (RULE, SAID),
        ({"attributes.http.route": "/chat/*", "name": "answer*"}, SAID),
        ("name = answer* and attributes.http.route = /chat/*", SAID),
        ({"kind": "agent", "scope": "my.tracer"}, "kind = agent and scope = my.tracer"),
        ({"attributes": {"n": 5, "safe": True}}, "attributes.n = 5 and attributes.safe = true"),
        ("name = salt and pepper", "name = salt and pepper"),
        ("attributes.a = x=y", "attributes.a = x=y"),
    ],
)
def test_a_rule_has_one_spelling(target: Any, said: str) -> None:
    """So that counters, scores and hashes know it as one, however it was written."""
    assert check_target(target, "m") == said
    assert check_target(said, "m") == said


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("lm", ["target 'lm' is not one of root, llm", "name = answer*"]),
        (None, ["target None"]),
        (5, ["target 5"]),
        ("", ["is not one of"]),
        ({}, ["without a condition"]),
        ({"nam": "x"}, ["no 'nam'", "name, kind, scope, and attributes.<key>"]),
        ({"attributes.": "x"}, ["no 'attributes.'"]),
        ({7: "x"}, ["no 7"]),
        ("http.route = /x", ["no 'http.route'", "attributes.<key>"]),
        ({"name": ""}, ["name '' is no pattern"]),
        ({"name": None}, ["name None is no pattern"]),
        ({"name": ["a"]}, ["name ['a'] is no pattern"]),
        ({"name": "x" * 600}, ["at most 512 characters"]),
        ({"kind": "root"}, ["kind 'root' is not one of llm"]),
        ({"kind": "LLM"}, ["kind 'LLM' is not one of llm"]),
        ("name = a and name = b", ["names name twice"]),
        ({"attributes": "x"}, ["no 'attributes'"]),
    ],
)
def test_what_cannot_work_is_said_with_what_would(target: Any, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        check_target(target, "metric 'm'")
    assert str(caught.value).startswith("metric 'm': target")
    for word in words:
        assert word in str(caught.value)


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=12), min_size=1, max_size=3), st.text())
def test_any_attribute_rule_comes_out_of_its_spelling_again_or_is_refused(held: dict[str, str], text: str) -> None:
    for target in ({"attributes": held}, {"name": text}, text):
        try:
            said = check_target(target, "m")
        except ConfigError:
            continue
        rule = rule_of(said)
        if rule is not None:
            assert rule.text == said
            assert rule.picks("llm", text, text, {"a": text}) in (True, False)


def _judge(**options: Any) -> Any:
    return sg.LlmJudge("helpful", "is helpful", model="m", **options)


def _in_file(path: Path, text: str) -> FileConfig:
    file = path / "spangrade.yaml"
    file.write_text(text)
    return load(file, FileConfig)


WAYS: dict[str, Callable[[Any], str]] = {
    "metric": lambda target: sg.metric(target=target)(lambda output: 1).info.target,
    "LocalMetric": lambda target: LocalMetric(lambda output: 1, name="m", target=target).info.target,
    "numeric_metric": lambda target: sg.numeric_metric(name="m", target=target)(lambda output: 1.0).info.target,
    "LlmJudge": lambda target: _judge(target=target).info.target,
    "live": lambda target: sg.live(_judge(), target=target).evaluator.info.target,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_say_it_takes_a_rule_and_refuses_nonsense(way: str) -> None:
    assert WAYS[way](RULE) == SAID
    assert WAYS[way]("retriever") == "retriever"
    with pytest.raises(ConfigError, match="target 'lm' is not one of root, llm"):
        WAYS[way]("lm")


def test_a_rule_that_its_text_would_not_give_back_is_refused() -> None:
    with pytest.raises(ConfigError, match="leave '=' out"):
        check_target({"attributes": {"a=b": "x"}}, "m")
    with pytest.raises(ConfigError, match="looks like another condition"):
        check_target({"name": "a and kind = llm"}, "m")


def test_a_class_metric_takes_a_rule() -> None:
    class Length(sg.BaseMetric[int]):
        target = RULE

        def evaluate(self, text: str) -> dict[str, int]:
            return self.result(len(text))

    from spangrade.metrics.adapter import evaluator_of

    assert evaluator_of(Length()).info.target == SAID


def test_a_changed_target_is_another_judge() -> None:
    """Scores of two targets are not one metric; the two spellings of one target are one judge."""
    assert _judge(target=RULE).info == _judge(target=SAID).info
    assert _judge(target=RULE).info.key != _judge(target="llm").info.key
    assert _judge(target=RULE).config()["target"] == SAID


def test_the_configuration_file_takes_a_rule_as_text_or_as_keys(tmp_path: Path) -> None:
    """In both hosts: the agent's file has the same entries."""
    from spangrade_agent.config import AgentConfig

    text = """
metrics:
  - {use: overlap, target: {name: "answer*", attributes: {"http.route": "/chat/*"}}}
judges:
  - {name: helpful, criteria: is helpful, live: {target: "name = answer* and attributes.http.route = /chat/*"}}
"""
    sdk = _in_file(tmp_path, text)
    (tmp_path / "agent.yaml").write_text(text)
    agent = load(tmp_path / "agent.yaml", AgentConfig)
    for file in (sdk, agent):
        assert check_target(file.metrics[0].target, "m") == SAID  # type: ignore[union-attr]
        live = file.judges[0].live
        assert check_target(live.target, "m") == SAID  # type: ignore[union-attr]
