"""compare(a, b): pairs, what they show, and when there is nothing to subtract."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.experiments.made import BOOM, failed, item, results, scored

import spangrade
from spangrade import semconv
from spangrade.errors import ConfigError
from spangrade.experiments.compare import compare
from spangrade.experiments.records import EvaluatorRecord, ItemResult, ScoreResult
from spangrade.experiments.results import Results
from spangrade.model.outcome import Outcome

FAST: dict[str, Any] = {"resamples": 500}


def of(
    values: Sequence[float | None], metadata: Callable[[int], dict[str, Any]] = lambda i: {}, **more: Any
) -> Results:
    """One score per item; None is a failure."""
    items = [
        item(
            failed(f"q{i}") if value is None else scored(f"q{i}", value),
            item_id=f"q{i}",
            input=f"question {i}",
            metadata=metadata(i),
        )
        for i, value in enumerate(values)
    ]
    return results(*items, **more)


def noise(n: int, seed: int, shift: float = 0.0) -> list[float]:
    """Numbers around an item's own level, so that pairs have something in common."""
    rng = random.Random(seed)
    return [i % 7 / 7 + shift + rng.gauss(0, 0.1) for i in range(n)]


# --- what is shown ------------------------------------------------------------------------------------------------------


def test_a_clear_rise_is_better_with_delta_and_interval_over_the_pairs() -> None:
    row = compare(of(noise(40, 1)), of(noise(40, 2, 0.2)))["m"]
    assert (row.status, row.shows, row.n) == ("compared", "better", 40)
    assert row.delta == pytest.approx((row.b.mean or 0) - (row.a.mean or 0))
    assert row.interval is not None
    assert row.interval.low is not None
    assert row.interval.high is not None
    assert 0 < row.interval.low < row.delta < row.interval.high
    assert row.interval.caution is None
    assert row.p_value is not None
    assert row.p_value < 0.001
    assert row.smallest_difference == pytest.approx(2.8 * 0.1 * 2**0.5 / 40**0.5, rel=0.25)


def test_the_front_door_has_it() -> None:
    assert spangrade.compare is compare


def test_where_lower_is_better_a_rise_is_worse() -> None:
    record = EvaluatorRecord("m", lower_is_better=True)
    found = compare(of(noise(40, 1), evaluators=(record,)), of(noise(40, 2, 0.2), evaluators=(record,)))
    assert found["m"].shows == "worse"
    assert found.worse == [found["m"]]
    assert found.better == []


def test_a_measurement_is_higher_or_lower_and_never_better_or_worse() -> None:
    record = EvaluatorRecord("m", verdict=False, lower_is_better=True)
    up, down = of(noise(40, 2, 0.2), evaluators=(record,)), of(noise(40, 1), evaluators=(record,))
    assert compare(down, up)["m"].shows == "higher"
    assert compare(up, down)["m"].shows == "lower"


def test_noise_shows_no_difference_and_says_what_it_could_have_shown() -> None:
    row = compare(of(noise(40, 1)), of(noise(40, 4)))["m"]
    assert row.shows == "no difference shown"
    assert row.smallest_difference is not None


def test_noise_is_taken_for_a_difference_no_more_often_than_one_time_in_twenty() -> None:
    shown = sum(
        compare(of(noise(25, 2 * seed)), of(noise(25, 2 * seed + 1)), **FAST)["m"].shows != "no difference shown"
        for seed in range(200)
    )
    assert 0.01 * 200 <= shown <= 0.09 * 200


def test_results_compared_with_themselves_have_delta_zero() -> None:
    same = of(noise(30, 1))
    row = compare(same, same)["m"]
    assert (row.delta, row.shows, row.p_value, row.same) == (0.0, "no difference shown", 1.0, 30)
    assert "0 to 0?" in str(compare(same, same))


def test_five_pairs_that_all_rise_are_too_few_to_show_anything_and_six_are_enough() -> None:
    def rising(n: int) -> Any:
        return compare(of([0.0] * n), of([1.0] * n))["m"]

    assert rising(5).shows == "no difference shown"
    assert rising(5).smallest_difference is None
    assert "exact test does not agree" in rising(5).cautions[0]
    assert rising(6).shows == "better"


