"""Limits for CI: what reaches them, what does not, and in which words."""

from typing import Any

import pytest
from tests.unit.experiments.made import BOOM, failed, item, results, scored

from spangrade.errors import ConfigError
from spangrade.experiments.gate import Limit, findings, limits_of, worst
from spangrade.experiments.records import EvaluatorRecord
from spangrade.experiments.results import Results
from spangrade.model.outcome import Outcome


def said(made: Results, limits: Any, **more: Any) -> list[tuple[bool, str]]:
    return [(found.met, found.sentence) for found in findings(made, limits_of(limits), **more)]


def nine_of_ten() -> list[Any]:
    return [item(scored(f"{n}", float(n != 0), n != 0)) for n in range(10)]


def test_limits_are_pass_rates_means_or_the_pass_rate_of_one_score() -> None:
    assert limits_of(["0.9", "m=0.8", "a=b=1", "m.pass_rate=0.5"]) == [
        Limit(None, 0.9, True), Limit("m", 0.8), Limit("a=b", 1.0), Limit("m", 0.5, True),
    ]  # fmt: skip
    assert limits_of(0.5) == [Limit(None, 0.5, True)]
    assert limits_of({"words": 120}) == [Limit("words", 120.0)]
    assert limits_of(None) == []


@pytest.mark.parametrize("wrong", ["", "x", "m=", "nan", "m=inf", "90", "-0.1", "m.pass_rate=2", True])
def test_a_limit_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="fail-under"):
        limits_of([wrong] if isinstance(wrong, str) else wrong)


def test_a_pass_rate_reaches_its_limit_or_is_under_it() -> None:
    assert said(results(*nine_of_ten()), 0.9) == [(True, "m: pass rate 90.0% (9 of 10) reaches 90.0%")]
    assert said(results(*nine_of_ten()), 0.95) == [(False, "m: pass rate 90.0% (9 of 10) is under 95.0%")]


def test_in_a_pass_rate_failures_count_as_not_passed_and_skipped_ones_do_not_count() -> None:
    runs = [*nine_of_ten()[1:], item(failed("x")), item(failed("s", Outcome.SKIPPED)), item(item_id="t", error=BOOM)]
    ((met, sentence),) = said(results(*runs), 0.9)
    assert not met
    assert sentence == "m: pass rate 81.8% (9 of 11, 1 errors, 1 failed tasks counted as not passed) is under 90.0%"


def test_a_mean_reaches_its_limit_and_lower_is_better_turns_it_round() -> None:
    assert said(results(*nine_of_ten()), ["m=0.9"]) == [(True, "m: mean 0.9 reaches 0.9 (n=10)")]
    assert said(results(*nine_of_ten()), ["m=0.95"]) == [(False, "m: mean 0.9 is under 0.95 (n=10)")]
    words = results(item(scored("a", 130.0)), evaluators=(EvaluatorRecord("m", lower_is_better=True),))
    assert said(words, {"m": 120}) == [(False, "m: mean 130 is above 120 (n=1)")]
    assert said(words, {"m": 130})[0][0]


def test_a_mean_of_what_is_left_after_failures_is_not_believed_unless_that_is_allowed() -> None:
    made = results(*nine_of_ten()[1:], item(failed("x")))
    ((met, sentence),) = said(made, ["m=0.5"])
    assert not met
    assert "known of 9 of 10 runs only: 1 errors" in sentence
    assert said(made, ["m=0.5"], max_error_rate=0.1)[0][0]


def test_a_score_that_was_never_given_meets_no_limit() -> None:
    skipped = results(item(failed("a", Outcome.SKIPPED)))
    assert said(skipped, ["m=0", "0"]) == [
        (False, "m was never scored: 1 skipped (boom)"),
        (False, "m was never scored: 1 skipped (boom)"),
    ]
    assert said(results(), ["m=0"]) == [(False, "m was never scored")]
    ((met, sentence),) = said(skipped, ["typo=0"])
    assert (met, "no score of that name (there are m)" in sentence) == (False, True)


def test_measurements_have_no_pass_rate_and_labels_only_no_mean() -> None:
    measured = results(item(scored("a", 5.0)), evaluators=(EvaluatorRecord("m", verdict=False),))
    assert said(measured, 0.5) == [(False, "no score has a verdict, so there is no pass rate")]
    assert said(measured, ["m.pass_rate=0.5"]) == [(False, "m has no verdicts, so it has no pass rate")]
    labelled = results(item(scored("a", None, label="blue")))
    assert said(labelled, ["m=0.5"])[0] == (
        False,
        "m has neither numbers nor verdicts, only labels: it cannot reach 0.5",
    )
    passed = results(item(scored("a", None, True, label="pass")))
    assert said(passed, ["m=0.5"])[0][0]


def test_the_worst_runs_are_shown_with_what_was_asked_answered_and_why_errors_first() -> None:
    good = item(scored("ok", 1.0, True), input="fine")
    bad = item(scored("b", 0.25, False, label="fail", explanation="too\nshort"), input="x" * 200, output="y")
    error = item(failed("e"), input="q", output="z")
    task = item(item_id="t", error=BOOM, input="asked")
    lines = worst(results(good, bad, error, task))
    assert lines[0] == "t  asked\n    task failed: ValueError: boom"
    assert lines[1].startswith("b  xxx")
    assert lines[1].endswith("x… → y\n    m: 0.25 (fail): too short")
    assert lines[2] == "e  q → z\n    m: error ValueError: boom"
    assert worst(results(*[item(failed(f"{n}")) for n in range(12)]))[-1] == "... and 2 more"
