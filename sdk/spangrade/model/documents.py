"""Retrieved documents in any form → one shape.

`read_documents` is used where the application hands documents over (`set_retrieval_documents`) and where they are read
from spans. What is read of an object are its stored fields; its properties and methods are not run. Two exceptions,
because the application gave us these to read: an iterator is read (once, at most `MAX_DOCUMENTS` items), and a score
that is no plain number (numpy) is asked for its float.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from io import IOBase
from types import MemberDescriptorType
from typing import Any, Final

from pydantic_core import from_json

from spangrade._log import once
from spangrade._values import MAX_CHARS, bounded, cut, dumps, snapshot

MAX_DOCUMENTS: Final = 1_000
MAX_DOCUMENT_CHARS: Final = 131_072
#: In the ``metadata`` of the last document kept, when some were cut: ``{"given": 300, "kept": 47}``.
CUT: Final = "spangrade.cut"

_CONTENT: Final = ("content", "text", "page_content", "document", "passage", "chunk", "body", "document.content")
_NESTED: Final = ("node", "document", "doc", "text_resource", "content", "payload", "_source")
_IDS: Final = ("id", "id_", "node_id", "doc_id", "document_id", "_id", "document.id")
_SCORES: Final = ("score", "relevance_score", "similarity", "similarity_score", "_score", "document.score")
_METADATA: Final = ("metadata", "meta", "extra_info", "document.metadata")
_SURE_LISTS: Final = ("documents", "docs", "source_documents", "source_nodes")
_LISTS: Final = (*_SURE_LISTS, "nodes", "results", "matches", "hits", "chunks")
_VECTORS: Final = frozenset({"embedding", "embeddings", "vector", "vectors", "values", "sparse_values"})
_SHAPE: Final = frozenset({"id", "content", "score", "metadata"})
_MAX_DEPTH: Final = 4
_MAX_ITEMS: Final = 20_000  # looked at, good or bad, nested lists together


def read_documents(value: Any) -> tuple[dict[str, Any], ...] | None:
    """Documents as dicts with ``content`` (str) and where known ``id`` (str), ``score`` (float), ``metadata`` (dict).

    Accepted: text; dicts that spell the text ``content``, ``text``, ``page_content``, ``document``, ``passage``,
    ``chunk`` or ``body`` (their other fields become metadata); LangChain, LlamaIndex and Haystack documents and
    look-alikes; ``(document, score)`` and ``(score, document)``; text as a list of parts; lists nested per query; any
    iterable of these; a result object that holds such a list; JSON text of a list. Order and scores are kept as they
    are, and nothing is invented: a document with only an id and a score (as the GenAI conventions have it) has the
    ``content`` ``""``.

    Returns None for None and for a value in which nothing can be read, ``()`` for an empty list: searched, nothing
    found. What is no document is skipped, and said once in the log. Never raises. At most `MAX_DOCUMENTS` documents and
    about 1 MiB of text are kept, whole documents from the first on, one longer than `MAX_DOCUMENT_CHARS` cut in its
    middle; `CUT` tells of documents left out. What was given stays as it was, except that an iterator is read.
    """
    if value is None:
        return None
    reader = _Reader()
    try:
        reader.top(value)
    except Exception as fault:  # noqa: BLE001 - an iterable of the application may raise anything
        reader.skipped(value, fault)
    if reader.bad:
        once(
            "documents:unread",
            "some retrieved documents could not be read and were left out; a document is text, a dict with 'content', "
            "or an object with text or page_content",
            skipped=reader.bad,
            first=reader.first_bad,
        )
    if reader.bad and not reader.given and not reader.kept:
        return None
    return reader.finish()


class _Reader:
    """Collects documents within the bounds."""

    __slots__ = ("bad", "first_bad", "given", "kept", "left", "room", "stopped")

    def __init__(self) -> None:
        self.kept: list[dict[str, Any]] = []
        self.given = 0
        self.bad = 0
        self.first_bad = ""
        self.left = _MAX_ITEMS
        self.room = MAX_CHARS
        self.stopped = False

    def finish(self) -> tuple[dict[str, Any], ...]:
        if self.kept and (self.given > len(self.kept) or self.stopped):
            last = self.kept[-1]
            note: dict[str, Any] = {"given": self.given, "kept": len(self.kept)}
            if self.stopped:
                note["stopped"] = True  # there may have been more to read
            last["metadata"] = {**last.get("metadata", {}), CUT: note}
        return tuple(self.kept)

    def skipped(self, item: Any, fault: Exception | None = None) -> None:
        self.bad += 1
        if not self.first_bad:
            kind = type(item)
            self.first_bad = f"{kind.__module__}.{kind.__qualname__}" + (f" ({type(fault).__name__})" if fault else "")

    def top(self, value: Any) -> None:
        if isinstance(value, str):
            parsed = _json_list(value)
            if parsed is None:
                self.item(value, 0)
                return
            value = parsed
        if isinstance(value, list):  # never a pair at the top: [text, 0.5] has a member that is no document
            self.several(value, 0)
        elif not isinstance(value, (tuple, set, frozenset)) or value:
            self.item(value, 0)

    def several(self, items: Iterable[Any], depth: int) -> None:
        for item in items:
            self.left -= 1
            if self.left < 0:
                self.stopped = True
                return
            try:
                self.item(item, depth + 1)
            except Exception as fault:  # noqa: BLE001 - one bad document costs only itself
                self.skipped(item, fault)
        if isinstance(items, _Counted) and items.taken >= MAX_DOCUMENTS:
            self.stopped = True

    def item(self, item: Any, depth: int) -> None:
        if item is None or (isinstance(item, str) and not item.strip()):
            self.skipped(item)
            return
        document = _document(item, 0)
        if document is not None:
            self.keep(document)
            return
        members = _members(item) if depth < _MAX_DEPTH else None
        if members is None:
            self.skipped(item)
        else:
            self.several(members, depth)

    def keep(self, document: dict[str, Any]) -> None:
        self.given += 1
        if len(self.kept) >= MAX_DOCUMENTS or self.room <= 0:
            return
        content = document["content"]
        size = len(content) + (len(dumps(document["metadata"])) if "metadata" in document else 0)
        if size > self.room:
            if self.kept:  # whole documents only; but the first is always there, at least in part
                self.room = 0
                return
            document.pop("metadata", None)
            document["content"] = bounded(content, self.room)
        self.room -= size
        self.kept.append(document)


class _Counted(Iterable[Any]):
    """An iterable of the application, read at most `MAX_DOCUMENTS` items far."""

    def __init__(self, source: Iterable[Any]) -> None:
        self.taken = 0
        self._source = source

    def __iter__(self) -> Iterator[Any]:
        for item in itertools.islice(self._source, MAX_DOCUMENTS):
            self.taken += 1
            yield item


def _members(value: Any) -> Iterable[Any] | None:
    """What ``value`` holds, when it is a list of documents or holds one under a usual name; else None. The value is
    known to be no document itself (a pydantic document can be iterated too)."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    if isinstance(value, (str, bytes, bytearray, memoryview, IOBase)) or _number(value) is not None:
        return None
    stored = _stored(value)
    if stored is not None:
        for key in _LISTS:
            if isinstance(stored.get(key), (list, tuple)):
                held: Iterable[Any] = stored[key]
                return held
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        return None
    return _Counted(value)


