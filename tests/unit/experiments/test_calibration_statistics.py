"""Kappa, alpha, thresholds and the correction: worked examples of the literature, and what must hold for any labels."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade.errors import ConfigError
from spangrade.experiments.calibration.agreement import cohen_kappa, krippendorff_alpha, majority, pairwise_kappas
from spangrade.experiments.calibration.bootstrap import bootstrap, kappa_interval, summed
from spangrade.experiments.calibration.correction import ErrorRates
from spangrade.experiments.calibration.threshold import Choice, Verdicts, choose, rates_at

LEVELS = st.integers(1, 5)
PAIRS = st.lists(st.tuples(LEVELS, LEVELS), min_size=2, max_size=60)


def expanded(table: list[list[int]]) -> tuple[list[int], list[int]]:
    """The two graders behind a table of counts."""
    pairs = [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    return [i for i, _ in pairs], [j for _, j in pairs]


# --- Cohen's kappa ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        # https://en.wikipedia.org/wiki/Cohen's_kappa: grant proposals, and the two with the same agreement of 60 %
        ([[20, 5], [10, 15]], 0.4),
        ([[45, 15], [25, 15]], 0.1304),
        ([[25, 35], [5, 35]], 0.2593),
        # Cohen 1960, table 1 (proportions times 200): kappa .492
        ([[88, 14, 18], [10, 40, 10], [2, 6, 12]], 0.492),
    ],
)
def test_kappa_is_that_of_worked_examples(table: list[list[int]], kappa: float) -> None:
    assert cohen_kappa(*expanded(table)) == pytest.approx(kappa, abs=5e-4)


def test_the_chance_in_kappa_is_a_ratio_of_whole_numbers_and_nothing_is_lost() -> None:
    a, b = expanded([[3, 1, 0], [0, 2, 1], [1, 0, 4]])
    n = 12
    seen = Fraction(9, n)
    chance = sum(Fraction(a.count(k) * b.count(k), n * n) for k in range(3))
    assert cohen_kappa(a, b) == pytest.approx(float((seen - chance) / (1 - chance)), abs=1e-12)


@given(PAIRS)
def test_quadratic_kappa_is_lins_concordance_coefficient(pairs: list[tuple[int, int]]) -> None:
    """Identity of quadratic kappa with Lin's coefficient with variances over n (L. Lin, Biometrics 45, 1989)."""
    x, y = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    spread = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    found = cohen_kappa(x.tolist(), y.tolist(), "quadratic")
    if spread < 1e-12:
        assert found is None
    else:
        assert found == pytest.approx(2 * np.mean((x - x.mean()) * (y - y.mean())) / spread, abs=1e-9)


@given(PAIRS, st.sampled_from([None, "quadratic"]))
def test_kappa_does_not_know_which_grader_is_which_and_is_at_most_1(pairs: list[tuple[int, int]], weights: Any) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    found = cohen_kappa(a, b, weights)
    assert found == cohen_kappa(b, a, weights)
    if found is None:
        assert set(a) == set(b)
        assert len(set(a)) == 1
    else:
        assert -1 - 1e-9 <= found <= 1
        assert (found > 1 - 1e-12) == (a == b)


