"""Retrieved documents in any form → one shape.

`read_documents` is used where the application hands documents over (`set_retrieval_documents`) and where they are read
from spans. What is read of an object are its stored fields; its properties and methods are not run. Two exceptions,
because the application gave us these to read: an iterator is read (once, at most `MAX_DOCUMENTS` items), and a score
that is no plain number (numpy) is asked for its float.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from io import IOBase
from typing import Any, Final

from pydantic_core import from_json

from spangrade._log import once
from spangrade._values import MAX_CHARS, bounded, dumps
from spangrade.model.document import (
    CONTENT_KEYS,
    LIST_KEYS,
    MAX_DEPTH,
    read_document,
    read_number,
    stored_fields,
)

MAX_DOCUMENTS: Final = 1_000
#: In the ``metadata`` of the last document kept, when some were cut: ``{"given": 300, "kept": 47}``.
CUT: Final = "spangrade.cut"

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
        document = read_document(item, 0)
        if document is not None:
            self.keep(document)
            return
        members = _members(item) if depth < MAX_DEPTH else None
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
    if isinstance(value, (str, bytes, bytearray, memoryview, IOBase)) or read_number(value) is not None:
        return None
    stored = stored_fields(value)
    if stored is not None:
        for key in LIST_KEYS:
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
    known = (*CONTENT_KEYS, *LIST_KEYS)
    return value if isinstance(value, dict) and any(key in value for key in known) else None
