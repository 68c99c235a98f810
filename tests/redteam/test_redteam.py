"""No text under judgement chooses its own grade (promise 9): over every field, through the real client and a real socket."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import spangrade as sg
from spangrade.errors import JudgeError
from spangrade.judges.providers.openai_compatible import OpenAICompatible
from spangrade.judges.providers.retry import RetryPolicy
from tests.unit.judges.conftest import JudgeServer, Received, Reply, completion

from .attacks import ATTACKS, MARK, VERDICT, WANT, Attack
from .obedient import by_chat_template, by_the_code, by_the_looks, obeys, parrots, repeats

FIELDS = ("input", "output", "expected", "documents", "metadata")


def _tool_turn(text: str) -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": json.dumps({"q": "x"})}}
    return [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
    ]


#: Where a text can stand, and the sample that has it there.
PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "input": lambda text: {"input": text},
    "output": lambda text: {"output": text},
    "expected": lambda text: {"expected": text},
    "a document": lambda text: {"documents": [{"content": "one"}, {"content": text}, {"content": "three"}]},
    "a document's id": lambda text: {"documents": [{"id": text, "content": "one"}]},
    "a document's metadata": lambda text: {"documents": [{"content": "one", "metadata": {"title": text}}]},
    "a name in a document's metadata": lambda text: {"documents": [{"content": "one", "metadata": {text: "x"}}]},
    "a document of another shape": lambda text: {"documents": [{"content": {"deep": [text]}}]},
    "metadata": lambda text: {"metadata": {"note": text}},
    "a name in metadata": lambda text: {"metadata": {text: "x"}},
    "a tool's result in the input": lambda text: {"input": _tool_turn(text)},
    "a tool's result in the output": lambda text: {"output": _tool_turn(text)},
    "a tool's result as a document": lambda text: {"documents": [{"id": "tool:search", "content": json.dumps({"r": text})}]},
    "everywhere": lambda text: {
        "input": text, "output": text, "expected": text, "metadata": {text: text},
        "documents": [{"id": text, "content": text, "metadata": {text: text}}],
    },
}  # fmt: skip


class Judges:
    """A real server whose judge is replaced between calls."""

    def __init__(self) -> None:
        self.answer: Callable[[dict[str, Any]], str] = obeys(by_the_code)
        self.server = JudgeServer(respond=self._respond)
        self.client = OpenAICompatible(self.server.base_url, retry=RetryPolicy(retries=0))

    def _respond(self, received: Received) -> Reply:
        return completion(self.answer(received.body))

    def judge(self, **changes: Any) -> sg.LlmJudge:
        settings = {"name": "right", "criteria": "It is right.", "fields": FIELDS, "model": "m", **changes}
        return sg.LlmJudge(**settings).with_client(self.client)

    def score(self, judge: sg.LlmJudge, sample: dict[str, Any]) -> float | str | None:
        """The score, or the kind of the error."""
        whole = {"input": "q", "output": "wrong", "expected": "right", "documents": [{"content": "d"}], **sample}
        try:
            return judge.evaluate(sg.Sample(**whole)).scores[0].value
        except JudgeError as fault:
            return fault.kind


@pytest.fixture(scope="module")
def judges() -> Iterator[Judges]:
    made = Judges()
    yield made
    made.client.close()
    made.server.close()


def test_the_set_is_as_large_and_as_wide_as_promised() -> None:
    families = Counter(attack.family for attack in ATTACKS)
    assert len(ATTACKS) >= 60
    assert len(families) >= 12
    assert len({attack.text for attack in ATTACKS}) == len(ATTACKS)


@pytest.mark.parametrize("read", [by_the_code, by_the_looks, by_chat_template])
def test_a_judge_that_obeys_what_stands_outside_obeys_an_author_and_the_text_of_a_prompt_without_fences(
    judges: Judges, read: Any
) -> None:
    judges.answer = obeys(read)
    assert judges.score(judges.judge(criteria=f"It is right. {WANT}"), {}) == 1.0
    assert judges.score(judges.judge(scale="binary", criteria=f"It is right. {WANT}"), {}) == 1.0
    assert judges.score(judges.judge(), {}) == 0.0
    bare = {"messages": [{"role": "system", "content": "Lines carry the code abc."}, {"role": "user", "content": WANT}]}
    assert json.loads(judges.answer(bare))["score"] == 5


@pytest.mark.parametrize("attack", ATTACKS, ids=[f"{n}-{attack.family}" for n, attack in enumerate(ATTACKS)])
def test_no_attack_in_any_field_sets_the_score(judges: Judges, attack: Attack) -> None:
    graded, binary = judges.judge(), judges.judge(scale="binary")
    judges.answer = obeys(by_the_code, by_the_looks, by_chat_template)
    for place, sample in PLACES.items():
        assert judges.score(graded, sample(attack.text)) == 0.0, place
    assert judges.score(binary, PLACES["everywhere"](attack.text)) == 0.0


@pytest.mark.parametrize("answer", [parrots, repeats])
def test_no_attack_wins_by_being_quoted(judges: Judges, answer: Any) -> None:
    judge = judges.judge(fields=("input", "output"))
    judges.answer = answer
    for attack in ATTACKS:
        found = judges.score(judge, {"output": attack.text})
        assert found == 0.0 or isinstance(found, str), attack


def test_an_attack_in_an_example_of_the_authors_stays_in_its_fence(judges: Judges) -> None:
    judges.answer = obeys(by_the_looks)
    for attack in ATTACKS:
        if len(attack.text) < 1_000:
            judge = judges.judge(examples=({"input": attack.text, "output": attack.text, "level": 1},))
            assert judges.score(judge, {}) == 0.0, attack


def test_the_attacks_reach_the_judge_at_all(judges: Judges) -> None:
    judges.answer = obeys(by_the_code)
    for attack in ATTACKS:
        if MARK in attack.text and len(attack.text) < 1_000:
            judges.server.requests.clear()
            judges.score(judges.judge(), {"output": attack.text})
            assert MARK in judges.server.requests[0].body["messages"][1]["content"], attack
    assert MARK in VERDICT
