"""Intervals, p values and what so many items could show."""

import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade.errors import ConfigError
from spangrade.experiments import stats
from spangrade.experiments.power import fewest_discordant, smallest_difference
from spangrade.experiments.significance import binomial_p, holm, sign_flip_p
from spangrade.experiments.stats import mean_interval, rate_interval, standard_error, t_quantile

Rng = np.random.Generator
finite = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: round(x, 3))
FEW = {"resamples": 300}


def coverage(truth: float, draw: Callable[[Rng], tuple[Any, Any]], runs: int = 300, resamples: int = 500) -> float:
    """How often the interval of a drawn sample held the truth."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(runs):
        values, clusters = draw(rng)
        held += mean_interval(values, clusters, resamples=resamples).holds(truth)
    return held / runs


# --- intervals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [20, 60, 200])
def test_a_95_percent_interval_of_normal_differences_holds_the_truth_about_that_often(n: int) -> None:
    assert 0.90 <= coverage(0.1, lambda rng: (rng.normal(0.1, 1, n), None)) <= 0.98


@pytest.mark.parametrize("n", [60, 200])
def test_it_does_so_for_pass_and_fail_too(n: int) -> None:
    assert 0.90 <= coverage(0.1, lambda rng: (rng.choice([1.0, 0.0, -1.0], n, p=[0.2, 0.7, 0.1]), None)) <= 0.98


def test_a_small_sample_is_covered_because_the_percentiles_are_taken_further_out() -> None:
    assert 0.90 <= coverage(0.0, lambda rng: (rng.normal(0, 1, 8), None), resamples=2_000) <= 0.98


def clustered(rng: Rng, groups: int = 30, size: int = 8) -> tuple[Any, list[int]]:
    """Items that move with their cluster: intra-class correlation one half."""
    means = np.repeat(rng.normal(0, 1, groups), size)
    return means + rng.normal(0, 1, groups * size), [i // size for i in range(groups * size)]


def test_clusters_that_move_together_are_covered_when_named_and_not_when_ignored() -> None:
    assert 0.90 <= coverage(0.0, clustered) <= 0.98
    assert coverage(0.0, lambda rng: (clustered(rng)[0], None)) < 0.75


def test_the_clustered_interval_is_wider_when_clusters_move_together() -> None:
    values, clusters = clustered(np.random.default_rng(3))
    alone, together = mean_interval(values), mean_interval(values, clusters)
    assert alone.low is not None
    assert alone.high is not None
    assert together.low is not None
    assert together.high is not None
    assert together.high - together.low > 1.5 * (alone.high - alone.low)
    assert (alone.units, together.units) == (240, 30)


def test_clusters_of_different_sizes_still_estimate_the_mean_over_items() -> None:
    values = np.array([1.0] * 90 + [0.0] * 10)
    clusters = [0] * 90 + list(range(1, 11))
    interval = mean_interval(values, clusters)
    assert interval.holds(0.9)
    assert standard_error(values, clusters) == pytest.approx(math.sqrt(11 / 10 * ((90 * 0.1) ** 2 + 10 * 0.9**2)) / 100)


def test_singleton_clusters_are_items() -> None:
    values = np.random.default_rng(1).normal(0, 1, 50)
    alone, named = mean_interval(values), mean_interval(values, list(range(50)))
    assert (alone.low, alone.high) == (named.low, named.high)
    assert standard_error(values, list("ab" * 25)) != pytest.approx(standard_error(values))
    assert standard_error(values, list(range(50))) == pytest.approx(values.std(ddof=1) / math.sqrt(50))


@pytest.mark.parametrize("values", [[], [0.5]])
def test_no_items_or_one_item_have_no_interval_and_say_so(values: list[float]) -> None:
    interval = mean_interval(values)
    assert (interval.low, interval.high) == (None, None)
    assert interval.caution is not None
    assert interval.holds(-1e9)
    assert standard_error(np.array(values)) is None


def test_one_cluster_has_no_interval() -> None:
    interval = mean_interval([0.0, 1.0, 0.5], ["x"] * 3)
    assert (interval.low, interval.units) == (None, 1)
    assert "one cluster" in str(interval.caution)


def test_equal_values_give_a_point_that_is_not_to_be_relied_on() -> None:
    interval = mean_interval([0.25] * 40)
    assert (interval.low, interval.high) == (0.25, 0.25)
    assert "no spread" in str(interval.caution)
    assert "no spread" in str(mean_interval([0.3 - 0.2, 0.4 - 0.3, 0.1] * 10).caution)


def test_few_items_and_few_that_differ_are_said_to_be_unreliable() -> None:
    rng = np.random.default_rng(2)
    assert "only 19 items" in str(mean_interval(rng.normal(0, 1, 19)).caution)
    assert mean_interval(rng.normal(0, 1, 20)).caution is None
    assert "only 3 of 500 items differ" in str(mean_interval([1.0] * 3 + [0.0] * 497).caution)
    assert "only 10 clusters" in str(mean_interval(rng.normal(0, 1, 100), [i // 10 for i in range(100)]).caution)


def test_the_seed_decides_and_is_fixed() -> None:
    values = np.random.default_rng(5).exponential(1, 80)
    assert mean_interval(values) == mean_interval(values)
    assert mean_interval(values) != mean_interval(values, seed=1)


def test_many_items_are_drawn_in_pieces_and_fewer_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "_MOST_DRAWS", 12_000_000)
    values = np.random.default_rng(0).normal(0, 2, 10_000)
    interval = mean_interval(values)
    assert interval.resamples == 1_200
    assert mean_interval(values.round()).resamples == 10_000  # units that are alike cost nothing
    assert interval.low is not None
    assert interval.high is not None
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * 2 / 100, rel=0.1)


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        mean_interval([0.0, math.nan])
    with pytest.raises(ValueError, match="2 cluster names for 3 values"):
        mean_interval([0.0, 1.0, 2.0], ["a", "b"])
    with pytest.raises(ValueError, match="one number per item"):
        mean_interval(np.zeros((2, 2)))


@given(st.lists(finite, max_size=30), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_items_changes_nothing(values: list[float], random: Any) -> None:
    shuffled = random.sample(values, len(values))
    first, second = mean_interval(values, **FEW), mean_interval(shuffled, **FEW)
    assert first.low == pytest.approx(second.low)
    assert first.high == pytest.approx(second.high)
    assert sign_flip_p(np.array(values), **FEW) == pytest.approx(sign_flip_p(np.array(shuffled), **FEW))


@given(st.lists(finite, max_size=30), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_the_negated_values_have_the_mirrored_interval(values: list[float], groups: int) -> None:
    x = np.array(values)
    clusters = [i % groups for i in range(len(x))] if groups > 1 else None
    there, back = mean_interval(x, clusters, **FEW), mean_interval(-x, clusters, **FEW)
    assert -there == back
    assert sign_flip_p(x, clusters, **FEW) == sign_flip_p(-x, clusters, **FEW)
    assert smallest_difference(x, clusters) == smallest_difference(-x, clusters)


@given(st.lists(finite, min_size=2, max_size=30))
@settings(max_examples=60, deadline=None)
def test_an_interval_lies_within_the_values_and_in_order(values: list[float]) -> None:
    interval = mean_interval(values, **FEW)
    assert interval.low is not None
    assert interval.high is not None
    slack = 1e-9 * max(1.0, *map(abs, values))
    assert min(values) - slack <= interval.low <= interval.high <= max(values) + slack


# --- pass rates ---------------------------------------------------------------------------------------------------------


def test_a_pass_rate_has_wilsons_interval() -> None:
    """Brown, Cai and DasGupta (2001) give 0.2366 to 0.7634 for 5 of 10."""
    interval = rate_interval([1.0, 0.0] * 5)
    assert interval.low == pytest.approx(0.2366, abs=1e-4)
    assert interval.high == pytest.approx(0.7634, abs=1e-4)
    assert interval.method == "Wilson"


def test_all_passing_is_not_certainty() -> None:
    interval = rate_interval([1.0] * 10)
    assert interval.low == pytest.approx(0.7225, abs=1e-4)
    assert interval.high == 1.0


def test_rates_over_repeats_and_clusters_are_resampled() -> None:
    rng = np.random.default_rng(0)
    assert "bootstrap" in rate_interval(rng.choice([0, 1 / 3, 1], 50)).method
    assert "bootstrap" in rate_interval(rng.choice([0.0, 1.0], 50), [i // 5 for i in range(50)]).method
    assert rate_interval([0.0, 1.0] * 10, list(range(20))).method == "Wilson"


# --- p values -----------------------------------------------------------------------------------------------------------


def test_mcnemars_exact_test_is_the_binomial_on_the_discordant_pairs() -> None:
    """R: binom.test(2, 12)$p.value is 0.03857."""
    differences = np.array([1.0] * 10 + [-1.0] * 2 + [0.0] * 500)
    assert sign_flip_p(differences) == pytest.approx(0.0385742, abs=1e-6)
    assert binomial_p(2, 12) == binomial_p(10, 12) == pytest.approx(0.0385742, abs=1e-6)
    assert binomial_p(0, 0) == 1.0
    assert binomial_p(50_000, 100_000) == 1.0
    assert 0 < binomial_p(49_000, 100_000) < 1e-9


def test_five_pairs_can_show_nothing_and_six_can() -> None:
    assert sign_flip_p(np.ones(5)) == pytest.approx(0.0625)
    assert sign_flip_p(np.ones(6)) == pytest.approx(0.03125)
    assert (fewest_discordant(0.05), fewest_discordant(0.001)) == (6, 11)


@given(st.lists(finite, min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_few_pairs_are_looked_at_in_every_pattern(values: list[float]) -> None:
    bar = abs(math.fsum(values)) - 1e-9 * max(map(abs, values))
    patterns = list(itertools.product((1, -1), repeat=len(values)))
    expected = sum(
        abs(math.fsum(s * v for s, v in zip(signs, values, strict=True))) >= bar for signs in patterns
    ) / len(patterns)
    assert sign_flip_p(np.array(values)) == pytest.approx(expected)


def test_random_patterns_agree_with_all_patterns() -> None:
    values = np.random.default_rng(4).normal(0.45, 1, 18)
    bits = (np.arange(2**18)[:, None] >> np.arange(18)) & 1
    exact = float((np.abs((2.0 * bits - 1) @ values) >= abs(values.sum()) - 1e-9).mean())
    assert sign_flip_p(values) == pytest.approx(exact, abs=0.01)


def test_without_a_difference_p_is_1_and_without_a_pair_there_is_none() -> None:
    assert sign_flip_p(np.zeros(10)) == 1.0
    assert sign_flip_p(np.array([])) is None
    assert sign_flip_p(np.array([1.0, -1.0] * 8), [i // 2 for i in range(16)]) == 1.0


def test_p_values_under_no_difference_are_below_alpha_no_more_often_than_alpha() -> None:
    rng = np.random.default_rng(9)
    low = sum((sign_flip_p(rng.normal(0, 1, 25), resamples=500) or 0) <= 0.05 for _ in range(400))
    assert 0.02 * 400 <= low <= 0.085 * 400


def test_holm_adjusts_from_the_smallest_and_never_backwards() -> None:
    assert holm([0.01, 0.04, 0.03, None]) == pytest.approx([0.03, 0.06, 0.06, None])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


# --- what so many items could show ----------------------------------------------------------------------------------------


def test_the_smallest_difference_is_2_8_standard_errors() -> None:
    values = np.random.default_rng(6).normal(0, 0.3, 400)
    assert smallest_difference(values) == pytest.approx(2.8016 * values.std(ddof=1) / 20, rel=0.005)


def test_a_true_difference_of_that_size_is_shown_four_times_in_five() -> None:
    rng = np.random.default_rng(8)
    smallest = smallest_difference(rng.normal(0, 1, 2_000)[:40])
    assert smallest is not None
    size = 2.8016 / math.sqrt(40)
    shown = sum(not mean_interval(rng.normal(size, 1, 40), resamples=1_000).holds(0.0) for _ in range(300))
    assert 0.74 <= shown / 300 <= 0.88
    assert smallest == pytest.approx(size, rel=0.3)


def test_binary_outcomes_go_by_the_pairs_that_differ() -> None:
    """Connor's equation, put in again: n = (z_a sqrt(psi) + z_b sqrt(psi - d^2))^2 / d^2."""
    differences = np.array([1.0] * 30 + [-1.0] * 20 + [0.0] * 150)
    d = smallest_difference(differences)
    assert d is not None
    assert (1.959964 * math.sqrt(0.25) + 0.841621 * math.sqrt(0.25 - d * d)) ** 2 / d**2 == pytest.approx(200, rel=1e-4)


