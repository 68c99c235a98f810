"""A functional metric that the agent's file names by import path scores what comes in over the wire."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spangrade import semconv as s
from spangrade_agent.app import Agent
from spangrade_agent.config import read
from tests.agent import test_agent as given
from tests.agent.test_agent import ReceiverProcess

agent, receiver, receiver_process = given.agent, given.receiver, given.receiver_process

METRICS = """
import spangrade as sg


@sg.discrete_metric(inputs={"texts": "documents[].content"}, version=1)
def quoted(response: str, texts: list[str]) -> sg.MetricResult:
    found = [text for text in texts if text in response]
    return sg.MetricResult("pass" if found else "fail", reason=f"quotes {len(found)} of {len(texts)}")


@sg.numeric_metric(allowed_values=range(100), verdict=False)
async def words(response: str) -> int:
    return len(response.split())
"""


def test_functional_metrics_of_the_agents_file_score_spans(
    agent: Callable[..., Agent], receiver: ReceiverProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_functional.py").write_text(METRICS)
    file = tmp_path / "agent.yaml"
    file.write_text("metrics: [{use: 'acme_functional:quoted'}, 'acme_functional:words']\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    running = agent(metrics=read(str(file)).metrics)
    given.send(running, given.recorded())
    found = given.scores(given.spans_at(receiver, 3)["chat"])
    assert found["quoted"][s.SCORE_LABEL] == "pass"
    assert found["quoted"][s.EXPLANATION] == "quotes 1 of 1"
    assert found["words"][s.SCORE_VALUE] == 6.0
    assert s.SCORE_LABEL not in found["words"]
