"""Labels as people have them in files: what is read, what is left out and counted, and what is refused by its row."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangrade.errors import ConfigError
from spangrade.experiments.calibration.labels import read_labels


def rows(*labels: Any) -> list[dict[str, Any]]:
    return [{"output": f"answer {n}", "label": label} for n, label in enumerate(labels)]


def file(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("labels", "scale", "values"),
    [
        (("pass", "fail", "PASS "), "pass-fail", [1, 0, 1]),
        ((True, False), "pass-fail", [1, 0]),
        ((1, 0, 1), "pass-fail", [1, 0, 1]),
        (("pass", 0), "pass-fail", [1, 0]),
        ((1, 2, 5), "1-5", [0, 0.25, 1]),
        (("1", "4"), "1-5", [0, 0.75]),
        ((0.0, 0.4, 1), "0-1", [0, 0.4, 1]),
    ],
)
def test_the_scale_is_what_the_labels_themselves_tell(labels: Any, scale: str, values: list[float]) -> None:
    found = read_labels(rows(*labels))
    assert found.scale == scale
    assert [row.value for row in found.rows] == values


def test_labels_that_are_all_1_may_be_the_best_or_the_worst_so_the_scale_must_be_said() -> None:
    with pytest.raises(ConfigError, match="may be a pass or the worst of 1 to 5"):
        read_labels(rows(1, 1))
    assert [row.value for row in read_labels(rows(1, 1), "1-5").rows] == [0, 0]
    assert [row.value for row in read_labels(rows(1, 1), "pass-fail").rows] == [1, 1]


def test_every_bad_row_is_named_by_its_line_and_in_order(tmp_path: Path) -> None:
    path = file(
        tmp_path / "labels.jsonl",
        {"output": "a", "label": "pass"},
        {"output": "b", "label": "maybe"},
        {"output": "c"},
        "no json",
        {"input": "q", "label": "pass"},
        {"output": "d", "labels": ["pass"]},
    )
    with pytest.raises(ConfigError) as refused:
        read_labels(path)
    said = str(refused.value)
    assert "5 bad rows" in said
    places = [said.index(words) for words in (
        "line 2: the label 'maybe' is neither pass nor fail", "line 3: it has neither label nor labels; its columns are output",
        "line 4: is not JSON", "line 5: it has no output", "line 6: labels ['pass'] is no object",
    )]  # fmt: skip
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("label", "scale", "words"),
    [(6, "1-5", "not one of 1, 2, 3, 4, 5"), (2.5, "1-5", "not one of"), ("good", "1-5", "is no number"), (3, "0-1", "not from 0 to 1"),
     (2, "pass-fail", "neither pass nor fail"), ([1], None, "neither a word nor a number")],
)  # fmt: skip
def test_a_label_that_is_not_on_the_scale_is_refused(label: Any, scale: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_labels(rows(label), scale)


def test_rows_without_a_label_are_left_out_and_counted_and_so_are_draws() -> None:
    found = read_labels(
        [
            {"output": "a", "label": None},
            {"output": "b", "labels": {"ann": "pass", "ben": "fail"}},
            {"output": "c", "labels": {"ann": "pass", "ben": None}},
            {"output": "d", "labels": {"ann": None}},
            {"output": "e", "label": "fail", "labels": {"ann": "pass", "ben": "pass"}},
        ]
    )
    assert [row.value for row in found.rows] == [None, None, 1, None, 0]
    assert (found.unlabelled, found.split, len(found.usable)) == (2, 1, 2)
    assert found.annotators == ("ann", "ben")


def test_of_several_numbers_the_median_counts_and_of_two_in_the_middle_the_lower() -> None:
    found = read_labels(
        [{"output": "a", "labels": {"a": 1, "b": 5, "c": 4}}, {"output": "b", "labels": {"a": 2, "b": 5}}]
    )
    assert [row.value for row in found.rows] == [0.75, 0.25]


def test_the_judge_sees_nothing_of_the_labels() -> None:
    found = read_labels(
        [{"output": "a", "label": "pass", "labels": {"ann": "fail"}, "topic": "law", "metadata": {"k": 1}}]
    )
    assert dict(found.rows[0].item["metadata"]) == {"topic": "law", "k": 1}


def test_a_table_of_labels_may_hold_annotators_as_json(tmp_path: Path) -> None:
    rows = ["id,input,output,label,labels", 'x,q,yes,,"{""ann"": ""pass""}"', "y,q,no,fail,"]
    found = read_labels(file(tmp_path / "l.csv", *rows)).rows
    assert [(row.item["item_id"], row.value) for row in found] == [("x", 1), ("y", 0)]
    with pytest.raises(ConfigError, match="line 4: it has no output"):
        read_labels(file(tmp_path / "l.csv", *rows, "z,q,,pass,"))


def test_nothing_but_missing_labels_is_refused() -> None:
    with pytest.raises(ConfigError, match="none of 1 rows has a label that counts"):
        read_labels(rows(None))
    with pytest.raises(ConfigError, match="none of 0 rows"):
        read_labels([])


def test_clusters_are_read_from_metadata_and_a_missing_one_is_named() -> None:
    given = [{"id": "a", "output": "x", "label": "pass", "claim": "c1"}, {"id": "b", "output": "y", "label": "fail"}]
    with pytest.raises(ConfigError, match="item 'b' has no 'claim'"):
        read_labels(given, cluster="claim")
    given[1]["claim"] = "c1"
    assert len({row.cluster for row in read_labels(given, cluster="claim").rows}) == 1


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["output", "label", "labels", "input", "documents", "metadata"]),
            st.recursive(
                st.none() | st.booleans() | st.integers(-1, 7) | st.floats() | st.text(max_size=5),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
                max_leaves=5,
            ),
        ),
        max_size=4,
    )
)
def test_whatever_is_in_the_rows_they_are_read_or_refused_with_a_sentence(given: Any) -> None:
    try:
        found = read_labels(given)
    except ConfigError:
        return
    assert all(row.value is None or 0 <= row.value <= 1 for row in found.rows)
    assert found.usable
