"""One retrieved document in any form → ``content``, ``id``, ``score``, ``metadata``.

Stored fields of an object are read; its properties and methods are not run, except that a score that is no plain number
(numpy) is asked for its float.
"""

import itertools
import math
from collections.abc import Mapping
from types import MemberDescriptorType
from typing import Any, Final

from pydantic_core import from_json

from spangrade._values import bounded, cut, snapshot
from spangrade._walk import INT64

MAX_DOCUMENT_CHARS: Final = 131_072
CONTENT_KEYS: Final = ("content", "text", "page_content", "document", "passage", "chunk", "body", "document.content")
_NESTED: Final = ("node", "document", "doc", "text_resource", "content", "payload", "_source")
_IDS: Final = ("id", "id_", "node_id", "doc_id", "document_id", "_id", "document.id")
_SCORES: Final = ("score", "relevance_score", "similarity", "similarity_score", "_score", "document.score")
_METADATA: Final = ("metadata", "meta", "extra_info", "document.metadata")
_SURE_LISTS: Final = ("documents", "docs", "source_documents", "source_nodes")
LIST_KEYS: Final = (*_SURE_LISTS, "nodes", "results", "matches", "hits", "chunks")
_VECTORS: Final = frozenset({"embedding", "embeddings", "vector", "vectors", "values", "sparse_values"})
_SHAPE: Final = frozenset({"id", "content", "text", "page_content", "score", "metadata", "type"})
_FLAT: Final = frozenset({str, int, float, bool, type(None)})
_MAX_FLAT: Final = 32
MAX_DEPTH: Final = 4


def read_document(item: Any, depth: int) -> dict[str, Any] | None:
    """One document, or None when this is not one."""
    if isinstance(item, str):
        return {"content": bounded(item, MAX_DOCUMENT_CHARS)}
    if type(item) is dict and _SHAPE.issuperset(item):
        document = _of_shape(item)
        if document is not None:
            return document
    if isinstance(item, (list, tuple)) and not hasattr(type(item), "_fields"):
        pair = _pair(item)
        if pair is None:
            return None
        document = read_document(pair[0], depth + 1) if depth < MAX_DEPTH else None
        if document is not None:
            document["score"] = pair[1]
        return document
    stored = stored_fields(item)
    if stored is None or _holds_list(stored):
        return None
    return _of_fields(stored, isinstance(item, dict), depth)


def _of_shape(item: dict[str, Any]) -> dict[str, Any] | None:
    """What is in the usual shapes: the same result as `_of_fields`, sooner. None where there is no text."""
    content = item.get("content")
    if type(content) is not str:
        content = item.get("text") if content is None else None
        if type(content) is not str:
            content = item.get("page_content") if content is None and item.get("content") is None else None
            if type(content) is not str:
                return None
    given_id, score, metadata = _id(item.get("id")), read_number(item.get("score")), item.get("metadata")
    document: dict[str, Any] = {} if given_id is None else {"id": given_id}
    document["content"] = bounded(content, MAX_DOCUMENT_CHARS)
    if score is not None:
        document["score"] = score
    if metadata is not None:
        plain = dict(metadata) if _is_flat(metadata) else _metadata(item, False, set())
        if plain:
            document["metadata"] = plain
    return document


def _is_flat(metadata: Any) -> bool:
    """Whether a copy of the usual metadata needs no walk: few short values of plain types."""
    return (
        type(metadata) is dict
        and len(metadata) <= _MAX_FLAT
        and all(
            type(key) is str
            and len(key) <= 256
            and key.isascii()
            and type(value) in _FLAT
            and (
                (len(value) <= 1_024 and value.isascii())
                if type(value) is str
                else value is None or -INT64 <= value < INT64
            )
            for key, value in metadata.items()
        )
    )


def _holds_list(stored: Mapping[str, Any]) -> bool:
    """Whether this is a result that holds documents, rather than a document."""
    surely = any(isinstance(stored.get(key), (list, tuple)) for key in _SURE_LISTS)
    if surely or not any(isinstance(stored.get(key), (list, tuple)) for key in LIST_KEYS):
        return surely
    return not any(isinstance(stored.get(key), str) for key in CONTENT_KEYS)


