"""`Item`: one item of a dataset, under the names of a Sample, whatever its columns were called."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from spangrade._values import bounded, dumps, snapshot
from spangrade.model.document import stored_fields
from spangrade.model.documents import read_documents
from spangrade.model.evaluator import hash_config
from spangrade.model.sample import FrozenDict, Sample, freeze, is_empty, thaw

#: For each field of an item the columns it is read from, the first that is there. `ALIASES` of metrics are among them.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "item_id": ("item_id", "id"),
    "input": ("input", "question", "query", "prompt", "user_input", "inputs"),
    "output": ("output", "answer", "response", "actual_output"),
    "expected": ("expected", "reference", "expected_output", "ground_truth", "reference_answer", "expected_answer"),
    "documents": ("documents", "contexts", "retrieved_contexts", "retrieval_context"),
    "context": ("context",),
    "metadata": ("metadata",),
}
_MAX_ID: Final = 256


class Item(FrozenDict):
    """One dataset item, read-only: a mapping with ``item_id``, ``input``, ``expected``, ``output``, ``documents``,
    ``context`` and ``metadata``, which are attributes too.

    ``item["question"]`` and the other usual names give the same fields, and a column that is none of these is found by its
    own name (it stands in ``metadata``). A ``context`` that is text stays text here; it is the item's documents too.
    """

    __slots__ = ()

    def __missing__(self, key: str) -> Any:
        field = field_named(key)
        if field is not None:
            return self[field]
        found = self["metadata"]
        if key in found:
            return found[key]
        raise KeyError(f"the item has no {key!r}; it has {', '.join((*self, *found))}")

    def get(self, key: str, default: Any = None) -> Any:
        """As in a dict, by any name."""
        try:
            return self[key]
        except KeyError:
            return default

    def __getattr__(self, name: str) -> Any:
        if name in COLUMNS:
            return self[name]
        raise AttributeError(f"an item has no attribute {name!r}; it has {', '.join(COLUMNS)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Item, (dict(self),))


def column_name(name: Any) -> str:
    """A column's name as it is compared: "Expected Output", ``expected_output`` and ``expectedOutput`` are one."""
    return _APART.sub("", str(name)).lower()


_APART: Final = re.compile(r"[\s_-]+")
_FIELD_OF: Final = {column_name(column): field for field, columns in COLUMNS.items() for column in columns}


def field_named(name: Any) -> str | None:
    """The item's field that a column or parameter of this name means; None where it is none of the usual names."""
    return _FIELD_OF.get(column_name(name))


class BadItem(ValueError):
    """What was given is no item; the message says what it is and what would be right."""


def read_item(given: Any) -> Item:
    """An item of a row (a mapping, an object with such fields), a `Sample`, or a text (the input). Its id is None where the
    row has none.

    Raises:
        BadItem: nothing of it is an item's.
    """
    if isinstance(given, Item):
        return given
    if isinstance(given, str):
        given = {"input": given}
    elif isinstance(given, Sample):
        given = _row_of(given)
    elif not isinstance(given, Mapping):
        stored = None if isinstance(given, (list, tuple, int, float, bytes)) else stored_fields(given)
        if stored is None:
            raise BadItem(f"it is a {type(given).__name__}; an item is a dict with input, expected and the like")
        given = stored
    return _of_row(given)


def _row_of(sample: Sample) -> dict[str, Any]:
    row = {field: getattr(sample, field) for field in COLUMNS}
    if sample.trace_id is not None:  # where it came from; the run gets a trace of its own
        row["trace_id"] = sample.trace_id
    return row


def _of_row(row: Mapping[Any, Any]) -> Item:
    by_name: dict[str, Any] = {}
    for key in row:
        by_name.setdefault(column_name(key), key)
    found: dict[str, Any] = {}
    taken: set[Any] = set()
    for field, columns in COLUMNS.items():
        column = next(
            (held for c in columns if (held := by_name.get(column_name(c))) and not _nothing(row[held])), None
        )
        if column is not None:
            found[field] = _listed(row[column])
            taken.add(column)
    if not isinstance(found.get("context", {}), Mapping):  # a passage or several, as many datasets call them
        found.setdefault("documents", found["context"])
    if not {"input", "output", "expected"} & found.keys():
        names = ", ".join(str(key) for key in row) or "none"
        raise BadItem(f"it has neither input, output nor expected (nor {_others()}); its columns are {names}")
    metadata = {str(key): _listed(value) for key, value in row.items() if key not in taken and not _nothing(value)}
    for key in [key for key in metadata if field_named(key) and is_empty(metadata[key])]:
        del metadata[key]
    own = found.pop("metadata", {})
    metadata.update(own if isinstance(own, Mapping) else {"metadata": own})
    return Item(
        item_id=_id(found.get("item_id")),
        input=freeze(found.get("input")),
        expected=freeze(found.get("expected")),
        output=freeze(found.get("output")),
        documents=freeze(list(read_documents(found.get("documents")) or ())),
        context=freeze(found.get("context", {})),
        metadata=freeze(metadata),
    )


def _others() -> str:
    return ", ".join(dict.fromkeys(c for field in ("input", "output", "expected") for c in COLUMNS[field][1:]))


def _nothing(value: Any) -> bool:
    """None, or what a table has for it."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _listed(value: Any) -> Any:
    """An array or scalar of numpy (as pandas and Hugging Face have them) as the list or number that it is."""
    if isinstance(value, (str, int, float, list, dict, tuple)) or not type(value).__module__.startswith("numpy"):
        return value
    return value.tolist() if hasattr(value, "tolist") else value


def plain(value: Any) -> Any:
    """A value as evaluators see it and results keep it: plain JSON, bounded."""
    return snapshot(_listed(value))


def plain_item(item: Item) -> Item:
    """The item as evaluators see it and results keep it; the task gets its values as they were given."""
    return Item(
        {key: value if key in ("item_id", "documents") else freeze(plain(value)) for key, value in item.items()}
    )


def for_task(item: Item) -> Item:
    """The item for one run of the task, whose lists and dicts are its own to change."""
    return Item({key: thaw(value) for key, value in item.items()})


def _id(given: Any) -> str | None:
    if given is None or given == "":
        return None
    if isinstance(given, float) and given.is_integer():  # an integer in a column that has gaps
        given = int(given)
    said = snapshot(given)  # a UUID is text there
    return bounded(said if isinstance(said, str) else dumps(said), _MAX_ID) or None


def with_ids(items: Iterable[Item]) -> tuple[list[Item], list[str]]:
    """The items with an id each, all different, and the ids that were given more than once.

    Without one, an item's id is a hash of input, expected and context, and of its documents only where no output came
    with them: so two systems' recorded answers to one question are the same item. Of several equal ones the second is
    ``id-2``, and so on: stable as long as their order is.
    """
    used: set[str] = set()
    repeated: list[str] = []
    made: list[Item] = []
    for item in items:
        wanted = item["item_id"] or _hash(item)
        item_id, count = wanted, 1
        while item_id in used:
            count += 1
            item_id = f"{wanted}-{count}"
        if count == 2 and item["item_id"]:
            repeated.append(wanted)
        used.add(item_id)
        made.append(Item({**item, "item_id": item_id}))
    return made, repeated


def _hash(item: Item) -> str:
    item = plain_item(item)
    said = {"input": item["input"], "expected": item["expected"], "context": item["context"]}
    if item["output"] is None:
        said["documents"] = item["documents"]
    return hash_config(said)