def test_an_interval_that_leaves_zero_out_shows_nothing_where_hardly_any_pair_differs() -> None:
    """5 of 400 flip, all to pass: the bootstrap excludes 0, McNemar's exact test says 0.06."""
    row = compare(of([0.0] * 400), of([1.0] * 5 + [0.0] * 395))["m"]
    assert row.interval is not None
    assert row.interval.low is not None
    assert row.interval.low > 0
    assert row.p_value == pytest.approx(0.0625)
    assert row.shows == "no difference shown"
    assert "only 5 of 400 items differ" in str(row.interval.caution)


def test_what_only_rounding_tells_apart_is_the_same() -> None:
    row = compare(of([0.1 + 0.2] * 30), of([0.3] * 30))["m"]
    assert (row.delta, row.same) == (0.0, 30)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_items_are_no_error(n: int) -> None:
    found = compare(of([0.5] * n), of([0.7] * n))
    assert found["m"].n == n
    assert found["m"].shows in (None, "no difference shown")
    assert str(found)
    assert json.loads(found.to_json())["items"] == n


@given(
    st.lists(st.one_of(st.none(), st.floats(-10, 10).map(lambda x: round(x, 2))), min_size=1, max_size=25), st.data()
)
@settings(max_examples=40, deadline=None)
def test_the_mirrored_comparison_says_the_opposite(values: list[float | None], data: Any) -> None:
    others = data.draw(st.permutations(values))
    groups = data.draw(st.sampled_from([None, "g"]))
    a, b = of(values, lambda i: {"g": i % 4}), of(others, lambda i: {"g": i % 4})
    there, back = (compare(x, y, cluster=groups, resamples=200)["m"] for x, y in ((a, b), (b, a)))
    assert there.n == back.n
    assert there.p_value == back.p_value
    assert there.smallest_difference == back.smallest_difference
    if there.delta is not None:
        assert there.delta == -(back.delta or 0.0)
        assert there.interval == -(back.interval)
        opposite = {"better": "worse", "worse": "better"}
        assert there.shows == opposite.get(str(back.shows), back.shows)