def _of_fields(stored: Mapping[str, Any], is_dict: bool, depth: int) -> dict[str, Any] | None:
    content, inner, used = None, None, set()
    for key in CONTENT_KEYS:
        content = _text(stored.get(key))
        if content is not None:
            used.add(key)
            break
    if content is None and depth < MAX_DEPTH:
        for key in _NESTED:
            if stored.get(key) is not None and not isinstance(stored[key], (str, list, tuple)):
                inner = read_document(stored[key], depth + 1)
                if inner is not None:
                    used.add(key)
                    break
    document: dict[str, Any] = {} if inner is None else inner
    if content is not None:
        document["content"] = content
    given_id = _first(stored, _IDS, _id, used)
    score = _first(stored, _SCORES, read_number, used)
    metadata = _metadata(stored, is_dict, used)
    if given_id is not None and "id" not in document:
        document["id"] = given_id
    if score is not None:
        document["score"] = score
    if metadata:
        document["metadata"] = {**metadata, **document.get("metadata", {})}
    if not document or ("content" not in document and not {"id", "metadata"} & document.keys()):
        return None
    ordered = {"id": document.get("id"), "content": document.get("content", "")}
    ordered |= {"score": document.get("score"), "metadata": document.get("metadata")}
    return {key: value for key, value in ordered.items() if value is not None}


def _metadata(stored: Mapping[str, Any], is_dict: bool, used: set[str]) -> dict[str, Any]:
    """The metadata field; of a plain dict also its other fields, except vectors."""
    found: dict[str, Any] = {}
    for key in _METADATA:
        value = stored.get(key)
        if isinstance(value, str):
            value = _json_object(value)
        if isinstance(value, Mapping):
            used.add(key)
            plain = snapshot(value if isinstance(value, dict) else dict(value))
            found = plain if isinstance(plain, dict) else {}
            break
    if is_dict:
        known = used.union(_VECTORS, _METADATA, CONTENT_KEYS, ("id", "score", "type"))
        rest = {key: value for key, value in stored.items() if key not in known and value is not None}
        if rest:
            found = {**snapshot(rest), **found}
    return found


def _json_object(text: str) -> Any:
    try:
        return from_json(text) if text.lstrip().startswith("{") else None
    except ValueError:
        return None


def _first(stored: Mapping[str, Any], keys: tuple[str, ...], read: Any, used: set[str]) -> Any:
    for key in keys:
        value = read(stored.get(key))
        if value is not None:
            used.add(key)
            return value
    return None


def _text(value: Any) -> str | None:
    """Text of a content field: text, a list of parts, a number. None when there is none."""
    if isinstance(value, str):
        return bounded(value, MAX_DOCUMENT_CHARS)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return str(snapshot(value))
    if isinstance(value, (list, tuple)):
        parts = [part if isinstance(part, str) else _part(part) for part in value[:1_000]]
        texts = [part for part in parts if part]
        return bounded("\n".join(texts), MAX_DOCUMENT_CHARS) if texts else None
    return None


def _part(part: Any) -> str | None:
    if not isinstance(part, Mapping):
        return None
    value = part.get("text", part.get("content"))
    return value if isinstance(value, str) else None


def stored_fields(value: Any) -> Mapping[str, Any] | None:
    """The fields that an object stores, without running any of its code. A dict is its own fields."""
    if isinstance(value, Mapping):
        pairs = dict.items(value) if isinstance(value, dict) else value.items()
        return {k: v for k, v in itertools.islice(pairs, 1_000) if isinstance(k, str)}
    if isinstance(value, type) or value is None:
        return None
    fields = getattr(type(value), "_fields", None)
    if isinstance(value, tuple) and isinstance(fields, tuple):  # a named tuple
        return dict(zip(fields, tuple.__iter__(value), strict=False))
    found: dict[str, Any] = {}
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            member = kind.__dict__.get(name)
            if isinstance(member, MemberDescriptorType):
                try:
                    found[name] = member.__get__(value)
                except AttributeError:
                    continue  # never set
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = None
    if isinstance(own, dict):
        found.update(itertools.islice(own.items(), 1_000))
    return found or None


def _pair(value: Any) -> tuple[Any, float] | None:
    """``(document, score)`` of a pair with exactly one number in it."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return None
    numbers = [None if isinstance(part, str) else read_number(part) for part in value]
    if numbers[1] is not None and numbers[0] is None:
        return value[0], numbers[1]
    if numbers[0] is not None and numbers[1] is None:
        return value[1], numbers[0]
    return None


def read_number(value: Any) -> float | None:
    """A finite number, also as text, or as a scalar that knows its float (numpy)."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, bytes, bytearray, list, dict, tuple, set, complex)):
        return None
    if isinstance(value, str):
        if len(value) > 64:
            return None
    elif not isinstance(value, (int, float)) and getattr(type(value), "__float__", None) is None:
        return None
    try:
        number = float(value)
    except Exception:  # noqa: BLE001 - the application's __float__; no number then
        return None
    return number if math.isfinite(number) else None


def _id(value: Any) -> str | None:
    if value is None or isinstance(value, (bool, float, list, dict, tuple)):
        return None
    if type(value) is str and value.isascii() and len(value) <= 1_024:
        return value or None
    plain = snapshot(value)
    text = str(plain) if isinstance(plain, int) else plain
    placeholder = isinstance(text, str) and text.startswith("<") and not isinstance(value, str)
    return cut(text, 1_024) if isinstance(text, str) and text and not placeholder else None
