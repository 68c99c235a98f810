"""What a metric may return, and what each becomes (case C112 of the field)."""

import decimal
import enum
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangrade.model.evaluator import Failure, Verdict
from spangrade.model.result import MetricResult
from spangrade.model.returned import ScoreReader
from spangrade.model.score import MAX_SCORES, Graded, ReturnError, Rule, Score, Skip


class Float32:
    """Like numpy's: no float, but says its number."""

    def __float__(self) -> float:
        return 0.25


class Tone(enum.Enum):
    WARM = "warm"


class Grade(str, enum.Enum):  # noqa: UP042 - what prints as "Grade.GOOD"
    GOOD = "good"


def verdict_of(returned: Any, threshold: float | None = None, lower: bool = False, verdict: bool = True) -> Verdict:
    return ScoreReader("m", Rule(threshold, lower, verdict))(returned)


def read(returned: Any, *rule: Any, **rules: Any) -> tuple[Graded, ...]:
    found = verdict_of(returned, *rule, **rules)
    assert found.failures == ()
    return found.scores


@pytest.mark.parametrize(
    ("returned", "value", "label", "passed"),
    [
        (0.5, 0.5, "pass", True),
        (1, 1.0, "pass", True),
        (True, 1.0, "pass", True),
        (False, 0.0, "fail", False),
        (decimal.Decimal("0.5"), 0.5, "pass", True),
        (Float32(), 0.25, "pass", True),
        ("good", None, "good", None),
        ("pass", None, "pass", True),
        ("fail", None, "fail", False),
        (Score(0.9, label="fail"), 0.9, "fail", False),
        (Score(0, label="pass"), 0.0, "fail", False),  # pass never overrides the threshold rule
        (Score(0.9, label="billing"), 0.9, "billing", True),
        ((0.5, "because"), 0.5, "pass", True),
        ({"score": 0.5, "reason": "because"}, 0.5, "pass", True),
        ({"label": "x", "explanation": "y"}, None, "x", None),
        (Tone.WARM, None, "warm", None),
        (Grade.GOOD, None, "good", None),
        (Score(Grade.GOOD), None, "good", None),
        (Score(label="0.5"), None, "0.5", None),  # a category that is named so
    ],
)
def test_one_score(returned: Any, value: float | None, label: str, passed: bool | None) -> None:
    (graded,) = read(returned)
    assert (graded.value, graded.label, graded.passed) == (value, label, passed)


def test_a_metric_result_keeps_its_reason_as_the_explanation() -> None:
    (graded,) = read(MetricResult(0.7, reason="two of three"), 0.8)
    assert (graded.value, graded.label, graded.explanation) == (0.7, "fail", "two of three")
    (category,) = read(MetricResult("billing"))
    assert (category.value, category.label, category.explanation) == (None, "billing", None)
    found = verdict_of({"a": MetricResult([1, 2], "ranked"), "b": MetricResult(None, "no answer")})
    assert (found.scores[0].structured, found.scores[0].explanation) == ([1, 2], "ranked")
    assert [(failure.name, failure.message) for failure in found.failures] == [("m.b", "no answer")]


@pytest.mark.parametrize(("reason", "said"), [("no answer", "no answer"), (None, "no value and no reason")])
def test_a_metric_result_without_a_value_is_an_error_as_it_is_of_a_functional_metric(
    reason: str | None, said: str
) -> None:
    with pytest.raises(ReturnError, match=said):
        read(MetricResult(None, reason))


@pytest.mark.parametrize("returned", [None, Score(label="skipped"), {"a": None}, (None, "why"), (None, None)])
def test_skips(returned: Any) -> None:
    with pytest.raises(Skip):
        read(returned)


def test_a_skip_may_say_why() -> None:
    with pytest.raises(Skip, match="no documents"):
        read((None, "no documents"))


@pytest.mark.parametrize(
    "returned",
    [
        float("nan"),
        float("inf"),
        "",
        " ",
        {},
        object(),
        1 + 2j,
        Score(),
        Score(label="error"),
        b"x",
        {1, 2},
        (1, 2),
        10**400,
        "0.5",
        " 7 ",
        "nan",
        Score("0.5"),
        {"a": 1, 1: 2, "1": 3},
        {object(): 1},
        {str(n): n for n in range(MAX_SCORES + 1)},
    ],
)
def test_errors_that_say_what_is_wrong(returned: Any) -> None:
    with pytest.raises(ReturnError, match=r"return|labelled error|neither"):
        read(returned)