def _json_list(text: str) -> Any:
    """The list (or the one document) that a JSON text holds; None when it is just text."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        value = from_json(text)
    except ValueError:
        return None
    if isinstance(value, list) and all(isinstance(item, (dict, list, str)) for item in value):
        return value
    known = (*_CONTENT, *_LISTS)
    return value if isinstance(value, dict) and any(key in value for key in known) else None


def _document(item: Any, depth: int) -> dict[str, Any] | None:
    """One document, or None when this is not one."""
    if isinstance(item, str):
        return {"content": bounded(item, MAX_DOCUMENT_CHARS)}
    if type(item) is dict and _SHAPE.issuperset(item) and isinstance(item.get("content"), str):
        return _of_shape(item)
    if isinstance(item, (list, tuple)) and not hasattr(type(item), "_fields"):
        pair = _pair(item)
        if pair is None:
            return None
        document = _document(pair[0], depth + 1) if depth < _MAX_DEPTH else None
        if document is not None:
            document["score"] = pair[1]
        return document
    stored = _stored(item)
    if stored is None or _holds_list(stored):
        return None
    return _of_fields(stored, isinstance(item, dict), depth)


def _of_shape(item: dict[str, Any]) -> dict[str, Any]:
    """What is in our own shape already: the same result as `_of_fields`, sooner."""
    given_id, score, metadata = _id(item.get("id")), _number(item.get("score")), item.get("metadata")
    document: dict[str, Any] = {} if given_id is None else {"id": given_id}
    document["content"] = bounded(item["content"], MAX_DOCUMENT_CHARS)
    if score is not None:
        document["score"] = score
    if metadata is not None:
        plain = _metadata(item, False, set())
        if plain:
            document["metadata"] = plain
    return document


def _holds_list(stored: Mapping[str, Any]) -> bool:
    """Whether this is a result that holds documents, rather than a document."""
    surely = any(isinstance(stored.get(key), (list, tuple)) for key in _SURE_LISTS)
    if surely or not any(isinstance(stored.get(key), (list, tuple)) for key in _LISTS):
        return surely
    return not any(isinstance(stored.get(key), str) for key in _CONTENT)


def _of_fields(stored: Mapping[str, Any], is_dict: bool, depth: int) -> dict[str, Any] | None:
    content, inner, used = None, None, set()
    for key in _CONTENT:
        content = _text(stored.get(key))
        if content is not None:
            used.add(key)
            break
    if content is None and depth < _MAX_DEPTH:
        for key in _NESTED:
            if stored.get(key) is not None and not isinstance(stored[key], (str, list, tuple)):
                inner = _document(stored[key], depth + 1)
                if inner is not None:
                    used.add(key)
                    break
    document: dict[str, Any] = {} if inner is None else inner
    if content is not None:
        document["content"] = content
    given_id = _first(stored, _IDS, _id, used)
    score = _first(stored, _SCORES, _number, used)
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
        known = used.union(_VECTORS, _METADATA, _CONTENT, ("id", "score", "type"))
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


def _stored(value: Any) -> Mapping[str, Any] | None:
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
    numbers = [None if isinstance(part, str) else _number(part) for part in value]
    if numbers[1] is not None and numbers[0] is None:
        return value[0], numbers[1]
    if numbers[0] is not None and numbers[1] is None:
        return value[1], numbers[0]
    return None


def _number(value: Any) -> float | None:
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
