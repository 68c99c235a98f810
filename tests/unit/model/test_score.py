"""What a metric may return, and what each becomes (case C112 of the field)."""

import decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangrade.model.sample import FrozenDict, FrozenList, Sample, thaw
from spangrade.model.score import Graded, ReturnError, Score, Skip, read_scores


class Float32:
    """Like numpy's: no float, but says its number."""

    def __float__(self) -> float:
        return 0.25


def read(returned: Any, threshold: float | None = None, lower: bool = False, verdict: bool = True) -> list[Graded]:
    return read_scores("m", returned, threshold=threshold, lower_is_better=lower, verdict=verdict)


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
    ],
)
def test_one_score(returned: Any, value: float | None, label: str, passed: bool | None) -> None:
    (graded,) = read(returned)
    assert (graded.value, graded.label, graded.passed) == (value, label, passed)


@pytest.mark.parametrize("returned", [None, Score(label="skipped"), {"a": None}])
def test_skips(returned: Any) -> None:
    with pytest.raises(Skip):
        read(returned)


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
        {"a": object()},
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
        graded = read(returned)
    except (Skip, ReturnError):
        return
    assert graded
    for one in graded:
        assert one.value is not None or one.label or one.structured is not None
        assert one.value is None or one.value == one.value  # never NaN


def test_a_sample_is_a_snapshot_all_the_way_down() -> None:
    given_documents = [{"content": "a", "metadata": {"tags": ["x"]}}]
    sample = Sample(documents=given_documents)
    given_documents.append({"content": "b"})
    assert len(sample.documents) == 1
    assert isinstance(sample.documents, list)
    assert isinstance(sample.documents[0]["metadata"]["tags"], FrozenList)
    for change in (
        lambda: sample.documents.append({}),
        lambda: sample.documents[0].update(x=1),
        sample.documents[0]["metadata"]["tags"].clear,
        lambda: sample.context.__setitem__("a", 1),
    ):
        with pytest.raises(TypeError, match="work on a copy"):
            change()
    mine = thaw(sample.documents)
    mine[0]["content"] = "mine"
    assert sample.documents[0]["content"] == "a"


def test_frozen_containers_copy_pickle_and_compare_like_plain_ones() -> None:
    import copy
    import json
    import pickle

    frozen = FrozenDict(a=FrozenList([1, FrozenDict(b=2)]))
    assert frozen == {"a": [1, {"b": 2}]}
    assert json.dumps(frozen) == '{"a": [1, {"b": 2}]}'
    assert pickle.loads(pickle.dumps(frozen)) == frozen
    thawed = copy.deepcopy(frozen)
    thawed["a"][1]["b"] = 3
    assert frozen["a"][1]["b"] == 2
