"""The cases from the field that need a server (../shared/cases, C074, C078, C079), replayed over a socket."""

import json
from pathlib import Path
from typing import Any

import pytest

from spangrade.errors import JudgeError
from spangrade.judges import LlmJudge
from spangrade.judges.providers.openai_compatible import OpenAICompatible
from spangrade.model.sample import Sample

from .conftest import FakeTime, JudgeServer, Reply

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "inputs"
FILES = ("C074_judge_truncated.json", "C078_judge_429.json", "C079_judge_param_errors.json")

# What must come, and after how many requests. The replies' scores were made for a scale of 0 to 1: on ours
# {"score": 1} is the lowest level, hence 0.0, and 0.5 is out of range.
EXPECTED: dict[str, tuple[Any, int]] = {
    "cut in the reason": ("truncated", 2),
    "cut before the score": ("truncated", 2),
    "empty, budget eaten by thinking": ("truncated", 2),
    "then whole": ("out_of_range", 2),
    "429 then fine": (0.0, 2),
    "HTTP-date": ("http_status", 1),
    "retry-after-ms": (0.0, 2),
    "garbage header": (0.0, 2),
    "529 overloaded": (0.0, 2),
    "insufficient_quota": ("http_status", 1),
    "401": ("http_status", 1),
    "HTML from a proxy": (0.0, 2),
    "hangs": ("timeout", 1),
    "ten samples at once, all 429": ("http_status", 3),
    "max_tokens": (0.0, 2),
    "temperature": (0.0, 2),
    "response_format": (0.0, 2),
    "content filter": ("content_filter", 1),
    "filtered reply": ("content_filter", 1),
    "refusal field": ("refused", 1),
    "refusal as prose": ("refused", 1),
    "no choices": ("empty", 1),
    "context too long": ("http_status", 1),
    "endless 400": ("http_status", 2),
}


def _cases() -> list[Any]:
    if not CASES.is_dir():
        reason = "the cases from the field are not beside this checkout (../shared/cases/inputs)"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason), id="no cases")]
    return [
        pytest.param(case, id=f"{name[:4]}-{n}")
        for name in FILES
        for n, case in enumerate(json.loads((CASES / name).read_text("utf-8")))
    ]


@pytest.mark.parametrize("case", _cases())
def test_a_case_from_the_field_ends_as_it_must(case: dict[str, Any], server: JudgeServer, fake_time: FakeTime) -> None:
    server.script = [
        Reply(reply["status"], reply["body"], reply["headers"], hang=bool(reply.get("delay_s")))
        for reply in case["replies"]
    ]
    hangs = any(reply.hang for reply in server.script)
    client = OpenAICompatible(server.base_url, "sk-abc123", retry=None if hangs else fake_time.policy())
    judge = LlmJudge("helpful", "Answers.", model="judge-test").with_client(client)
    outcome: Any
    try:
        outcome = judge.with_timeout(0.05 if hangs else 60).evaluate(Sample(output="x")).scores[0].value
    except JudgeError as fault:
        outcome = fault.kind
        said = str(fault)
    else:
        said = ""
    client.close()
    assert (outcome, len(server.requests)) == EXPECTED[str(case["id"])], case["expect"]
    assert "sk-abc123" not in said
