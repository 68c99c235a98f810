"""Selection: who is graded, and with what probability."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade.errors import ConfigError
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.policy import Policy
from spangrade.model.sample import Sample
from spangrade.scoring.selection import Budget, Selector, chosen, position
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


def test_a_money_budget_is_refused_rather_than_ignored() -> None:
    with pytest.raises(ConfigError, match=r"usd_per_day.*needs model prices"):
        Policy(budget={"usd_per_day": 20})


def test_conditions_read_metric_results() -> None:
    sample = Sample(output="x")
    assert Policy(when="overlap.fail").matches(sample, {"overlap": "fail"})
    assert not Policy(when=["overlap.fail", "json.error"]).matches(sample, {"overlap": "pass"})  # type: ignore[arg-type]
    assert Policy(when=lambda s, r: s.output == "x").matches(sample, {})
    with pytest.raises(ConfigError, match=r"metric\.result"):
        Policy(when="overlap")


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
