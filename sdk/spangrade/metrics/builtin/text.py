"""The text of what a Sample holds: an output that may be parsed JSON, documents in any form."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic_core import from_json

from spangrade.model.document import read_document

MAX_CHARS: Final = 1_048_576
_MAX_NODES: Final = 50_000


def as_text(value: Any, limit: int = MAX_CHARS) -> str:
    """Text of a value that may be parsed JSON: its strings and numbers (not its keys), one a line, about ``limit`` characters."""
    if isinstance(value, str):
        return value[:limit]
    return "\n".join(_leaves(value, limit))


def prose(value: Any, limit: int = MAX_CHARS) -> str:
    """`as_text`, where text that is a JSON object or list is read as one: its keys are no words of the answer."""
    if isinstance(value, str) and len(value) <= limit and value.lstrip()[:1] in ("{", "["):
        try:
            parsed = from_json(value)
        except ValueError:
            return value
        return as_text(parsed, limit) if isinstance(parsed, (dict, list)) else value
    return as_text(value, limit)


def _leaves(value: Any, limit: int) -> Iterator[str]:
    left, todo = _MAX_NODES, [value]
    while todo and left > 0 and limit > 0:
        left -= 1
        item = todo.pop()
        if isinstance(item, Mapping):
            todo += reversed(list(item.values())[:left])
        elif isinstance(item, (list, tuple)):
            todo += reversed(item[:left])
        elif isinstance(item, str):
            yield item[:limit]
            limit -= len(item)
        elif isinstance(item, bool):
            yield "true" if item else "false"
        elif isinstance(item, (int, float)):
            yield _number(item)


def _number(value: float) -> str:
    try:
        return str(value)
    except ValueError:  # an int of more than 4,300 digits
        return ""


def document_texts(documents: Any) -> list[str]:
    """The text of each document: a dict in any retriever's spelling, or plain text. One without text is ``""``."""
    if isinstance(documents, (str, Mapping)):
        documents = [documents]
    if not isinstance(documents, (list, tuple)):
        return []
    return [_document_text(document) for document in documents]


def _document_text(document: Any) -> str:
    if isinstance(document, str):
        return document
    if not isinstance(document, Mapping):
        return as_text(document) if isinstance(document, (list, tuple)) else ""
    content = document.get("content")
    if isinstance(content, str):
        return content
    found = read_document(document, 0)
    return as_text(content) if found is None else str(found.get("content", ""))


def quoted(text: str, limit: int = 160) -> str:
    """Text in quotation marks, on one line, cut to ``limit`` characters."""
    line = " ".join(text[: 4 * limit].split())
    return f"“{line}”" if len(line) <= limit else f"“{line[: limit - 3]}...”"
