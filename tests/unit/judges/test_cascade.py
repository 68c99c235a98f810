"""A cascade: who is asked, whose verdict stands, what it cost, and when nobody's does."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

import spangrade as sg
from spangrade import semconv as s
from spangrade.errors import JudgeError
from spangrade.judges import JudgeReply, JudgeRequest
from spangrade.judges.prices import cost_of
from spangrade.judges.providers import Endpoint
from spangrade.model.evaluator import Evaluator
from spangrade.model.score import Skip
from spangrade.testing import CollectingExporter, event_scores

SAMPLE = sg.Sample(input="q", output="a")


@dataclass
class Says:
    """A judge client that gives one level (or a text, or an error) and counts."""

    what: Any
    asked: int = field(default=0)

    def complete(self, request: JudgeRequest) -> JudgeReply:
        self.asked += 1
        if isinstance(self.what, JudgeError):
            raise self.what
        text = (
            self.what if isinstance(self.what, str) else json.dumps({"reasoning": f"a {self.what}", "score": self.what})
        )
        return JudgeReply(text, f"{request.model}-1", "stop", None, 10, 5)


DOWN = JudgeError("connection", "nobody there")


def judge(name: str, what: Any, **changes: Any) -> tuple[sg.LlmJudge, Says]:
    client = Says(what)
    return sg.LlmJudge(name, "It helps.", model=f"m-{name}", **changes).with_client(client), client


def run(*says: Any, **options: Any) -> tuple[Any, list[int]]:
    """The one score (or the error's kind) of a cascade of judges that say so, and how often each was asked."""
    made = [judge(f"j{n}", what) for n, what in enumerate(says)]
    cascade = sg.Cascade([j for j, _ in made], **options)
    try:
        found: Any = cascade.evaluate(SAMPLE).scores[0]
    except JudgeError as fault:
        found = fault.kind
    return found, [client.asked for _, client in made]


def test_a_sure_cheap_judge_decides_alone() -> None:
    for level, passed in ((5, True), (4, True), (2, False), (1, False)):
        found, asked = run(level, 5)
        assert (found.value, found.passed, found.explanation) == ((level - 1) / 4, passed, f"a {level}")
        assert (found.name, asked) == ("j1", [1, 0])


def test_doubt_goes_on_to_the_strong_judge_whose_verdict_stands() -> None:
    for doubt in (3, DOWN):
        found, asked = run(doubt, 5)
        assert (found.value, found.label) == (1.0, "pass")
        assert asked == [1, 1]


def test_what_it_cost_and_who_decided_is_on_the_score() -> None:
    cheap, strong = judge("cheap", 3)[0], judge("strong", 5)[0]
    verdict = sg.Cascade([cheap, strong]).evaluate(SAMPLE)
    assert verdict.details[s.JUDGE_STAGE] == 2
    assert verdict.details[s.JUDGE_ESCALATED] == ("low_confidence",)
    assert (verdict.details[s.JUDGE_INPUT_TOKENS], verdict.details[s.JUDGE_OUTPUT_TOKENS]) == (20, 10)
    assert verdict.details[s.JUDGE_MODEL] == "m-strong-1"
    alone = sg.Cascade([judge("cheap", 5)[0], strong]).evaluate(SAMPLE)
    assert alone.details[s.JUDGE_STAGE] == 1
    assert s.JUDGE_ESCALATED not in alone.details


@pytest.mark.parametrize("says", [(3, 3), (3, DOWN), (DOWN, 3), (3, 3, 3)])
def test_what_the_last_leaves_in_doubt_is_a_persons(says: tuple[Any, ...]) -> None:
    found, asked = run(*says)
    assert (found.label, found.value, found.passed) == ("needs_review", None, None)
    assert asked == [1] * len(says)
    assert found.explanation.count("stage ") == len(says)


def test_without_abstaining_the_last_stage_stands() -> None:
    found, _ = run(3, 3, abstain=False)
    assert (found.value, found.passed) == (0.5, True)
    assert run(3, DOWN, abstain=False)[0] == "connection"


def test_no_verdict_at_all_is_an_error_and_never_a_label() -> None:
    assert run(DOWN, JudgeError("refused", "no"))[0] == "refused"


def test_a_reason_that_does_not_count_does_not_escalate() -> None:
    found, asked = run(3, 5, escalate=["error"])
    assert (found.value, asked) == (0.5, [1, 0])
    assert run(DOWN, 5, escalate="low_confidence") == ("connection", [1, 0])


def test_judges_of_one_stage_that_differ_escalate_and_those_that_agree_give_their_mean() -> None:
    (a, of_a), (b, of_b), (strong, of_strong) = judge("a", 5), judge("b", 1), judge("strong", 4)
    verdict = sg.Cascade([(a, b), strong], name="helpful").evaluate(SAMPLE)
    assert (verdict.scores[0].name, verdict.scores[0].value) == ("helpful", 0.75)
    assert verdict.details[s.JUDGE_ESCALATED] == ("disagreement",)
    of_b.what = 4
    assert sg.Cascade([(a, b), strong]).evaluate(SAMPLE).scores[0].value == 0.875
    assert (of_a.asked, of_b.asked, of_strong.asked) == (2, 2, 1)


def test_a_missing_field_of_any_judge_is_skipped_before_anybody_is_asked() -> None:
    cheap, of_cheap = judge("cheap", 3)
    cascade = sg.Cascade([cheap, judge("strong", 5, fields=("input", "output", "documents"))[0]])
    assert cascade.info.requires == ("output", "documents")
    with pytest.raises(Skip):
        cascade.evaluate(SAMPLE)
    assert of_cheap.asked == 0


def test_its_identity_is_that_of_all_it_is_made_of() -> None:
    cheap, strong = judge("cheap", 3)[0], judge("strong", 5)[0]
    one = sg.Cascade([cheap, strong])
    assert isinstance(one, Evaluator)
    assert (
        one.info.config_hash
        == sg.Cascade([cheap, strong], ["error", "low_confidence", "disagreement"]).info.config_hash
    )
    others = [
        sg.Cascade([strong, cheap], name="strong"),
        sg.Cascade([cheap, strong], margin=0.1),
        sg.Cascade([cheap, strong], escalate=["error"]),
        sg.Cascade([cheap, strong], threshold=0.75),
        one.with_target("llm"),
    ]
    assert len({cascade.info.key for cascade in (one, *others)}) == 6
    assert one.timeout == 120


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda a, b: sg.Cascade([a]), "two stages or more"),
        (lambda a, b: sg.Cascade([a, []]), "two stages or more"),
        (lambda a, b: sg.Cascade([a, "overlap"]), "two stages or more"),
        (lambda a, b: sg.Cascade([a, b], escalate=["doubt"]), "'doubt' is not one of disagreement, low_confidence, error"),
        (lambda a, b: sg.Cascade([a, b], margin=2), "margin"),
        (lambda a, b: sg.Cascade([a, b.with_target("llm")]), "different targets"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_with_what_would(make: Any, said: str) -> None:
    with pytest.raises(sg.ConfigError, match=said):
        make(judge("a", 3)[0], judge("b", 3)[0])


def test_live_it_is_placed_like_a_judge_and_its_label_rides_out() -> None:
    exporter = CollectingExporter()
    cascade = sg.Cascade([judge("cheap", 3)[0], judge("strong", 3)[0]], name="helpful")
    with pytest.raises(sg.ConfigError, match="not live"):
        sg.configure(judges=[cascade], exporter=exporter)
    sg.configure(judges=[sg.live(cascade, rate=1.0)], exporter=exporter)
    with sg.trace("answer"):
        sg.set_output("yes")
    assert sg.flush(30)
    score = event_scores(exporter.spans[0])["helpful"]
    assert score[s.SCORE_LABEL] == "needs_review"
    assert score[s.JUDGE_ESCALATED] == ("low_confidence", "low_confidence")
    assert s.SCORE_VALUE not in score
    assert s.PASSED not in score


def test_its_judges_find_their_endpoints_and_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_JUDGE_MODEL", "m-env")
    cascade = sg.Cascade([sg.LlmJudge("a", "c"), sg.LlmJudge("b", "c", model="claude-x")])
    pinned = cascade.with_pinned_model().at([Endpoint("http://h/v1", models=("m-*",))])
    (a,), (b,) = pinned.stages
    assert (a.model, b.model) == ("m-env", "claude-x")
    assert a._asking.client is not None
    assert b._asking.client is None


PRICE = {"input": 1_000.0, "output": 0.0}  # 0.01 US dollars for each answer of `Says`


def cost_after(*judges: sg.LlmJudge) -> float | None:
    """What one grading by the cascade says that it did cost."""
    try:
        return cost_of(sg.Cascade(judges).evaluate(SAMPLE))
    except JudgeError as fault:
        return cost_of(fault)


def test_what_a_cascade_did_cost_is_what_each_of_its_judges_did() -> None:
    cheap, strong = judge("cheap", 3)[0].with_price(PRICE), judge("strong", 5)[0].with_price(PRICE)
    assert cost_after(cheap, strong) == pytest.approx(0.02)
    down = judge("down", DOWN)[0].with_price(PRICE)
    assert cost_after(down, strong) == pytest.approx(0.01)
    assert cost_after(down, down) == 0.0
    late = judge("late", JudgeError("timeout", "late"))[0].with_price(PRICE)
    at_most = late.most(SAMPLE)
    assert at_most is not None
    # It may have been billed, with the input of one of the two calls at most (a reply costs nothing here).
    assert cost_after(late, strong) == pytest.approx(at_most / 2 + 0.01)
    cached = strong.with_cache()
    cached.evaluate(SAMPLE)
    assert cost_after(cheap, cached) == pytest.approx(0.01)
    known = cheap.with_cache()
    known.evaluate(SAMPLE)
    assert cost_after(known, cached) == 0.0