@given(st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_the_order_of_items_changes_nothing(rng: random.Random) -> None:
    a, b = of(noise(25, 1), lambda i: {"g": i % 5}), of(noise(25, 2, 0.05), lambda i: {"g": i % 5})
    shuffled = (replace(side, items=tuple(rng.sample(side.items, len(side.items)))) for side in (a, b))
    plain, mixed = compare(a, b, by="g", cluster="g", **FAST), compare(*shuffled, by="g", cluster="g", **FAST)
    assert plain.rows == mixed.rows
    assert plain.warnings == mixed.warnings


# --- pairs ----------------------------------------------------------------------------------------------------------------


def test_items_that_one_side_lacks_are_counted_and_named() -> None:
    a, b = of([0.1] * 9), of([0.2] * 12)
    found = compare(a, b, **FAST)
    assert found.only_in_b == ("q10", "q11", "q9")
    assert found.only_in_a == ()
    assert found["m"].n == 9
    assert "only in b, not compared: 3 items (q10, q11, q9)" in found.warnings
    assert "only in b, not compared: 3 items (q10, q11, q9)" in str(found)


def test_many_unpaired_items_are_counted_and_the_first_named() -> None:
    (warning,) = compare(of([0.1] * 30), of([0.1] * 10), **FAST).warnings
    assert warning == "only in a, not compared: 20 items (q10, q11, q12, q13, q14, and 15 more)"


def test_without_any_common_item_the_ids_are_shown() -> None:
    other = results(item(scored("x", 0.5)))
    found = compare(of([0.1]), other)
    assert "a has ids such as 'q0', b such as 'x'" in found.warnings[0]
    assert found["m"].status == "no pairs"


def test_another_question_under_the_same_id_is_flagged_and_not_compared() -> None:
    a, b = of([0.1] * 10), of([0.9] * 10)
    items = list(b.items)
    items[3] = replace(items[3], expected="now there is one")
    items[4] = replace(items[4], input="another")
    found = compare(a, replace(b, items=tuple(items)), **FAST)
    assert found.changed == ("q3", "q4")
    assert found["m"].n == 8
    assert "another input or expected answer under the same id, not compared: 2 items (q3, q4)" in found.warnings


def test_a_saved_question_is_the_same_as_the_one_in_memory(tmp_path: Path) -> None:
    rows = [
        ItemResult(f"q{i}", input={"b": (1, 2.0), "a": "naïve"}, scores=(scored(f"q{i}", i / 10),)) for i in range(8)
    ]
    path = tmp_path / "a.json"
    results(*rows).save(path)
    for saved in (path, str(path)):
        found = compare(saved, results(*rows), **FAST)
        assert (found.changed, found["m"].n, found["m"].delta) == ((), 8, 0.0)


def test_a_failure_on_one_side_is_no_number_and_is_counted_by_reason() -> None:
    a = of([0.5] * 30)
    items = list(of([0.5] * 30).items)
    items[0] = item(failed("q0"), input="question 0")
    items[1] = item(failed("q1", Outcome.TIMEOUT), input="question 1")
    items[2] = item(ScoreResult("q2", 0, "m", "m", Outcome.SKIPPED, reason="documents missing"), input="question 2")
    items[3] = ItemResult("q3", input="question 3", error=BOOM)
    row = compare(a, results(*items), **FAST)["m"]
    assert (row.n, row.delta) == (26, 0.0)
    assert row.b.lost == {"error": 1, "timeout": 1, "skipped": 1, "not run": 1}
    assert row.a.lost == {}
    assert "of 30 items 0 have no score in a and 4 in b: the pairs that remain are a selection" in row.cautions
    assert "without a score in a: none; without a score in b: 1 error, 1 not run, 1 skipped, 1 timeout" in str(
        compare(a, results(*items), **FAST)
    )


def test_as_many_failures_on_both_sides_are_no_reason_to_warn() -> None:
    row = compare(of([None, *[0.5] * 20]), of([*[0.5] * 20, None]), **FAST)["m"]
    assert (row.n, row.cautions) == (19, ())
    assert (row.a.lost, row.b.lost) == ({"error": 1}, {"error": 1})


def test_where_everything_failed_there_is_no_delta() -> None:
    found = compare(of([0.5] * 5), of([None] * 5))
    row = found["m"]
    assert (row.status, row.delta, row.shows, row.b.lost) == ("no pairs", None, None, {"error": 5})
    assert row.b.mean is None
    assert "no item has a number on both sides" in str(found)
    assert compare(of([None] * 5), of([None] * 5))["m"].status == "no pairs"


def test_an_evaluator_that_failed_altogether_fails_for_each_of_its_scores() -> None:
    def several(item_id: str, *values: float) -> ItemResult:
        names = ("m.x", "m.y")
        return item(*(scored(item_id, v, name=n, evaluator="m") for n, v in zip(names, values, strict=True)))

    a = results(*(several(f"q{i}", 0.1, 0.2) for i in range(8)))
    b = results(*(several(f"q{i}", 0.3, 0.2) for i in range(7)), item(failed("q7")))
    found = compare(a, b, **FAST)
    assert found.names() == ["m.x", "m.y"]
    assert [row.b.lost for row in found] == [{"error": 1}, {"error": 1}]
    assert found["m.x"].n == 7


# --- repeats ----------------------------------------------------------------------------------------------------------------


def repeated(values: Sequence[Sequence[float | None]]) -> Results:
    return results(
        *(
            item(failed(f"q{i}", repeat=r) if v is None else scored(f"q{i}", v, repeat=r))
            for i, runs in enumerate(values)
            for r, v in enumerate(runs)
        ),
        repeats=len(values[0]) if values else 1,
    )


def test_repeats_are_averaged_first_so_that_the_item_is_the_unit() -> None:
    a, b = repeated([[0.0, 1.0], [0.5, 0.5]] * 4), repeated([[1.0, 1.0], [0.5, 0.7]] * 4)
    row = compare(a, b, **FAST)["m"]
    assert row.n == 8
    assert row.delta == pytest.approx((0.5 + 0.1) / 2)
    assert row.a.repeat_sd == pytest.approx(0.5)  # pooled: sqrt((0.5 + 0) / 2)
    assert row.b.repeat_sd == pytest.approx(0.1)
    assert "repeats of one item lie 0.5 in a and 0.1 in b apart (standard deviation)" in str(compare(a, b, **FAST))


def test_a_repeat_without_a_number_leaves_its_item_the_others_and_is_counted() -> None:
    a, b = repeated([[0.4, 0.6]] * 8), repeated([[0.4, None]] * 8)
    row = compare(a, b, **FAST)["m"]
    assert (row.n, row.b.lost_runs, row.b.lost) == (8, 8, {})
    assert row.delta == pytest.approx(-0.1)
    assert "0 repeats in a and 8 in b gave no number; their items are the mean of the others" in row.cautions


def test_other_numbers_of_repeats_are_compared_and_said() -> None:
    found = compare(repeated([[0.4, 0.6]] * 8), repeated([[0.5]] * 8), **FAST)
    assert found["m"].delta == 0.0
    assert "a has 2 runs of each item and b 1; each item counts once all the same" in found.warnings


# --- verdicts, categories -----------------------------------------------------------------------------------------------------


def test_verdicts_without_numbers_are_compared_as_pass_rates() -> None:
    def verdicts(passes: int) -> Results:
        items = [item(scored(f"q{i:02}", None, i < passes, label="pass" if i < passes else "fail")) for i in range(40)]
        return results(*items, evaluators=(EvaluatorRecord("m", lower_is_better=True),))

    row = compare(verdicts(10), verdicts(30))["m"]
    assert (row.measure, row.delta, row.shows) == ("pass rate", 0.5, "better")
    assert (row.a.pass_rate, row.b.pass_rate) == (0.25, 0.75)


def test_values_with_verdicts_show_pass_rates_beside_the_means() -> None:
    a = results(*(item(scored(f"q{i}", 0.2, False)) for i in range(8)))
    b = results(*(item(scored(f"q{i}", 0.6, i > 1)) for i in range(8)))
    row = compare(a, b, **FAST)["m"]
    assert (row.measure, row.a.pass_rate, row.b.pass_rate) == ("value", 0.0, 0.75)
    assert row.delta == pytest.approx(0.4)


def test_categories_have_counts_and_no_delta() -> None:
    a = results(*(item(scored(f"q{i}", None, label="calm")) for i in range(6)))
    b = results(*(item(scored(f"q{i}", None, label="calm" if i else "angry")) for i in range(6)))
    row = compare(a, b)["m"]
    assert (row.status, row.delta) == ("labels only", None)
    assert (dict(row.a.labels), dict(row.b.labels)) == ({"calm": 6}, {"angry": 1, "calm": 5})
    assert row.reason == "categories without a number; 1 of 6 items have another in b"


# --- the same evaluator? --------------------------------------------------------------------------------------------------------


def by(record: EvaluatorRecord, value: float, **details: Any) -> Results:
    items = (item(scored(f"q{i}", value + i / 100, evaluator=record.key, details=details)) for i in range(12))
    return results(*items, evaluators=(record,))


@pytest.mark.parametrize(
    ("mine", "yours", "says"),
    [
        ({"config_hash": "aaaa"}, {"config_hash": "bbbb"}, "a has m (config aaaa), b has m (config bbbb)"),
        (
            {"version": "1", "config_hash": "aaaa"},
            {"version": "2", "config_hash": "bbbb"},
            "a has m version 1 (config aaaa), b has m version 2 (config bbbb)",
        ),
        (
            {},
            {"version": "2", "config_hash": "b"},
            "a has m without a version (config none), b has m version 2 (config b)",
        ),
        ({}, {"version": "2"}, "a has m without a version (config none), b has m version 2 (config none)"),
        ({}, {"target": "llm"}, "a has m (config none, target root), b has m (config none, target llm)"),
        ({}, {"kind": "llm"}, "a has m (config none, kind code), b has m (config none, kind llm)"),
        (
            {},
            {"lower_is_better": True},
            "a has m (config none, higher is better), b has m (config none, lower is better)",
        ),
    ],
)
def test_another_configuration_is_a_mismatch_in_place_of_a_delta(mine: Any, yours: Any, says: str) -> None:
    found = compare(by(EvaluatorRecord("m", **mine), 0.1), by(EvaluatorRecord("m", **yours), 0.9), by=lambda _: "all")
    (row,) = found
    assert (row.status, row.reason) == ("config mismatch", says)
    assert (row.delta, row.interval, row.p_value, row.shows, row.n) == (None, None, None, None, 0)
    assert found.mismatches == [row]
    assert row.a.mean == pytest.approx(0.155)
    assert f"config mismatch: {says} (mean 0.155 in a, mean 0.955 in b)" in str(found)
    assert json.loads(found.to_json())["rows"][0]["status"] == "config mismatch"


def test_another_judge_model_that_answered_is_a_mismatch() -> None:
    record = EvaluatorRecord("m", "llm", config_hash="c")
    one, two = ({semconv.JUDGE_MODEL: model} for model in ("small-1", "small-2"))
    row = compare(by(record, 0.1, **one), by(record, 0.9, **two))["m"]
    assert (row.status, row.reason) == ("config mismatch", "answered by small-1 in a, by small-2 in b")
    assert compare(by(record, 0.1, **one), by(record, 0.9, **one))["m"].status == "compared"


def test_changed_code_under_the_same_version_is_said_beside_the_delta() -> None:
    mine, yours = EvaluatorRecord("m", source_hash="1"), EvaluatorRecord("m", source_hash="2")
    row = compare(by(mine, 0.1), by(yours, 0.9))["m"]
    assert row.status == "compared"
    assert "the code of m is not the same in a and b" in row.cautions[0]


def test_another_threshold_is_said_beside_the_delta() -> None:
    row = compare(by(EvaluatorRecord("m", threshold=0.5), 0.1), by(EvaluatorRecord("m"), 0.2))["m"]
    assert row.cautions[0].startswith("the threshold is 0.5 in a and none in b")


def test_scores_that_one_side_lacks_are_rows_of_their_own() -> None:
    found = compare(
        by(EvaluatorRecord("old"), 0.1),
        results(item(scored("q0", 1, name="new")), evaluators=(EvaluatorRecord("new"),)),
    )
    assert [row.status for row in found] == ["only in a", "only in b"]


def test_two_configurations_of_one_name_are_paired_by_configuration() -> None:
    records = [EvaluatorRecord("m", config_hash=h) for h in "xyz"]

    def two(*which: EvaluatorRecord) -> Results:
        items = [item(*(scored(f"q{i}", i / 10, evaluator=r.key) for r in which)) for i in range(8)]
        return results(*items, evaluators=which)

    x, y, z = records
    assert [row.status for row in compare(two(x, y), two(y, x), **FAST)] == ["compared", "compared"]
    assert [row.status for row in compare(two(x, y), two(y, z), **FAST)] == ["compared", "config mismatch"]
    assert [row.status for row in compare(two(x, y), two(y), **FAST)] == ["compared", "only in a"]
    assert compare(two(x, y), two(y, z), **FAST).names() == ["m", "m@z"]


# --- slices and clusters ------------------------------------------------------------------------------------------------------


def sliced() -> tuple[Results, Results]:
    """Slice x rises, slice y does not."""
    a = of(noise(60, 1), lambda i: {"tenant": "xy"[i % 2], "n": i % 12, "tags": ["t", "u"][: i % 3]})
    rises = [v + (0.3 if i % 2 == 0 else 0.0) for i, v in enumerate(noise(60, 2))]
    return a, of(rises, lambda i: {"tenant": "xy"[i % 2], "n": i % 12, "tags": ["t", "u"][: i % 3]})


def test_each_slice_has_figures_of_its_own() -> None:
    found = compare(*sliced(), by="tenant")
    assert [(row.by, row.slice, row.n, row.shows) for row in found] == [
        (None, None, 60, "better"),
        ("tenant", "x", 30, "better"),
        ("tenant", "y", 30, "no difference shown"),
    ]
    assert found.slices("m", "tenant") == list(found)[1:]


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("metadata.tenant", ["x", "y"]),
        (lambda item: len(item.input) > 10, ["false", "true"]),
        ({"which": lambda item: item.metadata["tenant"]}, ["x", "y"]),
        (["tenant", "n"], ["x", "y", *map(str, range(12))]),
        ("tags", ["t", "u", "(none)"]),
    ],
)
def test_a_slice_is_a_key_a_path_a_function_or_several(key: Any, names: list[str]) -> None:
    assert [row.slice for row in compare(*sliced(), by=key, **FAST).slices("m")] == names


