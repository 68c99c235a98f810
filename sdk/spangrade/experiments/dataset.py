"""`Dataset`: the items of an experiment, from whatever a user has them in."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spangrade._log import log
from spangrade._values import bounded, dumps
from spangrade.errors import ConfigError
from spangrade.experiments.dataset_file import BadRow, rows_of
from spangrade.experiments.item import BadItem, Item, plain_item, read_item, with_ids

_SHOWN: Final = 5  # bad rows in an error message
_MAX_NAME: Final = 1_024


@dataclass(frozen=True, slots=True)
class Dataset:
    """Items with an id each, all different; ``hash`` changes when any of their content does.

    ``items`` hold values as they were given, for the task; ``plain`` are the same as JSON, for evaluators and results.
    """

    items: tuple[Item, ...]
    plain: tuple[Item, ...]
    name: str
    hash: str


def read_dataset(given: Any, name: str | None = None) -> Dataset:
    """The items of a path (JSON Lines, a JSON list, CSV, TSV), or of any iterable: dicts, `Sample` objects, texts
    (inputs), a Hugging Face dataset, a pandas DataFrame, a generator (read to its end).

    A row's columns: ``input`` (or question, query, prompt, user_input), ``output`` (answer, response, actual_output),
    ``expected`` (reference, expected_output, ground_truth, reference_answer, expected_answer), ``documents`` (contexts,
    retrieved_contexts, retrieval_context; or a ``context`` that is text), ``context``, ``metadata``, ``item_id`` (id).
    Upper and lower case do not matter. Every other column goes into ``metadata`` under its own name.

    Raises:
        ConfigError: it is no dataset, it is empty, or rows are bad; these are named with their lines.
    """
    if isinstance(given, Dataset):
        return given
    if isinstance(given, (str, os.PathLike)):
        path = Path(given)
        what, found, named = f"dataset {str(path)!r}", rows_of(path), path.name
    else:
        what, found, named = "dataset", _numbered(_iterable(given)), _name_of(given)
    items, bad = [], []
    for where, row in found:
        try:
            if isinstance(row, BadRow):
                raise BadItem(row.why)
            items.append(read_item(row))
        except BadItem as fault:
            bad.append(f"{where}: {fault}")
    if bad:
        more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        raise ConfigError(f"{what}: {len(bad)} bad row{'s' * (len(bad) > 1)}: {'; '.join(bad[:_SHOWN])}{more}")
    if not items:
        raise ConfigError(f"{what} has no items")
    made, repeated = with_ids(items)
    if repeated:
        log.warning(
            "item ids are used more than once; the later ones get -2, -3 and so on",
            dataset=name or named,
            ids=repeated[:_SHOWN],
        )
    plain = tuple(plain_item(item) for item in made)
    return Dataset(tuple(made), plain, bounded(name or named, _MAX_NAME), _hash(plain))


def _numbered(rows: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for number, row in enumerate(rows, 1):
        yield f"item {number}", row


def _iterable(given: Any) -> Iterable[Any]:
    if isinstance(given, Mapping):
        raise ConfigError(_not_a_mapping(given))
    if hasattr(given, "iterrows") and hasattr(given, "to_dict"):  # pandas
        records: list[Any] = given.to_dict("records")
        return records
    if isinstance(given, (bytes, bytearray)) or callable(getattr(given, "__await__", None)):
        raise ConfigError(f"dataset: a {type(given).__name__} is no dataset; {_KINDS}")
    try:
        rows: Iterable[Any] = iter(given)
        return rows
    except TypeError:
        raise ConfigError(f"dataset: a {type(given).__name__} is no dataset; {_KINDS}") from None


_KINDS: Final = "give a path (JSON Lines, CSV), or an iterable of dicts such as {'input': ..., 'expected': ...}"


def _not_a_mapping(given: Mapping[Any, Any]) -> str:
    names = [str(key) for key in list(given)[:8]]
    if names and all(not isinstance(value, str) and hasattr(value, "__iter__") for value in given.values()):
        return f"dataset: this {type(given).__name__} has the parts {', '.join(names)}; choose one, as in dataset[{names[0]!r}]"
    return f"dataset: one {type(given).__name__} is no dataset; give a list of items, as in [{{...}}, {{...}}]"


def _name_of(given: Any) -> str:
    """A Hugging Face dataset says its name and split."""
    info = getattr(given, "info", None)
    name = getattr(info, "dataset_name", None) or getattr(info, "builder_name", None)
    split = getattr(given, "split", None)
    if isinstance(name, str) and name:
        return f"{name}[{split}]" if split else name
    return "dataset"


def _hash(items: Iterable[Item]) -> str:
    digest = hashlib.sha256()
    for item in items:
        digest.update(dumps(item).encode())
        digest.update(b"\n")
    return digest.hexdigest()[:16]
