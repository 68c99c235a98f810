"""A tree of metrics in the agent's file: scored there, sent on with paths, shown on the page."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from spangrade import semconv as s
from spangrade_agent.app import Agent
from spangrade_agent.config import AgentConfig, import_paths, read
from tests.agent.test_agent import (  # noqa: F401 - fixtures
    COMMAND,
    ENV,
    ReceiverProcess,
    agent,
    get,
    receiver,
    receiver_process,
    recorded,
    scores,
    send,
    spans_at,
)

METRICS = """
import spangrade as sg
from pydantic import BaseModel

class Config(BaseModel):
    at_least: int

class Long(sg.BaseMetric[bool]):
    config_schema = Config
    def evaluate(self, text): return self.result(len(text or "") >= self.config.at_least)

class Fails(sg.BaseMetric[int]):
    def evaluate(self, sample): raise ZeroDivisionError("by zero")
"""
FILE = """
metrics:
  - tree:
      name: quality
      aggregate: mean
      threshold: 0.6
      children:
        - {use: "beside_metrics:Long", config: {at_least: 5}, result_key: long, weight: 3}
        - tree:
            name: support
            children: [overlap, {use: "beside_metrics:Fails"}]
          weight: 0
        - {use: "beside_metrics:Long", config: {at_least: 5000}, result_key: very_long}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration with its metrics' module beside it."""
    (tmp_path / "beside_metrics.py").write_text(METRICS)
    path = tmp_path / "agent.yaml"
    path.write_text(FILE)
    return path


def test_a_tree_in_the_agents_file_is_scored_and_its_leaves_say_their_paths(
    file: Path,
    agent: Callable[..., Agent],  # noqa: F811
    receiver: ReceiverProcess,  # noqa: F811
) -> None:
    undo = import_paths(file)
    try:
        config: AgentConfig = read(file)
        running = agent(**{key: value for key, value in config.model_dump().items() if key == "metrics"})
    finally:
        undo()
    send(running, recorded())
    found = scores(spans_at(receiver, 3)["chat"])
    assert {name: (one.get(s.SCORE_VALUE), one[s.EVALUATOR_PATH]) for name, one in found.items()} == {
        "quality.long": (1.0, "quality/long"),
        "quality.overlap": (pytest.approx(found["quality.overlap"][s.SCORE_VALUE]), "quality/support/overlap"),
        "quality.Fails": (None, "quality/support/Fails"),
        "quality.very_long": (0.0, "quality/very_long"),
        "quality": (0.75, "quality"),
    }
    assert found["quality.Fails"][s.ERROR_TYPE] == "ZeroDivisionError"
    assert (found["quality.overlap"][s.THRESHOLD], found["quality"][s.THRESHOLD]) == (0.5, 0.6)
    (sample,) = json.loads(get(running.addresses.page, "/api/samples")[1])["samples"]
    shown = {result["name"]: result for result in sample["results"]}
    assert set(shown) == set(found)
    assert shown["quality.overlap"]["details"][s.EVALUATOR_PATH] == "quality/support/overlap"
    assert (shown["quality.overlap"]["threshold"], shown["quality"]["threshold"]) == (0.5, 0.6)
    page = get(running.addresses.page, f"/samples/{sample['id']}")[1]
    assert "quality/support/overlap" in page


def test_check_config_names_what_is_wrong_in_a_tree_and_where(file: Path) -> None:
    def check(text: str) -> tuple[int, str]:
        file.write_text(text)
        done = subprocess.run(
            [*COMMAND, "check-config", str(file)], env=ENV, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout + done.stderr

    assert check(FILE + "store: false\n") == (0, "mode relay; evaluators: quality\n")
    code, said = check(FILE.replace("{at_least: 5000}", "{at_leest: 5000}"))
    assert code == 2
    assert "metrics[0]: quality.children[2]: metric 'Long': " in said
    assert "there is no parameter 'at_leest'" in said
    code, said = check(FILE.replace("weight: 3", "wieght: 3"))
    assert code == 2
    assert "unknown key 'metrics.0.tree.children.0.wieght'" in said