def test_a_path_reaches_into_input_and_expected() -> None:
    items = [item(scored(f"q{i}", 0.5), input={"topic": "ab"[i % 2]}, expected={"kind": "z"}) for i in range(6)]
    found = compare(results(*items), results(*items), by=["input.topic", "expected.kind"])
    assert [(row.by, row.slice) for row in found.slices("m")] == [
        ("input.topic", "a"), ("input.topic", "b"), ("expected.kind", "z"),
    ]  # fmt: skip


def test_many_slices_are_many_chances_and_their_p_values_say_so() -> None:
    found = compare(*sliced(), by="n", **FAST)
    rows = found.slices("m")
    assert len(rows) == 12
    for row in rows:
        assert row.p_value is not None
        assert row.p_adjusted is not None
        assert row.p_adjusted >= row.p_value
    assert "12 figures of slices are 12 chances" in found.warnings[0]
    assert found["m"].p_adjusted is None


def test_a_slice_that_is_shown_by_itself_only_says_so() -> None:
    a, b = of([0.0] * 60, lambda i: {"n": i % 10}), of([float(i % 10 == 0) for i in range(60)], lambda i: {"n": i % 10})
    row = compare(a, b, by="n", **FAST).slices("m")[0]
    assert (row.p_value, row.p_adjusted) == pytest.approx((0.03125, 0.3125))
    assert row.shows == "no difference shown"
    assert "p = 0.031 by itself, 0.31 among all slices (Holm)" in row.cautions
    alone = compare(a, b, by=lambda item: item.metadata["n"] == 0, **FAST).slices("m")[1]
    assert (alone.p_adjusted, alone.shows) == (pytest.approx(0.0625), "no difference shown")


