"""Labels that people gave: a dataset's rows with a ``label``, or with the ``labels`` of several annotators.

Each row is a dataset item (``id``, ``input``, ``output``, ``expected``, ``documents``, ``metadata``, by any of the usual
names; ``output`` is required) and has::

    "label": "pass" | "fail"          or true | false, 1 | 0
    "label": 1 | 2 | 3 | 4 | 5        or numbers from 0 to 1
    "labels": {"ann": "pass", "ben": "fail", "cy": null}      of several annotators; null: has not labelled it

All labels of a file are on one scale. A ``label`` beside ``labels`` is the adjudicated one and counts. Without it, what most
annotators say counts (an item on which they are split evenly is left out, and counted); of numbers the median, of two in the
middle the lower. A row whose label is null is left out, and counted. The judge sees nothing of labels.
"""

import json
import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

from spangrade.errors import ConfigError
from spangrade.experiments.calibration.agreement import majority
from spangrade.experiments.dataset_file import BadRow, rows_of
from spangrade.experiments.item import BadItem, Item, read_item, with_ids
from spangrade.experiments.pairing import canonical
from spangrade.model.evaluator import hash_config
from spangrade.model.sample import is_empty

LabelScale = Literal["pass-fail", "1-5", "0-1"]
SCALES: Final = ("pass-fail", "1-5", "0-1")
_WORDS: Final = {"pass": 1.0, "passed": 1.0, "true": 1.0, "fail": 0.0, "failed": 0.0, "false": 0.0}
_SHOWN: Final = 5
_KINDS: Final = "pass or fail, a whole number from 1 to 5, or a number from 0 to 1"


@dataclass(frozen=True, slots=True)
class Labelled:
    """One item with its labels, as scores from 0 to 1 (pass is 1; 1 to 5 are 0, 0.25, 0.5, 0.75, 1).

    ``value``: the label that counts; None where there is none, or the annotators are split. ``cluster``: what it stands or
    falls with; the item itself where nothing was asked for.
    """

    item: Item
    value: float | None
    annotators: Mapping[str, float | None] = field(default_factory=dict)
    cluster: Hashable = None