def test_no_discordant_pair_does_not_mean_that_nothing_could_be_missed() -> None:
    smallest = smallest_difference(np.zeros(100))
    assert smallest == pytest.approx(0.0789, abs=0.001)  # P(Binomial(100, 0.0789) >= 6) is 0.8
    assert smallest_difference(np.zeros(1_000)) == pytest.approx(0.0079, abs=0.0002)


def test_fewer_items_than_could_show_anything_have_no_smallest_difference() -> None:
    assert smallest_difference(np.array([1.0, 0.0, 1.0, 0.0, 0.0])) is None
    assert smallest_difference(np.array([])) is None
    assert smallest_difference(np.array([0.3 - 0.2, 0.4 - 0.3, 0.1] * 10)) is None
    assert smallest_difference(np.arange(40.0), [i // 10 for i in range(40)]) is None


def test_more_items_show_smaller_differences_and_clusters_larger_ones() -> None:
    values, clusters = clustered(np.random.default_rng(3))
    alone, together = smallest_difference(values), smallest_difference(values, clusters)
    quarter = smallest_difference(values[:60])
    assert alone is not None
    assert together is not None
    assert quarter is not None
    assert together > 1.5 * alone
    assert quarter > 1.5 * alone


@pytest.mark.parametrize(
    ("p", "df", "value"),
    [
        (0.975, 1, 12.7062),
        (0.975, 2, 4.30265),
        (0.975, 3, 3.18245),
        (0.975, 5, 2.57058),
        (0.8, 4, 0.940965),
        (0.975, 999, 1.96234),
    ],
)
def test_t_quantiles_are_those_of_the_tables(p: float, df: int, value: float) -> None:
    assert t_quantile(p, df) == pytest.approx(value, rel=0.0013)


def test_without_numpy_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ConfigError, match=r'pip install "spangrade\[experiments\]"'):
        mean_interval([1.0, 2.0])


def test_units_that_are_alike_are_drawn_as_counts_with_the_same_result() -> None:
    """Zeros and ones go by counts; with a jitter that changes nothing they are drawn one by one."""
    values = np.array([1.0] * 120 + [0.0] * 180)
    jittered = values + np.random.default_rng(0).normal(0, 1e-6, 300)
    counted, drawn = mean_interval(values), mean_interval(jittered)
    assert counted.low == pytest.approx(drawn.low, abs=0.007)
    assert counted.high == pytest.approx(drawn.high, abs=0.007)
    sizes = [i // 2 for i in range(300)]
    counted, drawn = mean_interval(values, sizes), mean_interval(jittered, sizes)
    assert counted.low == pytest.approx(drawn.low, abs=0.011)
    assert counted.high == pytest.approx(drawn.high, abs=0.011)