def test_naming_clusters_widens_the_interval_where_they_move_together() -> None:
    rng = random.Random(3)
    moves = [rng.gauss(0, 0.3) for _ in range(25)]
    base = noise(100, 1)
    a = of(base, lambda i: {"doc": i // 4})
    b = of([v + moves[i // 4] + rng.gauss(0, 0.02) for i, v in enumerate(base)], lambda i: {"doc": i // 4})
    alone, together = compare(a, b), compare(a, b, cluster="doc")
    assert (together.clusters, together.cluster) == (25, "doc")
    assert alone.clusters is None

    def width(found: Any) -> float:
        return float(found["m"].interval.high - found["m"].interval.low)

    assert width(together) > 1.6 * width(alone)
    assert together["m"].smallest_difference > 1.6 * alone["m"].smallest_difference  # type: ignore[operator]
    assert together["m"].delta == alone["m"].delta
    assert width(compare(a, b, cluster=lambda item: item.metadata["doc"])) == width(together)
    assert "100 items in 25 clusters (doc)" in str(together)


def test_an_item_without_a_cluster_is_a_cluster_of_its_own() -> None:
    a = of([0.5] * 10, lambda i: {"doc": "d"} if i < 4 else {})
    assert compare(a, a, cluster="doc").clusters == 7


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"by": "tennant"}, "by: no item has 'tennant'; the items' metadata has 'tenant', 'n', 'tags'"),
        ({"cluster": "tennant"}, "cluster: no item has 'tennant'"),
        ({"by": lambda item: item.metadata["nope"]}, "by: the function 'slice' failed on item 'q0': KeyError"),
        ({"cluster": 7}, "cluster: 7 is neither"),
        ({"by": 7}, "by: 7 is neither"),
        ({"by": [7]}, "by: 7 is neither"),
        ({"confidence": 95}, "confidence 95 is not between 0 and 1"),
        ({"resamples": 5}, "resamples 5 is too few"),
    ],
)
def test_what_cannot_work_is_said_with_the_way_out(how: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as fault:
        compare(*sliced(), **how)
    assert says in str(fault.value)


def test_what_is_no_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"compare: b is list; give the Results"):
        compare(of([1.0]), [1.0])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="cannot be read"):
        compare(tmp_path / "nothing.json", of([1.0]))


