"""Judges with a budget in US dollars: what is asked, what is counted, and what a price needs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import spangrade as sg
from spangrade import semconv as s
from spangrade.delivery.instruments import OutcomeInstruments
from spangrade.errors import ConfigError, JudgeError
from spangrade.judges import JudgeReply, JudgeRequest
from spangrade.judges.live import live, place
from spangrade.model.outcome import Outcome
from spangrade.testing import ScriptedJudgeClient

from .conftest import PASSING, call_span, judge

PRICE = {"input": 1.0, "output": 10.0}  # US dollars per million tokens
REPLY = JudgeReply(PASSING, "m-1", "stop", None, 1_000, 100)  # 0.002 US dollars


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "budget.sqlite")


def most() -> float:
    """What grading one of the spans can cost at most."""
    bound = judge(ScriptedJudgeClient(REPLY)).with_price(PRICE).most(sg.Sample(input="question 1", output="answer 1"))
    assert bound is not None
    return bound


def first() -> float:
    """What the first of its two calls can cost at most: both have the same input, and room for 1,024 and 4,096 tokens."""
    return (most() - 5_120 * 10 / 1e6) / 2 + 1_024 * 10 / 1e6


def test_a_ceiling_is_never_passed_and_what_is_over_it_is_counted(harness: Any, store: str) -> None:
    client = ScriptedJudgeClient(REPLY)
    limit = most() + 0.0041  # room for the most that a third call can cost, and not for that of a fourth
    h = harness(
        live(judge(client), rate=1.0, budget={"usd_per_day": limit}, price=PRICE), budget_store=store, judge_threads=1
    )
    for n in range(1, 9):
        h.send(call_span(n))
    assert h.pipeline.drain(20, judges=True)
    counts = h.counts("helpful")
    assert counts.of(Outcome.SCORED) == len(client.requests) == 3
    assert counts.outcomes[Outcome.OVER_BUDGET, "usd"] == 5
    (seat,) = h.pipeline.purses()
    (state,) = seat.state()
    assert (state.kind, state.reserved) == ("usd_per_day", 0)
    assert state.spent == pytest.approx(0.006)
    assert state.spent <= state.limit
    costs = {r.details[s.JUDGE_COST] for r in h.sink.records}
    assert list(costs) == [pytest.approx(0.002)]


def test_two_pipelines_with_one_store_share_a_judges_ceiling(harness: Any, store: str) -> None:
    asked = []
    for _ in range(2):
        client = ScriptedJudgeClient(REPLY)
        placed = live(judge(client), rate=1.0, budget={"usd_per_hour": most() + 0.0021}, price=PRICE)
        h = harness(placed, budget_store=store, judge_threads=1)
        for n in range(1, 5):
            h.send(call_span(n))
        assert h.pipeline.drain(20, judges=True)
        asked.append(len(client.requests))
    assert asked == [2, 0]


@pytest.mark.parametrize(
    ("answer", "spent"),
    [
        (JudgeError("connection", "nobody there"), 0.0),
        (JudgeError("http_status", "500"), 0.0),
        (JudgeReply("hm", "m", "stop", None, 1_000, 100), 0.004),  # asked twice
        (JudgeReply(PASSING, "m", "stop"), first),  # tokens unknown: the most that it can be
        (JudgeError("timeout", "late"), first),  # billed?
        ([JudgeReply("hm", "m", "stop", None, 1_000, 100), JudgeError("timeout", "late")], lambda: 0.002 + first()),
        (JudgeReply(PASSING, "m", "stop", None, 1_000, 100, unanswered=2), lambda: 2 * first() + 0.002),
        (RuntimeError("a bug"), most),
    ],
)
def test_what_an_end_costs(harness: Any, store: str, answer: Any, spent: float | Callable[[], float]) -> None:
    client = ScriptedJudgeClient(*(answer if isinstance(answer, list) else [answer]))
    placed = live(judge(client), rate=1.0, budget={"usd_per_day": 1.0}, price=PRICE)
    h = harness(placed, budget_store=store)
    h.send(call_span())
    assert h.pipeline.drain(20, judges=True)
    (purse,) = h.pipeline.purses()
    (state,) = purse.state()
    assert state.reserved == 0
    assert state.spent == pytest.approx(spent() if callable(spent) else spent)


def test_a_score_from_the_cache_and_a_skipped_sample_cost_nothing(harness: Any, store: str) -> None:
    client = ScriptedJudgeClient(REPLY)
    placed = live(judge(client).with_cache(), rate=1.0, budget={"usd_per_day": 1.0}, price=PRICE)
    h = harness(placed, budget_store=store, judge_threads=1)
    for _ in range(3):
        h.send(call_span(1))
    h.send(call_span(2, **{s.OI_OUTPUT: " "}))
    assert h.pipeline.drain(20, judges=True)
    (purse,) = h.pipeline.purses()
    assert purse.state()[0].spent == pytest.approx(0.002)


def test_calls_and_money_may_both_be_bounded_and_a_call_that_is_not_made_costs_nothing(
    harness: Any, store: str
) -> None:
    client = ScriptedJudgeClient(REPLY)
    budget = {"usd_per_day": 1.0, "calls_per_day": 2}
    h = harness(live(judge(client), rate=1.0, budget=budget, price=PRICE), budget_store=store, judge_threads=1)
    for n in range(1, 6):
        h.send(call_span(n))
    assert h.pipeline.drain(20, judges=True)
    assert h.counts("helpful").outcomes[Outcome.OVER_BUDGET, "calls"] == 3
    (purse,) = h.pipeline.purses()
    assert purse.state()[0].spent == pytest.approx(0.004)


def test_a_cascade_reserves_what_all_its_judges_can_cost() -> None:
    cheap, strong = (judge(ScriptedJudgeClient(REPLY), name).with_price(PRICE) for name in ("cheap", "strong"))
    assert sg.Cascade([cheap, strong]).most(sg.Sample(input="question 1", output="answer 1")) == pytest.approx(
        2 * most()
    )


def test_the_most_is_never_less_than_what_it_costs() -> None:
    made = judge(ScriptedJudgeClient(REPLY)).with_price(PRICE)
    short, long = (made.most(sg.Sample(input="q", output="é" * n)) for n in (10, 10_000))
    assert short is not None
    assert long is not None
    assert long - short > 2 * 9_000 * 2 / 1e6  # two calls, two bytes for each character


class Again:
    """A client that fails twice in a way that may have been billed, and asks before each time whether it may try again."""

    def __init__(self) -> None:
        self.asked: list[bool] = []

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """See `JudgeClient`."""
        assert request.again is not None
        for tried in (1, 2):
            self.asked.append(request.again())
            if not self.asked[-1]:
                fault = JudgeError("http_status", "502")
                fault.unanswered = tried
                raise fault
        return replace(REPLY, unanswered=2)


@pytest.mark.parametrize(("more", "asked"), [(0, [False]), (1, [True, False]), (2, [True, True])])
def test_a_try_that_may_have_been_billed_is_made_again_only_where_there_is_money_for_it(
    harness: Any, store: str, more: int, asked: list[bool]
) -> None:
    client = Again()
    limit = most() + (more + 0.5) * first()
    placed = live(judge(client), rate=1.0, budget={"usd_per_day": limit}, price=PRICE)  # type: ignore[arg-type]
    h = harness(placed, budget_store=store, judge_threads=1)
    h.send(call_span())
    assert h.pipeline.drain(20, judges=True)
    assert client.asked == asked
    (purse,) = h.pipeline.purses()
    (state,) = purse.state()
    assert state.reserved == 0
    assert state.spent == pytest.approx(2 * first() + 0.002 if more == 2 else (more + 1) * first())
    assert state.spent <= limit


# --- prices -------------------------------------------------------------------------------------------------------------


def test_a_model_without_a_price_is_refused_where_a_budget_in_money_is_set() -> None:
    unknown = sg.LlmJudge("helpful", "It helps.", model="nobody-knows-this-model")
    with pytest.raises(ConfigError, match=r"no price is known for the judge's model 'nobody-knows-this-model'.*price="):
        place(live(unknown, budget={"usd_per_day": 20}))
    place(live(unknown, budget={"calls_per_day": 20}))
    place(live(unknown, budget={"usd_per_day": 20}, price=PRICE))
    cascade = sg.Cascade([unknown.with_price(PRICE), unknown])
    with pytest.raises(ConfigError, match="no price is known"):
        place(live(cascade, budget={"usd_per_day": 20}))


def test_a_budget_below_what_one_grading_can_cost_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    for name, limit in (("low", 0.001), ("low", 0.001), ("none", 0.0), ("enough", 20)):
        place(live(judge(ScriptedJudgeClient(REPLY), name), budget={"usd_per_day": limit}, price=PRICE))
    said = [r.getMessage() for r in caplog.records if "below what one grading can cost" in r.getMessage()]
    assert len(said) == 1
    assert "low" in said[0]
    assert "usd_per_day 0.001" in said[0]


def test_the_installed_list_knows_what_models_cost() -> None:
    pytest.importorskip("genai_prices")
    for model in (
        "gpt-4.1-mini",
        "openai/gpt-4.1-mini",
        "claude-3-5-haiku-latest",
        "anthropic/claude-3-5-haiku-latest",
    ):
        price = sg.LlmJudge("helpful", "It helps.", model=model).price
        assert price is not None
        cost = price.cost(1_000_000, 0)
        assert cost is not None
        assert 0.05 < cost < 20, model
        place(live(sg.LlmJudge("helpful", "It helps.", model=model), budget={"usd_per_day": 20}))


@pytest.mark.parametrize("price", [{}, {"input": 1}, {"input": 1, "output": -1}, {"input": "1", "output": 1}, 3])
def test_what_is_no_price_is_refused(price: Any) -> None:
    with pytest.raises(ConfigError, match=r"price"):
        live(judge(ScriptedJudgeClient(REPLY)), price=price)


def test_what_is_spent_reserved_and_left_is_told_by_instruments(harness: Any, store: str) -> None:
    reader = InMemoryMetricReader()
    placed = live(judge(ScriptedJudgeClient(REPLY)), rate=1.0, budget={"usd_per_day": 1.0}, price=PRICE)
    h = harness(placed, budget_store=store)
    OutcomeInstruments(h.pipeline.ledger, MeterProvider([reader]))
    h.send(call_span())
    assert h.pipeline.drain(20, judges=True)
    data = reader.get_metrics_data()
    assert data is not None
    points = {
        (metric.name, point.attributes["evaluator"], point.attributes["window"]): point.value
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        if metric.name.startswith("spangrade.judge.")
        for point in metric.data.data_points
    }
    assert points == {
        ("spangrade.judge.spent", "helpful", "day"): pytest.approx(0.002),
        ("spangrade.judge.reserved", "helpful", "day"): 0,
        ("spangrade.judge.left", "helpful", "day"): pytest.approx(0.998),
    }
