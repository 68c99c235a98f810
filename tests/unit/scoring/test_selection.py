"""Selection: who is graded, and with what probability."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade.errors import ConfigError
from spangrade.model.condition import Facts, condition
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.policy import Policy, Stratum
from spangrade.model.sample import Sample
from spangrade.scoring.selection import Budget, Selection, Selector, chosen, position
from spangrade.testing import FakeClock

JUDGE = EvaluatorInfo("helpful", kind="llm")
IDS = [int.from_bytes(i.to_bytes(8, "big") * 2, "big") for i in range(1, 100_001)]


def test_a_tenth_is_a_tenth_of_a_hundred_thousand_ids() -> None:
    share = sum(chosen(i, "helpful", 0.1) for i in IDS) / len(IDS)
    assert 0.095 < share < 0.105


def test_two_judges_are_independent_of_each_other() -> None:
    both = sum(chosen(i, "a", 0.2) and chosen(i, "b", 0.3) for i in IDS) / len(IDS)
    assert 0.055 < both < 0.065


def test_head_sampled_ids_are_selected_at_the_stated_rate() -> None:
    # What Python's TraceIdRatioBased at 1 % leaves over: ids whose low 64 bits are small.
    survivors = [i for i in IDS if (i * 0x9E3779B97F4A7C15) % 2**64 < 2**64 // 100]
    share = sum(chosen(i, "helpful", 0.5) for i in survivors) / len(survivors)
    assert 0.43 < share < 0.57


@given(st.integers(1, 2**128 - 1), st.floats(0.001, 1), st.floats(0.001, 1))
def test_what_a_lower_rate_selects_a_higher_one_selects_too(trace_id: int, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert not chosen(trace_id, "j", low) or chosen(trace_id, "j", high)


@given(st.integers(1, 2**128 - 1))
@settings(max_examples=50)
def test_rate_one_selects_everything(trace_id: int) -> None:
    assert Selector(JUDGE, Policy(rate=1.0), FakeClock()).decide(trace_id).chosen


def test_the_decision_is_a_pure_function_known_across_processes() -> None:
    assert position(1, "helpful") == position(1, "helpful")
    # A fixed value: a change of the hash would split SDK and agent of different releases.
    assert position(0x0123456789ABCDEF0123456789ABCDEF, "helpful") == 10764968350955767


def test_explicit_randomness_in_the_trace_state_keeps_linked_traces_together() -> None:
    state = "vendor=1,ot=th:0;rv:0123456789abcd"
    assert position(1, "j", state) == position(2, "j", state) != position(1, "j")


def test_a_cap_lowers_the_next_minutes_rate_and_says_so() -> None:
    clock = FakeClock()
    selector = Selector(JUDGE, Policy(rate=1.0, max_per_minute=10), clock)
    first = [selector.decide(i) for i in range(1, 101)]
    assert all(s.chosen and s.probability == 1.0 for s in first)
    clock.advance(60)
    second = selector.decide(7)
    assert second.probability == pytest.approx(0.1)
    assert second.reason == "rate_capped"
    clock.advance(180)
    assert selector.decide(7).probability == 1.0


def test_a_call_budget_is_a_hard_ceiling_over_a_sliding_window() -> None:
    clock = FakeClock()
    budget = Budget({"calls_per_minute": 2, "calls_per_hour": 3}, clock)
    assert [budget.take() for _ in range(3)] == [True, True, False]
    clock.advance(61)
    assert [budget.take() for _ in range(2)] == [True, False]
    clock.advance(3600)
    assert budget.take()


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, True, "0.5", None])
def test_a_rate_that_is_no_share_is_refused_in_words(rate: object) -> None:
    with pytest.raises(ConfigError, match="share above 0 and up to 1"):
        Policy(rate=rate)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("budget", "said"),
    [({"eur_per_day": 2}, "usd_per_day"), ({"usd_per_day": -1}, "US dollars"), ({"calls_per_day": True}, "of calls")],
)
def test_a_budget_that_cannot_work_is_refused(budget: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Policy(budget=budget)


FACTS = Facts(
    Sample(output="x", context={"status": "error", "model": "gpt-5"}, metadata={"tenant": "acme-7", "beta": True}),
    {"overlap": "fail", "tree.leaf": "pass", "safe": "skipped"},
    {"overlap": 0.25, "tree.leaf": 1.0},
    {"http.route": "/chat/1", "n": 3},
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("overlap.fail", True),
        ("overlap.pass", False),
        ("tree.leaf.pass", True),
        ("safe.skipped", True),
        ("nothing.fail", False),
        ("overlap < 0.3", True),
        ("overlap<0.25", False),
        ("overlap <= 0.25", True),
        ("tree.leaf == 1", True),
        ("overlap != .25", False),
        ("overlap > -1e3", True),
        ("nothing < 1", False),
        ("call.error", True),
        ("call.ok", False),
        ("metadata.tenant = acme*", True),
        ("metadata.tenant=other", False),
        ("metadata.beta = true", True),
        ("metadata.nothing = *", False),
        ("context.model = gpt-?", True),
        ("attributes.http.route = /chat/*", True),
        ("attributes.n = 3", True),
    ],
)
def test_a_condition_reads_results_values_the_call_and_its_content(text: str, holds: bool) -> None:
    assert condition(text)(FACTS) is holds
    assert (Policy(when=text).stratum(FACTS) is not None) is holds


@pytest.mark.parametrize(
    "text", ["overlap", "", "overlap.maybe", "overlap <", "overlap < x", "metadata.x", ".fail", 3, None, "a = b"]
)
def test_what_is_no_condition_is_refused_with_what_there_is(text: object) -> None:
    with pytest.raises(ConfigError, match=r"metric\.result"):
        condition(text)


def test_of_several_conditions_any_may_hold_and_a_function_may_decide() -> None:
    both: Any = ["overlap.pass", "call.error"]
    assert Policy(when=both).stratum(FACTS) is not None
    assert Policy(when=lambda s, r: s.output == "x" and r["overlap"] == "fail").stratum(FACTS) is not None
    assert Policy(when=lambda s, r: False).stratum(FACTS) is None


def test_each_kind_of_sample_has_its_own_rate_and_the_first_that_holds_counts() -> None:
    policy = Policy({"else": 0.02, "overlap.fail": 1.0, "call.error": 0.5})
    assert policy.conditional
    assert policy.stratum(FACTS) == Stratum("overlap.fail", 1.0)
    assert policy.stratum(Facts(Sample(context={"status": "error"}))) == Stratum("call.error", 0.5)
    assert policy.stratum(Facts(Sample())) == Stratum("else", 0.02)
    assert Policy({"overlap.fail": 1.0}).stratum(Facts(Sample())) is None
    selector = Selector(JUDGE, policy, FakeClock())
    for stratum in policy.strata:
        found = [selector.decide(i, "", stratum) for i in IDS[:20_000]]
        assert {s.probability for s in found} == {stratum.rate}
        assert {s.reason for s in found} == {stratum.name}
        assert abs(sum(s.chosen for s in found) / 20_000 - stratum.rate) < 0.02
    assert all(selector.candidate(i).chosen for i in IDS[:100])


@pytest.mark.parametrize("rate", [{}, {"overlap.fail": 0}, {"overlap.fail": 2}, {"nonsense": 0.5}, {"else": None}])
def test_rates_that_cannot_work_are_refused(rate: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Policy(rate)


@given(st.integers(1, 2**128 - 1), st.floats(0.01, 1), st.floats(0.01, 1))
def test_whatever_a_stratum_chooses_was_a_candidate(trace_id: int, one: float, other: float) -> None:
    policy = Policy({"call.error": one, "else": other})
    selector = Selector(JUDGE, policy, FakeClock())
    for stratum in policy.strata:
        assert not selector.decide(trace_id, "", stratum).chosen or selector.candidate(trace_id).chosen


def test_judges_of_one_group_choose_nested_samples_and_others_independent_ones() -> None:
    def picks(name: str, rate: float, group: str | None) -> set[int]:
        selector = Selector(EvaluatorInfo(name, kind="llm"), Policy(rate, group=group), FakeClock())
        return {i for i in IDS[:20_000] if selector.decide(i).chosen}

    assert picks("a", 0.1, "g") < picks("b", 0.3, "g")
    apart = picks("a", 0.1, None) & picks("b", 0.3, None)
    assert 0.02 < len(apart) / 20_000 < 0.04
    assert picks("a", 0.1, None) != picks("a", 0.1, "a")


def test_a_floor_raises_the_next_minutes_rates_and_no_probability_is_above_one() -> None:
    clock = FakeClock()
    policy = Policy({"call.error": 0.5, "else": 0.01}, min_per_minute=10)
    selector = Selector(JUDGE, policy, clock)
    error, rest = policy.strata
    for i in range(1, 101):
        assert selector.decide(i, "", rest).probability == 0.01
    clock.advance(60)
    raised = selector.decide(7, "", rest)
    assert raised.probability == pytest.approx(0.1)
    assert raised.reason == "else_raised"
    assert selector.decide(7, "", error) == Selection(True, 1.0, "call.error_raised")
    clock.advance(120)
    assert selector.decide(7, "", rest).probability == 0.01


def test_a_cap_counts_what_the_conditions_let_through() -> None:
    clock = FakeClock()
    policy = Policy({"call.error": 1.0}, max_per_minute=10)
    selector = Selector(JUDGE, policy, clock)
    for i in range(1, 1_000):
        selector.candidate(i)
    clock.advance(60)
    assert selector.decide(7, "", policy.strata[0]).probability == 1.0


@pytest.mark.parametrize(
    "wrong", [{"min_per_minute": 0}, {"max_per_minute": -1}, {"min_per_minute": 9, "max_per_minute": 8}, {"group": " "}]
)
def test_a_policy_that_cannot_work_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Policy(**wrong)


@given(st.lists(st.floats(0, 40), max_size=60), st.integers(0, 4), st.integers(0, 6))
def test_a_budget_counts_like_a_list_of_all_calls(steps: list[float], per_minute: int, per_hour: int) -> None:
    clock, taken = FakeClock(), []
    budget = Budget({"calls_per_minute": per_minute, "calls_per_hour": per_hour}, clock)
    for step in steps:
        clock.advance(step)
        now = clock.monotonic()
        room = all(sum(at > now - s for at in taken) < n for s, n in ((60.0, per_minute), (3600.0, per_hour)))
        assert budget.full() is not room
        assert budget.take() is room
        taken += [now] if room else []
        assert all(len(calls) <= limit for _, limit, calls in budget._windows)
