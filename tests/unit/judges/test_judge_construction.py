"""What an `LlmJudge` may be made of, and what identifies it."""

import copy
import json
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade.judges import LlmJudge, live, place
from spangrade.model.evaluator import Evaluator
from spangrade.model.policy import DEFAULT_JUDGE_RATE, Placed, Policy

CRITERIA = "The answer is right and complete."


def judge(**changes: Any) -> LlmJudge:
    return LlmJudge(**{"name": "helpful", "criteria": CRITERIA, "model": "m-1", **changes})


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"name": " "}, ["judge name"]),
        ({"criteria": ""}, ["criteria", "helpful"]),
        ({"scale": "0-10"}, ["scale '0-10'", "'1-5'", "'binary'"]),
        ({"fields": ("input",)}, ["leave out 'output'", "add it"]),
        ({"fields": "output"}, ["not a list", "('input', 'output')"]),
        ({"fields": ("output", "question")}, ["'question'", "expected"]),
        ({"fields": ("output", "output")}, ["twice"]),
        ({"examples": [{"output": "x", "level": 1}] * 6}, ["6 examples", "at most 5"]),
        ({"examples": [{"output": "x", "level": 6}]}, ["example 1", "level 6", "1 to 5"]),
        ({"examples": [{"output": "x", "level": True}]}, ["level True"]),
        ({"examples": [{"output": "x"}]}, ["example 1", "no level", "'level': 2"]),
        ({"examples": [{"level": 2}]}, ["example 1", "no output"]),
        ({"examples": [{"output": "x", "level": 2, "score": 3}]}, ["'score'", "reasoning"]),
        ({"examples": {"output": "x", "level": 2}}, ["list of dicts"]),
        ({"scale": "binary", "examples": [{"output": "x", "level": 2}]}, ["'level'", "verdict"]),
        ({"scale": "binary", "examples": [{"output": "x", "verdict": "good"}]}, ["'good'", "'pass' or 'fail'"]),
        ({"scale": "binary", "levels": {5: "best"}}, ["levels are for scale '1-5'"]),
        ({"levels": {6: "best"}}, ["levels key 6", "1 to 5"]),
        ({"levels": {5: ""}}, ["levels[5]"]),
        ({"levels": ["a", "b"]}, ["levels", "dict"]),
        ({"threshold": 1.5}, ["threshold 1.5", "from 0 to 1"]),
        ({"threshold": True}, ["threshold True"]),
        ({"threshold": float("nan")}, ["threshold nan"]),
        ({"live": 0.1}, ["live 0.1", "sg.live(judge, rate=...)"]),
        ({"temperature": 3}, ["temperature 3", "from 0 to 2"]),
        ({"model": ""}, ["model ''"]),
        ({"target": "span"}, ["target 'span'", "root"]),
    ],
)
def test_an_argument_that_cannot_work_is_named_with_the_way_out(changes: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        judge(**changes)
    for name in names:
        assert name in str(caught.value)


def test_a_judge_is_an_evaluator_that_says_what_it_needs() -> None:
    made = judge(fields=("documents", "output", "expected", "metadata"), threshold=0.75)
    assert isinstance(made, Evaluator)
    info = made.info
    assert (info.kind, info.target, info.threshold, info.verdict) == ("llm", "root", 0.75, True)
    assert info.requires == ("output", "expected", "documents")
    assert judge().info.requires == ("output",)
    assert (made.timeout, made.is_async) == (60.0, False)


def test_a_judge_cannot_be_changed_nor_can_what_it_was_made_of() -> None:
    levels, examples = {5: "best"}, [{"output": {"text": "x"}, "level": 2}]
    made = judge(levels=levels, examples=examples)
    before = made.config()
    levels[1] = "worst"
    examples[0]["output"]["text"] = "changed"  # type: ignore[index]
    assert made.config() == before
    with pytest.raises(AttributeError):
        made.criteria = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        made.levels[1] = "worst"  # type: ignore[index]


def test_config_is_plain_json_that_a_copy_shares() -> None:
    made = judge(levels={"5": "best", 1: "worst"}, examples=[{"output": "x", "level": "2", "reasoning": "thin"}])
    config = made.config()
    assert json.loads(json.dumps(config)) == config
    assert config["levels"] == {"1": "worst", "5": "best"}
    assert config["examples"] == [{"output": "x", "level": 2, "reasoning": "thin"}]
    assert copy.copy(made).config() == config


@pytest.mark.parametrize("changes", [{"threshold": 0.9}, {"live": True}, {"fields": ("output", "input")}])
def test_threshold_live_and_the_order_of_fields_are_no_part_of_the_identity(changes: dict[str, Any]) -> None:
    assert judge(**changes).info.config_hash == judge().info.config_hash


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"criteria": CRITERIA + " And short."},
        {"scale": "binary"},
        {"levels": {5: "best"}},
        {"fields": ("output",)},
        {"examples": [{"output": "x", "level": 1}]},
        {"model": "m-2"},
        {"temperature": 0.7},
        {"target": "llm"},
    ],
)
def test_everything_that_changes_the_grading_changes_the_hash(changes: dict[str, Any]) -> None:
    assert judge(**changes).info.config_hash != judge().info.config_hash


