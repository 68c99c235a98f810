"""What a dataset may be, and which of its columns mean what."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangrade import Sample
from spangrade.errors import ConfigError
from spangrade.experiments.dataset import Dataset, read_dataset


def ids(given: Any) -> list[str]:
    return [item["item_id"] for item in read_dataset(given).items]


def only(row: Any) -> Any:
    (item,) = read_dataset([row]).items
    return item


def test_columns_are_read_by_their_usual_names_in_any_case_and_the_rest_is_metadata() -> None:
    item = only(
        {"Question": "q", "Expected Output": "e", "response": "o", "contexts": ["d"], "ID": 7, "topic": "t", "metadata": {"k": 1}}
    )  # fmt: skip
    assert dict(item) == {
        "item_id": "7",
        "input": "q",
        "expected": "e",
        "output": "o",
        "documents": [{"content": "d"}],
        "context": {},
        "metadata": {"topic": "t", "k": 1},
    }


@pytest.mark.parametrize("name", ["expected_output", "expectedOutput", "Expected-Output", " EXPECTED OUTPUT "])
def test_a_columns_name_may_be_written_in_any_style(name: str) -> None:
    assert only({"input": "q", name: "e"}).expected == "e"
    assert only({"input": "q", name: "e"})["expectedOutput"] == "e"


def test_of_two_columns_for_one_field_the_first_name_counts_and_the_other_stays_in_metadata() -> None:
    item = only({"answer": "a", "output": "o", "ground_truth": "g", "input": "i"})
    assert (item.output, item.expected, item.metadata) == ("o", "g", {"answer": "a"})
    assert only({"input": None, "question": "q"}).input == "q"


def test_an_item_is_read_by_any_name_and_its_own_columns_by_theirs_and_cannot_be_changed() -> None:
    item = only({"question": "q", "ticket": 5})
    assert (item["question"], item["input"], item.input, item["ticket"], item.get("nope", 3)) == ("q", "q", "q", 5, 3)
    with pytest.raises(KeyError, match="it has item_id, input"):
        item["nope"]
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        item.nope  # noqa: B018
    with pytest.raises(TypeError):
        item["input"] = "x"


def test_a_context_that_is_text_is_the_items_documents_and_stays_what_the_task_gets() -> None:
    item = only({"question": "q", "context": "Paris is in France."})
    assert item.documents == [{"content": "Paris is in France."}]
    assert item.context == "Paris is in France."
    assert only({"question": "q", "context": {"a": 1}}).context == {"a": 1}


def test_samples_and_texts_and_objects_are_items_too() -> None:
    class Row:
        def __init__(self) -> None:
            self.input, self.expected_output = "i", "e"

    sample = Sample("i", "o", "e", [{"content": "d"}], {"c": 1}, {"m": 1}, trace_id="t", item_id="x")
    items = read_dataset([sample, "text", Row()]).items
    assert dict(items[0]) == {
        "item_id": "x", "input": "i", "output": "o", "expected": "e", "documents": [{"content": "d"}],
        "context": {"c": 1}, "metadata": {"m": 1, "trace_id": "t"},
    }  # fmt: skip
    assert items[1].input == "text"
    assert (items[2].input, items[2].expected) == ("i", "e")


def test_an_id_is_a_hash_of_what_was_asked_and_not_of_what_was_answered() -> None:
    first = ids([{"input": "a", "expected": "b", "output": "one", "documents": ["x"]}])
    assert first == ids([{"expected": "b", "output": "two", "question": "a", "documents": ["y"], "tag": 1}])
    assert first != ids([{"input": "a", "expected": "c"}])
    assert ids([{"input": "a", "documents": ["x"]}]) != ids([{"input": "a", "documents": ["y"]}])


@given(st.lists(st.sampled_from(["a", "b", "a-2", "a-3", None]), min_size=1, max_size=12))
def test_ids_are_all_different_whatever_was_given(given_ids: list[str | None]) -> None:
    found = ids([{"id": one, "input": "same"} for one in given_ids])
    assert len(set(found)) == len(given_ids)
    assert found[0] == given_ids[0] or given_ids[0] is None


def test_ids_of_other_types_are_texts() -> None:
    given_ids = [7, 7.0, uuid.UUID(int=1), b"\x80", "x" * 1_000]
    found = ids([{"id": one, "input": "q"} for one in given_ids])
    assert found[:3] == ["7", "7-2", "00000000-0000-0000-0000-000000000001"]
    assert all(len(one) < 300 for one in found)


def test_ids_that_are_used_twice_are_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "spangrade"):
        assert ids([{"id": "a", "input": "1"}, {"id": "a", "input": "2"}]) == ["a", "a-2"]
    assert "more than once" in caplog.text
    caplog.clear()
    ids(["same", "same"])  # nobody gave these
    assert caplog.text == ""


def test_the_datasets_hash_changes_with_any_content_and_with_nothing_else() -> None:
    def of(rows: Any) -> str:
        return read_dataset(rows, name="x").hash

    assert of([{"input": "a"}]) == of([{"question": "a"}])
    assert len({of([{"input": "a", **more}]) for more in ({}, {"output": "o"}, {"tag": 1}, {"id": "z"})}) == 4


def test_a_generator_is_read_to_its_end_and_a_dataset_is_itself() -> None:
    def rows() -> Iterator[dict[str, str]]:
        yield {"input": "a"}
        yield {"input": "b"}

    dataset = read_dataset(rows())
    assert [item.input for item in dataset.items] == ["a", "b"]
    assert read_dataset(dataset) is dataset


def test_a_hugging_face_style_dataset_is_read_with_its_name_and_several_splits_are_refused() -> None:
    class Info:
        dataset_name = "squad"

    class HubDataset:
        info, split = Info(), "test"

        def __iter__(self) -> Iterator[dict[str, Any]]:
            return iter([{"question": "q", "answers": {"text": ["a"], "answer_start": [0]}}])

    dataset = read_dataset(HubDataset())
    assert (dataset.name, dataset.items[0].metadata) == (
        "squad[test]",
        {"answers": {"text": ["a"], "answer_start": [0]}},
    )
    with pytest.raises(ConfigError, match=r"has the parts train, test; choose one, as in dataset\['train'\]"):
        read_dataset({"train": HubDataset(), "test": HubDataset()})


def test_a_dataframe_is_its_rows_with_missing_cells_as_none_and_arrays_as_lists() -> None:
    frame = pandas.DataFrame(
        {"id": [1, None], "question": ["q", "r"], "answer": [None, "a"], "contexts": [numpy.array(["x", "y"]), None], "n": [numpy.nan, 2.5]}
    )  # fmt: skip
    first, second = read_dataset(frame).items
    assert (first.item_id, first.output, [d["content"] for d in first.documents], first.metadata) == (
        "1",
        None,
        ["x", "y"],
        {},
    )
    assert (second.output, second.documents, second.metadata) == ("a", [], {"n": 2.5})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (7, "a int is no dataset; give a path"),
        (b"x", "a bytes is no dataset"),
        ({"input": "a"}, "one dict is no dataset; give a list"),
        ([], "has no items"),
        ([3], "item 1: it is a int; an item is a dict"),
        ([{"foo": 1}], "item 1: it has neither input, output nor expected .*its columns are foo"),
        ([{"input": "a"}, None], "item 2: it is a NoneType"),
        ("no/such.jsonl", r"'no/such\.jsonl' cannot be read: No such file"),
        ("rows.parquet", r"\.parquet files are not read; .*pandas\.read_parquet"),
    ],
)
def test_what_is_no_dataset_is_refused_with_the_way_out(given: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_dataset(given)


# --- files --------------------------------------------------------------------------------------------------------------


def written(path: Path, content: bytes | str) -> Dataset:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_dataset(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_json_lines_are_read_with_any_byte_order_mark_and_line_end(tmp_path: Path, encoding: str, end: str) -> None:
    rows = [{"input": "naïve\u2028line", "n": 1}, {"input": "b"}]
    text = f"{end}".join(json.dumps(row, ensure_ascii=False) for row in rows) + end + end
    dataset = written(tmp_path / "d.jsonl", text.encode(encoding))
    assert [item.input for item in dataset.items] == ["naïve\u2028line", "b"]
    assert dataset.name == "d.jsonl"


def test_a_json_list_is_read_too(tmp_path: Path) -> None:
    assert len(written(tmp_path / "d.json", '[{"input": "a"},\n {"input": "b"}]').items) == 2
    with pytest.raises(ConfigError, match=r"e\.json' is not JSON"):
        written(tmp_path / "e.json", "[{]")


def test_bad_lines_are_named_with_their_numbers_the_first_five(tmp_path: Path) -> None:
    lines = ['{"input": "a"}', "{", "[1]", '{"foo": 1}', "3", "nope", "x", "y"]
    with pytest.raises(ConfigError) as caught:
        written(tmp_path / "d.jsonl", "\n".join(lines))
    said = str(caught.value)
    assert "d.jsonl': 7 bad rows: line 2: is not JSON" in said
    assert all(f"line {number}: " in said for number in (3, 4, 5, 6))
    assert "line 7" not in said
    assert "and 2 more" in said


def test_text_that_is_not_utf8_is_named_with_its_line_and_byte(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not UTF-8: line 2 holds the byte 0xe9; save it as UTF-8"):
        written(tmp_path / "d.csv", "input\nna\xefve caf\xe9".encode("latin-1").replace(b"\xef", b"i"))


@pytest.mark.parametrize(("name", "mark"), [("d.csv", ","), ("d.csv", ";"), ("d.tsv", "\t")])
def test_tables_are_read_with_quotes_and_their_delimiter(tmp_path: Path, name: str, mark: str) -> None:
    text = f'id{mark}question{mark}expected{mark}tag\n1{mark}"two\nlines, ""quoted"""{mark}yes{mark}x\n\n2{mark}b{mark}{mark}\n'
    first, second = written(tmp_path / name, "\ufeff" + text).items
    assert (first.item_id, first.input, first.expected, first.metadata) == (
        "1",
        'two\nlines, "quoted"',
        "yes",
        {"tag": "x"},
    )
    assert (second.item_id, second.expected, second.metadata) == ("2", None, {})


def test_a_table_may_hold_documents_and_metadata_as_json(tmp_path: Path) -> None:
    text = (
        'input,documents,metadata\nq,"[""a"", {""content"": ""b"", ""score"": 0.5}]","{""lang"": ""fr""}"\nr,plain,\n'
    )
    first, second = written(tmp_path / "d.csv", text).items
    assert first.documents == [{"content": "a"}, {"content": "b", "score": 0.5}]
    assert first.metadata == {"lang": "fr"}
    assert second.documents == [{"content": "plain"}]


def test_a_row_with_more_cells_than_the_header_and_an_open_quote_are_bad_lines(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"line 3: has 1 cells more than the header \(quote what holds a ','\)"):
        written(tmp_path / "d.csv", "input,tag\na,b\na,b,c\n")
    with pytest.raises(ConfigError, match="line 2: is not CSV"):
        written(tmp_path / "e.csv", 'input,tag\n"a,b\n')


def test_a_cell_may_be_longer_than_the_csv_modules_own_limit(tmp_path: Path) -> None:
    assert len(written(tmp_path / "d.csv", "input\n" + "x" * 200_000 + "\n").items[0].input) == 200_000
