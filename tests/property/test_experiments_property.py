"""Whatever stands in a dataset, and whatever a task gives or raises: a result for every run, and a file that is read again."""

import csv
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import spangrade as sg
from spangrade.experiments import Results
from spangrade.experiments.dataset import read_dataset
from spangrade.model.outcome import Outcome

TEXT = st.text(st.characters(exclude_categories=()), max_size=20)  # halves of characters, too
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
COLUMNS = st.sampled_from(
    ["input", "question", "expected", "documents", "contexts", "context", "metadata", "id", "output", "x"]
)
ROWS = st.dictionaries(COLUMNS | TEXT, VALUES, max_size=5)


@sg.metric
def says(sample: sg.Sample) -> Any:
    return sample.output


@settings(max_examples=60)
@given(st.lists(st.tuples(ROWS, VALUES, st.booleans()), min_size=1, max_size=4), TEXT)
def test_every_run_has_an_end_and_the_results_survive_their_file(
    wild: list[tuple[dict[str, Any], Any, bool]], message: str
) -> None:
    rows = [{**row, "input": row.get("input") or "asked", "n": n} for n, (row, _, _) in enumerate(wild)]

    def task(item: Any) -> Any:
        _, output, fails = wild[item["n"]]
        if fails:
            raise ValueError(message)
        return output

    results = sg.evaluate(rows, task, [says], name=message.strip() or None)
    assert len(results.items) == len(rows)
    for item, (_, _, fails) in zip(results.items, wild, strict=True):
        assert (item.error is not None) == fails
        assert fails or item.scores
        assert all((score.value is None) or score.outcome is Outcome.SCORED for score in item.scores)
    json.dumps(json.loads(results.to_json()), allow_nan=False).encode()
    with tempfile.TemporaryDirectory() as folder:
        results.save(Path(folder, "r.json"))
        assert Results.load(Path(folder, "r.json")).to_json() == results.to_json()
    str(results)


@settings(max_examples=100)
@given(st.lists(ROWS, min_size=1, max_size=4))
def test_the_same_rows_have_the_same_ids_and_hash_whatever_is_in_them(rows: list[dict[str, Any]]) -> None:
    rows = [{**row, "input": "asked"} for row in rows]
    first, again = read_dataset(rows), read_dataset(rows)
    assert [item["item_id"] for item in first.items] == [item["item_id"] for item in again.items]
    assert first.hash == again.hash


CELLS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=12)


@settings(max_examples=60)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5), st.sampled_from(",;\t"), st.booleans())
def test_what_a_table_or_json_lines_hold_is_read_as_it_was_written(
    rows: list[tuple[str, str]], delimiter: str, bom: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table, lines = Path(folder, "d.csv"), Path(folder, "d.jsonl")
        with table.open("w", encoding="utf-8-sig" if bom else "utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerows([("input", "tag"), *rows])
        lines.write_text("\n".join(json.dumps({"input": i, "tag": t}, ensure_ascii=False) for i, t in rows), "utf-8")
        for path in (table, lines):
            assert [(item["input"], item["tag"]) for item in read_dataset(path).items] == rows