@dataclass(frozen=True, slots=True)
class Labels:
    """``unlabelled``: rows without any label; ``split``: without a majority; both are in ``rows`` and have no value."""

    rows: tuple[Labelled, ...]
    scale: LabelScale
    name: str
    hash: str
    unlabelled: int
    split: int

    @property
    def usable(self) -> tuple[Labelled, ...]:
        """The rows with a label that counts."""
        return tuple(row for row in self.rows if row.value is not None)

    @property
    def annotators(self) -> tuple[str, ...]:
        """The names of the annotators, in the order of their first label."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.annotators))


def shown(value: float, scale: LabelScale) -> str:
    """A label as it stands in the file."""
    if scale == "pass-fail":
        return "pass" if value >= 0.5 else "fail"
    return f"{value * 4 + 1:g}" if scale == "1-5" else f"{value:g}"


def read_labels(
    given: "str | os.PathLike[str] | Iterable[Any]", scale: LabelScale | None = None, cluster: str | None = None
) -> Labels:
    """The labelled rows of a file (JSON Lines, a JSON list, CSV) or of an iterable of dicts.

    Args:
        given: the path, or the rows.
        scale: ``pass-fail``, ``1-5`` or ``0-1``; by default what the labels themselves tell: words and 0 and 1 only are
            pass and fail, whole numbers up to 5 are 1-5, fractions are 0-1.
        cluster: a metadata key; items with the same value stand or fall together (chunks of one document).

    Raises:
        ConfigError: rows that cannot be read, named by their numbers; no label at all; a scale that cannot be told.
    """
    if scale is not None and scale not in SCALES:
        raise ConfigError(f"label scale {scale!r} is not one of {', '.join(SCALES)}")
    if isinstance(given, (str, os.PathLike)):
        what, name = f"labels {str(given)!r}", Path(given).name
        found: Iterable[tuple[str, Any]] = rows_of(Path(given))
    else:
        what, name = "labels", "labels"
        found = ((f"row {number}", row) for number, row in enumerate(given, 1))
    read: list[tuple[int, str, Item, Any, dict[str, Any]]] = []
    wrong: dict[int, str] = {}
    for index, (where, row) in enumerate(found):
        try:
            read.append((index, where, *_row(row)))
        except BadItem as fault:
            wrong[index] = f"{where}: {fault}"
    told = scale or _told([label for *_, one, several in read for label in (one, *several.values())], what, bool(wrong))
    rows: list[tuple[Item, Any, dict[str, float | None]]] = []
    for index, where, item, one, several in read:
        try:
            rows.append((item, _value(one, told), {who: _value(label, told) for who, label in several.items()}))
        except BadItem as fault:
            wrong[index] = f"{where}: {fault}"
    if wrong:
        bad = [wrong[index] for index in sorted(wrong)]
        more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        raise ConfigError(f"{what}: {len(bad)} bad row{'s' * (len(bad) > 1)}: {'; '.join(bad[:_SHOWN])}{more}")
    items, _ = with_ids(item for item, _, _ in rows)
    made = [
        _labelled(item, one, several, told, cluster, what) for item, (_, one, several) in zip(items, rows, strict=True)
    ]
    unlabelled = sum(row.value is None and not any(v is not None for v in row.annotators.values()) for row in made)
    empty = sum(row.value is None for row in made)
    if empty == len(made):
        raise ConfigError(f"{what}: none of {len(made)} rows has a label that counts; a label is {_KINDS}")
    digest = hash_config({"rows": [[row.item, row.value, dict(row.annotators)] for row in made]})
    return Labels(tuple(made), told, name, digest, unlabelled, empty - unlabelled)


def _row(row: Any) -> tuple[Item, Any, dict[str, Any]]:
    """The item without its labels, the one label, and those of annotators."""
    if isinstance(row, BadRow):
        raise BadItem(row.why)
    if not isinstance(row, Mapping):
        raise BadItem(f"it is a {type(row).__name__}; a row is an object with output and label")
    columns = {str(key).strip().lower(): key for key in row}
    held = [columns[name] for name in ("label", "labels") if name in columns]
    if not held:
        raise BadItem(f"it has neither label nor labels; its columns are {', '.join(map(str, row)) or 'none'}")
    one = row[columns["label"]] if "label" in columns else None
    several = row[columns["labels"]] if "labels" in columns else None
    item = read_item({key: value for key, value in row.items() if key not in held})
    if is_empty(item["output"]):
        raise BadItem("it has no output, which is what is labelled and graded")
    if isinstance(several, str) and several.lstrip().startswith("{"):  # a table's cell
        try:
            several = json.loads(several)
        except ValueError as fault:
            raise BadItem(f"labels is not JSON ({fault})") from None
    if several is None or several == "":
        several = {}
    if not isinstance(several, Mapping):
        raise BadItem(
            f'labels {several!r:.60} is no object such as {{"ann": "pass", "ben": "fail"}}; one label goes under label'
        )
    return item, one, {str(who): label for who, label in several.items()}


def _plain(label: Any) -> float | str | None:
    """A label as a number, or as a word in lower case."""
    if label is None or (isinstance(label, float) and math.isnan(label)):
        return None
    if isinstance(label, bool):
        return "true" if label else "false"
    if isinstance(label, (int, float)):
        return float(label)
    if isinstance(label, str):
        word = label.strip().lower()
        if not word:
            return None
        try:
            return float(word)
        except ValueError:
            return word
    raise BadItem(f"the label {label!r:.60} is neither a word nor a number; a label is {_KINDS}")


def _told(labels: Sequence[Any], what: str, is_bad: bool) -> LabelScale:
    """The scale that the labels themselves tell. What is no label is left to `_value`, which names its row."""
    plain = []
    for label in labels:
        try:
            plain.append(_plain(label))
        except BadItem:
            continue
    numbers = {one for one in plain if isinstance(one, float)}
    if any(one in _WORDS for one in plain if isinstance(one, str)) or numbers in ({0.0, 1.0}, {0.0}):
        return "pass-fail"
    if numbers == {1.0}:
        raise ConfigError(f"{what}: every label is 1, which may be a pass or the worst of 1 to 5; give the label scale")
    if any(0 < number < 1 for number in numbers):
        return "0-1"
    if numbers or is_bad:
        return "1-5"
    return "pass-fail"


def _value(label: Any, scale: LabelScale) -> float | None:
    plain = _plain(label)
    if plain is None:
        return None
    if scale == "pass-fail":
        found = _WORDS.get(plain) if isinstance(plain, str) else plain if plain in (0.0, 1.0) else None
        if found is not None:
            return found
        raise BadItem(f"the label {label!r:.60} is neither pass nor fail, as the others are")
    if isinstance(plain, str):
        raise BadItem(f"the label {label!r:.60} is no number; the labels are {scale}")
    if scale == "1-5":
        if plain in (1.0, 2.0, 3.0, 4.0, 5.0):
            return (plain - 1) / 4
        raise BadItem(f"the label {label!r:.60} is not one of 1, 2, 3, 4, 5")
    if 0 <= plain <= 1:
        return plain
    raise BadItem(f"the label {label!r:.60} is not from 0 to 1")


def _labelled(
    item: Item, one: float | None, several: dict[str, float | None], scale: LabelScale, cluster: str | None, what: str
) -> Labelled:
    value = one
    given = sorted(label for label in several.values() if label is not None)
    if value is None and given:
        value = cast("float | None", majority(given)) if scale == "pass-fail" else given[(len(given) - 1) // 2]
    group: Hashable = item["item_id"]
    if cluster is not None:
        if cluster not in item["metadata"]:
            raise ConfigError(f"{what}: item {item['item_id']!r} has no {cluster!r} in its metadata to be clustered by")
        group = canonical(item["metadata"][cluster])
    return Labelled(item, value, several, group)