def test_reasons_are_cut_and_lists_are_structured() -> None:
    (graded,) = read((0.5, "r" * 2_000_000))
    assert graded.explanation is not None
    assert len(graded.explanation) < 9_000
    (graded,) = read([1, 2])
    assert (graded.value, graded.structured) == (None, [1, 2])


def test_a_dict_of_names_is_several_scores() -> None:
    assert [(g.name, g.value) for g in read({"a": 1, "b": (0.5, "x"), "c": None})] == [("m.a", 1.0), ("m.b", 0.5)]
    assert [(g.name, g.value) for g in read({Tone.WARM: 1, 2: 0})] == [("m.warm", 1.0), ("m.2", 0.0)]


def test_a_dict_inside_a_dict_of_names_is_one_score_or_a_structured_value() -> None:
    (one, nested) = read({"a": {"score": 0.5, "reason": "because"}, "b": {"x": 1, "y": [2]}})
    assert (one.name, one.value, one.explanation) == ("m.a", 0.5, "because")
    assert (nested.name, nested.value, nested.structured) == ("m.b", None, {"x": 1, "y": [2]})


def test_of_several_scores_a_bad_one_fails_under_its_name_and_costs_no_other() -> None:
    found = verdict_of(
        {"a": 1, "b": float("nan"), "c": None, "d": object(), "e": Score(label="error", explanation="no")}
    )
    assert [(g.name, g.value) for g in found.scores] == [("m.a", 1.0)]
    assert [(f.name, f.kind) for f in found.failures] == [(f"m.{key}", "ReturnError") for key in "bde"]
    assert "finite number" in found.failures[0].message
    assert found.failures[2] == Failure("m.e", "ReturnError", "no")


def test_when_all_of_several_scores_are_bad_there_are_only_failures() -> None:
    found = verdict_of({"a": "", "b": None})
    assert (found.scores, [f.name for f in found.failures]) == ((), ["m.a"])


def test_what_is_made_the_short_way_is_what_the_constructors_make() -> None:
    for returned, value in ((0.5, 0.5), (True, 1.0), (0, 0.0)):
        (graded,) = read(returned)
        assert graded == Graded("m", value, "pass" if value else "fail", bool(value))
        assert graded == read(Score(returned))[0]
    assert verdict_of(1) == Verdict((Graded("m", 1.0, "pass", True),))


def test_an_array_of_one_element_is_its_number_and_one_of_several_is_none() -> None:
    numpy = pytest.importorskip("numpy")
    for one in (numpy.float32(0.25), numpy.array(0.25), numpy.array([[0.25]])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read(one)[0].value == 0.25
    assert read(numpy.bool_(True))[0].value == 1.0
    with pytest.raises(ReturnError, match="ndarray, which is no number"):
        read(numpy.array([0.25, 0.5]))


def test_a_coroutine_inside_another_value_is_an_error_and_python_prints_nothing_of_it() -> None:
    async def later() -> float:
        return 0.5

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = verdict_of({"a": later(), "b": 1})
    assert "await it" in found.failures[0].message
    assert [g.name for g in found.scores] == ["m.b"]


@pytest.mark.parametrize(
    ("value", "threshold", "lower", "passed"),
    [
        (0.5, 0.5, False, True),
        (0.49, 0.5, False, False),
        (0.5, 0.5, True, True),
        (0.51, 0.5, True, False),
        (0, None, False, False),
        (-1, None, False, True),
        (0, None, True, True),
    ],
)
def test_thresholds_in_both_directions(value: float, threshold: float | None, lower: bool, passed: bool) -> None:
    (graded,) = read(value, threshold, lower)
    assert graded.passed is passed
    (measured,) = read(value, threshold, lower, verdict=False)
    assert (measured.passed, measured.label) == (None, None)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.binary(),
        lambda c: st.lists(c) | st.dictionaries(st.text(), c),
    )
)
def test_nothing_but_scores_skips_and_return_errors_comes_of_any_value(returned: Any) -> None:
    try:
        found = verdict_of(returned)
    except (Skip, ReturnError):
        return
    assert found.scores or found.failures
    for one in found.scores:
        assert one.value is not None or one.label or one.structured is not None
        assert one.value is None or one.value == one.value  # never NaN