# --- the object -----------------------------------------------------------------------------------------------------------------


def test_a_comparison_cannot_be_changed_and_names_its_scores() -> None:
    found = compare(of([0.5] * 5), of([0.6] * 5))
    with pytest.raises(FrozenInstanceError):
        found.seed = 1  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        found["m"].delta = 1.0  # type: ignore[misc]
    with pytest.raises(KeyError, match="no score 'x'; there are m"):
        found["x"]
    assert len(found) == 1
    assert list(found) == [found["m"]]


def test_json_is_strict_complete_and_says_seed_and_resamples(tmp_path: Path) -> None:
    found = compare(*sliced(), by="tenant", resamples=700, seed=5)
    plain = json.loads(found.to_json(), parse_constant=pytest.fail)
    assert (plain["format"], plain["seed"], plain["resamples"], plain["confidence"]) == (1, 5, 700, 0.95)
    assert [row["slice"] for row in plain["rows"]] == [None, "x", "y"]
    assert plain["rows"][0]["interval"]["resamples"] == 700
    assert plain["rows"][0]["n"] == 60
    found.save(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text()) == plain


def test_a_frame_has_a_row_for_each_score_and_slice() -> None:
    frame = compare(*sliced(), by="tenant", **FAST).to_pandas()
    assert list(frame["slice"].fillna("all")) == ["all", "x", "y"]
    assert list(frame["n"]) == [60, 30, 30]
    assert (frame["low"] <= frame["delta"]).all()