@given(PAIRS)
def test_quadratic_kappa_is_the_same_on_levels_and_on_scores(pairs: list[tuple[int, int]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    scores = [(x - 1) / 4 for x in a], [(y - 1) / 4 for y in b]
    expected = cohen_kappa(a, b, "quadratic")
    found = cohen_kappa(*scores, "quadratic")
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60))
def test_weights_change_nothing_where_there_are_two_grades(pairs: list[tuple[bool, bool]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    weighted, plain = cohen_kappa(a, b, "quadratic"), cohen_kappa(a, b)
    assert weighted == (None if plain is None else pytest.approx(plain, abs=1e-12))


def test_kappa_of_unequal_numbers_of_grades_is_refused() -> None:
    with pytest.raises(ValueError, match="2 grades of one grader and 1 of the other"):
        cohen_kappa([1, 2], [1])


def test_pairs_of_graders_are_compared_on_the_items_that_both_have() -> None:
    found = pairwise_kappas([[1, 2, None, 1], [1, 2, 2, None], [None, 1, 2, 2]])
    assert found == {(0, 1): (1.0, 2), (0, 2): (pytest.approx(-1.0), 2), (1, 2): (pytest.approx(0.0), 2)}


# --- Krippendorff's alpha --------------------------------------------------------------------------------------------

_ = None  # a missing label, as in the paper
#: K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C: four observers, twelve units, missing data.
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_that_of_krippendorffs_worked_example(level: Any, alpha: float) -> None:
    assert krippendorff_alpha(KRIPPENDORFF, level) == pytest.approx(alpha, abs=5e-4)


def test_alpha_of_binary_data_is_that_of_krippendorffs_first_example() -> None:
    """The same paper, section A: two observers, ten units, alpha = .095."""
    a = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    b = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert krippendorff_alpha([a, b]) == pytest.approx(0.095, abs=5e-4)


GRADERS = st.integers(2, 4).flatmap(
    lambda graders: st.lists(st.lists(st.none() | LEVELS, min_size=graders, max_size=graders), min_size=1, max_size=25)
)


@given(GRADERS, st.sampled_from(["nominal", "ordinal", "interval"]), st.randoms(use_true_random=False))
def test_alpha_knows_neither_the_order_of_graders_nor_of_items(units: Any, level: Any, random: Any) -> None:
    graders = [list(grades) for grades in zip(*units, strict=True)]
    expected = krippendorff_alpha(graders, level)
    shuffled = [random.sample(unit, len(unit)) for unit in random.sample(units, len(units))]
    found = krippendorff_alpha([list(grades) for grades in zip(*shuffled, strict=True)], level)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))
    assert expected is None or expected <= 1 + 1e-12


@given(GRADERS)
def test_an_item_with_one_grade_tells_alpha_nothing(units: Any) -> None:
    graders = [list(grades) for grades in zip(*units, strict=True)]
    longer = [[*grades, 3 if i == 0 else None] for i, grades in enumerate(graders)]
    assert krippendorff_alpha(longer) == krippendorff_alpha(graders)


@given(st.lists(LEVELS, min_size=2, max_size=30), st.integers(2, 4))
def test_graders_who_always_agree_have_an_alpha_of_1(grades: list[int], graders: int) -> None:
    found = krippendorff_alpha([grades] * graders, "ordinal")
    assert found == (None if len(set(grades)) == 1 else pytest.approx(1.0))


@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1])), min_size=2, max_size=40))
def test_alpha_of_two_complete_graders_is_scotts_pi_with_a_small_sample_correction(pairs: Any) -> None:
    """alpha = 1 - (1 - pi) (2N - 1) / 2N (Krippendorff, Content Analysis, chapter 12)."""
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    n = len(pairs)
    share = (sum(a) + sum(b)) / (2 * n)
    chance = share**2 + (1 - share) ** 2
    found = krippendorff_alpha([a, b])
    if chance == 1:
        assert found is None
        return
    pi = (sum(x == y for x, y in pairs) / n - chance) / (1 - chance)
    assert found == pytest.approx(1 - (1 - pi) * (2 * n - 1) / (2 * n), abs=1e-9)


def test_a_majority_is_more_than_any_other_and_a_draw_is_none() -> None:
    assert majority([1, 1, 0]) == 1
    assert majority([1, 0]) is None
    assert majority([]) is None


# --- intervals -------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(LEVELS, LEVELS), min_size=5, max_size=30), st.sampled_from([None, "quadratic"]))
def test_the_kappas_of_resamples_are_cohens_kappa_of_them(pairs: Any, weights: Any) -> None:
    """Where every unit is drawn once and for all, the interval closes on the figure itself."""
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    expected = cohen_kappa(a, b, weights)
    doubled = kappa_interval(
        a * 2, b * 2, [0] * len(a) + [1] * len(b), weights, resamples=50
    )  # two units that are alike
    if expected is None:
        assert doubled.low is None
    else:
        assert (doubled.low, doubled.high) == (pytest.approx(expected, abs=1e-9), pytest.approx(expected, abs=1e-9))


