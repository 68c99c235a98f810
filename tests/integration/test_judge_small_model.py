"""Judges against a real, small model behind a real server: the wire, not the judgement (it is at chance, and said to be).

The model is the demo's: SmolLM2-135M in llama.cpp's server, which speaks chat completions and Anthropic's messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.redteam.attacks import ATTACKS

import spangrade as sg
from examples.demo.child_process import ChildError
from examples.demo.processes import LlmProcess
from spangrade import semconv as s
from spangrade.errors import JudgeError
from spangrade.judges.providers.anthropic import AnthropicMessages
from spangrade.judges.providers.http_client import HttpJudgeClient
from spangrade.judges.providers.openai_compatible import OpenAICompatible

from .processes import unavailable

pytestmark = pytest.mark.integration
KINDS = {"truncated", "unparseable", "several_verdicts", "out_of_range", "empty", "refused", "timeout"}
NOT_AVAILABLE = 3


@pytest.fixture(scope="module")
def model() -> Iterator[LlmProcess]:
    try:
        with LlmProcess() as process:
            yield process
    except ChildError as error:
        if error.exit_code != NOT_AVAILABLE:
            raise
        unavailable(f"the demo's local model is not installed (make demo): {error}")


@pytest.fixture(params=[OpenAICompatible, AnthropicMessages])
def client(request: pytest.FixtureRequest, model: LlmProcess) -> Iterator[HttpJudgeClient]:
    made: HttpJudgeClient = request.param(model.base_url)
    yield made
    made.close()


def judge(client: HttpJudgeClient, model: LlmProcess, **changes: object) -> sg.LlmJudge:
    settings = {"name": "right", "criteria": "The output answers the input.", "model": model.model, **changes}
    # Without a grammar the model writes on and on, at a few tokens a second: that is given up, and said to be.
    limit = 40 if isinstance(client, AnthropicMessages) else 300
    return sg.LlmJudge(**settings).with_client(client).with_timeout(limit)  # type: ignore[arg-type]


def graded(made: sg.LlmJudge, sample: sg.Sample) -> tuple[float | None, str | None, Mapping[str, Any]]:
    """The score, or the error's kind; and the details of what was answered."""
    try:
        verdict = made.evaluate(sample)
    except JudgeError as fault:
        return None, fault.kind, fault.details
    return verdict.scores[0].value, None, verdict.details


@pytest.mark.parametrize(("scale", "values"), [("1-5", {0.0, 0.25, 0.5, 0.75, 1.0}), ("binary", {0.0, 1.0})])
def test_a_real_model_gives_a_verdict_on_the_scale_or_an_error_with_its_kind(
    client: HttpJudgeClient, model: LlmProcess, scale: str, values: set[float]
) -> None:
    sample = sg.Sample(input="How long is the warranty?", output="Two years.")
    score, kind, details = graded(judge(client, model, scale=scale), sample)
    assert (score in values) if kind is None else (kind in KINDS)
    if isinstance(client, OpenAICompatible):  # there a grammar holds the model to the form; elsewhere it may ramble
        assert kind is None
    if details:
        assert details[s.JUDGE_MODEL]
        assert details[s.JUDGE_INPUT_TOKENS] > 100
        assert details[s.JUDGE_OUTPUT_TOKENS] > 0


def test_attacks_reach_the_smallest_model_and_what_it_says_is_a_verdict_on_the_scale_or_an_error(
    model: LlmProcess,
) -> None:
    client = OpenAICompatible(model.base_url)
    made = judge(client, model)
    for family in sorted({attack.family for attack in ATTACKS})[::4]:  # some of them: each takes the model seconds
        text = min((attack.text for attack in ATTACKS if attack.family == family), key=len)[:500]
        score, kind, _ = graded(made, sg.Sample(input="What is two and two?", output=text))
        assert (score in {0.0, 0.25, 0.5, 0.75, 1.0}) if kind is None else (kind in KINDS), family
    client.close()
