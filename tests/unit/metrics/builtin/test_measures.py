"""What `make bench-metrics` measures, on cases worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy", reason="the extra 'local' is not installed: no numpy")
measures = pytest.importorskip("tests.benchmarks.measures")


def test_auroc_is_the_share_of_pairs_in_the_right_order_ties_half() -> None:
    assert measures.auroc([1, 2, 3, 4], [False, False, True, True]) == 1
    assert measures.auroc([4, 3, 2, 1], [False, False, True, True]) == 0
    assert measures.auroc([1, 1, 1, 1], [False, False, True, True]) == 0.5
    assert measures.auroc([0.1, 0.4, 0.35, 0.8], [False, False, True, True]) == 0.75


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_auroc_agrees_with_counting_pairs(rows: list[tuple[int, bool]]) -> None:
    good, bad = [s for s, y in rows if y], [s for s, y in rows if not y]
    if good and bad:
        pairs = sum((g > b) + 0.5 * (g == b) for g in good for b in bad) / len(good) / len(bad)
        assert measures.auroc([s for s, _ in rows], [y for _, y in rows]) == pytest.approx(pairs)


def test_kappa_takes_chance_out() -> None:
    decisions = [True] * 45 + [False] * 15 + [True] * 25 + [False] * 15
    labels = [True] * 60 + [False] * 40
    assert measures.kappa(decisions, labels) == pytest.approx(0.1304, abs=1e-4)
    assert measures.kappa(labels, labels) == 1


def test_rates_and_calibration_are_counted() -> None:
    labels = np.array([True, True, False, False, False])
    passed = np.array([True, False, True, False, False])
    assert measures.true_positive_rate(passed, labels) == 0.5
    assert measures.false_positive_rate(passed, labels) == pytest.approx(1 / 3)
    assert measures.calibration_error([0.0] * 5 + [1.0] * 5, [False] * 5 + [True] * 5, bins=2) == 0
    assert measures.calibration_error([0.9] * 10, [True] * 4 + [False] * 6, bins=1) == pytest.approx(0.5)


def test_a_cluster_is_never_in_two_folds_and_the_folds_are_the_same_every_time() -> None:
    clusters = [f"c{i % 23}" for i in range(100)]
    folds = measures.folds(clusters, 5, 1)
    assert all(len({f for f, c in zip(folds, clusters, strict=True) if c == name}) == 1 for name in set(clusters))
    assert list(folds) == list(measures.folds(clusters, 5, 1))
    assert set(folds) == set(range(5))


def test_an_interval_over_few_large_clusters_is_wider_than_one_over_single_rows() -> None:
    random = np.random.default_rng(0)
    of = np.repeat(np.arange(12), 20)
    labels = np.arange(240) % 2 == 0
    scores = labels + 2 * random.normal(size=12)[of] * np.where(labels, 1, -1) + random.normal(size=240)
    narrow = measures.interval(measures.auroc, scores, labels, [str(i) for i in range(240)], 200)
    wide = measures.interval(measures.auroc, scores, labels, [str(c) for c in of], 200)
    assert wide[1] - wide[0] > 1.5 * (narrow[1] - narrow[0])
    assert narrow[0] <= measures.auroc(scores, labels) <= narrow[1]