def test_the_model_is_the_judges_own_then_spangrades_then_the_general_one(monkeypatch: pytest.MonkeyPatch) -> None:
    unset = judge(model=None)
    assert unset.config()["model"] is None
    monkeypatch.setenv("LLM_MODEL", "general")
    assert unset.config()["model"] == "general"
    monkeypatch.setenv("SPANGRADE_JUDGE_MODEL", "ours")
    assert unset.config()["model"] == "ours"
    assert judge().config()["model"] == "m-1"
    assert unset.info.config_hash == judge(model="ours").info.config_hash


def test_copies_keep_everything_but_what_they_change() -> None:
    made = judge(live=True, levels={1: "worst"}).with_timeout(3)
    other = made.with_target("llm")
    assert (made.target, other.target, other.timeout, other.live) == ("root", "llm", 3.0, True)
    assert other.info.target == "llm"
    assert other.levels == made.levels


def test_live_places_a_judge_with_its_policy() -> None:
    placed = live(judge(), rate=0.25, when="overlap.fail", max_per_minute=10, budget={"calls_per_day": 100})
    assert placed.policy == Policy(0.25, "overlap.fail", 10, {"calls_per_day": 100})
    assert live(judge()).policy.rate == DEFAULT_JUDGE_RATE
    assert live(judge(), target="llm").evaluator.info.target == "llm"
    assert live(judge(target="tool")).evaluator.info.target == "tool"


def test_live_refuses_what_is_no_judge_and_a_rate_that_is_none() -> None:
    with pytest.raises(ConfigError, match="takes an LlmJudge, not function"):
        live(test_live_refuses_what_is_no_judge_and_a_rate_that_is_none)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="rate 0"):
        live(judge(), rate=0)


def test_place_takes_a_live_judge_at_the_default_rate() -> None:
    placed = place(judge(live=True))
    assert isinstance(placed, Placed)
    assert placed.policy.rate == DEFAULT_JUDGE_RATE


def test_place_refuses_a_judge_that_is_not_live_and_says_how() -> None:
    with pytest.raises(ConfigError, match=r"live=True .* sg\.live\(judge, rate=0\.05\)"):
        place(judge())


def test_place_pins_the_model_so_that_the_identity_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_JUDGE_MODEL", "first")
    placed = place(live(judge(model=None), rate=1))
    monkeypatch.setenv("SPANGRADE_JUDGE_MODEL", "second")
    assert placed.evaluator.config()["model"] == "first"


def test_place_refuses_a_judge_without_a_model_and_says_how() -> None:
    with pytest.raises(ConfigError, match=r"'helpful' has no model.*SPANGRADE_JUDGE_MODEL"):
        place(judge(model=None, live=True))