def test_the_text_table_reads_like_this() -> None:
    a = by(EvaluatorRecord("m", version="1"), 0.0)
    b = by(EvaluatorRecord("m", version="2"), 0.5)
    other = [item(scored(f"q{i}", float(i > 1), name="a longer name")) for i in range(12)]
    zeros = [item(scored(f"q{i}", 0.0, name="a longer name")) for i in range(12)]
    a, b = (
        replace(
            side, items=tuple(replace(x, scores=x.scores + y.scores) for x, y in zip(side.items, more, strict=True))
        )
        for side, more in ((a, zeros), (b, other))
    )
    assert str(compare(a, b)).splitlines() == [
        "a: experiment (dataset)   b: experiment (dataset)   12 items; delta is b - a",
        "score          a       b   delta  95 % interval  pairs  shows   detectable",
        "--------------------------------------------------------------------------",
        "m              config mismatch: a has m version 1 (config none), b has m version 2 (config none) "
        "(mean 0.055 in a, mean 0.555 in b)",
        "a longer name  0  0.8333  +0.833  +0.583 to +1?     12  better      0.6677",
        "! a longer name: interval unreliable, only 12 items: the truth may lie outside more often than the interval says",
        "detectable: the smallest true difference that so many pairs would show in 4 of 5 such experiments",
        "?: an interval that should not be relied on, since few items, or few that differ, stand behind it",
    ]


def test_a_long_table_is_cut_with_a_mark() -> None:
    a = of([0.5] * 100)
    text = str(compare(a, a, by=lambda item: item.item_id, **FAST))
    assert "... 41 more rows: to_pandas() and to_json() have them all" in text


def test_the_interval_holds_the_true_difference_about_as_often_as_it_says() -> None:
    held = 0
    for seed in range(150):
        interval = compare(of(noise(25, 2 * seed)), of(noise(25, 2 * seed + 1, 0.05)), resamples=400)["m"].interval
        assert interval is not None
        held += interval.holds(0.05)
    assert 0.90 <= held / 150 <= 0.99