def test_the_interval_of_kappa_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    truth, covered = 0.4, 0  # passes 1/2 each; the verdicts agree 70 %
    for _run in range(200):
        human = rng.random(120) < 0.5
        judge = np.where(rng.random(120) < 0.7, human, ~human)
        found = kappa_interval(judge.tolist(), human.tolist(), list(range(120)), resamples=400)
        covered += found.holds(truth)
    assert covered >= 180  # 95 % of 200 is 190, and 180 is three standard deviations below


def test_clusters_that_move_together_widen_the_interval() -> None:
    rng = np.random.default_rng(3)
    right = rng.random(30) < 0.7
    human = [bool(k % 2) for k in range(30) for _ in range(4)]
    judge = [h if right[i // 4] else not h for i, h in enumerate(human)]
    apart = kappa_interval(judge, human, list(range(120)))
    together = kappa_interval(judge, human, [i // 4 for i in range(120)])
    assert apart.low is not None
    assert apart.high is not None
    assert together.low is not None
    assert together.high is not None
    assert together.high - together.low > 1.5 * (apart.high - apart.low)
    assert together.units == 30


def test_one_unit_has_no_interval_and_says_so() -> None:
    found = bootstrap(summed([(1.0,)], ["a"]), lambda sums: sums[:, 0])
    assert found.low is None
    assert found.caution is not None


# --- thresholds ------------------------------------------------------------------------------------------------------


def test_rates_at_a_threshold_count_each_grading_in_one_cell() -> None:
    scores = (1.0, 0.75, 0.5, 0.25, 0.75, 0.0)
    found = rates_at(Verdicts(scores, (True, True, True, False, False, False), tuple("abcdef")), 0.75)
    assert (found.true_positive, found.false_negative, found.false_positive, found.true_negative) == (2, 1, 1, 2)
    assert (found.true_positive_rate, found.false_positive_rate) == (pytest.approx(2 / 3), pytest.approx(1 / 3))


def lenient(n: int, seed: int, gap: float = 1.0) -> Verdicts:
    """A judge on levels who gives 4 where people would fail: the right pass mark is 1, and 0.5 was shipped."""
    rng = np.random.default_rng(seed)
    human = rng.random(n) < 0.5
    scores = np.where(human, 1.0, 0.75)
    odd = rng.random(n) > gap
    return Verdicts(tuple(np.where(odd, 0.5, scores).tolist()), tuple(human.tolist()), tuple(range(n)))


def test_the_chosen_threshold_is_the_one_that_parts_what_people_part() -> None:
    found = choose(lenient(60, 1), 0.5)
    assert isinstance(found, Choice)
    assert found.threshold == 1.0
    assert found.by_fold == (1.0,) * 5
    assert found.held_out == 1.0
    assert found.shipped == 0.5
    assert (found.interval.low, found.interval.high) == (1.0, 1.0)
    assert found.rates.held_out


def test_what_is_held_out_is_not_flattered_by_a_judge_who_knows_nothing() -> None:
    """Chosen on the items that it is measured on, the best of five thresholds looks better than the coin that it is."""
    held_out, in_sample = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        scores = tuple((rng.integers(0, 5, 40) / 4).tolist())
        verdicts = Verdicts(scores, tuple((rng.random(40) < 0.5).tolist()), tuple(range(40)))
        found = choose(verdicts, 0.5, resamples=20)
        assert isinstance(found, Choice)
        assert found.held_out is not None
        held_out.append(found.held_out)
        best = rates_at(verdicts, found.threshold)
        assert best.true_positive_rate is not None
        assert best.false_positive_rate is not None
        in_sample.append((best.true_positive_rate + 1 - best.false_positive_rate) / 2)
    assert abs(np.mean(held_out) - 0.5) < 0.03
    assert np.mean(in_sample) > 0.55


def test_a_cluster_is_held_out_as_a_whole() -> None:
    """Every cluster's gradings are judged by one threshold: whoever shares a cluster never helps to choose its mark."""
    rng = np.random.default_rng(5)
    units = tuple(i // 3 for i in range(90))
    human = tuple((np.arange(90) // 3 % 2 == 0).tolist())
    scores = tuple((rng.integers(0, 5, 90) / 4).tolist())
    from spangrade.experiments.calibration import threshold

    strata = threshold._strata(Verdicts(scores, human, units))
    parts = threshold._folds(strata, 5, 1)
    assert sorted(unit for part in parts for unit in part) == list(range(30))
    for part in parts:
        passes = sum(unit in strata[True] for unit in part)
        assert passes == 3  # stratified


@pytest.mark.parametrize(
    ("verdicts", "reason"),
    [
        (Verdicts((0.5,) * 20, (True, False) * 10, tuple(range(20))), "one and the same score"),
        (Verdicts((0.5, 1.0) * 10, (True,) * 20, tuple(range(20))), "people passed 20 and failed 0"),
        (Verdicts((), (), ()), "one and the same score"),
    ],
)
def test_where_nothing_can_be_chosen_the_reason_is_said(verdicts: Verdicts, reason: str) -> None:
    found = choose(verdicts, 0.5)
    assert isinstance(found, str)
    assert reason in found


@pytest.mark.parametrize("criterion", ["balanced_accuracy", "accuracy", "f1", "kappa"])
def test_every_criterion_finds_the_mark_that_makes_no_error(criterion: str) -> None:
    found = choose(lenient(60, 2), 0.5, criterion)
    assert isinstance(found, Choice)
    assert (found.threshold, found.held_out) == (1.0, 1.0)


# --- the correction --------------------------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0.5, 1), st.floats(0.51, 1))
def test_the_correction_undoes_what_the_error_rates_do(truth: float, tpr: float, tnr: float) -> None:
    rates = ErrorRates(0.5, tpr, tnr, 100, 100)
    observed = truth * tpr + (1 - truth) * (1 - tnr)
    found = rates.corrected(min(1.0, observed), 1000)
    assert found.value == pytest.approx(truth, abs=1e-6)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_the_corrected_rate_is_rogan_and_gladens() -> None:
    found = ErrorRates(0.5, 0.9, 0.8, 50, 50).corrected(0.62, 500)
    assert found.value == pytest.approx((0.62 + 0.8 - 1) / (0.9 + 0.8 - 1))


@given(
    st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.integers(1, 500), st.integers(1, 500), st.integers(1, 9999)
)
def test_a_corrected_rate_is_always_a_rate_inside_its_interval(
    observed: float, tpr: float, tnr: float, passed: int, failed: int, n: int
) -> None:
    rates = ErrorRates(0.5, tpr, tnr, passed, failed)
    if not rates.informs:
        with pytest.raises(ConfigError, match="no pass rate can be told"):
            rates.corrected(observed, n)
        return
    found = rates.corrected(observed, n)
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize(("truth", "tpr", "tnr"), list(product([0.1, 0.5, 0.9], [0.8, 0.95], [0.7, 0.9])))
def test_the_corrected_interval_covers_the_truth_where_the_error_rates_are_estimates_too(
    truth: float, tpr: float, tnr: float
) -> None:
    """2,000 studies of 100 labelled items (50 of each) and 400 graded ones; nominal 95 %."""
    rng = np.random.default_rng(11)
    passed, failed = rng.binomial(50, tpr, 2000) / 50, rng.binomial(50, tnr, 2000) / 50
    observed = rng.binomial(400, truth * tpr + (1 - truth) * (1 - tnr), 2000) / 400
    covered = 0
    for p, f, o in zip(passed, failed, observed, strict=True):
        found = ErrorRates(0.5, float(p), float(f), 50, 50).corrected(float(o), 400)
        covered += found.low <= truth <= found.high
    assert covered >= 0.935 * 2000
